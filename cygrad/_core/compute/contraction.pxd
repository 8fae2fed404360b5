"""Contractions: a product of arrays that broadcast, of which only a sum is read, as products of matrices.

`(a[:, :, None] * b[None]).sum(1)` takes a pass over all elements of the product, a contraction a product of the matrices `a` and `b`.
It sums in another order, so the last bits differ.
"""
from cygrad._core.graph.tensor cimport TensorImpl

cdef bint contracts     # sums of products are contractions where that is quicker

# Write the sum over dims of a pending product into a new result; False if it is no contraction, or would be slower.
cdef bint contract(TensorImpl x, const char* is_reduced, TensorImpl result) except -1
