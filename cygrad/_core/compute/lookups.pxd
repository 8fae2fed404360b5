"""Look-ups: elements at places that tensors of integers name in several dims, taken, put and added. Nothing is recorded.

`items` is an index as `read_key` gives it, the first tensor of which is looked at here: masks, arrays of NumPy's, lists and other cases
that are for NumPy are None or False.
"""
from cygrad._core.graph.tensor cimport TensorImpl

cdef TensorImpl look_up(TensorImpl x, tuple items)
# Put a tensor, broadcast, at an index, or add it there, as often as the index names each element.
cdef bint put_at(TensorImpl x, tuple items, TensorImpl value, bint adds) except -1
