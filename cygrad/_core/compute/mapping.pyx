# cython: cdivision=True
"""Kernels over operands (see mapping.pxd for the contract)."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport CONTIGUOUS, TensorImpl, has_own_memory
from cygrad._core.levels.observers cimport profiling_threads
from cygrad._core.operands.operands cimport RELEASE_GIL, Value, broadcast, describe_number, empty_for, fill_operand, fill_target, same_shape
from cygrad._core.programs.deferred cimport DeferredMap, any_pending, are_large, compute_operands, defer_map
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, MAX_OPERANDS, Operand, cg_kernel, cg_loops_of, run_elementwise
from cygrad._kernels.programs.steps cimport dtype_of


cdef int loop_dtype_of(const cg_kernel* kernel, int dtype, int count, const Value* values) noexcept:
    """Return the dtype of the loop: of a 16-bit float its own where the row needs it, or has one and all operands are of that dtype."""
    cdef int k
    for k in range(count):
        if not kernel.stored and (values[k].tensor is NULL or (<TensorImpl>values[k].tensor).dtype_nr != dtype):
            return cg_loops_of[dtype]
    return dtype if kernel.loops[dtype] is not NULL else cg_loops_of[dtype]


cdef TensorImpl map_kernel(const cg_kernel* kernel, int dtype, int out_dtype, int masks, int count, Value* values,
                           const void* params, int cost, TensorImpl target, bint private=False, bint waits=False):
    """Run a kernel over operands that broadcast; scalars are in the dtype that is computed in. `masks` are read as bool (bits); those
    from bit PARTS on are real beside complex numbers.

    Others may see a target that is not `private`, so it is written with the GIL held: that is the lock of `.grad`. A result that `waits`
    may be pending; then it is not the target, which must be private.
    """
    cdef Operand operands[MAX_OPERANDS]
    cdef intptr_t shape[MAX_DIMS]
    cdef int ndim, k, loop_dtype = dtype if cg_loops_of[dtype] == dtype else loop_dtype_of(kernel, dtype, count, values)
    cdef int loop_out_dtype = out_dtype if loop_dtype == dtype else cg_loops_of[out_dtype]
    cdef bint fresh
    cdef DeferredMap map
    cdef TensorImpl result
    if not masks and is_simple(kernel, dtype, count, values) and (target is None or (
            (not kernel.blocked[dtype] or private and <PyObject*>target is values[0].tensor and has_own_memory(target))
            and target.flags & CONTIGUOUS and target.dtype_nr == out_dtype and same_shape(target, <TensorImpl>values[0].tensor))):
        return map_simple(kernel, dtype, out_dtype, count, values, params, target)
    ndim = broadcast(count, values, shape)
    if (waits or target is None and any_pending(count, values)) and are_large(ndim, shape) and not profiling_threads:
        map.kernel, map.params, map.cost, map.masks = kernel, params, cost, masks
        map.dtype, map.number_dtype, map.loop_out_dtype, map.out_dtype = loop_dtype, cg_loops_of[dtype], loop_out_dtype, out_dtype
        result = defer_map(&map, count, values, ndim, shape)
        if result is not None:
            return result
    if any_pending(count, values):
        compute_operands(count, values)
        ndim = broadcast(count, values, shape)      # other threads may have changed them
    fresh = target is None
    if fresh:
        target = empty_for(out_dtype, ndim, shape, count, values)
    for k in range(count):
        if values[k].tensor is not NULL:
            fill_operand(&operands[k], <TensorImpl>values[k].tensor, dtype_of(k, masks, loop_dtype), ndim, shape)
        else:
            describe_number(&operands[k], &values[k].number, dtype_of(k, masks, cg_loops_of[dtype]), dtype_of(k, masks, loop_dtype), ndim)
    fill_target(&operands[count], target, loop_out_dtype, ndim, shape)
    if (fresh or private) and target.count >= RELEASE_GIL:
        # Other threads may give an operand other memory meanwhile.
        _held = [(<TensorImpl>values[k].tensor).storage for k in range(count) if values[k].tensor is not NULL]
        with nogil:
            run_elementwise(kernel, loop_dtype, count + 1, operands, ndim, shape, params, cost, fresh)
    else:
        run_elementwise(kernel, loop_dtype, count + 1, operands, ndim, shape, params, cost, fresh)
    return target
