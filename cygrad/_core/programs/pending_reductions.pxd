"""Reductions of pending results, which need not be written to memory for that."""
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._kernels.drivers.elementwise cimport Operand
from cygrad._kernels.drivers.reduction cimport cg_reduction

# Describe the factors of a pending product that only the caller reads, whose memory `storages` keep; False if x is none.
cdef bint pending_product(TensorImpl x, Operand* factors, list storages) except -1
# Reduce dims of a dense pending result; False if it is not pending, was reduced before, or its program does not suit. A single result may
# be pending itself if it `waits`. Releases the GIL.
cdef bint reduce_pending(const cg_reduction* reduction, TensorImpl x, const char* is_reduced, TensorImpl result, bint waits) except -1
