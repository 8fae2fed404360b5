# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Programs (see program.pxd for the contract)."""
from cython.parallel cimport prange
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc

from cygrad._kernels.elementwise cimport STREAM_BYTES, cg_itemsize, cg_team_size, vector_bytes
from cygrad._kernels.threads cimport note_threads, thread_limit, threads_for

cdef enum:
    BLOCK_BYTES = 1 << 17       # of a slot: some of them fit the second-level cache, and prefetchers get under way
    SLOT_BYTES = BLOCK_BYTES + 64       # loops may run over the end


cdef int run_range(const Slot* slots, int slot_count, const Step* steps, int step_count, int dtype, bint stream, intptr_t start,
                   intptr_t stop) noexcept nogil:
    """Run all steps on the elements from start to stop, block by block; -1 if there is no memory."""
    cdef char* pointers[MAX_INPUTS + 1]
    cdef intptr_t strides[MAX_INPUTS + 1]
    cdef int itemsize = cg_itemsize[dtype], lanes = vector_bytes() // itemsize, j, k
    cdef intptr_t block = BLOCK_BYTES // itemsize, n, whole
    cdef char* memory = <char*>malloc(slot_count * SLOT_BYTES)
    cdef const Step* step
    if memory is NULL:
        return -1
    while start < stop:
        n = min(block, stop - start)
        for k in range(step_count):
            step = &steps[k]
            pointers[0] = place(&slots[step.source], memory + step.source * SLOT_BYTES, start)
            strides[0] = slots[step.source].stride
            for j in range(1, step.inputs):
                pointers[j], strides[j] = step.data[j] + start * step.strides[j], step.strides[j]
            pointers[step.inputs] = place(&slots[step.target], memory + step.target * SLOT_BYTES, start)
            whole = 0
            if (stream and slots[step.target].data is not NULL and step.kernel.streams[dtype] is not NULL
                    and <size_t>pointers[step.inputs] % vector_bytes() == 0):
                whole = n - n % lanes
                if whole:
                    step.kernel.streams[dtype](pointers, strides, whole, step.params)
            if whole < n:
                for j in range(step.inputs):
                    pointers[j] += whole * strides[j]
                pointers[step.inputs] += whole * itemsize
                step.kernel.loops[dtype](pointers, strides, n - whole, step.params)
        start += n
    free(memory)
    return 0


cdef inline char* place(const Slot* slot, char* block, intptr_t start) noexcept nogil:
    return block if slot.data is NULL else slot.data + start * slot.stride


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
