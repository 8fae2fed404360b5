"""What makes a tensor special: tangents of forward mode, batches of vmap, observers of a thread's work.

Promises that a tensor which is not special costs one predictable branch.
Knows operands; what operators do with special tensors stands in `entry`.
"""
