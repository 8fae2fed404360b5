"""Operands: tensors, Python numbers, arrays; their common dtype and shape, and the memory of results.

Promises torch's promotion and NumPy's broadcasting, in one place for all operators. Records nothing by itself.
Uses tensors and the graph.
"""
