# cython: language_level=3
"""Calls that run upwards (see upward.pxd for the contract)."""


cdef class Upward:
    """What higher rooms bring."""


cdef Upward upward = Upward()
