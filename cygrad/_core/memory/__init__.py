"""Memory and its layout: storages, sizes and strides, memory formats, notes of writes.

Promises that an address is valid while its Storage lives, and that every size and stride was checked for overflow.
Uses the allocator of the kernels and the table of dtypes; no tensors.
"""
