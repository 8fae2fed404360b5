"""Pending results: large recorded elementwise results are computed together, when their memory is read.

An intermediate that only the next operator reads is then never written to memory. Each thread of Python has a program of its own that it
adds to. The Storage of a pending result is marked with its program, and the memory that a program reads is marked as read: code that reads
the memory of tensors calls value_address() for it, code that writes there address(), which run the programs. So deferral changes
timing only. Needs the GIL.

Programs run without the GIL where that is safe, and under their lock: another thread that needs a result waits for it. The thread that
runs a program releases the lock before it takes the GIL, so others may wait with the GIL held.
"""
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.operands.operands cimport Value
from cygrad._kernels.drivers.elementwise cimport cg_kernel
from cygrad._kernels.drivers.reduction cimport cg_reduction

# Run the programs that compute operands. Releases the GIL, so other threads may change the tensors.
cdef void compute_operands(int count, const Value* values) noexcept
cdef void run_own_program() noexcept
# The result of an operator, computed later; None where it has to be computed now. May release the GIL.
cdef TensorImpl defer_elementwise(const cg_kernel* kernel, int dtype, int count, const Value* values, const void* params, int cost)
# Reduce dims of a dense pending result; False if it is not pending, was reduced before, or its program does not suit. Releases the GIL.
cdef bint reduce_pending(const cg_reduction* reduction, TensorImpl x, const char* is_reduced, TensorImpl result) except -1
