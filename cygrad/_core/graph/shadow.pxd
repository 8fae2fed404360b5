"""Checks of kernels: see shadow.pyx."""
from cygrad._core.graph.launches cimport Launch

# Run a kernel at the addresses of its tensors, and compare its results with the results of a run on other memory. -1: there is no memory.
cdef int run_twice(Launch* launch, char** data) noexcept
