"""Backward: from gradients of outputs to those of leaves.

Promises that each node runs once, after all that lead to it, and that hooks run in torch's order.
Knows nodes and the kernels of elementwise rows; nothing of functions that users call.
"""
