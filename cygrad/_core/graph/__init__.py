"""Tensors and the graph they hang in: a cycle of types, each of which has fields of the others, hence one room.

Promises that a node finds its saved values as they were, or raises that they were changed, and that cycles are handed to the garbage
collector. Uses memory; computes nothing.
"""
