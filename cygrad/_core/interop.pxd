"""Memory shared with NumPy and other buffers, in both directions. Whoever shares keeps the other side's memory alive."""
from cygrad._core.tensor cimport TensorImpl

cdef object array_of(TensorImpl tensor)
cdef TensorImpl tensor_of_array(object array)
