"""The reduction driver: reductions over some dims in fixed blocks, combined in a fixed tree.

The blocks depend on shape and strides alone, so the bits are the same for every number of threads.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport CG_DTYPES, Operand

cdef extern from "kernels.h" nogil:
    enum:
        BLOCK "CG_REDUCTION_BLOCK"
        SHORT "CG_REDUCTION_SHORT"
        STRIP "CG_REDUCTION_STRIP"
    ctypedef struct cg_reduction:
        const char* name
        signed char acc_dtype[CG_DTYPES]
        signed char out_dtype[CG_DTYPES]

# An input that has no memory: `make` fills a block with its elements from start to stop. `streams`: and writes other arrays past the
# caches. `partials`: memory of so many bytes as `partial_bytes` of all elements.
cdef struct Producer:
    void (*make)(const Producer* producer, intptr_t start, intptr_t stop, char* block) noexcept nogil
    intptr_t total
    int dtype, cost
    bint streams
    char* partials

cdef const cg_reduction* reduction(str name) except NULL

# `reduced[d]` says which dims are reduced; the output is dense, of `out_dtype`, in row-major order of the kept dims. -1: out of memory.
cdef int run_reduction(const cg_reduction* reduction, Operand* x, int ndim, const intptr_t* shape, const char* reduced, char* output,
                       int out_dtype) noexcept nogil
# All elements of an input that is made block by block.
cdef void reduce_produced(const cg_reduction* reduction, const Producer* producer, char* output) noexcept nogil
cdef intptr_t partial_bytes(intptr_t total) noexcept nogil
# All of a small dense array, without the driver.
cdef void run_small(const cg_reduction* reduction, int dtype, const char* x, intptr_t n, char* output) noexcept nogil
# Vectors reduce dense rows of so few elements together.
cdef bint takes_short_rows(const cg_reduction* reduction, int dtype, intptr_t n) noexcept nogil
# Each of at most STRIP dense rows of at most BLOCK elements, or of their products with others, without the driver; nothing is converted.
cdef void reduce_rows(const cg_reduction* reduction, int dtype, const char* x, const char* other, intptr_t n, intptr_t count,
                      char* output) noexcept nogil
# The same iteration along one dim: scans, and the first index that holds the value in `values`.
cdef void scan(const cg_reduction* reduction, Operand* x, Operand* y, int ndim, const intptr_t* shape, int dim, bint reverse) noexcept nogil
cdef void find_extrema(const cg_reduction* reduction, Operand* x, Operand* values, Operand* indices, int ndim, const intptr_t* shape,
                       int dim) noexcept nogil
