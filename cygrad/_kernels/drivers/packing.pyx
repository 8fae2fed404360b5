# cython: cdivision=True, initializedcheck=False
"""Packing (see packing.pxd for the contract)."""
from libc.string cimport memcpy, memset

from cygrad._kernels.system.isa cimport cg_isa_vector_bytes, choose_isa
from cygrad._kernels.system.threads cimport COST_ARITHMETIC, COST_TRANSCENDENTAL, run_in_parts, threads_for

cdef extern from "drivers/tables.h" nogil:
    ctypedef void (*cg_move)(cg_cursor* cursor, char* block, intptr_t n) noexcept nogil
    ctypedef void (*cg_copy)(char* target, const char* block, intptr_t nbytes) noexcept nogil
    cg_cast cg_find_cast(int level, int source, int target)
    cg_move cg_find_gather(int level, int dtype)
    cg_move cg_find_scatter(int level, int dtype)
    cg_copy cg_find_stream_copy(int level)
    void cg_stream_end() noexcept

cdef int level = choose_isa()
cdef int _vector_bytes = cg_isa_vector_bytes(level)


cdef cg_cast cast(int source, int target) noexcept nogil:
    return cg_find_cast(level, source, target)


cdef int vector_bytes() noexcept nogil:
    return _vector_bytes


# ----- Layout -----
cdef bint repeats_number(const intptr_t* strides, int ndim, const intptr_t* shape) noexcept nogil:
    cdef int d
    for d in range(ndim):
        if strides[d] and shape[d] > 1:
            return False
    return True


cdef bint lies_row_major(const intptr_t* strides, intptr_t itemsize, int ndim, const intptr_t* shape) noexcept nogil:
    cdef intptr_t stride = itemsize
    cdef int d
    for d in range(ndim - 1, -1, -1):
        if strides[d] != stride and shape[d] > 1:
            return False
        stride *= shape[d]
    return True


cdef intptr_t row_major_count(const Operand* operand, int ndim, const intptr_t* shape) noexcept nogil:
    return count_elements(ndim, shape) if lies_row_major(operand.strides, cg_itemsize[operand.dtype], ndim, shape) else 0


cdef int merge(int count, Operand* operands, int ndim, const intptr_t* shape, intptr_t* merged) noexcept nogil:
    cdef int k, d, e, dims_left = 0
    cdef int order[MAX_DIMS]
    cdef intptr_t row[MAX_DIMS]
    cdef Operand* output = &operands[count - 1]
    cdef bint joined
    for d in range(ndim):
        if shape[d] == 1:
            continue
        e = dims_left
        while e > 0 and output.strides[order[e - 1]] < output.strides[d]:
            order[e] = order[e - 1]
            e -= 1
        order[e] = d
        dims_left += 1
    for k in range(count):
        for d in range(dims_left):
            row[d] = operands[k].strides[order[d]]
        for d in range(dims_left):
            operands[k].strides[d] = row[d]
    for d in range(dims_left):
        merged[d] = shape[order[d]]
    e = 0
    for d in range(1, dims_left):
        joined = True
        for k in range(count):
            if operands[k].strides[e] != operands[k].strides[d] * merged[d]:
                joined = False
                break
        if not joined:
            e += 1
            merged[e] = merged[d]
        else:
            merged[e] *= merged[d]
        for k in range(count):
            operands[k].strides[e] = operands[k].strides[d]
    return min(dims_left, e + 1)


cdef int cost_of_layout(int count, const Operand* operands, int ndim, const intptr_t* shape) noexcept nogil:
    cdef int k
    cdef intptr_t stride
    if ndim > 1 and shape[ndim - 1] < LONG_ROW:
        return COST_TRANSCENDENTAL
    for k in range(count):
        stride = operands[k].strides[ndim - 1] if ndim else 0
        if stride and stride != cg_itemsize[operands[k].dtype]:
            return COST_TRANSCENDENTAL
    return COST_ARITHMETIC


cdef void lay(cg_cursor* cursor, const Operand* operand, int ndim, const intptr_t* shape) noexcept nogil:
    cdef int d, last = 0
    cursor.address, cursor.index[0] = operand.data, 0
    cursor.shape[0], cursor.strides[0] = 1, cg_itemsize[operand.dtype]
    if ndim:
        cursor.shape[0], cursor.strides[0] = shape[0], operand.strides[0]
    for d in range(1, ndim):
        if cursor.strides[last] == operand.strides[d] * shape[d]:
            cursor.shape[last] *= shape[d]
        else:
            last += 1
            cursor.shape[last], cursor.index[last] = shape[d], 0
        cursor.strides[last] = operand.strides[d]
    cursor.ndim = last + 1


cdef void seek(cg_cursor* cursor, int dims, intptr_t index) noexcept nogil:
    cdef int d
    for d in range(dims - 1, -1, -1):
        if index == 0:
            return
        cursor.index[d] = index % cursor.shape[d] if d else index
        cursor.address += cursor.index[d] * cursor.strides[d]
        index //= cursor.shape[d]


cdef bint is_dense_cursor(const cg_cursor* cursor, int itemsize) noexcept nogil:
    return cursor.ndim == 1 and cursor.strides[0] == itemsize


# ----- Blocks -----
cdef void gather(const Operand* operand, cg_cursor* cursor, intptr_t n, char* block) noexcept nogil:
    cdef char memory[BLOCK * CG_LARGEST]
    cdef int last = cursor.ndim - 1, source_size = cg_itemsize[operand.dtype], size = cg_itemsize[operand.loop_dtype]
    cdef intptr_t part
    cdef cg_cast convert
    if operand.dtype == operand.loop_dtype:
        cg_find_gather(level, operand.dtype)(cursor, block, n)
        return
    convert = cast(operand.dtype, operand.loop_dtype)
    while n > 0:
        if last == 0 or cursor.shape[last] >= LONG_ROW:
            part = min(n, cursor.shape[last] - cursor.index[last])
            convert(block, size, cursor.address, cursor.strides[last], part)
            cg_advance(cursor, last, part)
        else:
            part = min(n, BLOCK)
            cg_find_gather(level, operand.dtype)(cursor, memory, part)
            convert(block, size, memory, source_size, part)
        block += part * size
        n -= part


cdef void scatter(const Operand* operand, cg_cursor* cursor, intptr_t n, char* block) noexcept nogil:
    cdef char memory[BLOCK * CG_LARGEST]
    cdef int last = cursor.ndim - 1, target_size = cg_itemsize[operand.dtype], size = cg_itemsize[operand.loop_dtype]
    cdef intptr_t part
    cdef cg_cast convert
    if operand.dtype == operand.loop_dtype:
        cg_find_scatter(level, operand.dtype)(cursor, block, n)
        return
    convert = cast(operand.loop_dtype, operand.dtype)
    while n > 0:
        if last == 0 or cursor.shape[last] >= LONG_ROW:
            part = min(n, cursor.shape[last] - cursor.index[last])
            convert(cursor.address, cursor.strides[last], block, size, part)
            cg_advance(cursor, last, part)
        else:
            part = min(n, BLOCK)
            convert(memory, target_size, block, size, part)
            cg_find_scatter(level, operand.dtype)(cursor, memory, part)
        block += part * size
        n -= part


cdef void pack(const Operand* operand, int ndim, const intptr_t* shape, intptr_t start, intptr_t n, char* target) noexcept nogil:
    cdef cg_cursor cursor
    lay(&cursor, operand, ndim, shape)
    seek(&cursor, cursor.ndim, start)
    gather(operand, &cursor, n, target)


# ----- Copies -----
cdef void stream_row(char* target, const char* row, intptr_t nbytes) noexcept nogil:
    cdef intptr_t head = min(nbytes, <intptr_t>((-<size_t>target) % _vector_bytes)), whole = nbytes - head
    whole -= whole % _vector_bytes
    memcpy(target, row, head)
    cg_find_stream_copy(level)(target + head, row + head, whole)
    memcpy(target + head + whole, row + head + whole, nbytes - head - whole)


cdef bint stream_range(cg_cursor* to, const Operand* source, cg_cursor* cursor, intptr_t n) noexcept nogil:
    """Write n dense elements past the caches: long rows at once, else through blocks. False where rows are strided: they take tiles."""
    cdef char block[BLOCK * CG_LARGEST]
    cdef int itemsize = cg_itemsize[source.loop_dtype], last = cursor.ndim - 1
    cdef intptr_t part, step = cursor.strides[last]
    if last and step and step != cg_itemsize[source.dtype]:
        return False
    while n > 0:
        if source.dtype == source.loop_dtype and step == itemsize and cursor.shape[last] >= LONG_ROW:
            part = min(n, cursor.shape[last] - cursor.index[last])
            stream_row(to.address, cursor.address, part * itemsize)
            cg_advance(cursor, last, part)
        else:
            part = min(n, BLOCK)
            gather(source, cursor, part, block)
            stream_row(to.address, block, part * itemsize)
        cg_advance(to, 0, part)
        n -= part
    cg_stream_end()
    return True


cdef void copy_range(const Operand* target, const Operand* source, int ndim, const intptr_t* shape, bint stream, intptr_t start,
                     intptr_t stop) noexcept nogil:
    """Copy the elements from start to stop: at once where one of the arrays lies as a block does, else through blocks."""
    cdef char block[BLOCK * CG_LARGEST]
    cdef cg_cursor to, cursor
    cdef int itemsize = cg_itemsize[target.dtype]
    cdef intptr_t n
    lay(&to, target, ndim, shape)
    lay(&cursor, source, ndim, shape)
    seek(&to, to.ndim, start)
    seek(&cursor, cursor.ndim, start)
    if is_dense_cursor(&to, itemsize):
        if not stream or not stream_range(&to, source, &cursor, stop - start):
            gather(source, &cursor, stop - start, to.address)
    elif source.dtype == target.dtype and is_dense_cursor(&cursor, itemsize):
        scatter(target, &to, stop - start, cursor.address)
    else:
        while start < stop:
            n = min(stop - start, BLOCK)
            gather(source, &cursor, n, block)
            scatter(target, &to, n, block)
            start += n


cdef intptr_t chunk_of(intptr_t total, int threads) noexcept nogil:
    return ((total + threads - 1) // threads + CHUNK - 1) // CHUNK * CHUNK


cdef void zero_range(const void* data, intptr_t first, intptr_t last) noexcept nogil:
    memset(<char*>data + first, 0, last - first)


cdef void zero_dense(char* data, intptr_t n, int itemsize) noexcept nogil:
    cdef int threads = threads_for(n * itemsize // 8, COST_ARITHMETIC)
    run_in_parts(zero_range, data, n * itemsize, chunk_of(n, threads) * itemsize, threads)


cdef struct Copied:
    const Operand* target
    const Operand* source
    const intptr_t* shape
    int ndim
    bint stream


cdef void copy_part(const void* job, intptr_t start, intptr_t stop) noexcept nogil:
    cdef const Copied* copied = <const Copied*>job
    copy_range(copied.target, copied.source, copied.ndim, copied.shape, copied.stream, start, stop)


cdef void copy(Operand* target, Operand* source, int ndim, const intptr_t* shape) noexcept nogil:
    cdef Operand operands[2]
    cdef intptr_t merged[MAX_DIMS]
    cdef intptr_t total = count_elements(ndim, shape), large = STREAM_BYTES
    cdef int d, threads
    cdef Copied copied
    if total == 0:
        return
    operands[0] = source[0]
    operands[1] = target[0]
    operands[0].loop_dtype = operands[1].loop_dtype = target.dtype
    ndim = merge(2, operands, ndim, shape, merged)
    threads = threads_for(total, cost_of_layout(2, operands, ndim, merged))
    for d in range(ndim):
        if operands[0].strides[d] == 0:     # up to 8 MiB: the source does not push the target out of the caches
            large = 4 * STREAM_BYTES + 1
    copied.target, copied.source, copied.shape, copied.ndim = &operands[1], &operands[0], merged, ndim
    copied.stream = total * cg_itemsize[target.dtype] >= large * max(threads, 1)
    run_in_parts(copy_part, &copied, total, chunk_of(total, threads), threads)
