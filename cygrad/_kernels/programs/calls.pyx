# cython: cdivision=True, initializedcheck=False
"""Calls (see calls.pxd for the contract)."""
from cygrad._kernels.drivers.elementwise cimport STREAM_BYTES, block_bytes, cast, cg_itemsize, cg_kernel, takes_numbers
from cygrad._kernels.drivers.packing cimport LONG_ROW, cost_of_layout, merge
from cygrad._kernels.drivers.reduction cimport BLOCK, STRIP, takes_short_rows
from cygrad._kernels.drivers.sums cimport loop_of_sum, put_in, write_numbers
from cygrad._kernels.drivers.traversal cimport PADDING
from cygrad._kernels.programs.planning cimport find_rows, is_live
from cygrad._kernels.programs.rewriting cimport read_sum
from cygrad._kernels.programs.steps cimport NONE, Slot, Step, describe_slot, dtype_of, is_laid, last_writer, output_of
from cygrad._kernels.system.threads cimport threads_for

cdef enum:
    FEW_ROWS = 4        # short rows that are sooner computed one by one than by a driver for each step
    NEAR = 1 << 15      # bytes that some rows take in all slots: the first-level cache holds them
    VECTOR = 64
    NO_BLOCK = 0xff


# ----- Passes -----
cdef void begin_pass(Pass* part, const Program* program, int end) noexcept nogil:
    cdef const Step* step
    cdef int j, k
    part.program, part.end, part.itemsize = program, end, 1
    part.redirected = NONE if end == program.step_count else program.steps[end].slots[0]
    part.by_rows, part.row = False, 1
    for k in range(end):
        step = &program.steps[k]
        for j in range(step.inputs + 1):
            part.itemsize = max(part.itemsize, cg_itemsize[program.slots[step.slots[j]].loop_dtype])
    part.threads = threads_for(program.total, max(program.cost, lay_arrays(part)))
    part.stream = program.total * part.itemsize >= STREAM_BYTES * part.threads


cdef int lay_arrays(Pass* part) noexcept nogil:
    """Join the dims of the arrays that traversals read, and return the least cost of an element."""
    cdef const Program* program = part.program
    cdef const Slot* slot
    cdef intptr_t stride = 1
    cdef bint is_written
    cdef int d, k
    part.laid_count, part.ndim, part.shape[0] = 0, 1, program.total
    for k in range(program.slot_count):
        slot = &program.slots[k]
        is_written = last_writer(program, k, 0, part.end) != NONE
        if is_laid(slot) and (is_written or is_live(program, k, 0, part.end)):
            describe_slot(program, slot, &part.laid[part.laid_count])
            part.laid_slots[part.laid_count], part.written[part.laid_count] = k, is_written
            part.laid_count += 1
    if part.laid_count == 0:
        return program.cost
    for d in range(program.ndim - 1, -1, -1):
        part.laid[part.laid_count].strides[d] = stride
        stride *= program.shape[d]
    part.ndim = merge(part.laid_count + 1, part.laid, program.ndim, program.shape, part.shape)
    return cost_of_layout(part.laid_count, part.laid, part.ndim, part.shape)


cdef intptr_t block_length(const Pass* part) noexcept nogil:
    """Return the elements of a block: as many as memory suffices for, since a call of a loop takes as long as some elements do."""
    cdef intptr_t blocks = part.block_count + part.repeated_count + 2 * part.laid_count
    cdef intptr_t nbytes = SHORT_BLOCK_BYTES if part.stream else BLOCK_BYTES
    if part.call_count == 1:
        nbytes = BLOCK_BYTES if blocks else <intptr_t>BLOCK_BYTES << 30     # its loop takes all elements at once
    while nbytes > SHORT_BLOCK_BYTES and blocks * (nbytes + 2 * PADDING) > MEMORY:
        nbytes = nbytes // 2
    return nbytes // part.itemsize


cdef void cut_blocks(Pass* part, const Program* program, int end) noexcept nogil:
    begin_pass(part, program, end)
    choose_calls(part)
    set_length(part, block_length(part))


# ----- Rows -----
cdef bint cut_rows(Pass* part, const Program* program) noexcept nogil:
    cdef intptr_t row, count, touched = 0
    cdef int k
    if not find_rows(program, &row, &count) or not 0 < row <= BLOCK:
        return False
    begin_pass(part, program, program.step_count)
    part.by_rows, part.row = True, row
    if not choose_calls(part) or row < LONG_ROW and count > FEW_ROWS and not takes_rows_together(part):
        return False
    for k in range(program.slot_count):
        touched += cg_itemsize[program.slots[k].dtype] * (1 if program.slots[k].reduced else row)
    set_length(part, row * max(1, min(count, STRIP, NEAR // touched)))
    if part.length >= program.total:
        part.threads = 1
    return True


cdef bint takes_rows_together(const Pass* part) noexcept nogil:
    """Return True if no call takes short rows one by one."""
    cdef const Call* call
    cdef int k
    for k in range(part.call_count):
        call = &part.calls[k]
        if call.each or call.reduction is not NULL and not takes_short_rows(call.reduction, call.dtype, part.row):
            return False
    return True


cdef intptr_t row_memory(const Pass* part) noexcept nogil:
    return (part.program.slot_count + part.repeated_count + 3 * part.laid_count + 1) * part.slot_bytes


# ----- Loops -----
cdef bint choose_calls(Pass* part) noexcept nogil:
    """Choose the loops of the steps: one for two that are joined, where rows have one. False: a step has no loop for rows."""
    cdef const Program* program = part.program
    cdef const Step* step
    cdef int k
    part.call_count = part.repeated_count = 0
    part.lanes = 1
    for k in range(program.slot_count):
        part.in_block[k] = False
    for k in range(part.end):
        step = &program.steps[k]
        if step.kernel is not NULL and (step.kernel.blocked[step.dtype] or part.stream and step.kernel.streams[step.dtype] is not NULL):
            part.lanes = max(part.lanes, block_bytes(step.dtype) // cg_itemsize[step.dtype])
        part.sums[part.call_count].terms = 0
        if not (add_joined_call(part, k) if step.joined else add_sum_call(part, k)):
            if not add_call(part, step, step.kernel, NONE, step.inputs, step.slots):
                return False
    place_values(part)
    # More, of bytes beside complex numbers, would not fit the memory of blocks; their loops do not stream then.
    part.lanes = min(part.lanes, <intptr_t>(SHORT_BLOCK_BYTES // part.itemsize))
    return True


cdef void replace_calls(Pass* part, int first) noexcept nogil:
    """Put the last call in place of those from a first one on."""
    part.calls[first] = part.calls[part.call_count - 1]
    part.call_count = first + 1


cdef bint add_joined_call(Pass* part, int k) noexcept nogil:
    """Choose one loop for a step and the step before, in place of that one's; False where there is none."""
    cdef const Step* step = &part.program.steps[k]
    cdef const Step* before = step - 1
    cdef int slots[MAX_OPERANDS]
    cdef int j, shift = step.inputs
    if k == 0 or output_of(before) == part.redirected or not part.by_rows:
        return False
    for j in range(step.inputs):
        slots[j] = before.slots[0] if step.slots[j] == before.slots[2] else step.slots[j]
    slots[shift], slots[shift + 1] = before.slots[1], output_of(step)
    if not add_call(part, step, step.shifted, shift, shift + 1, slots):
        return False
    replace_calls(part, part.call_count - 2)
    part.sums[part.call_count - 1].terms = 0
    return True


cdef bint add_sum_call(Pass* part, int k) noexcept nogil:
    """Choose one loop for a step and those before that are parts of a sum with it, in place of theirs; False where there are none."""
    cdef const Step* step = &part.program.steps[k]
    cdef Sum sum, joined
    cdef int first = part.call_count, output = output_of(step)
    if not read_sum(part.program, step, &sum):
        return False
    while first and feeds_step(part, first - 1, k):
        joined = sum
        if not put_in(&joined, call_output(part, first - 1), &part.sums[first - 1]) or not takes_terms(part.program, &joined, output):
            break
        first, sum = first - 1, joined
    if first == part.call_count:
        part.sums[first] = sum
        return False
    sum.operands[sum.terms] = output
    if not add_call(part, step, loop_of_sum(sum.terms), NONE, sum.terms, sum.operands):
        return False
    replace_calls(part, first)
    part.sums[first] = sum
    write_numbers(&sum, step.dtype, &part.numbers[first])
    part.calls[first].params = &part.numbers[first]
    return True


cdef inline int call_output(const Pass* part, int k) noexcept nogil:
    return part.calls[k].places[part.calls[k].inputs]


cdef bint feeds_step(const Pass* part, int number, int k) noexcept nogil:
    """Return True if a call computes a sum for a step and the steps between alone."""
    cdef int slot = call_output(part, number), output = output_of(&part.program.steps[k])
    return (part.sums[number].terms and part.calls[number].dtype == part.program.steps[k].dtype and slot != part.redirected
            and part.program.slots[slot].data is NULL and part.program.slots[slot].reduced == part.program.slots[output].reduced
            and (slot == output or not is_live(part.program, slot, k + 1, part.program.step_count)))


cdef bint takes_terms(const Program* program, const Sum* sum, int output) noexcept nogil:
    """Return True if there is a loop of a sum, which takes the operands: of two terms, one may have one number for each row."""
    cdef int k
    if sum.scale != 1:
        return False
    for k in range(sum.terms if sum.terms > 2 else 0):
        if program.slots[sum.operands[k]].reduced != program.slots[output].reduced:
            return False
    return True


cdef inline bint is_read_first(const Pass* part, int slot) noexcept nogil:
    """Return True if a pass reads the value that memory has before it."""
    return part.program.slots[slot].data is not NULL and is_live(part.program, slot, 0, part.end)


cdef int repeated_place(Pass* part, int slot) noexcept nogil:
    """Return the place of a number among those that have a block."""
    cdef int k
    for k in range(part.repeated_count):
        if part.repeated[k] == slot:
            return k
    part.repeated[part.repeated_count], part.whole[part.repeated_count] = slot, False
    part.repeated_count += 1
    return part.repeated_count - 1


cdef bint add_call(Pass* part, const Step* step, const cg_kernel* kernel, int shift, int inputs, const int* slots) noexcept nogil:
    """Choose the loop of a step, as the next call. The first number that it takes in place stays one, as in the driver of one loop. False
    where the loop does not suit rows: vector mathematics takes no scalar but a shifted kernel's, and runs over the end of a thread's own
    memory only."""
    cdef const Program* program = part.program
    cdef const Slot* output = &program.slots[slots[inputs]]
    cdef const Slot* slot
    cdef Call* call = &part.calls[part.call_count]
    cdef int j, place, numbers = 0
    cdef bint blocked = kernel is not NULL and kernel.blocked[step.dtype], own = output.data is NULL, is_scalar
    call.loop = call.loop_of_rest = NULL if kernel is NULL else kernel.loops[step.dtype]
    call.stream = NULL if kernel is NULL else kernel.streams[step.dtype]
    call.reduction, call.params, call.inputs, call.dtype, call.convert = step.reduction, step.params, inputs, step.dtype, NULL
    call.reduced, call.each, call.fetched = output.reduced, False, 0
    if kernel is NULL and step.reduction is NULL and step.dtype != output.dtype:
        call.convert = cast(step.dtype, output.dtype)
    for j in range(inputs + 1):
        slot = &program.slots[slots[j]]
        call.places[j], call.strides[j] = slots[j], cg_itemsize[slot.loop_dtype]
        call.apart[j] = 0 if slot.number else call.strides[j] * (1 if slot.reduced else part.row)
        if part.by_rows and (slot.dtype != slot.loop_dtype if slot.reduced or j == inputs
                             else slot.loop_dtype != dtype_of(j, step.masks, step.dtype)):
            return False
        if j == inputs:
            break
        is_scalar = slot.number or slot.reduced and not output.reduced
        if is_scalar and kernel is not NULL and (j == shift if shift != NONE else takes_numbers(kernel, step.dtype, inputs, numbers + 1)):
            call.strides[j] = 0
            call.each = call.each or not slot.number
            numbers += 1
        elif is_scalar and part.by_rows and (not slot.number or kernel is NULL or part.repeated_count == MAX_REPEATED):
            return False
        elif slot.number:
            place = repeated_place(part, slots[j])
            part.whole[place] = part.whole[place] or not output.reduced
            call.places[j] = MAX_SLOTS + place
        own = own and (slot.data is NULL or slot.number or j == shift)
    call.shifted = kernel is not NULL and shift != NONE
    call.long = blocked and not output.reduced
    if part.by_rows:
        if kernel is NULL and step.reduction is not NULL and output.dtype != step.reduction.out_dtype[step.dtype]:
            return False
        if call.shifted and (numbers != 1 or call.strides[shift]):
            return False
        if blocked and (output.reduced or part.row * cg_itemsize[step.dtype] % VECTOR) and (call.each or not own):
            return False
    part.in_block[slots[inputs]] = output.data is NULL
    part.call_count += 1
    return True


cdef void place_values(Pass* part) noexcept nogil:
    """Decide where values are made. Streamed results are in no cache: one that a later call reads is made in a block, and copied. A block
    belongs to the value of a slot from the first call to the last that touches it; a map may write over an input that nothing else reads.
    Inputs that come from memory are fetched."""
    cdef bint far = part.stream and part.end > 1 and not part.by_rows
    cdef Call* call
    cdef const Slot* slot
    cdef int last[MAX_SLOTS]        # calls that touch slots,
    cdef int writer[MAX_SLOTS]      # or write them,
    cdef int until[MAX_SLOTS]       # and touch blocks
    cdef int j, k, place, output, block
    part.block_count = 0
    for k in range(part.program.slot_count):
        part.blocks[k], last[k], writer[k] = NO_BLOCK, NONE, NONE
    for k in range(part.call_count):
        call, output = &part.calls[k], call_output(part, k)
        for j in range(call.inputs):
            place = call.places[j]
            if place >= MAX_SLOTS:
                continue
            slot = &part.program.slots[place]
            if part.stream and writer[place] != NONE:
                part.in_block[place] = not is_read_first(part, place)
            elif far and last[place] == NONE and slot.data is not NULL and not slot.number and not is_laid(slot):
                call.fetched |= 1 << j
            last[place] = k
        last[output] = writer[output] = k
    for k in range(part.call_count):
        call, output, block = &part.calls[k], call_output(part, k), 0
        call.is_last = writer[output] == k
        for j in range(call.inputs):
            place = call.places[j]
            if place < MAX_SLOTS and part.blocks[place] != NO_BLOCK and last[place] == k and overwrites(part, call, j):
                block = part.blocks[place]
                until[block] = k - 1
        if part.blocks[output] == NO_BLOCK and part.in_block[output] and output != part.redirected:
            while block < part.block_count and until[block] >= k:
                block += 1
            part.blocks[output], until[block] = <unsigned char>block, last[output]
            part.block_count = max(part.block_count, block + 1)


cdef inline bint overwrites(const Pass* part, const Call* call, int j) noexcept nogil:
    """Return True if a loop may write its result over an input: element by element."""
    return (call.loop is not NULL and call.strides[j] == call.strides[call.inputs] and not call.reduced
            and not part.program.slots[call.places[j]].reduced)


cdef void set_length(Pass* part, intptr_t length) noexcept nogil:
    """Set the elements of a block, and choose loops that write past the caches, where all blocks, or rows, begin at a vector."""
    cdef Call* call
    cdef const Slot* slot
    cdef intptr_t places
    cdef int k
    part.length, part.slot_bytes = length, (length * part.itemsize + 2 * PADDING - 1) // PADDING * PADDING
    for k in range(part.call_count if part.stream else 0):
        call = &part.calls[k]
        slot = &part.program.slots[call_output(part, k)]
        places = <intptr_t>slot.data | (part.row if part.by_rows else part.length) * call.strides[call.inputs]
        if (call.stream is not NULL and not call.reduced and not part.in_block[call_output(part, k)] and not is_laid(slot)
                and not places & (block_bytes(call.dtype) - 1) and not is_read_first(part, call_output(part, k))):
            call.loop = call.stream
        if call.shifted and (call.long or call.loop is call.stream):
            call.params = <const void*>part     # not NULL: the loop fetches its operands of the next rows
