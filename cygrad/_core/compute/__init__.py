"""Operators: from operands to results, views and changed targets, and to the node that is their history.

Promises torch's results and errors, and that recorded results can be differentiated.
Uses operands and levels: it checks whether a tensor is special, and calls `entry` for such tensors.
"""
