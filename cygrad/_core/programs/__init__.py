"""Programs of tensors: results that are not computed yet, and the marks on the memory that they compute or read.

Promises that deferral changes timing only.
Uses operands, and `_kernels/programs`, which has no tensors.
"""
