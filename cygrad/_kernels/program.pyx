# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Programs (see program.pxd for the contract)."""
from cython.parallel cimport prange
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from cygrad._kernels.elementwise cimport STREAM_BYTES, cg_itemsize, cg_stream_copy, cg_stream_end, cg_team_size, vector_bytes
from cygrad._kernels.threads cimport note_threads, thread_limit, threads_for

cdef enum:
    BLOCK_BYTES = 1 << 11       # of a slot: all of them fit the first-level cache, and arrays are read side by side
    SLOT_BYTES = BLOCK_BYTES + 64       # loops may run over the end


cdef int run_range(const Slot* slots, int slot_count, const Step* steps, int step_count, int dtype, bint stream, intptr_t start,
                   intptr_t stop) noexcept nogil:
    """Run all steps on the elements from start to stop, block by block; -1 if there is no memory.

    What is streamed is in no cache: a slot that later steps read is computed in a block, which is then copied.
    """
    cdef char* pointers[MAX_INPUTS + 1]
    cdef intptr_t strides[MAX_INPUTS + 1]
    cdef char* places[MAX_SLOTS]
    cdef bint blocked[MAX_SLOTS]
    cdef int itemsize = cg_itemsize[dtype], width = vector_bytes(), j, k, target
    cdef intptr_t block = BLOCK_BYTES // itemsize, n
    cdef char* memory = <char*>malloc(slot_count * SLOT_BYTES + 64)
    cdef char* aligned = memory + (-<size_t>memory) % 64
    cdef const Step* step
    if memory is NULL:
        return -1
    for k in range(slot_count):
        blocked[k] = slots[k].data is NULL
    for k in range(step_count):
        blocked[steps[k].source] = blocked[steps[k].source] or (stream and steps[k].source != 0)
    while start < stop:
        n = min(block, stop - start)
        for k in range(slot_count):
            places[k] = aligned + k * SLOT_BYTES if blocked[k] else slots[k].data + start * slots[k].stride
        for k in range(step_count):
            step = &steps[k]
            target = step.target
            pointers[0], strides[0] = places[step.source], slots[step.source].stride
            for j in range(1, step.inputs):
                pointers[j], strides[j] = step.data[j] + start * step.strides[j], step.strides[j]
            pointers[step.inputs] = places[target]
            if (stream and n == block and not blocked[target] and step.kernel.streams[dtype] is not NULL
                    and <size_t>places[target] % width == 0):
                step.kernel.streams[dtype](pointers, strides, n, step.params)
                continue
            step.kernel.loops[dtype](pointers, strides, n, step.params)
            if blocked[target] and slots[target].data is not NULL:
                write(slots[target].data + start * itemsize, places[target], n * itemsize)
        start += n
    if stream:
        cg_stream_end()
    free(memory)
    return 0


cdef inline void write(char* out, const char* block, intptr_t nbytes) noexcept nogil:
    """Write a block to memory, past the caches as far as that goes."""
    cdef intptr_t whole = nbytes - nbytes % 16 if <size_t>out % 16 == 0 else 0
    cg_stream_copy(out, block, whole)
    memcpy(out + whole, block + whole, nbytes - whole)


cdef int run_program(Slot* slots, int slot_count, const Step* steps, int step_count, int dtype, intptr_t total, int cost) noexcept nogil:
    """Run a program over arrays of `total` elements; -1 if there is no memory for the blocks, and nothing may be read then."""
    cdef int threads = threads_for(total, cost), failed = 0
    cdef intptr_t block = BLOCK_BYTES // cg_itemsize[dtype], chunk, chunks, c
    cdef bint stream = total * cg_itemsize[dtype] >= STREAM_BYTES * max(threads, 1)
    if threads <= 1:
        return run_range(slots, slot_count, steps, step_count, dtype, stream, 0, total)
    chunk = ((total + threads - 1) // threads + block - 1) // block * block
    chunks = (total + chunk - 1) // chunk
    for c in prange(chunks, schedule="static", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        if run_range(slots, slot_count, steps, step_count, dtype, stream, c * chunk, min(total, (c + 1) * chunk)):
            failed += 1
    return -1 if failed else 0
