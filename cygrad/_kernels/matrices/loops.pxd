"""Loops over batches of matrices, by name. `matrices/loops.h` says which there are, and what their interface is.

They run without the GIL, and write to outputs that overlap no input. Where memory is lacking they set MemoryError and return: who calls
them looks for an error afterwards (PyErr_Occurred), as after NumPy's own.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport CG_DTYPES

ctypedef void (*matrix_loop)(char** arguments, const intptr_t* dims, const intptr_t* strides, void* data) noexcept nogil

cdef extern from "matrices/kernel.h" nogil:
    ctypedef struct matrix_kernel "cg_matrix_kernel":
        const char* name
        const char* signature
        const char* kinds                   # of numbers of each argument: x those of the first, r real, i int32
        matrix_loop loops[CG_DTYPES]        # NULL: none for that dtype

cdef const matrix_kernel* kernel(str name) except NULL
