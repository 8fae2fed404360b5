"""The marks of special tensors: tangents of forward mode, batches of vmap, observers of a thread's work.

Promises that a tensor which is not special costs one predictable branch.
Uses operands; `entry` has the operators on special tensors.
"""
