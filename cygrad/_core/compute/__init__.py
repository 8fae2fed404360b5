"""Operators: from operands to results, views and changed targets, and to the node that is their history.

Promises torch's results and errors, and that what is recorded can be differentiated.
Knows whether a tensor is special, not what follows from that.
"""
