"""Sizes, strides, dims and places: read from arguments, and all arithmetic on them, which is checked here and nowhere else.

Reading an argument may run code of the user (`__index__`, `__iter__`), which may give a tensor other memory or another shape. So a
function reads all its arguments first, by the functions of the first part, and looks at its tensors after that. Needs the GIL.
"""
from libc.stdint cimport intptr_t

# ----- Reading arguments: may run code of the user -----
cdef intptr_t integer(object value, str argument) except? -1
cdef str written(object number)
cdef tuple sequence_items(object sequence, str argument)
cdef tuple read_dims(object dims, str argument=*)
cdef int parse_sizes(object sizes, intptr_t* shape, str argument=*) except -1
cdef int sizes_argument(tuple arguments, dict keywords, str name, intptr_t* sizes) except -1

# ----- Arithmetic: runs none -----
cdef int wrap_dim(intptr_t dim, int ndim) except -1
cdef unsigned long long dim_bits(tuple dims, int ndim) except? 0
cdef intptr_t checked_numel(int ndim, const intptr_t* shape, intptr_t itemsize) except -1
cdef intptr_t span(int ndim, const intptr_t* sizes, const intptr_t* strides) except -1
cdef intptr_t bytes_needed(int ndim, const intptr_t* sizes, const intptr_t* strides, intptr_t offset, intptr_t itemsize) except -1
cdef bint lies_inside(const char* memory, size_t nbytes, const char* data, intptr_t itemsize, int ndim, const intptr_t* sizes,
                      const intptr_t* strides) noexcept
cdef void bytes_between(int ndim, const intptr_t* sizes, const intptr_t* strides, intptr_t itemsize, intptr_t* first,
                        intptr_t* end) noexcept
# Elements fill a block of memory, each once, in some order of the dims.
cdef bint fill_block(int ndim, const intptr_t* sizes, const intptr_t* strides) noexcept
cdef tuple sizes_tuple(int ndim, const intptr_t* sizes)
cdef object new_size(int ndim, const intptr_t* sizes)

cdef extern from *:
    bint multiply_overflows "__builtin_mul_overflow"(intptr_t a, intptr_t b, intptr_t* product) noexcept nogil
    bint add_overflows "__builtin_add_overflow"(intptr_t a, intptr_t b, intptr_t* total) noexcept nogil
