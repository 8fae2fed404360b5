"""Indexing: views of parts, look-up and assignment."""
from cygrad._core.graph.tensor cimport TensorImpl

cdef object get_item(TensorImpl x, object key)
cdef int set_item(TensorImpl x, object key, object value) except -1
cdef TensorImpl scalar_like(TensorImpl x, object value)
