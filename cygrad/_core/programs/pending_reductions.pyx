# cython: cdivision=True
"""Reductions of pending results (see pending_reductions.pxd for the contract)."""
from cpython.object cimport PyObject

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.graph.tensor cimport new_address
from cygrad._core.memory.storage cimport Storage, new_storage
from cygrad._core.operands.operands cimport Value
from cygrad._core.programs.deferred cimport may_be_pending
from cygrad._core.programs.pending cimport Pending, own_program, run, run_needed
from cygrad._kernels.drivers.elementwise cimport CG_PRODUCT, cg_is_floating_point, cg_itemsize, cg_loops_of
from cygrad._kernels.drivers.reduction cimport partial_bytes
from cygrad._kernels.programs.blocks cimport PLACE
from cygrad._kernels.programs.running cimport plan_program
from cygrad._kernels.programs.steps cimport (MAX_STEPS, NONE, Program, Slot, Step, add_array, add_reduction, describe_slot,
                                             has_room, last_writer, reduce_operands, reduction_of)

cdef bint pending_product(TensorImpl x, Operand* factors, list storages) except -1:
    """Describe the factors of a pending product of real arrays; False if x is none."""
    cdef Storage storage = x.storage
    cdef Pending pending
    cdef const Program* program
    cdef const Step* step
    cdef const Slot* slot
    cdef int number, writer, k
    if storage.program is NULL or not cg_is_floating_point[x.dtype_nr] or cg_loops_of[x.dtype_nr] != x.dtype_nr:
        return False
    pending = <Pending>storage.program
    number = pending.slot_of(x)
    if pending.running or not pending.is_whole(x) or not pending.contracts[number]:
        return False
    program = &pending.program
    writer = last_writer(program, number, 0, program.step_count)
    step = &program.steps[writer]
    if step.masks or step.kernel is NULL or step.kernel.form != CG_PRODUCT:
        return False
    for k in range(2):
        slot = &program.slots[step.slots[k]]
        if (slot.data is NULL or slot.number or slot.dtype != x.dtype_nr or last_writer(program, step.slots[k], 0, writer) != NONE
                or pending.owners[step.slots[k]] is NULL):
            return False
        describe_slot(program, slot, &factors[k])
        storages.append(<Storage>pending.owners[step.slots[k]])
    return True


cdef bint reduces(Pending pending, int slot) noexcept:
    """Return True if the total of a program is over a slot."""
    return pending.program.steps[last_writer(&pending.program, pending.total_slot, 0, pending.program.step_count)].slots[0] == slot


cdef bint add_total(Pending pending, const cg_reduction* reduction, TensorImpl x, TensorImpl result) except -1:
    """Add the reduction of all elements of a pending result to its program. False where that may not be."""
    cdef Storage partials = new_storage(partial_bytes(pending.program.total) + MAX_STEPS * PLACE)
    cdef Value value
    value.tensor = <PyObject*>result
    if (x.storage.program is not <PyObject*>pending or pending is not own_program()
            or not has_room(&pending.program, 1) or not may_be_pending(1, &value) or result.storage.marks
            or result.storage.nbytes != <size_t>cg_itemsize[result.dtype_nr] or result.dtype_nr != reduction.out_dtype[x.dtype_nr]):
        return False
    pending.partials, pending.total_slot = partials, add_array(&pending.program, new_address(result), result.dtype_nr)
    pending.program.slots[pending.total_slot].reduced = True
    add_reduction(&pending.program, reduction, x.dtype_nr, pending.slot_of(x), pending.total_slot)
    pending.add_result(result, pending.total_slot)
    return True


cdef bint reduce_pending(const cg_reduction* reduction, TensorImpl x, const char* is_reduced, TensorImpl result, bint waits) except -1:
    cdef Storage storage = x.storage
    cdef Pending pending
    cdef Storage memory
    cdef int d, output, slot
    cdef bint is_needed, is_single = result.count == 1 and x.count > 1
    if storage.program is NULL or not is_single and x.count < settings.large:
        return False
    pending = <Pending>storage.program
    slot = pending.slot_of(x)
    if (cg_loops_of[x.dtype_nr] != x.dtype_nr or pending.running or slot in (NONE, pending.reduced_slot) or pending.program.total != x.count
            or not (pending.is_whole(x) or is_single)):
        return False
    pending.find_needed(NONE)
    if reduction_of(&pending.needed) != NONE:          # a program has one total
        if reduces(pending, slot):
            return False
        run_needed(pending, slot, True)
        slot = pending.slot_of(x)
        if pending.running or storage.program is not <PyObject*>pending or slot == NONE:
            return False
    if is_single:
        return waits and add_total(pending, reduction, x, result)
    is_needed = not is_alone(x, 1)
    pending.find_needed(NONE)
    if not has_room(&pending.needed, 1):
        return False
    for d in range(x.ndim):
        pending.needed.is_reduced[d] = is_reduced[d]
    reduce_operands(&pending.needed)
    if not is_needed:
        pending.needed.slots[slot].data = NULL
    output = add_array(&pending.needed, new_address(result), result.dtype_nr)
    pending.needed.slots[output].reduced = True
    add_reduction(&pending.needed, reduction, x.dtype_nr, slot, output)
    if not plan_program(&pending.plan, &pending.needed):
        return False
    memory = new_storage(pending.plan.memory_bytes)     # no tensor, whose allocation may run finalizers: they would change the plan
    if pending.running or storage.program is not <PyObject*>pending:       # it ran to give memory back
        return False
    pending.reduced_slot = NONE if is_needed else slot
    if run(pending, memory.data, pending.reduced_slot, True):
        raise MemoryError("no memory for partial results")
    return True
