"""Observers that record a thread's events, or announce them.

Promises that an event without shapes and stack makes no Python object.
Uses levels, whose observers it extends; the package's profiler reads the records.
"""
