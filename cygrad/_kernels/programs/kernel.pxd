"""A kernel as launches and programs of launches run it: a function of a structure of sizes, strides and numbers, and of addresses."""

cdef enum:
    MAX_TENSORS = 8     # of a launch

# May change its arguments, which are of no use afterwards. -1: there is no memory.
ctypedef int (*kernel_function)(void* arguments, char** data) noexcept nogil
