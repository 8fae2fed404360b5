"""Pending results: large recorded elementwise results are computed together, when their memory is read.

An intermediate that only the next operator reads is then never written to memory. Each thread of Python has a program of its own that it
adds to. The Storage of a pending result is marked with its program, and the memory that a program reads is marked as read: code that reads
the memory of tensors calls value_address() for it, code that writes there address(), which run the programs. So deferral changes
timing only. Needs the GIL.

Programs run without the GIL where that is safe, and under their lock: another thread that needs a result waits for it. The thread that
runs a program releases the lock before it takes the GIL, so others may wait with the GIL held.
"""
from libc.stdint cimport intptr_t

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.operands.operands cimport Value
from cygrad._kernels.drivers.elementwise cimport Operand, cg_kernel
from cygrad._kernels.drivers.reduction cimport cg_reduction

# A map whose result may be computed later.
cdef struct DeferredMap:
    const cg_kernel* kernel
    const void* params
    int dtype                   # of the loop
    int number_dtype            # of the operands that are numbers
    int loop_out_dtype, out_dtype       # of the loop's result, and of the tensor's
    int masks                   # inputs that are read as bool (bits), and from bit PARTS on as real numbers
    int cost

cdef inline bint any_pending(int count, const Value* values) noexcept:
    """Return True if an operand is a pending result."""
    cdef int k
    for k in range(count):
        if values[k].tensor is not NULL and (<TensorImpl>values[k].tensor).storage.program is not NULL:
            return True
    return False

cdef inline bint are_large(int ndim, const intptr_t* shape) noexcept:
    """Return True if memory counts more than calls for an array."""
    cdef intptr_t count = 1
    cdef int d
    for d in range(ndim):
        count *= shape[d]
    return count >= settings.large

# Run the programs that compute operands. Releases the GIL, so other threads may change the tensors.
cdef void compute_operands(int count, const Value* values) noexcept
cdef void run_own_program() noexcept
# The result of an operator whose operands broadcast to a shape, computed later; None where it has to be computed now. May release the GIL.
cdef TensorImpl defer_map(const DeferredMap* map, int count, const Value* values, int ndim, const intptr_t* shape)
# Describe the factors of a pending product that only the caller reads, whose memory `storages` keep; False if x is none.
cdef bint pending_product(TensorImpl x, Operand* factors, list storages) except -1
# Reduce dims of a dense pending result; False if it is not pending, was reduced before, or its program does not suit. Releases the GIL.
cdef bint reduce_pending(const cg_reduction* reduction, TensorImpl x, const char* is_reduced, TensorImpl result) except -1
