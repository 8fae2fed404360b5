# cython: cdivision=True, initializedcheck=False
"""Passes (see passes.pxd for the contract)."""
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport CG_BOOL, MAX_OPERANDS, Operand, cg_itemsize, cg_loops_of, takes_numbers
from cygrad._kernels.drivers.reduction cimport run_reduction
from cygrad._kernels.programs.blocks cimport reduce_blocks
from cygrad._kernels.programs.cuts cimport find_rows
from cygrad._kernels.programs.planning cimport mark_needed
from cygrad._kernels.programs.steps cimport MAX_SLOTS, MAX_STEPS, NONE, Program, Slot, Step, begin_program, last_writer, output_of

cdef enum:
    PLACE = 128         # bytes of a reduced slot: loops may run over the end


# ----- Steps of a pass -----
cdef inline bint is_single(const Slot* slot) noexcept nogil:
    """Return True if a row has one number in a slot."""
    return slot.reduced or slot.number


cdef bint cut_passes(Cut* cut) noexcept nogil:
    cdef const Program* program = cut.program
    cdef bint maps[MAX_STEPS]
    cdef bint seen[MAX_STEPS]
    cdef int k, j
    if not program.slots[cut.result].reduced or not find_rows(program, &cut.row, &cut.row_count):
        return False
    for k in range(program.step_count):
        seen[k] = False
        if not fits_pass(program, &program.steps[k]):
            return False
        if program.steps[k].kernel is NULL:
            if not find_maps(program, k, maps):
                return False
            for j in range(k):      # a map that takes longer than memory is better stored than computed twice
                if maps[j] and seen[j] and program.steps[j].kernel.blocked[program.steps[j].dtype]:
                    return False
                seen[j] = seen[j] or maps[j]
    cut.passes, cut.threads, cut.slot_bytes = True, 1, PLACE
    return True


cdef bint fits_pass(const Program* program, const Step* step) noexcept nogil:
    """Return True if a step is one of numbers, or of a pass: of one dtype, and with loops that read its operands where they are."""
    cdef int dtype = program.steps[0].dtype, numbers = 0, j
    cdef const Slot* slot
    for j in range(step.inputs):
        slot = &program.slots[step.slots[j]]
        if slot.dtype != (CG_BOOL if step.masks >> j & 1 else step.dtype):
            return False
        if is_single(slot):
            numbers += 1
        elif slot.data is not NULL and not slot.padded and step.kernel is not NULL and step.kernel.blocked[dtype]:
            return False
    slot = &program.slots[output_of(step)]
    if cg_loops_of[slot.dtype] != slot.dtype:
        return False
    if step.kernel is NULL:
        return step.reduction is not NULL and numbers == 0 and step.dtype == dtype and slot.dtype == step.reduction.out_dtype[dtype]
    if slot.reduced:
        return numbers == step.inputs
    return slot.dtype == dtype and step.dtype == dtype and not step.masks and takes_numbers(step.kernel, dtype, step.inputs, numbers)


cdef bint find_maps(const Program* program, int reduction_step, bint* maps) noexcept nogil:
    """Mark the maps that produce the input of a reduction; False if one reads a number of the row that a later step overwrites."""
    cdef bint needed[MAX_SLOTS]
    cdef bint single[MAX_SLOTS]
    cdef int k, j
    for k in range(program.slot_count):
        needed[k], single[k] = k == program.steps[reduction_step].slots[0], is_single(&program.slots[k])
    mark_needed(program, reduction_step, single, needed, maps)
    for k in range(reduction_step):
        for j in range(program.steps[k].inputs if maps[k] else 0):
            if single[program.steps[k].slots[j]] and last_writer(program, program.steps[k].slots[j], k + 1, reduction_step) != NONE:
                return False
    return True


# ----- Running -----
cdef bint reduce_row(const Cut* cut, int reduction_step, char** row_data) noexcept nogil:
    """Reduce the result of the maps before, block by block."""
    cdef const Program* program = cut.program
    cdef Program maps_of_row
    cdef Operand x
    cdef bint maps[MAX_STEPS]
    cdef const Step* step = &program.steps[reduction_step]
    cdef char is_reduced = True
    cdef int source = step.slots[0], output = output_of(step), k
    find_maps(program, reduction_step, maps)
    begin_program(&maps_of_row, 1, &cut.row)
    maps_of_row.cost, maps_of_row.slot_count = program.cost, program.slot_count
    for k in range(program.slot_count):
        maps_of_row.slots[k] = program.slots[k]
        maps_of_row.slots[k].data, maps_of_row.slots[k].number = row_data[k], is_single(&program.slots[k])
        maps_of_row.slots[k].loop_dtype = program.slots[k].dtype        # see `fits_pass`
    for k in range(reduction_step):
        if maps[k]:
            maps_of_row.steps[maps_of_row.step_count] = program.steps[k]
            maps_of_row.step_count += 1
    if maps_of_row.step_count:
        return reduce_blocks(step.reduction, &maps_of_row, source, row_data[output]) == 0
    x.data, x.dtype, x.padded = row_data[source], program.slots[source].dtype, program.slots[source].padded
    x.loop_dtype, x.strides[0] = x.dtype, cg_itemsize[x.dtype]
    return run_reduction(step.reduction, &x, 1, &cut.row, &is_reduced, row_data[output], program.slots[output].dtype) == 0


cdef bint run_row(const Cut* cut, char** row_data) noexcept nogil:
    cdef const Program* program = cut.program
    cdef char* pointers[MAX_OPERANDS]
    cdef intptr_t strides[MAX_OPERANDS]
    cdef const Step* step
    cdef int k, j
    for k in range(program.step_count):
        step = &program.steps[k]
        if step.kernel is NULL:
            if not reduce_row(cut, k, row_data):
                return False
        elif program.slots[output_of(step)].reduced:
            for j in range(step.inputs + 1):
                pointers[j], strides[j] = row_data[step.slots[j]], cg_itemsize[program.slots[step.slots[j]].dtype]
            step.kernel.loops[step.dtype](pointers, strides, 1, step.params)
    return True


cdef bint run_passes(const Cut* cut, char* memory) noexcept nogil:
    cdef const Program* program = cut.program
    cdef char* row_data[MAX_SLOTS]
    cdef const Slot* slot
    cdef intptr_t i
    cdef int itemsize, k
    for i in range(cut.row_count):
        for k in range(program.slot_count):
            slot = &program.slots[k]
            row_data[k], itemsize = NULL, cg_itemsize[slot.dtype]
            if is_single(slot):
                row_data[k] = memory + k * PLACE
                if slot.data is not NULL and k != cut.result:
                    memcpy(row_data[k], slot.data if slot.number else slot.data + i * itemsize, itemsize)
            elif slot.data is not NULL:
                row_data[k] = slot.data + i * cut.row * itemsize
        if not run_row(cut, row_data):
            return False
        itemsize = cg_itemsize[program.slots[cut.result].dtype]
        memcpy(program.slots[cut.result].data + i * itemsize, row_data[cut.result], itemsize)
    return True
