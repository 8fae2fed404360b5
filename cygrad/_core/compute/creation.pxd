"""New tensors and numbers that are to be written. Needs the GIL."""
from cygrad._core.graph.tensor cimport TensorImpl

cdef int check_held(TensorImpl numbers, int dtype) except -1
