"""Memory shared with NumPy and other buffers, in both directions. The sharing object keeps the other side's memory alive."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl

cdef object array_of(TensorImpl tensor)
# Of 16-bit floats: the numbers in float32, a copy; and the memory as integers, which NumPy can move.
cdef object values_of(TensorImpl tensor)
cdef object bits_of(TensorImpl tensor)
cdef TensorImpl tensor_of_array(object array)
cdef TensorImpl tensor_of_bits(object array, int dtype)
cdef object foreign_operand(object argument)
cpdef bint is_sparse(object value)
cpdef object refuse_sparse(object value)
cdef void fix_strides(int ndim, const intptr_t* sizes, intptr_t* strides) noexcept
