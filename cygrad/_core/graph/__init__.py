"""Tensors and the graph they hang in: a cycle of types, each of which has fields of the others, hence one room.

Promises that a node finds its saved values as they were, or raises that they changed; that the garbage collector gets all cycles.
Uses memory; computes nothing.
"""
