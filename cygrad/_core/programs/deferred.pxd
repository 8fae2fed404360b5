"""Pending results: large recorded elementwise results are computed together, when their memory is read.

An intermediate that only the next operator reads is then never written to memory. At most one program is pending in a process. All code
that reads or writes the memory of tensors asks address() for it, which computes pending results, so deferral changes timing only. Needs
the GIL, and keeps it.
"""
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.operands.operands cimport Value
from cygrad._kernels.drivers.elementwise cimport cg_kernel
from cygrad._kernels.drivers.reduction cimport cg_reduction

# To be called where the GIL is given up for the sake of others: once several threads compute, nothing is pending, as it would be computed
# with the GIL held.
cdef void note_thread() noexcept
# The result of an operator, computed later; None where it has to be computed now.
cdef TensorImpl defer_elementwise(const cg_kernel* kernel, int dtype, int count, const Value* values, const void* params, int cost)
# Reduce all elements of a dense pending result; False if it is not pending, was reduced before, or will be needed anyway.
cdef bint reduce_pending(const cg_reduction* reduction, TensorImpl x, char* output) except -1
