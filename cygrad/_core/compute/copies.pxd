"""Copies, recorded where a gradient is asked for; a dense tensor's dims keep their order unless a memory format is given."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl

cdef TensorImpl empty_in_order(tuple order, int dtype, int ndim, const intptr_t* sizes)
