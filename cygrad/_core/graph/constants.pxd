"""Memory that is set to zero, a number or other memory."""
from cygrad._core.graph.tensor cimport TensorImpl

# Set the elements of a dense tensor to zero.
cdef void zero(TensorImpl tensor) noexcept
# A 0-d tensor of a number that is in its dtype.
cdef TensorImpl tensor_of_number(const void* number, int dtype)
# Copy dense elements of one dtype.
cdef int move(TensorImpl target, TensorImpl source) noexcept
