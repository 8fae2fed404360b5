"""Deferred maps: large recorded elementwise results are steps of a pending program, computed together when their memory is read.

An intermediate that only the next operator reads is then never written to memory. Deferral changes timing only. Needs the GIL.
"""
from libc.stdint cimport intptr_t

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.operands.operands cimport Value
from cygrad._kernels.drivers.elementwise cimport cg_kernel

# A map whose result may be computed later.
cdef struct DeferredMap:
    const cg_kernel* kernel     # NULL: a copy into another dtype
    const void* params
    int dtype                   # of the loop
    int number_dtype            # of the operands that are numbers
    int loop_out_dtype, out_dtype       # of the loop's result, and of the tensor's
    int masks                   # inputs that are read as bool (bits), and from bit PARTS on as real numbers
    int cost
    bint contracts              # its sum may be a product of matrices (see contraction.pxd)

cdef inline bint any_pending(int count, const Value* values) noexcept:
    """Return True if an operand is a pending result."""
    cdef int k
    for k in range(count):
        if values[k].tensor is not NULL and (<TensorImpl>values[k].tensor).storage.program is not NULL:
            return True
    return False

# Operands lie in memory that only tensors with the marks of their storages reach.
cdef bint may_be_pending(int count, const Value* values) noexcept
# Run the programs that compute operands. Releases the GIL, so other threads may change the tensors.
cdef void compute_operands(int count, const Value* values) noexcept
# The result of an operator whose operands broadcast to a shape, computed later; None where it has to be computed now. May release the GIL.
cdef TensorImpl defer_map(const DeferredMap* map, int count, const Value* values, int ndim, const intptr_t* shape)
# The same of numbers, of which one is computed from a total of this thread's program; None where it has to be computed now.
cdef TensorImpl defer_number(const DeferredMap* map, int count, const Value* values)
# The same of a copy in another dtype; None also of a small one.
cdef TensorImpl defer_copy(TensorImpl x, int dtype)
# Copy as `copy_into` does; a pending source may be copied, or computed there, by its program. `apart`: the target shares no element with
# those before in its memory.
cdef int copy_later(TensorImpl target, TensorImpl source, bint apart) except -1
