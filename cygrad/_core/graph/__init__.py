"""Tensors and the graph they hang in: a cycle of types, each of which has fields of the others, hence one room.

Promises that a node finds what it saved, as it was, or says that it was changed, and that cycles are handed to the garbage collector.
Knows memory; computes nothing.
"""
