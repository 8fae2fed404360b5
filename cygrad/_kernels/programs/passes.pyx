# cython: cdivision=True, initializedcheck=False
"""Passes (see passes.pxd for the contract)."""
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport Operand, cg_itemsize
from cygrad._kernels.drivers.reduction cimport BLOCK, partial_bytes, run_reduction
from cygrad._kernels.programs.blocks cimport PLACE, run_blocks, run_on_number
from cygrad._kernels.programs.planning cimport find_rows, mark_needed
from cygrad._kernels.programs.steps cimport (MAX_SLOTS, MAX_STEPS, NONE, Program, Slot, Step, begin_program, converts, describe_slot,
                                             last_writer, output_of)

cdef inline bint is_single(const Slot* slot) noexcept nogil:
    """Return True if a row has one number in a slot."""
    return slot.reduced or slot.number


cdef bint cut_passes(const Program* program, intptr_t* memory_bytes) noexcept nogil:
    cdef intptr_t row, count
    cdef const Step* step
    cdef const Slot* output
    cdef bint maps[MAX_STEPS]
    cdef bint seen[MAX_STEPS]
    cdef int j, k
    output = &program.slots[output_of(&program.steps[program.step_count - 1])]
    if program.geometry_count or not output.reduced or not find_rows(program, &row, &count) or row <= BLOCK:
        return False
    for k in range(program.slot_count):
        if is_single(&program.slots[k]) and program.slots[k].dtype != program.slots[k].loop_dtype:
            return False
    for k in range(program.step_count):
        step = &program.steps[k]
        output = &program.slots[output_of(step)]
        seen[k] = False
        if not output.reduced and output.data is not NULL or converts(program, step):
            return False
        if step.reduction is NULL:
            continue
        if output.dtype != step.reduction.out_dtype[step.dtype] or not find_maps(program, k, maps):
            return False
        for j in range(k):      # a map that takes longer than memory is better stored than computed twice
            if maps[j] and seen[j] and program.steps[j].kernel.blocked[program.steps[j].dtype]:
                return False
            seen[j] = seen[j] or maps[j]
    memory_bytes[0] = program.slot_count * PLACE + partial_bytes(row)
    return True


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


cdef void begin_row(const Program* program, intptr_t length, intptr_t number, char* memory, Program* row) noexcept nogil:
    """Make the program of a row, without steps: where it has one number in a slot, that is in `memory`."""
    cdef Slot* slot
    cdef intptr_t itemsize
    cdef int k
    begin_program(row, 1, &length)
    row.cost, row.slot_count = program.cost, program.slot_count
    for k in range(program.slot_count):
        row.slots[k], itemsize = program.slots[k], cg_itemsize[program.slots[k].dtype]
        slot = &row.slots[k]
        if is_single(slot):
            slot.data = memory + k * PLACE
            if program.slots[k].data is not NULL:
                memcpy(slot.data, program.slots[k].data + (0 if slot.number else number * itemsize), itemsize)
            slot.number = True
        elif slot.data is not NULL:
            slot.data += number * length * itemsize


cdef bint reduce_row(const Program* program, int reduction_step, char* partials, Program* row) noexcept nogil:
    """Reduce the result of the maps before, block by block."""
    cdef Operand x
    cdef bint maps[MAX_STEPS]
    cdef const Step* step = &program.steps[reduction_step]
    cdef char is_reduced = True
    cdef int k
    find_maps(program, reduction_step, maps)
    row.step_count = 0
    for k in range(reduction_step + 1):
        if k == reduction_step or maps[k]:
            row.steps[row.step_count] = program.steps[k]
            row.step_count += 1
    if row.step_count > 1:
        run_blocks(row, partials)
        return True
    describe_slot(row, &row.slots[step.slots[0]], &x)
    return run_reduction(step.reduction, &x, 1, row.shape, &is_reduced, row.slots[output_of(step)].data,
                         row.slots[output_of(step)].dtype) == 0


cdef bint run_passes(const Program* program, char* memory) noexcept nogil:
    cdef Program row
    cdef const Step* step
    cdef intptr_t length, count, i
    cdef int k, slot, itemsize
    find_rows(program, &length, &count)
    for i in range(count):
        begin_row(program, length, i, memory, &row)
        for k in range(program.step_count):
            step = &program.steps[k]
            if step.reduction is not NULL:
                if not reduce_row(program, k, memory + program.slot_count * PLACE, &row):
                    return False
            elif program.slots[output_of(step)].reduced:
                run_on_number(&row, step)
        for k in range(program.step_count):
            slot = output_of(&program.steps[k])
            itemsize = cg_itemsize[program.slots[slot].dtype]
            if program.slots[slot].data is not NULL:
                memcpy(program.slots[slot].data + i * itemsize, row.slots[slot].data, itemsize)
    return True
