"""Memory and its layout: storages, sizes and strides, memory formats, notes of what was written.

Promises that an address is valid while its Storage lives, and that every size and stride was checked for overflow.
Knows kernels' allocator and the table of dtypes; nothing of tensors.
"""
