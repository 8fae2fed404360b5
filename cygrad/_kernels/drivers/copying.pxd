"""A copy between arrays of one shape, as launches run it."""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.packing cimport MAX_DIMS, Operand

cdef struct Copy:
    int ndim
    intptr_t shape[MAX_DIMS]
    Operand source, target

# Of dense arrays of one dtype.
cdef struct Move:
    intptr_t count
    intptr_t dtype

cdef size_t move_bytes(const void* arguments) noexcept nogil
cdef int run_move(void* arguments, char** data) noexcept nogil
cdef int run_copy(void* arguments, char** data) noexcept nogil
cdef size_t store_copy(const void* arguments, intptr_t* words) noexcept
cdef void load_copy(Copy* elements, const void* arguments) noexcept nogil
cdef int run_stored_copy(void* arguments, char** data) noexcept nogil
