"""A copy between arrays of one shape, as launches run it."""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.packing cimport MAX_DIMS, Operand

cdef struct Copy:
    int ndim
    intptr_t shape[MAX_DIMS]
    Operand source, target

cdef int run_copy(void* arguments, char** data) noexcept nogil
cdef size_t store_copy(const void* arguments, intptr_t* words) noexcept
cdef int run_stored_copy(void* arguments, char** data) noexcept nogil
