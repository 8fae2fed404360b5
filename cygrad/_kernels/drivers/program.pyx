# cython: cdivision=True, initializedcheck=False
"""Programs (see program.pxd for the contract)."""
from cython.parallel cimport prange
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport (MAX_OPERANDS, STREAM_BYTES, block_bytes, cg_itemsize, cg_loop, cg_stream_end,
                                                  cg_team_size, stream_copy, vector_bytes)
from cygrad._kernels.system.threads cimport note_threads, thread_limit, threads_for

cdef extern from "drivers/fetch.h" nogil:
    void fetch(const char* address, intptr_t nbytes) noexcept

cdef enum:
    AHEAD = 2048                # bytes from a block that is read to the one that is fetched: memory takes as long
    BLOCK_BYTES = 1 << 10       # of a slot: all of them fit the first-level cache
    STREAM_BLOCK_BYTES = 1 << 9         # arrays that come from memory are read side by side: prefetchers follow that
    SLOT_BYTES = BLOCK_BYTES + 64       # loops may run over the end


# The data of a running step lie close together: blocks fill the first-level cache.
cdef struct Call:
    cg_loop loop                        # of whole blocks
    cg_loop loop_of_rest
    const void* params
    intptr_t strides[MAX_OPERANDS - 1]
    unsigned char slots[MAX_OPERANDS]
    unsigned char inputs
    unsigned char fetched               # inputs (bits) that no step before has read from memory


cdef int add_block(Program* program) noexcept nogil:
    program.slots[program.slot_count].data, program.slots[program.slot_count].stride = NULL, cg_itemsize[program.dtype]
    program.slot_count += 1
    return program.slot_count - 1


cdef int add_array(Program* program, char* data, intptr_t stride) noexcept nogil:
    cdef int k
    for k in range(program.slot_count):
        if program.slots[k].data == data and program.slots[k].stride == stride:
            return k
    program.slots[program.slot_count].data, program.slots[program.slot_count].stride = data, stride
    program.slot_count += 1
    return program.slot_count - 1


cdef bint streams(const Program* program, int threads) noexcept nogil:
    """Say whether outputs are so large that no cache will hold them until they are read."""
    return program.total * cg_itemsize[program.dtype] >= STREAM_BYTES * max(threads, 1)


cdef int end_of_pass(const Program* program, int first, bint stream, int redirected) noexcept nogil:
    """Vector mathematics takes longer than memory does, and hides it: a result that is needed later is better written at once, and read
    again by the next pass, than copied. Blocks do not live from one pass to the next."""
    cdef const Step* step
    cdef int k, output
    for k in range(first, program.step_count - 1):
        step = &program.steps[k]
        output = step.slots[step.inputs]
        if stream and step.kernel.blocked[program.dtype] and program.slots[output].data is not NULL and output != redirected:
            if not blocks_cross(program, k + 1, redirected):
                return k + 1
    return program.step_count


cdef bint blocks_cross(const Program* program, int border, int redirected) noexcept nogil:
    """Say whether steps from `border` on read a block that is made before."""
    cdef bint made_after[MAX_SLOTS]
    cdef const Step* step
    cdef int j, k
    for k in range(program.slot_count):
        made_after[k] = program.slots[k].data is not NULL and k != redirected
    for k in range(border, program.step_count):
        step = &program.steps[k]
        for j in range(step.inputs):
            if not made_after[step.slots[j]]:
                return True
        made_after[step.slots[step.inputs]] = True
    return False


cdef void run_program_part(const Program* program, int first, int last, bint stream, intptr_t start, intptr_t stop, int redirected,
                           char* block) noexcept nogil:
    """Run steps block by block. Streamed results are in no cache: an output that later steps read is made in a block, and copied."""
    cdef char memory[MAX_STEPS * SLOT_BYTES + 64]
    cdef char* free_block = memory + (-<size_t>memory) % 64
    cdef char* slot_data[MAX_SLOTS]        # of a block's elements
    cdef char* copies[MAX_SLOTS]        # where they go from there, or NULL
    cdef bint advances[MAX_SLOTS]       # both, from block to block
    cdef bint computed[MAX_SLOTS]
    cdef int moving[MAX_SLOTS]          # the slots that advance
    cdef int itemsize = cg_itemsize[program.dtype], moving_count = 0, calls_count = last - first, j, k, slot
    cdef intptr_t length = (STREAM_BLOCK_BYTES if stream else BLOCK_BYTES) // itemsize, n
    cdef size_t unaligned = block_bytes(program.dtype) - 1
    cdef bint far = stream and last - first > 1
    cdef Call calls[MAX_STEPS]
    cdef char* pointers[MAX_OPERANDS]
    cdef const Call* call
    cdef const Step* step
    if last - first == 1:
        length = stop - start
    for k in range(program.slot_count):
        advances[k] = program.slots[k].stride != 0
        slot_data[k], copies[k], computed[k] = program.slots[k].data, NULL, False
        if slot_data[k] is not NULL:
            slot_data[k] += start * program.slots[k].stride
    for k in range(first, last):
        step = &program.steps[k]
        calls[k - first].fetched = 0
        for j in range(step.inputs + 1):
            slot = step.slots[j]
            if far and j < step.inputs and not computed[slot] and advances[slot] and not is_read(program, first, k, slot):
                calls[k - first].fetched |= 1 << j
            computed[slot] = computed[slot] or j == step.inputs
            if slot == redirected:
                slot_data[slot] = block
            elif slot_data[slot] is NULL or stream and computed[slot] and j < step.inputs and copies[slot] is NULL and advances[slot]:
                copies[slot], slot_data[slot] = slot_data[slot], free_block
                free_block += SLOT_BYTES
                advances[slot] = False
    for k in range(first, last):
        step = &program.steps[k]
        fill_call(program, step, &calls[k - first])
        slot = step.slots[step.inputs]
        if (stream and advances[slot] and slot != redirected and step.kernel.streams[program.dtype] is not NULL
                and not (<size_t>slot_data[slot] | <size_t>(length * itemsize)) & unaligned):
            calls[k - first].loop = step.kernel.streams[program.dtype]
    for k in range(program.slot_count):
        if advances[k]:
            moving[moving_count] = k
            moving_count += 1
    while start < stop:
        n = min(length, stop - start)
        for k in range(calls_count):
            call = &calls[k]
            for j in range(call.inputs + 1):
                pointers[j] = slot_data[call.slots[j]]
            if call.fetched:
                for j in range(call.inputs):
                    if call.fetched >> j & 1:
                        fetch(pointers[j] + AHEAD, n * itemsize)
            (call.loop if n == length else call.loop_of_rest)(pointers, call.strides, n, call.params)
            slot = call.slots[call.inputs]
            if copies[slot] is not NULL:
                write(copies[slot], slot_data[slot], n * itemsize)
                copies[slot] += n * itemsize
        for k in range(moving_count):
            slot_data[moving[k]] += n * itemsize
        start += n


cdef inline bint is_read(const Program* program, int first, int last, int slot) noexcept nogil:
    """Say whether one of some steps reads a slot."""
    cdef int j, k
    for k in range(first, last):
        for j in range(program.steps[k].inputs):
            if program.steps[k].slots[j] == slot:
                return True
    return False


cdef inline void fill_call(const Program* program, const Step* step, Call* call) noexcept nogil:
    cdef int j
    call.loop = call.loop_of_rest = step.kernel.loops[program.dtype]
    call.params, call.inputs = step.params, step.inputs
    for j in range(step.inputs + 1):
        call.slots[j] = step.slots[j]
        if j < step.inputs:
            call.strides[j] = program.slots[step.slots[j]].stride


cdef inline void write(char* target, const char* block, intptr_t nbytes) noexcept nogil:
    """Write a block to memory, past the caches but for less than a vector at the end."""
    cdef size_t unaligned = vector_bytes() - 1
    cdef intptr_t whole = 0 if <size_t>target & unaligned else nbytes & ~<intptr_t>unaligned
    if whole:
        stream_copy(target, block, whole)
    if whole < nbytes:
        memcpy(target + whole, block + whole, nbytes - whole)


cdef void run_pass(const Program* program, int first, int last, int threads) noexcept nogil:
    cdef intptr_t block = BLOCK_BYTES // cg_itemsize[program.dtype], chunk, chunks, c
    cdef bint stream = streams(program, threads)
    if threads <= 1:
        run_program_part(program, first, last, stream, 0, program.total, NONE, NULL)
        if stream:
            cg_stream_end()
        return
    chunk = ((program.total + threads - 1) // threads + block - 1) // block * block
    chunks = (program.total + chunk - 1) // chunk
    for c in prange(chunks, schedule="static", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        run_program_part(program, first, last, stream, c * chunk, min(program.total, (c + 1) * chunk), NONE, NULL)
        if stream:
            cg_stream_end()


cdef void run_program(const Program* program) noexcept nogil:
    cdef int threads = threads_for(program.total, program.cost), first = 0, last
    while first < program.step_count:
        last = end_of_pass(program, first, streams(program, threads), NONE)
        run_pass(program, first, last, threads)
        first = last
