"""Backward: from the gradients of outputs to the gradients of leaves.

Promises that each node runs once, after all that lead to it, and that hooks run in torch's order.
Uses nodes and the kernels of elementwise rows; no function that users call.
"""
