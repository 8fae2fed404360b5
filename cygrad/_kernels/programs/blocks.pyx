# cython: cdivision=True, initializedcheck=False
"""Programs of maps (see blocks.pxd for the contract)."""
from cython.parallel cimport prange
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport (MAX_DIMS, MAX_OPERANDS, STREAM_BYTES, Operand, block_bytes, cast, cg_cast,
                                                  cg_itemsize, cg_loop, cg_stream_end, cg_team_size, run_elementwise, stream_copy,
                                                  takes_numbers, vector_bytes)
from cygrad._kernels.drivers.packing cimport cost_of_layout, merge
from cygrad._kernels.drivers.reduction cimport Producer, reduce_produced
from cygrad._kernels.drivers.traversal cimport IN_PLACE, PADDING, OperandState, advance, begin_operand, piece, room
from cygrad._kernels.programs.planning cimport is_live, last_reader
from cygrad._kernels.programs.steps cimport (MAX_LAID, MAX_REPEATED, MAX_SLOTS, MAX_STEPS, NONE, Slot, Step, is_laid, last_writer,
                                             output_of, strides_of)
from cygrad._kernels.system.threads cimport note_threads, thread_limit, threads_for

cdef extern from "drivers/fetch.h" nogil:
    void fetch(const char* address, intptr_t nbytes) noexcept

cdef enum:
    AHEAD = 2048                # bytes from a block that is read to the one that is fetched: memory takes as long
    BLOCK_BYTES = 1 << 12       # of a slot, where all of them fit the first-level cache
    SHORT_BLOCK_BYTES = 1 << 9  # arrays that come from memory are read side by side: prefetchers follow that; beside many blocks
    # A thread of musl has 128 KiB of stack, of which a reduction takes 75 and this 37.
    MEMORY = (MAX_STEPS * (SHORT_BLOCK_BYTES + PADDING) + MAX_REPEATED * (SHORT_BLOCK_BYTES + 2 * PADDING)
              + MAX_LAID * (2 * SHORT_BLOCK_BYTES + PADDING))


# The data of a running step lie close together: blocks fill the first-level cache.
cdef struct Call:
    cg_loop loop                        # of whole vectors; NULL: a copy
    cg_loop loop_of_rest
    cg_cast convert                     # of a copy between dtypes
    const void* params
    intptr_t strides[MAX_OPERANDS - 1]
    int out_size
    unsigned char places[MAX_OPERANDS]
    unsigned char inputs
    unsigned char fetched               # inputs (bits) that no step before has read from memory


# Steps that go over memory once.
cdef struct Pass:
    Producer producer                   # of the slot that is reduced; the first member, so that `make_block` has its pass
    const Program* program
    int itemsize, first, last, end      # of the widest element; steps of this pass, and of all
    int threads
    bint stream                         # outputs are so large that no cache will hold them until they are read
    int redirected                      # an output that is written to another block; NONE
    intptr_t lanes                      # in which loops of this pass run: rows of arrays in place are multiples of it
    int laid_count, ndim                # arrays that are read by traversals, over the joined dims
    intptr_t shape[MAX_DIMS]
    int laid_slots[MAX_LAID]
    Operand laid[MAX_LAID + 1]          # and, while dims are joined, an output


cdef void begin_passes(Pass* part, const Program* program, int end, int redirected) noexcept nogil:
    cdef const Step* step
    cdef int j, k
    part.program, part.first, part.last, part.end, part.redirected, part.itemsize = program, 0, 0, end, redirected, 1
    for k in range(end):
        step = &program.steps[k]
        for j in range(step.inputs + 1):
            part.itemsize = max(part.itemsize, cg_itemsize[program.slots[step.slots[j]].loop_dtype])
    part.threads = threads_for(program.total, max(program.cost, lay_arrays(part)))
    part.stream = program.total * part.itemsize >= STREAM_BYTES * max(part.threads, 1)


cdef int lay_arrays(Pass* part) noexcept nogil:
    """Join the dims of the arrays that traversals read, and return the least cost of an element."""
    cdef const Program* program = part.program
    cdef const Slot* slot
    cdef Operand* operand
    cdef intptr_t stride = 1
    cdef int d, k
    part.laid_count, part.ndim, part.shape[0] = 0, 1, program.total
    for k in range(program.slot_count if program.laid_count else 0):
        slot = &program.slots[k]
        if is_laid(slot):
            operand = &part.laid[part.laid_count]
            operand.data, operand.dtype, operand.loop_dtype, operand.padded = slot.data, slot.dtype, slot.loop_dtype, slot.padded
            strides_of(program, slot, program.shape, operand.strides)
            part.laid_slots[part.laid_count] = k
            part.laid_count += 1
    if part.laid_count == 0:
        return program.cost
    for d in range(program.ndim - 1, -1, -1):
        part.laid[part.laid_count].strides[d] = stride
        stride *= program.shape[d]
    part.ndim = merge(part.laid_count + 1, part.laid, program.ndim, program.shape, part.shape)
    return cost_of_layout(part.laid_count, part.laid, part.ndim, part.shape)


cdef bint next_pass(Pass* part) noexcept nogil:
    """Vector mathematics takes longer than memory does, and hides it: a result that is needed later is better written at once, and read
    again by the next pass, than copied. Blocks do not live from one pass to the next."""
    cdef const Program* program = part.program
    cdef const Step* step
    cdef int k, output
    if part.last == part.end:
        return False
    part.first, part.last = part.last, part.end
    for k in range(part.first, part.end - 1):
        step = &program.steps[k]
        output = output_of(step)
        if part.stream and is_blocked_step(step) and program.slots[output].data is not NULL:
            if not blocks_cross(part, k + 1):
                part.last = k + 1
                break
    part.lanes = 1
    for k in range(part.first, part.last):
        step = &program.steps[k]
        if is_blocked_step(step) or part.stream and step.kernel is not NULL and step.kernel.streams[step.dtype] is not NULL:
            part.lanes = max(part.lanes, block_bytes(step.dtype) // cg_itemsize[step.dtype])
    # More, of bytes beside complex numbers, would not fit the memory of blocks; their loops do not stream then.
    part.lanes = min(part.lanes, <intptr_t>(SHORT_BLOCK_BYTES // part.itemsize))
    return True


cdef inline bint is_blocked_step(const Step* step) noexcept nogil:
    return step.kernel is not NULL and step.kernel.blocked[step.dtype]


cdef bint blocks_cross(const Pass* part, int border) noexcept nogil:
    """Return True if steps from `border` on read a block that is made before."""
    cdef int k
    for k in range(part.program.slot_count):
        if part.program.slots[k].data is NULL and is_live(part.program, k, border, part.end):
            return True
    return False


# ----- A run over some elements -----
cdef struct Run:
    const Pass* part
    intptr_t length                     # elements of a block
    intptr_t slot_bytes                 # of a block, and of the memory after it, which loops may write
    char* free_block
    char* data[MAX_SLOTS + MAX_REPEATED]        # of a block's elements, by slot; then blocks of numbers
    char* targets[MAX_SLOTS]            # where they go from there, or NULL
    bint advances[MAX_SLOTS]            # both, from block to block
    int sizes[MAX_SLOTS]
    int moving[MAX_SLOTS]               # the slots that advance
    int repeated[MAX_REPEATED]          # numbers that have a block
    int tails[MAX_REPEATED]             # arrays that vector mathematics may not read over the end
    char* tail_blocks[MAX_REPEATED]
    int moving_count, repeated_count, tail_count, read_count
    int read[MAX_LAID]                  # arrays of this pass, by number in it
    Call calls[MAX_STEPS]
    OperandState states[MAX_LAID]


cdef void begin_run(Run* run, const Pass* part, char* memory, intptr_t start, char* block) noexcept nogil:
    """Choose the loops of the steps, then the length of blocks, then the memory of all slots."""
    cdef const Program* program = part.program
    cdef int k
    run.part, run.free_block = part, memory
    run.moving_count = run.repeated_count = run.tail_count = run.read_count = 0
    for k in range(part.laid_count):
        if last_reader(program, part.laid_slots[k], part.first, part.last) != NONE:
            run.read[run.read_count] = k
            run.read_count += 1
    for k in range(part.first, part.last):
        fill_call(run, &program.steps[k], &run.calls[k - part.first])
    run.length = block_length(run)
    run.slot_bytes = run.length * part.itemsize + PADDING
    place_operands(run, start)
    place_results(run, block)
    choose_streams(run)


cdef intptr_t block_length(const Run* run) noexcept nogil:
    """Return the elements of a block: as many as memory suffices for, since a call of a loop takes as long as some elements do."""
    cdef const Pass* part = run.part
    cdef intptr_t blocks = part.last - part.first + run.repeated_count + run.tail_count + 2 * run.read_count
    cdef intptr_t nbytes = SHORT_BLOCK_BYTES if part.stream else BLOCK_BYTES
    while nbytes > SHORT_BLOCK_BYTES and blocks * (nbytes + 2 * PADDING) > MEMORY:
        nbytes = nbytes // 2
    return nbytes // part.itemsize


cdef void fill_call(Run* run, const Step* step, Call* call) noexcept nogil:
    """Choose the loop of a step. The first number that it takes in place stays one, as in the driver of one loop."""
    cdef const Program* program = run.part.program
    cdef const Slot* slot
    cdef int j, numbers = 0, output = output_of(step)
    call.loop = call.loop_of_rest = NULL if step.kernel is NULL else step.kernel.loops[step.dtype]
    call.params, call.inputs, call.fetched, call.convert = step.params, step.inputs, 0, NULL
    call.places[step.inputs], call.out_size = output, cg_itemsize[program.slots[output].loop_dtype]
    if step.kernel is NULL and step.dtype != program.slots[output].dtype:
        call.convert = cast(step.dtype, program.slots[output].dtype)
    for j in range(step.inputs):
        slot = &program.slots[step.slots[j]]
        call.places[j], call.strides[j] = step.slots[j], cg_itemsize[slot.loop_dtype]
        if slot.number and step.kernel is not NULL and takes_numbers(step.kernel, step.dtype, step.inputs, numbers + 1):
            call.strides[j] = 0
            numbers += 1
        elif slot.number:
            call.places[j] = MAX_SLOTS + place_in(run.repeated, &run.repeated_count, step.slots[j])
        elif is_blocked_step(step) and not slot.padded and slot.data is not NULL:
            place_in(run.tails, &run.tail_count, step.slots[j])


cdef int place_in(int* slots, int* count, int slot) noexcept nogil:
    """Return the place of a slot in a list, which it is added to if it is not there."""
    cdef int k
    for k in range(count[0]):
        if slots[k] == slot:
            return k
    slots[count[0]] = slot
    count[0] += 1
    return count[0] - 1


cdef inline char* take_block(Run* run, intptr_t nbytes) noexcept nogil:
    cdef char* block = run.free_block
    run.free_block += (nbytes + PADDING - 1) // PADDING * PADDING
    return block


cdef void place_operands(Run* run, intptr_t start) noexcept nogil:
    """Find the memory of each slot at an element; begin traversals, repeat numbers."""
    cdef const Pass* part = run.part
    cdef const Program* program = part.program
    cdef const Slot* slot
    cdef char* block
    cdef intptr_t i
    cdef int j, k, size
    for k in range(program.slot_count):
        slot = &program.slots[k]
        run.data[k], run.targets[k], run.advances[k], run.sizes[k] = slot.data, NULL, not slot.number, cg_itemsize[slot.loop_dtype]
        if slot.number and slot.dtype != slot.loop_dtype:
            run.data[k] = take_block(run, PADDING)
            cast(slot.dtype, slot.loop_dtype)(run.data[k], 0, slot.data, 0, 1)
        elif slot.data is not NULL and not slot.number:
            run.data[k] += start * run.sizes[k]
    for j in range(part.laid_count):
        run.advances[part.laid_slots[j]] = False
    for k in range(run.read_count):
        j = run.read[k]
        begin_operand(&run.states[k], &part.laid[j], part.ndim, part.shape, start, run.length, part.lanes, False, False)
        run.states[k].block = take_block(run, 2 * run.length * run.sizes[part.laid_slots[j]] + PADDING)
    for k in range(run.repeated_count):
        block = run.data[MAX_SLOTS + k] = take_block(run, run.slot_bytes)
        size = run.sizes[run.repeated[k]]
        for i in range(run.length + PADDING // size):
            memcpy(block + i * size, run.data[run.repeated[k]], size)
    for k in range(run.tail_count):
        run.tail_blocks[k] = take_block(run, run.slot_bytes)
        for j in range(run.read_count):
            if part.laid_slots[run.read[j]] == run.tails[k] and run.states[j].traversal != IN_PLACE:
                run.tail_blocks[k] = NULL


cdef void place_results(Run* run, char* block) noexcept nogil:
    """Give steps their blocks. Streamed results are in no cache: an output that later steps read is made in a block, and copied; so is
    a converted one. Inputs that come from memory are fetched."""
    cdef const Pass* part = run.part
    cdef const Program* program = part.program
    cdef bint far = part.stream and part.last - part.first > 1
    cdef bint computed[MAX_SLOTS]
    cdef const Step* step
    cdef int j, k, slot
    for k in range(program.slot_count):
        computed[k] = False
    for k in range(part.first, part.last):
        step = &program.steps[k]
        for j in range(step.inputs + 1):
            slot = step.slots[j]
            if (far and j < step.inputs and not computed[slot] and run.advances[slot]
                    and last_reader(program, slot, part.first, k) == NONE):
                run.calls[k - part.first].fetched |= 1 << j
            computed[slot] = computed[slot] or j == step.inputs
            if slot == part.redirected:
                run.data[slot] = block
            elif (run.data[slot] is NULL or part.stream and computed[slot] and (j < step.inputs or step.kernel is NULL)
                    and run.targets[slot] is NULL and run.advances[slot]):
                run.targets[slot], run.data[slot] = run.data[slot], take_block(run, run.slot_bytes)
                run.advances[slot] = False
    for k in range(program.slot_count):
        if run.advances[k]:
            run.moving[run.moving_count] = k
            run.moving_count += 1


cdef void choose_streams(Run* run) noexcept nogil:
    cdef const Step* step
    cdef int k, output
    for k in range(run.part.first, run.part.last if run.part.stream else run.part.first):
        step = &run.part.program.steps[k]
        output = output_of(step)
        if (step.kernel is not NULL and step.kernel.streams[step.dtype] is not NULL and run.advances[output]
                and output != run.part.redirected
                and not (<size_t>run.data[output] | <size_t>(run.length * run.sizes[output])) & (block_bytes(step.dtype) - 1)):
            run.calls[k - run.part.first].loop = step.kernel.streams[step.dtype]


cdef void copy_tails(Run* run, intptr_t n) noexcept nogil:
    """Copy the last elements of arrays into blocks, whose ends vector mathematics may run over."""
    cdef int k, size
    cdef char* block
    cdef intptr_t i
    for k in range(run.tail_count):
        block, size = run.tail_blocks[k], run.sizes[run.tails[k]]
        if block is NULL:       # it is in a block already
            continue
        memcpy(block, run.data[run.tails[k]], n * size)
        for i in range(n, n + PADDING // size):     # an element, since other values may be slow
            memcpy(block + i * size, block + (n - 1) * size, size)
        run.data[run.tails[k]] = block


cdef void run_part(const Pass* part, intptr_t start, intptr_t stop, char* block) noexcept nogil:
    """Run steps block by block, on a whole number of vectors or up to the end."""
    cdef char memory[MEMORY + PADDING]
    cdef Run run
    cdef int calls_count = part.last - part.first, j, k, slot
    cdef intptr_t n
    cdef char* pointers[MAX_OPERANDS]
    cdef const Call* call
    cdef bint whole
    begin_run(&run, part, memory + (-<size_t>memory) % PADDING, start, block)
    while start < stop:
        n = min(run.length, stop - start)
        for k in range(run.read_count):
            n = min(n, room(&run.states[k]))
        for k in range(run.read_count):
            run.data[part.laid_slots[run.read[k]]] = piece(&run.states[k], &part.laid[run.read[k]], n, part.lanes, False)
        whole = n & (part.lanes - 1) == 0
        if not whole:
            copy_tails(&run, n)
        for k in range(calls_count):
            call = &run.calls[k]
            for j in range(call.inputs + 1):
                pointers[j] = run.data[call.places[j]]
            if call.fetched:
                for j in range(call.inputs):
                    if call.fetched >> j & 1:
                        fetch(pointers[j] + AHEAD, n * call.strides[j])
            if call.loop is not NULL:
                (call.loop if whole else call.loop_of_rest)(pointers, call.strides, n, call.params)
            elif call.convert is not NULL:
                call.convert(pointers[1], call.out_size, pointers[0], call.strides[0], n)
            else:
                memcpy(pointers[1], pointers[0], n * call.out_size)
            slot = call.places[call.inputs]
            if run.targets[slot] is not NULL:
                write(run.targets[slot], run.data[slot], n * call.out_size)
                run.targets[slot] += n * call.out_size
        for k in range(run.read_count):
            advance(&run.states[k], &part.laid[run.read[k]], n, False)
        for k in range(run.moving_count):
            run.data[run.moving[k]] += n * run.sizes[run.moving[k]]
        start += n


cdef inline void write(char* target, const char* block, intptr_t nbytes) noexcept nogil:
    """Write a block to memory, past the caches but for less than a vector at the end."""
    cdef size_t unaligned = vector_bytes() - 1
    cdef intptr_t whole = 0 if <size_t>target & unaligned else nbytes & ~<intptr_t>unaligned
    if whole:
        stream_copy(target, block, whole)
    if whole < nbytes:
        memcpy(target + whole, block + whole, nbytes - whole)


# ----- Passes -----
cdef void run_one(const Program* program, const Step* step) noexcept nogil:
    """Run a step alone, as its operator does."""
    cdef Operand operands[MAX_OPERANDS]
    cdef const Slot* slot
    cdef int j
    for j in range(step.inputs + 1):
        slot = &program.slots[step.slots[j]]
        operands[j].data, operands[j].dtype, operands[j].loop_dtype = slot.data, slot.dtype, slot.loop_dtype
        operands[j].padded = slot.padded
        strides_of(program, slot, program.shape, operands[j].strides)
    run_elementwise(step.kernel, step.dtype, step.inputs + 1, operands, program.ndim, program.shape, step.params, program.cost, True)


cdef void run_pass(const Pass* part) noexcept nogil:
    cdef intptr_t total = part.program.total, block = BLOCK_BYTES // part.itemsize, chunk, chunks, c
    if part.last - part.first == 1 and part.program.steps[part.first].kernel is not NULL:
        run_one(part.program, &part.program.steps[part.first])
        return
    if part.threads <= 1:
        run_part(part, 0, total, NULL)
        if part.stream:
            cg_stream_end()
        return
    chunk = ((total + part.threads - 1) // part.threads + block - 1) // block * block
    chunks = (total + chunk - 1) // chunk
    for c in prange(chunks, schedule="static", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        run_part(part, c * chunk, min(total, (c + 1) * chunk), NULL)
        if part.stream:
            cg_stream_end()


cdef void run_blocks(const Program* program) noexcept nogil:
    cdef Pass part
    begin_passes(&part, program, program.step_count, NONE)
    while next_pass(&part):
        run_pass(&part)


cdef void make_block(const Producer* producer, intptr_t start, intptr_t stop, char* block) noexcept nogil:
    run_part(<const Pass*>producer, start, stop, block)


cdef int reduce_blocks(const Program* program) noexcept nogil:
    cdef const Step* step = &program.steps[program.step_count - 1]
    cdef int slot = step.slots[0]
    cdef Pass part
    begin_passes(&part, program, program.step_count - 1, slot)
    part.producer.make, part.producer.total, part.producer.dtype = make_block, program.total, program.slots[slot].dtype
    part.producer.cost, part.producer.streams = program.cost, part.stream
    while next_pass(&part):
        if last_writer(program, slot, part.first, part.last) == NONE:
            run_pass(&part)
        elif reduce_produced(step.reduction, &part.producer, program.slots[output_of(step)].data):
            return -1
    return 0
