# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Programs (see program.pxd for the contract)."""
from cython.parallel cimport prange
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._kernels.elementwise cimport STREAM_BYTES, cg_itemsize, cg_stream_copy, cg_stream_end, cg_team_size, vector_bytes
from cygrad._kernels.threads cimport note_threads, thread_limit, threads_for

cdef enum:
    BLOCK_BYTES = 1 << 11       # of a slot: all of them fit the first-level cache, and arrays are read side by side
    SLOT_BYTES = BLOCK_BYTES + 64       # loops may run over the end
    NONE = -1


cdef int add_block(Program* program) noexcept nogil:
    program.slots[program.slot_count].data, program.slots[program.slot_count].stride = NULL, cg_itemsize[program.dtype]
    program.slot_count += 1
    return program.slot_count - 1


cdef int add_array(Program* program, char* data, intptr_t stride) noexcept nogil:
    cdef int k
    for k in range(program.slot_count):
        if program.slots[k].data == data:
            return k
    program.slots[program.slot_count].data, program.slots[program.slot_count].stride = data, stride
    program.slot_count += 1
    return program.slot_count - 1


cdef bint streams(const Program* program, int threads) noexcept nogil:
    """Say whether outputs are so large that no cache will hold them until they are read."""
    return program.total * cg_itemsize[program.dtype] >= STREAM_BYTES * max(threads, 1)


cdef void run_part(const Program* program, bint stream, intptr_t start, intptr_t stop, int redirected, char* block) noexcept nogil:
    """Run all steps block by block. What is streamed is in no cache: an output that later steps read is made in a block, and copied."""
    cdef char memory[MAX_STEPS * SLOT_BYTES + 64]
    cdef char* free_block = memory + (-<size_t>memory) % 64
    cdef char* blocks[MAX_SLOTS]
    cdef char* places[MAX_SLOTS]
    cdef char* pointers[MAX_INPUTS + 1]
    cdef intptr_t strides[MAX_INPUTS]
    cdef int itemsize = cg_itemsize[program.dtype], width = vector_bytes(), j, k, output
    cdef intptr_t length = BLOCK_BYTES // itemsize, first = start, n
    cdef const Step* step
    cdef const Slot* slots = program.slots
    cdef bint made[MAX_SLOTS]
    if program.step_count == 1:
        length = stop - start
    for k in range(program.slot_count):
        blocks[k], made[k] = NULL, False
    for k in range(program.step_count):
        step = &program.steps[k]
        for j in range(step.inputs + 1):
            output = step.slots[j]
            made[output] = made[output] or j == step.inputs
            if (output != redirected and blocks[output] is NULL and (
                    slots[output].data is NULL or stream and made[output] and j < step.inputs)):
                blocks[output] = free_block
                free_block += SLOT_BYTES
    while start < stop:
        n = min(length, stop - start)
        for k in range(program.slot_count):
            places[k] = blocks[k] if blocks[k] is not NULL else slots[k].data + start * slots[k].stride
        if redirected != NONE:
            places[redirected] = block + (start - first) * itemsize
        for k in range(program.step_count):
            step = &program.steps[k]
            for j in range(step.inputs):
                pointers[j], strides[j] = places[step.slots[j]], slots[step.slots[j]].stride
            output = step.slots[step.inputs]
            pointers[step.inputs] = places[output]
            if (stream and blocks[output] is NULL and output != redirected and n * itemsize % width == 0
                    and step.kernel.streams[program.dtype] is not NULL and <size_t>places[output] % width == 0):
                step.kernel.streams[program.dtype](pointers, strides, n, step.params)
                continue
            step.kernel.loops[program.dtype](pointers, strides, n, step.params)
            if blocks[output] is not NULL and slots[output].data is not NULL:
                write(slots[output].data + start * itemsize, blocks[output], n * itemsize)
        start += n


cdef inline void write(char* target, const char* block, intptr_t nbytes) noexcept nogil:
    """Write a block to memory, past the caches as far as that goes."""
    cdef intptr_t whole = nbytes - nbytes % 16 if <size_t>target % 16 == 0 else 0
    cg_stream_copy(target, block, whole)
    memcpy(target + whole, block + whole, nbytes - whole)


cdef void run_program(const Program* program) noexcept nogil:
    cdef int threads = threads_for(program.total, program.cost)
    cdef intptr_t block = BLOCK_BYTES // cg_itemsize[program.dtype], chunk, chunks, c
    cdef bint stream = streams(program, threads)
    if threads <= 1:
        run_part(program, stream, 0, program.total, NONE, NULL)
        if stream:
            cg_stream_end()
        return
    chunk = ((program.total + threads - 1) // threads + block - 1) // block * block
    chunks = (program.total + chunk - 1) // chunk
    for c in prange(chunks, schedule="static", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        run_part(program, stream, c * chunk, min(program.total, (c + 1) * chunk), NONE, NULL)
        if stream:
            cg_stream_end()
