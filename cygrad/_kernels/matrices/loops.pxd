"""Loops over batches of matrices, by name. `matrices/loops.h` lists them, and has their interface.

They run without the GIL, and write to outputs that overlap no input. Where memory is lacking they set MemoryError and return: callers
them looks for an error afterwards (PyErr_Occurred), as after NumPy's own.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport CG_DTYPES

ctypedef void (*matrix_loop)(char** arguments, const intptr_t* dims, const intptr_t* strides, void* data) noexcept nogil

cdef extern from "matrices/kernel.h" nogil:
    ctypedef struct matrix_kernel "cg_matrix_kernel":
        const char* name
        const char* signature
        const char* kinds                   # of numbers of each argument: x as of the first, r real, i int32
        matrix_loop loops[CG_DTYPES]        # NULL: none for that dtype

cdef const matrix_kernel* matrix_kernel_of(str name) except NULL

cdef enum:
    BLAS_THREADS = 1 << 19          # multiplications from which BLAS may have several threads
    BLAS_THREADS_COLUMN = 9216      # of a matrix by one column

# Note that BLAS has been called for as many: until its threads sleep, ours leave them their processors.
cdef void note_blas() noexcept nogil

# The loop for small products of so many columns, with so many terms in each element; NULL: there is none of that dtype.
cdef matrix_loop small_product_of(int dtype, intptr_t m, intptr_t inner) noexcept nogil

# Whether the loop "matmul" is quicker than BLAS for a product of so many rows, columns and inner elements.
cdef bint multiplies_quickly(int dtype, intptr_t m, intptr_t n, intptr_t k) noexcept nogil
