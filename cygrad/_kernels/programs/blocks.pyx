# cython: cdivision=True, initializedcheck=False
"""Programs of maps (see blocks.pxd for the contract)."""
from cython.parallel cimport prange
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport (MAX_OPERANDS, STREAM_BYTES, block_bytes, cg_itemsize, cg_loop, cg_stream_end,
                                                  cg_team_size, stream_copy, vector_bytes)
from cygrad._kernels.drivers.reduction cimport Producer, reduce_produced
from cygrad._kernels.programs.planning cimport is_live, last_reader, last_writer
from cygrad._kernels.programs.steps cimport MAX_SLOTS, MAX_STEPS, NONE, Step, output_of
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


# Steps that go over memory once.
cdef struct Pass:
    Producer producer                   # of the slot that is reduced; the first member, so that `make_block` has its pass
    const Program* program
    int dtype, first, last              # steps
    int threads
    bint stream                         # outputs are so large that no cache will hold them until they are read
    int redirected                      # an output that is written to another block; NONE


cdef void begin_passes(Pass* part, const Program* program, int redirected) noexcept nogil:
    part.program, part.dtype, part.first, part.last, part.redirected = program, program.steps[0].dtype, 0, 0, redirected
    part.threads = threads_for(program.total, program.cost)
    part.stream = program.total * cg_itemsize[part.dtype] >= STREAM_BYTES * max(part.threads, 1)


cdef bint next_pass(Pass* part) noexcept nogil:
    """Vector mathematics takes longer than memory does, and hides it: a result that is needed later is better written at once, and read
    again by the next pass, than copied. Blocks do not live from one pass to the next."""
    cdef const Program* program = part.program
    cdef const Step* step
    cdef int k, output
    if part.last == program.step_count:
        return False
    part.first, part.last = part.last, program.step_count
    for k in range(part.first, program.step_count - 1):
        step = &program.steps[k]
        output = output_of(step)
        if part.stream and step.kernel.blocked[part.dtype] and program.slots[output].data is not NULL and output != part.redirected:
            if not blocks_cross(part, k + 1):
                part.last = k + 1
                break
    return True


cdef bint blocks_cross(const Pass* part, int border) noexcept nogil:
    """Return True if steps from `border` on read a block that is made before."""
    cdef int k
    for k in range(part.program.slot_count):
        if (part.program.slots[k].data is NULL or k == part.redirected) and is_live(part.program, k, border):
            return True
    return False


cdef void run_part(const Pass* part, intptr_t start, intptr_t stop, char* block) noexcept nogil:
    """Run steps block by block, on a whole number of vectors or up to the end. Streamed results are in no cache: an output that later
    steps read is made in a block, and copied."""
    cdef char memory[MAX_STEPS * SLOT_BYTES + 64]
    cdef char* free_block = memory + (-<size_t>memory) % 64
    cdef char* slot_data[MAX_SLOTS]        # of a block's elements
    cdef char* copies[MAX_SLOTS]        # where they go from there, or NULL
    cdef bint advances[MAX_SLOTS]       # both, from block to block
    cdef bint computed[MAX_SLOTS]
    cdef int moving[MAX_SLOTS]          # the slots that advance
    cdef const Program* program = part.program
    cdef int itemsize = cg_itemsize[part.dtype], moving_count = 0, calls_count = part.last - part.first, j, k, slot
    cdef intptr_t length = (STREAM_BLOCK_BYTES if part.stream else BLOCK_BYTES) // itemsize, n
    cdef size_t unaligned = block_bytes(part.dtype) - 1
    cdef bint far = part.stream and calls_count > 1
    cdef Call calls[MAX_STEPS]
    cdef char* pointers[MAX_OPERANDS]
    cdef const Call* call
    cdef const Step* step
    if calls_count == 1:
        length = stop - start
    for k in range(program.slot_count):
        advances[k] = not program.slots[k].number
        slot_data[k], copies[k], computed[k] = program.slots[k].data, NULL, False
        if slot_data[k] is not NULL and advances[k]:
            slot_data[k] += start * itemsize
    for k in range(part.first, part.last):
        step = &program.steps[k]
        calls[k - part.first].fetched = 0
        for j in range(step.inputs + 1):
            slot = step.slots[j]
            if (far and j < step.inputs and not computed[slot] and advances[slot]
                    and last_reader(program, slot, part.first, k) == NONE):
                calls[k - part.first].fetched |= 1 << j
            computed[slot] = computed[slot] or j == step.inputs
            if slot == part.redirected:
                slot_data[slot] = block
            elif (slot_data[slot] is NULL
                  or part.stream and computed[slot] and j < step.inputs and copies[slot] is NULL and advances[slot]):
                copies[slot], slot_data[slot] = slot_data[slot], free_block
                free_block += SLOT_BYTES
                advances[slot] = False
    for k in range(part.first, part.last):
        step = &program.steps[k]
        fill_call(program, step, &calls[k - part.first])
        slot = output_of(step)
        if (part.stream and advances[slot] and slot != part.redirected and step.kernel.streams[part.dtype] is not NULL
                and not (<size_t>slot_data[slot] | <size_t>(length * itemsize)) & unaligned):
            calls[k - part.first].loop = step.kernel.streams[part.dtype]
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


cdef inline void fill_call(const Program* program, const Step* step, Call* call) noexcept nogil:
    cdef int j
    call.loop = call.loop_of_rest = step.kernel.loops[step.dtype]
    call.params, call.inputs = step.params, step.inputs
    for j in range(step.inputs + 1):
        call.slots[j] = step.slots[j]
        if j < step.inputs:
            call.strides[j] = 0 if program.slots[step.slots[j]].number else cg_itemsize[step.dtype]


cdef inline void write(char* target, const char* block, intptr_t nbytes) noexcept nogil:
    """Write a block to memory, past the caches but for less than a vector at the end."""
    cdef size_t unaligned = vector_bytes() - 1
    cdef intptr_t whole = 0 if <size_t>target & unaligned else nbytes & ~<intptr_t>unaligned
    if whole:
        stream_copy(target, block, whole)
    if whole < nbytes:
        memcpy(target + whole, block + whole, nbytes - whole)


cdef void run_pass(const Pass* part) noexcept nogil:
    cdef intptr_t total = part.program.total, block = BLOCK_BYTES // cg_itemsize[part.dtype], chunk, chunks, c
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
    begin_passes(&part, program, NONE)
    while next_pass(&part):
        run_pass(&part)


cdef void make_block(const Producer* producer, intptr_t start, intptr_t stop, char* block) noexcept nogil:
    run_part(<const Pass*>producer, start, stop, block)


cdef int reduce_blocks(const cg_reduction* reduction, const Program* program, int slot, char* output) noexcept nogil:
    cdef Pass part
    begin_passes(&part, program, slot)
    part.producer.make, part.producer.total, part.producer.dtype = make_block, program.total, part.dtype
    part.producer.cost, part.producer.streams = program.cost, part.stream
    while next_pass(&part):
        if last_writer(program, slot, part.first, part.last) == NONE:
            run_pass(&part)
        elif reduce_produced(reduction, &part.producer, output):
            return -1
    return 0
