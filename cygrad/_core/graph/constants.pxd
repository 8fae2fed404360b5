"""Memory that is set to zero, a number or other memory."""
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._kernels.drivers.copying cimport Copy

# Set the elements of a dense tensor to zero: a step that runs `run_zeros`.
cdef void zero(TensorImpl tensor) noexcept
cdef int run_zeros(void* arguments, char** data) noexcept nogil
# A 0-d tensor of a number that is in its dtype.
cdef TensorImpl tensor_of_number(const void* number, int dtype)
# Copy dense elements of one dtype.
cdef int move(TensorImpl target, TensorImpl source) noexcept
# Copy elements with any strides and dtypes. The GIL may be released where no other thread sees the target.
cdef int copy_as_described(Copy* elements, TensorImpl target, TensorImpl source, bint release) noexcept
