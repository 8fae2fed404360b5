"""How the elements of a tensor lie in memory, by torch's names."""
from libc.stdint cimport intptr_t

cdef tuple order_of(str function, object memory_format, int ndim)
cdef bint is_in_format(object memory_format, int ndim, const intptr_t* sizes, const intptr_t* strides) except -1
cdef bint lies_in_order(tuple order, int ndim, const intptr_t* sizes, const intptr_t* strides) noexcept
cdef int fill_strides(tuple order, const intptr_t* sizes, intptr_t* strides) except -1
