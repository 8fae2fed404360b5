# cython: cdivision=True, initializedcheck=False
"""Runs block by block (see blocks.pxd for the contract)."""
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport MAX_OPERANDS, cast, cg_itemsize, cg_loop, cg_stream_end, stream_row
from cygrad._kernels.drivers.reduction cimport Producer, reduce_produced, reduce_rows
from cygrad._kernels.drivers.traversal cimport PACKED, PADDING, OperandState, advance, begin_operand, pack_operand, piece, room
from cygrad._kernels.programs.calls cimport BLOCK_BYTES, MEMORY, Call, cut_blocks, row_memory
from cygrad._kernels.programs.steps cimport (MAX_LAID, MAX_REPEATED, MAX_SLOTS, NONE, Program, Slot, Step, is_laid, output_of,
                                             reduction_of)
from cygrad._kernels.system.threads cimport run_in_parts

cdef extern from "drivers/fetch.h" nogil:
    void fetch(const char* address, intptr_t nbytes) noexcept

cdef enum:
    AHEAD = 2048                # bytes from a block that is read to the one that is fetched: memory takes as long


# ----- A run over some elements -----
cdef struct Run:
    const Pass* part
    char* free_block
    char* data[MAX_SLOTS + MAX_REPEATED]        # of a block's elements, by slot; then blocks of numbers
    char* targets[MAX_SLOTS]            # where they go from there, or NULL
    int sizes[MAX_SLOTS]
    intptr_t steps[MAX_SLOTS]           # bytes from a row to the next; 0: it does not advance from block to block
    OperandState states[MAX_LAID]


cdef inline char* take_block(Run* run, intptr_t nbytes) noexcept nogil:
    cdef char* block = run.free_block
    run.free_block += (nbytes + PADDING - 1) // PADDING * PADDING
    return block


cdef void begin_run(Run* run, const Pass* part, char* memory, intptr_t start, char* block) noexcept nogil:
    """Find the memory of each slot at an element; begin traversals, repeat numbers."""
    cdef const Program* program = part.program
    cdef const Slot* slot
    cdef char* blocks
    cdef int k
    run.part, run.free_block = part, memory
    blocks = take_block(run, part.block_count * part.slot_bytes)
    for k in range(program.slot_count):
        slot = &program.slots[k]
        run.data[k], run.targets[k], run.sizes[k], run.steps[k] = slot.data, NULL, cg_itemsize[slot.loop_dtype], 0
        if slot.number:
            if slot.dtype != slot.loop_dtype:
                run.data[k] = take_block(run, PADDING)
                cast(slot.dtype, slot.loop_dtype)(run.data[k], 0, slot.data, 0, 1)
            continue
        if is_laid(slot):       # each block has a piece of it
            continue
        if slot.data is not NULL:
            run.data[k] += (start // part.row if slot.reduced else start) * run.sizes[k]
        if k == part.redirected and block is not NULL:
            run.targets[k], run.data[k] = run.data[k], block
        elif part.in_block[k]:
            run.targets[k] = run.data[k]
            run.data[k] = blocks + part.blocks[k] * part.slot_bytes
            continue
        run.steps[k] = run.sizes[k] * (1 if slot.reduced else part.row)
    begin_operands(run, start)


cdef void begin_operands(Run* run, intptr_t start) noexcept nogil:
    cdef const Pass* part = run.part
    cdef OperandState* state
    cdef char* block
    cdef intptr_t i
    cdef int k, size
    for k in range(part.laid_count):
        state = &run.states[k]
        begin_operand(state, &part.laid[k], part.ndim, part.shape, start, part.length, part.lanes, part.written[k], False)
        if state.traversal != PACKED and state.row % part.row:
            pack_operand(state, &part.laid[k], part.ndim, part.shape, start)
        state.block = take_block(run, 2 * part.length * run.sizes[part.laid_slots[k]] + PADDING)
    for k in range(part.repeated_count):
        block = run.data[MAX_SLOTS + k] = take_block(run, part.slot_bytes)
        size = run.sizes[part.repeated[k]]
        for i in range((part.length if part.whole[k] else part.length // part.row) + PADDING // size):
            memcpy(block + i * size, run.data[part.repeated[k]], size)


cdef inline void run_on_block(const Run* run, const Call* call, intptr_t n, intptr_t rows, bint whole) noexcept nogil:
    """Run a step on a block."""
    cdef char* pointers[MAX_OPERANDS]
    cdef cg_loop loop = call.loop if whole else call.loop_of_rest
    cdef intptr_t count = run.part.row if call.each else rows if call.reduced else n, i
    cdef int j
    for j in range(call.inputs if call.fetched else 0):
        if call.fetched >> j & 1:
            fetch(run.data[call.places[j]] + AHEAD, n * call.strides[j])
    for i in range(rows if call.each else 1):
        for j in range(call.inputs + 1):
            pointers[j] = run.data[call.places[j]] + i * call.apart[j]
        if loop is not NULL:
            loop(pointers, call.strides, count, call.params)
        elif call.reduction is not NULL:
            reduce_rows(call.reduction, call.dtype, pointers[0], NULL if call.inputs == 1 else pointers[1], run.part.row, rows,
                        pointers[call.inputs])
        elif call.convert is not NULL:
            call.convert(pointers[1], call.strides[1], pointers[0], call.strides[0], count)
        elif pointers[1] != pointers[0]:
            memcpy(pointers[1], pointers[0], count * call.strides[1])


cdef void run_part(const Pass* part, intptr_t start, intptr_t stop, char* block, char* memory) noexcept nogil:
    """Run steps block by block, on a whole number of vectors, or of rows, or up to the end; `memory` NULL: on the stack."""
    cdef char stack[MEMORY + PADDING]
    cdef Run run
    cdef const Call* call
    cdef int k, slot
    cdef intptr_t n, rows, size
    cdef bint whole, is_end
    begin_run(&run, part, memory if memory is not NULL else stack + (-<size_t>stack) % PADDING, start, block)
    while start < stop:
        n = min(part.length, stop - start)
        for k in range(part.laid_count):
            n = min(n, room(&run.states[k]))
        rows, whole = n // part.row, n & (part.lanes - 1) == 0
        # Elsewhere the bytes behind a block are elements of the array; rows may end within a vector though the block does not.
        is_end = start + n == part.program.total and (not whole or part.by_rows and part.row & (part.lanes - 1))
        for k in range(part.laid_count):
            if is_end and not part.laid[k].padded and not part.written[k]:      # vector mathematics may read the end of a block only
                pack_operand(&run.states[k], &part.laid[k], part.ndim, part.shape, start)
            run.data[part.laid_slots[k]] = piece(&run.states[k], &part.laid[k], n, part.lanes, part.written[k])
        for k in range(part.call_count):
            call = &part.calls[k]
            run_on_block(&run, call, n, rows, whole)
            slot = call.places[call.inputs]
            if call.is_last and run.targets[slot] is not NULL:
                size = (rows if call.reduced else n) * call.strides[call.inputs]
                stream_row(run.targets[slot], run.data[slot], size)
                run.targets[slot] += size
        for k in range(part.laid_count):
            advance(&run.states[k], &part.laid[k], n, part.written[k])
        for k in range(part.program.slot_count):
            run.data[k] += rows * run.steps[k]
        start += n


# ----- Passes -----
cdef struct PassRun:
    const Pass* part
    char* memory
    intptr_t chunk


cdef void run_pass_part(const void* job, intptr_t start, intptr_t stop) noexcept nogil:
    cdef const PassRun* run = <const PassRun*>job
    run_part(run.part, start, stop, NULL, run.memory + start // run.chunk * row_memory(run.part) if run.part.by_rows else NULL)
    if run.part.stream:
        cg_stream_end()


cdef void run_pass(const Pass* part, char* memory) noexcept nogil:
    """`memory` of all threads, where a block is some rows; else NULL."""
    cdef intptr_t total = part.program.total, block = part.length if part.by_rows else BLOCK_BYTES // part.itemsize
    cdef PassRun run
    run.part, run.memory, run.chunk = part, memory, ((total + part.threads - 1) // part.threads + block - 1) // block * block
    run_in_parts(run_pass_part, &run, total, run.chunk, part.threads)


cdef void make_block(const Producer* producer, intptr_t start, intptr_t stop, char* block) noexcept nogil:
    run_part(<const Pass*>producer, start, stop, block, NULL)


cdef void run_on_number(const Program* program, const Step* step) noexcept nogil:
    cdef char* pointers[MAX_OPERANDS]
    cdef intptr_t strides[MAX_OPERANDS]
    cdef int j
    for j in range(step.inputs + 1):
        pointers[j], strides[j] = program.slots[step.slots[j]].data, cg_itemsize[program.slots[step.slots[j]].dtype]
    step.kernel.loops[step.dtype](pointers, strides, 1, step.params)


cdef void run_blocks(const Program* program, char* memory) noexcept nogil:
    cdef int number = reduction_of(program), end = program.step_count if number == NONE else number, k
    cdef const Step* reduction = &program.steps[end]
    cdef Pass part
    cut_blocks(&part, program, end)
    if number != NONE:
        part.producer.make, part.producer.total, part.producer.dtype = make_block, program.total, program.slots[part.redirected].dtype
        part.producer.cost, part.producer.partials = program.cost, memory
        part.producer.streams = part.stream or program.slots[part.redirected].data is not NULL
        reduce_produced(reduction.reduction, &part.producer, program.slots[output_of(reduction)].data)
    else:
        run_pass(&part, NULL)
    for k in range(end + 1, program.step_count):
        run_on_number(program, &program.steps[k])
