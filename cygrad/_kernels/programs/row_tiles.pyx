# cython: cdivision=True, initializedcheck=False
"""Rows of maps and reductions (see row_tiles.pxd for the contract)."""
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport CG_BOOL, cg_itemsize, cg_kernel, cg_loops_of, takes_numbers
from cygrad._kernels.drivers.packing cimport LONG_ROW
from cygrad._kernels.drivers.reduction cimport BLOCK, STRIP, reduce_rows
from cygrad._kernels.programs.planning cimport MAX_OPERANDS, ROWS, RowStep, Rows, bytes_of_elements, find_rows, provide
from cygrad._kernels.programs.steps cimport MAX_SLOTS, NONE, Program, Slot, Step, last_writer
from cygrad._kernels.system.threads cimport threads_for

cdef extern from "drivers/fetch.h" nogil:
    void fetch(const char* address, intptr_t nbytes) noexcept

cdef extern from "kernels.h" nogil:
    enum:
        AHEAD "CG_ROW_AHEAD"

cdef enum:
    FEW_ROWS = 4        # short rows that are sooner computed one by one than by a driver for each step
    NEAR = 1 << 15      # bytes that some rows and the next ones take in all slots: the first-level cache holds them
    FAR = 1 << 18       # bytes of an array from which on it is fetched ahead
    PIECE = 256         # elements of a step between parts that are fetched
    VECTOR = 64


cdef bint cut_rows(Plan* plan) noexcept nogil:
    cdef const Program* program = plan.program
    cdef Rows* rows = &plan.rows
    cdef const Slot* slot
    cdef intptr_t touched = 0, apart
    cdef bint is_output
    cdef int k
    rows.fetched_count = 0
    if not find_rows(plan) or plan.row > BLOCK or plan.row < LONG_ROW and plan.row_count > FEW_ROWS:
        return False
    for k in range(program.slot_count):
        slot = &program.slots[k]
        apart = cg_itemsize[slot.dtype] * (1 if slot.reduced else plan.row)
        touched += apart
        rows.slots[k].data, rows.slots[k].apart = slot.data, apart
        if slot.data is NULL:
            continue
        is_output = last_writer(program, k, 0, program.step_count) != NONE
        if slot.number:
            rows.slots[k].data, rows.slots[k].apart = NULL, 0
        elif not slot.reduced and plan.row_count * apart >= FAR and (not is_output or cg_itemsize[slot.dtype] <= plan.streamed):
            touched += apart
            rows.fetched[rows.fetched_count].slot = k
            rows.fetched_count += 1
    plan.size = max(1, min(plan.row_count, STRIP, NEAR // touched))
    if not choose_loops(plan):
        return False
    share_fetches(plan)
    plan.way, plan.count = ROWS, (plan.row_count + plan.size - 1) // plan.size
    provide(plan, bytes_of_elements(program, plan.size * plan.row), threads_for(program.total, program.cost) if plan.count > 1 else 1)
    return True


# ----- Loops -----
cdef bint choose_loops(Plan* plan) noexcept nogil:
    """Choose the loops of the steps: one for two that are joined, where it can read their operands."""
    cdef Rows* rows = &plan.rows
    cdef const Step* step
    cdef const Step* before
    cdef int slots[MAX_OPERANDS]
    cdef int k, j, inputs
    rows.step_count = 0
    for k in range(plan.program.step_count):
        step = &plan.program.steps[k]
        if step.joined:
            before, inputs = step - 1, step.inputs + 1
            for j in range(step.inputs):
                slots[j] = before.slots[0] if step.slots[j] == before.slots[2] else step.slots[j]
            slots[step.inputs], slots[inputs] = before.slots[1], step.slots[step.inputs]
            if make_step(plan, step, step.shifted, inputs, slots, &rows.steps[rows.step_count - 1]):
                continue
        if not make_step(plan, step, step.kernel, step.inputs, step.slots, &rows.steps[rows.step_count]):
            return False
        rows.step_count += 1
    return True


cdef bint make_step(const Plan* plan, const Step* step, const cg_kernel* kernel, int inputs, const int* slots,
                    RowStep* target) noexcept nogil:
    """Choose the loop of a step that reads and writes its operands where they are; False if there is none, and nothing is written.
    Vector mathematics takes no scalar but a shifted kernel's, and runs over the end of a thread's own memory only."""
    cdef RowStep row_step
    cdef const Slot* output = &plan.program.slots[slots[inputs]]
    cdef const Slot* slot
    cdef int j, scalars = 0, itemsize = cg_itemsize[step.dtype], number = inputs - 1 if kernel is not step.kernel else NONE
    cdef bint own = output.data is NULL, whole = plan.row * itemsize % VECTOR == 0 and not output.reduced, repeated
    if kernel is NULL and step.reduction is NULL:       # a copy
        return False
    row_step.loop, row_step.reduction, row_step.dtype, row_step.inputs = NULL, step.reduction, step.dtype, inputs
    row_step.params, row_step.each, row_step.elements = step.params, False, 1 if output.reduced else plan.row
    row_step.slots[inputs], row_step.strides[inputs] = slots[inputs], cg_itemsize[output.dtype]
    for j in range(inputs):
        slot = &plan.program.slots[slots[j]]
        repeated = slot.data is not NULL and plan.rows.slots[slots[j]].data is NULL
        if kernel is NULL and (slot.reduced or repeated) or slot.dtype != (CG_BOOL if step.masks >> j & 1 else step.dtype):
            return False
        row_step.slots[j], row_step.strides[j] = slots[j], cg_itemsize[slot.dtype]
        if (slot.reduced or repeated) and not output.reduced:
            row_step.strides[j] = 0
            row_step.each = row_step.each or not repeated
            scalars += 1
        own = own and (slot.data is NULL or repeated or j == number)
    row_step.fetches_own = number >= 0 and kernel.blocked[step.dtype]
    row_step.long = kernel is not NULL and kernel.blocked[step.dtype] and row_step.elements > 1
    if kernel is NULL:
        if output.dtype != step.reduction.out_dtype[step.dtype]:
            return False
    elif cg_loops_of[output.dtype] != output.dtype:
        return False
    elif number >= 0 and (scalars != 1 or row_step.strides[number]):
        return False
    elif number < 0 and not takes_numbers(kernel, step.dtype, inputs, scalars):
        return False
    elif kernel.blocked[step.dtype] and not whole and (row_step.each or not own):
        return False
    else:
        row_step.loop = kernel.loops[step.dtype]
        if (output.data is not NULL and itemsize > plan.streamed and kernel.streams[step.dtype] is not NULL and whole
                and <size_t>output.data % VECTOR == 0):
            row_step.loop, row_step.fetches_own = kernel.streams[step.dtype], number >= 0
    target[0] = row_step
    return True


cdef bint take_over(Rows* rows, const RowStep* step) noexcept nogil:
    """Take the operands that a step reads itself out of the fetches between steps; False if none is left."""
    cdef int count = rows.fetched_count, k, j
    rows.fetched_count = 0
    for k in range(count):
        for j in range(step.inputs):
            if step.slots[j] == rows.fetched[k].slot:
                break
        else:
            rows.fetched[rows.fetched_count] = rows.fetched[k]
            rows.fetched_count += 1
    return rows.fetched_count < count


cdef void share_fetches(Plan* plan) noexcept nogil:
    """Decide beside which steps the next rows are fetched: beside vector mathematics, where there is some, since writes keep memory
    busy beside the other steps. There, and beside the result, little at a time: a processor waits for a dozen lines at once."""
    cdef Rows* rows = &plan.rows
    cdef RowStep* step
    cdef bint has_long = False
    cdef intptr_t parts = 0, line
    cdef int k
    for k in range(rows.step_count):
        rows.steps[k].fetches_own = rows.steps[k].fetches_own and take_over(rows, &rows.steps[k])
        has_long = has_long or rows.steps[k].long
    for k in range(rows.step_count):
        step = &rows.steps[k]
        line = step.elements if step.each else plan.size * step.elements
        step.piece = line
        step.fetches = rows.fetched_count and (step.long or not has_long)
        if step.fetches and step.loop is not NULL and (has_long or plan.program.slots[step.slots[step.inputs]].data is not NULL):
            step.piece = min(line, PIECE)
        if step.fetches:
            parts += (line + step.piece - 1) // step.piece * (plan.size if step.each else 1)
    for k in range(rows.fetched_count):
        rows.fetched[k].part = plan.size * rows.slots[rows.fetched[k].slot].apart // max(parts, 1)


# ----- Running -----
cdef void repeat_numbers(const Plan* plan, char* memory) noexcept nogil:
    cdef const Slot* slot
    cdef intptr_t i
    cdef int k, itemsize
    for k in range(plan.program.slot_count if plan.way == ROWS else 0):
        slot = &plan.program.slots[k]
        if slot.data is not NULL and plan.rows.slots[k].data is NULL:
            itemsize = cg_itemsize[slot.dtype]
            for i in range(plan.size):
                memcpy(memory + k * plan.slot_bytes + i * itemsize, slot.data, itemsize)


cdef inline void fetch_part(const Rows* rows, char** row_data, intptr_t number) noexcept nogil:
    """Fetch a part of the next rows."""
    cdef int k
    for k in range(rows.fetched_count):
        fetch(row_data[rows.fetched[k].slot] + AHEAD + number * rows.fetched[k].part, rows.fetched[k].part)


cdef void run_tile_rows(const Plan* plan, intptr_t tile, char* memory) noexcept nogil:
    """Run all steps on some rows. Parts of the next rows are fetched between: loops do not see misses beyond their end."""
    cdef const Rows* rows = &plan.rows
    cdef const RowStep* step
    cdef intptr_t count = min(plan.size, plan.row_count - tile * plan.size), fetched = 0, left, piece, i
    cdef char* row_data[MAX_SLOTS]
    cdef char* pointers[MAX_OPERANDS]
    cdef int j, k
    for k in range(plan.program.slot_count):
        row_data[k] = rows.slots[k].data + tile * plan.size * rows.slots[k].apart
        if rows.slots[k].data is NULL:
            row_data[k] = memory + k * plan.slot_bytes
    for k in range(rows.step_count):
        step = &rows.steps[k]
        for i in range(count if step.each else 1):
            for j in range(step.inputs + 1):
                pointers[j] = row_data[step.slots[j]] + i * rows.slots[step.slots[j]].apart
            left = step.elements if step.each else count * step.elements
            while left > 0:
                if step.fetches:
                    fetch_part(rows, row_data, fetched)
                    fetched += 1
                if step.loop is NULL:
                    reduce_rows(step.reduction, step.dtype, pointers[0], NULL if step.inputs == 1 else pointers[1], plan.row, count,
                                pointers[step.inputs])
                    break
                piece = min(left, step.piece)
                step.loop(pointers, step.strides, piece, <const void*>rows if step.fetches_own else step.params)
                left -= piece
                if left:
                    for j in range(step.inputs + 1):
                        pointers[j] += piece * step.strides[j]
