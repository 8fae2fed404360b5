"""Functions that are captured once and replayed: notes become a program with memory of its own, and a node of the graph.

Promises eager's bits for other values of the same kind, or that nothing has changed where a replay gives up.
Uses all rooms: a replay makes tensors and records them.
"""
