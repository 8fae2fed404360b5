# cython: cdivision=True, initializedcheck=False
"""Passes (see passes.pxd for the contract)."""
from libc.stdint cimport intptr_t, uint32_t
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport CG_BOOL, MAX_OPERANDS, Operand, cg_itemsize, cg_loops_of
from cygrad._kernels.drivers.program cimport Program, add_array, add_block
from cygrad._kernels.drivers.program cimport Step as ProgramStep
from cygrad._kernels.drivers.reduction cimport reduce_program, run_reduction
from cygrad._kernels.drivers.tile_steps cimport MAX_SLOTS, Slot, Step, find_rows, is_repeated_scalar

cdef enum:
    PLACE = 128         # bytes of a reduced slot: loops may run over the end
    NONE = -1


# ----- Steps of a pass -----
cdef inline bint is_single(const Tiles* tiles, int slot) noexcept nogil:
    """Say whether a row has one number in a slot."""
    return tiles.slots[slot].reduced or tiles.slots[slot].array.data is not NULL and is_repeated_scalar(tiles, &tiles.slots[slot])


cdef bint cut_passes(Tiles* tiles) noexcept nogil:
    cdef long long maps, seen = 0
    cdef int k, j
    if not tiles.slots[tiles.result].reduced or not find_rows(tiles, &tiles.row, &tiles.row_count):
        return False
    for k in range(tiles.step_count):
        if not fits_pass(tiles, &tiles.steps[k]):
            return False
        if tiles.steps[k].kernel is NULL:
            maps = maps_before(tiles, k)
            if maps == NONE:
                return False
            for j in range(k):      # a map that takes longer than memory is better stored than computed twice
                if (maps & seen) >> j & 1 and tiles.steps[j].kernel.blocked[tiles.steps[j].dtype]:
                    return False
            seen |= maps
    tiles.passes, tiles.threads, tiles.slot_bytes = True, 1, PLACE
    return True


cdef bint fits_pass(const Tiles* tiles, const Step* step) noexcept nogil:
    """Say whether a step is one of numbers, or of a pass: of one dtype, and with loops that read its operands where they are."""
    cdef int dtype = tiles.steps[0].dtype, output = step.slots[step.inputs], scalars = 0, j
    cdef const Operand* array
    for j in range(step.inputs):
        array = &tiles.slots[step.slots[j]].array
        if array.dtype != (CG_BOOL if step.masks >> j & 1 else step.dtype):
            return False
        if is_single(tiles, step.slots[j]):
            scalars += 1
        elif array.data is not NULL and not array.padded and step.kernel is not NULL and step.kernel.blocked[dtype]:
            return False
    array = &tiles.slots[output].array
    if cg_loops_of[array.dtype] != array.dtype:
        return False
    if step.kernel is NULL:
        return scalars == 0 and step.dtype == dtype and array.dtype == step.reduction.out_dtype[dtype]
    if tiles.slots[output].reduced:
        return scalars == step.inputs
    if array.dtype != dtype or step.dtype != dtype or step.masks:
        return False
    return scalars == 0 or scalars == 1 and step.inputs == 2 and not step.kernel.blocked[dtype]


cdef long long maps_before(const Tiles* tiles, int reduction_step) noexcept nogil:
    """Return a bit mask of the maps that produce a reduction's input; NONE if one reads a per-row scalar that a later step overwrites."""
    cdef long long maps = 0
    cdef uint32_t needed = <uint32_t>1 << tiles.steps[reduction_step].slots[0], written = 0     # slots
    cdef const Step* step
    cdef int k, j, output
    for k in range(reduction_step - 1, -1, -1):
        step = &tiles.steps[k]
        output = step.slots[step.inputs]
        if tiles.slots[output].reduced:
            written |= <uint32_t>1 << output
        elif needed >> output & 1:
            maps |= <long long>1 << k
            needed &= ~(<uint32_t>1 << output)
            for j in range(step.inputs):
                if not is_single(tiles, step.slots[j]):
                    needed |= <uint32_t>1 << step.slots[j]
                elif written >> step.slots[j] & 1:
                    return NONE
    return maps


# ----- Running -----
cdef bint reduce_row(const Tiles* tiles, int reduction_step, char** row_data) noexcept nogil:
    """Reduce the result of the maps before, in a program."""
    cdef Program program
    cdef ProgramStep* target
    cdef Operand x
    cdef int known[MAX_SLOTS]       # by slot, the slot of the program
    cdef const Step* step = &tiles.steps[reduction_step]
    cdef const Slot* slot
    cdef char is_reduced = True
    cdef long long maps = maps_before(tiles, reduction_step)
    cdef int source = step.slots[0], output = step.slots[1], k, j
    if not maps:
        x = tiles.slots[source].array
        x.data, x.loop_dtype, x.strides[0] = row_data[source], x.dtype, cg_itemsize[x.dtype]
        return run_reduction(step.reduction, &x, 1, &tiles.row, &is_reduced, row_data[output], tiles.slots[output].array.dtype) == 0
    program.dtype, program.total, program.cost, program.slot_count, program.step_count = step.dtype, tiles.row, tiles.cost, 0, 0
    for k in range(tiles.slot_count):
        slot = &tiles.slots[k]
        if row_data[k] is NULL:
            known[k] = add_block(&program)
        elif slot.array.dtype == program.dtype:
            known[k] = add_array(&program, row_data[k], 0 if is_single(tiles, k) else cg_itemsize[program.dtype])
    for k in range(reduction_step):
        if maps >> k & 1:
            target = &program.steps[program.step_count]
            target.kernel, target.params, target.inputs = tiles.steps[k].kernel, NULL, tiles.steps[k].inputs
            for j in range(target.inputs + 1):
                target.slots[j] = known[tiles.steps[k].slots[j]]
            program.step_count += 1
    return reduce_program(step.reduction, &program, known[source], row_data[output]) == 0


cdef bint run_row(const Tiles* tiles, char** row_data) noexcept nogil:
    cdef char* pointers[MAX_OPERANDS]
    cdef intptr_t strides[MAX_OPERANDS]
    cdef const Step* step
    cdef int k, j
    for k in range(tiles.step_count):
        step = &tiles.steps[k]
        if step.kernel is NULL:
            if not reduce_row(tiles, k, row_data):
                return False
        elif tiles.slots[step.slots[step.inputs]].reduced:
            for j in range(step.inputs + 1):
                pointers[j], strides[j] = row_data[step.slots[j]], cg_itemsize[tiles.slots[step.slots[j]].array.dtype]
            step.kernel.loops[step.dtype](pointers, strides, 1, NULL)
    return True


cdef bint run_passes(const Tiles* tiles, char* memory) noexcept nogil:
    cdef char* row_data[MAX_SLOTS]
    cdef char* data
    cdef intptr_t i
    cdef int itemsize, k
    for i in range(tiles.row_count):
        for k in range(tiles.slot_count):
            data, itemsize, row_data[k] = tiles.slots[k].array.data, cg_itemsize[tiles.slots[k].array.dtype], NULL
            if is_single(tiles, k):
                row_data[k] = memory + k * PLACE
                if data is not NULL and k != tiles.result:
                    memcpy(row_data[k], data if is_repeated_scalar(tiles, &tiles.slots[k]) else data + i * itemsize, itemsize)
            elif data is not NULL:
                row_data[k] = data + i * tiles.row * itemsize
        if not run_row(tiles, row_data):
            return False
        itemsize = cg_itemsize[tiles.slots[tiles.result].array.dtype]
        memcpy(tiles.slots[tiles.result].array.data + i * itemsize, row_data[tiles.result], itemsize)
    return True
