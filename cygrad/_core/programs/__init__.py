"""Programs of tensors: results that are not computed yet, and the marks on memory that they compute or read.

Promises that deferral changes timing only. Uses operands and `_kernels/programs`, which knows no tensors.
"""
