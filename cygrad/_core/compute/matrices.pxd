"""Loops over matrices, each of the interface of NumPy's generalized ufuncs: ours, and NumPy's own with its LAPACK.

A filled `Call` is launched: batches of any strides. Callers of LAPACK check for an error afterwards.
"""
from libc.stdint cimport intptr_t

from cygrad._core.graph.launches cimport Launch
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS
from cygrad._kernels.matrices.loops cimport matrix_loop

cdef enum:
    MAX_ARGUMENTS = 8       # of a loop, results included
    MAX_NAMES = 4           # of sizes in a signature
    RELEASE_GIL = 1 << 16   # multiplications from which other threads may run meanwhile

cdef struct Call:
    int arguments, batch                            # how many there are, and dims in front of the matrices' own
    matrix_loop loop
    void* data                                      # of the loop
    intptr_t dims[1 + MAX_NAMES]                    # the count of matrices in one call, and the sizes that a signature names
    intptr_t strides[3 * MAX_ARGUMENTS]             # of the matrices: one for each argument in one call, then of its own dims
    intptr_t shape[MAX_DIMS]                        # of the batch; a launch without one has nothing from here on
    intptr_t steps[MAX_ARGUMENTS][MAX_DIMS]         # strides of each argument in the batch; all in bytes

cdef int planner_number     # of the library that computes Fourier transforms

# Begin the launch of a loop; its tensors follow.
cdef void begin_matrices(Launch* launch, Call* call, matrix_loop loop, void* data) noexcept
cdef int check_memory() except -1
cdef bint numpy_loop(object ufunc, int dtype, matrix_loop* loop, void** data, int* types) except -1
