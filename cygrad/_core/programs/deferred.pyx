# cython: cdivision=True
"""Maps that are computed later (see deferred.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memcmp, memcpy

from cygrad._core.graph.tensor cimport CONTIGUOUS, empty
from cygrad._core.memory.storage cimport Storage
from cygrad._core.operands.operands cimport broadcast, copy_into, describe_number, describe_operand, empty_for
from cygrad._core.programs.pending cimport MAX_ARRAYS, Pending, own_program, run_or_wait
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, MAX_OPERANDS, Operand, cg_itemsize
from cygrad._kernels.programs.steps cimport NONE, add_block, add_copy, add_map, add_operand, add_operands, dtype_of


cdef bint may_be_pending(int count, const Value* values) noexcept:
    cdef Storage storage
    cdef int k
    if not settings.fuses:
        return False
    for k in range(count):
        if values[k].tensor is not NULL:
            storage = (<TensorImpl>values[k].tensor).storage
            if storage.exports or storage.counters or not storage.padded:
                return False
    return True


cdef bint have_shape(int count, const Value* values, int ndim, const intptr_t* shape) except -1:
    """Return True if operands broadcast to a shape."""
    cdef intptr_t common[MAX_DIMS]
    return broadcast(count, values, common) == ndim and not memcmp(common, shape, ndim * sizeof(intptr_t))


cdef void run_obstacles(Pending pending, int count, const Value* values, bint release) noexcept:
    """Run the programs that must run before operands are read by a step of `pending`: those that compute one, or part of one."""
    cdef PyObject* program
    cdef int k = 0
    while k < count:
        program = NULL if values[k].tensor is NULL else (<TensorImpl>values[k].tensor).storage.program
        if program is not NULL and (program is not <PyObject*>pending or not pending.is_whole(<TensorImpl>values[k].tensor)):
            run_or_wait(<Pending>program, release)
            k = 0       # other threads may have changed the tensors
        else:
            k += 1


cdef void compute_operands(int count, const Value* values) noexcept:
    run_obstacles(None, count, values, True)


cdef bint take_operands(Pending pending, const DeferredMap* map, int count, const Value* values, int* slots) noexcept:
    """Add the operands of a step, mark their memory and keep it; False, and nothing is added, where there is no room."""
    cdef Operand operands[MAX_OPERANDS]
    cdef Storage storage
    cdef int k, dtype, loop_dtype, slot = pending.program.slot_count
    for k in range(count):
        loop_dtype = dtype_of(k, map.masks, map.dtype)
        if values[k].tensor is NULL:
            dtype = dtype_of(k, map.masks, map.number_dtype)
            describe_number(&operands[k], pending.constant(&values[k].number, dtype), dtype, loop_dtype, pending.program.ndim)
        else:
            describe_operand(&operands[k], <TensorImpl>values[k].tensor, loop_dtype, pending.program.ndim)
    if not add_operands(&pending.program, count, operands, slots):
        return False
    for slot in range(slot, pending.program.slot_count):
        pending.owners[slot] = NULL
        pending.arrays += pending.program.slots[slot].data is NULL      # a conversion
        for k in range(count):
            if values[k].tensor is not NULL and pending.program.slots[slot].data == operands[k].data:
                storage = (<TensorImpl>values[k].tensor).storage
                Py_INCREF(storage)
                storage.marks += 1
                pending.owners[slot] = <PyObject*>storage
                pending.arrays += 1
                break
    return True


cdef void add_step(Pending pending, const DeferredMap* map, int count, const int* slots, TensorImpl result, bint single) noexcept:
    """Add a step over slots, whose result is pending; `single`: it is a number beside arrays."""
    cdef int block = add_block(&pending.program, map.loop_out_dtype), slot = block
    cdef const void* params = NULL
    if map.params is not NULL:
        params = memcpy(pending.parameters[block], map.params, sizeof(pending.parameters[0]))
    add_map(&pending.program, map.kernel, map.dtype, map.masks, params, count, slots, block)
    if map.loop_out_dtype != map.out_dtype:
        slot = add_block(&pending.program, map.out_dtype)
        add_copy(&pending.program, block, slot)
        pending.owners[block] = NULL
    pending.program.slots[slot].reduced = single
    pending.program.cost = max(pending.program.cost, 0 if single else map.cost)
    pending.contracts[slot] = map.contracts
    pending.add_result(result, slot)


cdef TensorImpl defer_map(const DeferredMap* map, int count, const Value* values, int ndim, const intptr_t* shape):
    cdef Pending pending
    cdef TensorImpl result
    cdef int slots[MAX_OPERANDS]
    if not may_be_pending(count, values):
        return None
    pending = own_program()
    if pending is None:
        pending = Pending.__new__(Pending)
    elif not pending.takes_step(ndim, shape, count):
        run_or_wait(pending, True)
    run_obstacles(pending, count, values, True)
    # Other threads may have run, and a finalizer may run while memory is allocated: operands may have another shape after each.
    if not have_shape(count, values, ndim, shape):
        return None
    result = empty_for(map.out_dtype, ndim, shape, count, values)
    if not result.flags & CONTIGUOUS or not may_be_pending(count, values) or not have_shape(count, values, ndim, shape):
        return None
    run_obstacles(pending, count, values, False)
    if pending.running or not pending.takes_step(ndim, shape, count):
        run_or_wait(pending, False)
    if not pending.count:
        pending.begin(ndim, shape)
    if not take_operands(pending, map, count, values, slots):
        run_or_wait(pending, False)
        pending.begin(ndim, shape)
        take_operands(pending, map, count, values, slots)
    add_step(pending, map, count, slots, result, False)
    return result


cdef bint are_numbers(const DeferredMap* map, int count, const Value* values, Pending pending) noexcept:
    """Return True if a loop takes 0-d operands as they lie, and those that are pending are numbers of the program, not elements."""
    cdef TensorImpl tensor
    cdef Storage storage
    cdef int k
    for k in range(count):
        if values[k].tensor is NULL:
            continue
        tensor = <TensorImpl>values[k].tensor
        storage = tensor.storage
        if tensor.ndim or tensor.dtype_nr != map.dtype or storage.program is not NULL and (
                storage.program is not <PyObject*>pending or storage.nbytes != <size_t>cg_itemsize[map.dtype]):
            return False
    return (map.kernel.loops[map.dtype] is not NULL and not map.masks and map.number_dtype == map.dtype
            and map.out_dtype == map.loop_out_dtype and may_be_pending(count, values))


cdef TensorImpl defer_number(const DeferredMap* map, int count, const Value* values):
    cdef TensorImpl result = empty(map.out_dtype, 0, NULL)      # before: a finalizer may let other threads run
    cdef Pending pending = own_program()
    cdef int slots[MAX_OPERANDS]
    if (pending is None or pending.total_slot == NONE or not are_numbers(map, count, values, pending)
            or pending.arrays + count >= MAX_ARRAYS or not take_operands(pending, map, count, values, slots)):
        return None
    add_step(pending, map, count, slots, result, True)
    return result


cdef TensorImpl defer_copy(TensorImpl x, int dtype):
    cdef DeferredMap copy
    cdef Value value
    if x.count * max(cg_itemsize[x.dtype_nr], cg_itemsize[dtype]) < settings.large:
        return None
    value.tensor = <PyObject*>x
    copy.kernel, copy.params, copy.cost, copy.masks, copy.contracts = NULL, NULL, 0, 0, False
    copy.dtype = copy.number_dtype = x.dtype_nr
    copy.loop_out_dtype = copy.out_dtype = dtype
    return defer_map(&copy, 1, &value, x.ndim, x.sizes)


cdef bint defer_into(TensorImpl target, TensorImpl source, bint apart) noexcept:
    """Add the copy of a pending source to its program, whose result the target is then; False where that may not be."""
    cdef Pending pending = <Pending>source.storage.program
    cdef Value value
    cdef Operand operand
    cdef int slot
    value.tensor = <PyObject*>target
    if (pending is not own_program() or not may_be_pending(1, &value) or not pending.is_whole(source)
            or not pending.takes_step(target.ndim, target.sizes, 1)
            or target.storage.marks and not (apart and target.storage.program is <PyObject*>pending)):
        return False
    describe_operand(&operand, target, target.dtype_nr, target.ndim)
    slot = add_operand(&pending.program, &operand)
    if slot == NONE:
        return False
    add_copy(&pending.program, pending.slot_of(source), slot)
    pending.add_result(target, slot)
    return True


cdef int copy_later(TensorImpl target, TensorImpl source, bint apart) except -1:
    return 0 if source.storage.program is not NULL and defer_into(target, source, apart) else copy_into(target, source)
