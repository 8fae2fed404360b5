# cython: cdivision=True, initializedcheck=False
"""The elementwise driver (see elementwise.pxd for the contract)."""
from cython.parallel cimport prange
from libc.string cimport memcpy

from cygrad._kernels.system.isa cimport cg_isa_name, cg_isa_vector_bytes, choose_isa, supported_isas
from cygrad._kernels.system.threads cimport note_threads, thread_limit, threads_for

cdef enum:
    BLOCK = 512         # elements of a block: a handful of them fit the first-level cache
    LONG_ROW = 128      # rows from this length on are read in place, shorter ones are gathered
    CHUNK = 1024        # threads get multiples of this, hence of whole vectors
    PADDING = 64        # bytes that a blocked loop may run over the end

cdef extern from "drivers/tables.h" nogil:
    const cg_kernel* cg_find_kernel(int level, const char* name)
    cg_cast cg_find_cast(int level, int source, int target)
    cg_copy cg_find_stream_copy(int level)

cdef int level = choose_isa()
cdef int _vector_bytes = cg_isa_vector_bytes(level)


def isa():
    """Return the name of the instruction set whose loops run."""
    return cg_isa_name(level).decode()


def available_isas():
    """Return the names of the instruction sets this build has and this processor can run, lowest first."""
    return supported_isas()


cdef const cg_kernel* kernel(str name) except NULL:
    cdef const cg_kernel* found = cg_find_kernel(level, name.encode())
    if found is NULL:
        raise RuntimeError(f"the compiled loops have no kernel named {name!r}: they are older than the tables; build again")
    return found


def is_blocked(str name):
    """Say whether a kernel calls vector mathematics, and so runs in whole vectors: it is right to a few ulp, not to the bit."""
    return bool(kernel(name).blocked)


cdef cg_cast cast(int source, int target) noexcept nogil:
    return cg_find_cast(level, source, target)


cdef cg_copy stream_copy() noexcept nogil:
    return cg_find_stream_copy(level)


cdef int vector_bytes() noexcept nogil:
    return _vector_bytes


cdef int merge(int count, Operand* operands, int ndim, const intptr_t* shape, intptr_t* merged) noexcept nogil:
    """Drop dims of size 1, order the others by the output's strides, join what lies as one; rewrite strides in place."""
    cdef int k, d, e, kept = 0
    cdef int order[MAX_DIMS]
    cdef intptr_t row[MAX_DIMS]
    cdef Operand* output = &operands[count - 1]
    cdef bint joined
    for d in range(ndim):
        if shape[d] == 1:
            continue
        e = kept
        while e > 0 and output.strides[order[e - 1]] < output.strides[d]:
            order[e] = order[e - 1]
            e -= 1
        order[e] = d
        kept += 1
    for k in range(count):
        for d in range(kept):
            row[d] = operands[k].strides[order[d]]
        for d in range(kept):
            operands[k].strides[d] = row[d]
    for d in range(kept):
        merged[d] = shape[order[d]]
    e = 0
    for d in range(1, kept):
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
    return min(kept, e + 1)


cdef void walk(const Operand* operand, int ndim, const intptr_t* shape, intptr_t start, intptr_t n, char* block,
               cg_cast convert, bint outwards) noexcept nogil:
    """Copy n elements from the linear index `start` on between an array and a dense block, row by row."""
    cdef intptr_t index[MAX_DIMS]
    cdef intptr_t rest = start, step, stride, length
    cdef char* address = operand.data
    cdef int d, block_size = cg_itemsize[operand.loop_dtype]
    if ndim == 0:
        if outwards:
            convert(operand.data, 0, block, block_size, n)
        else:
            convert(block, block_size, operand.data, 0, n)
        return
    for d in range(ndim - 1, -1, -1):
        index[d] = rest % shape[d]
        rest = rest // shape[d]
        address += index[d] * operand.strides[d]
    stride = operand.strides[ndim - 1]
    length = shape[ndim - 1]
    while n > 0:
        step = min(n, length - index[ndim - 1])
        if outwards:
            convert(address, stride, block, block_size, step)
        else:
            convert(block, block_size, address, stride, step)
        n -= step
        block += step * block_size
        address += step * stride
        index[ndim - 1] += step
        d = ndim - 1
        while index[d] == shape[d] and d > 0:
            address -= index[d] * operand.strides[d]
            index[d] = 0
            d -= 1
            index[d] += 1
            address += operand.strides[d]


cdef void pack(const Operand* operand, int ndim, const intptr_t* shape, intptr_t start, intptr_t n, char* target) noexcept nogil:
    walk(operand, ndim, shape, start, n, target, cast(operand.dtype, operand.loop_dtype), False)


cdef void call(const cg_kernel* kernel, cg_loop loop, int count, char** pointers, const intptr_t* strides, const int* sizes,
               int lanes, intptr_t n, const void* params, bint overrun) noexcept nogil:
    """Run one loop; what is left after whole vectors goes through padded copies unless the loop may run over the end."""
    cdef char tail[MAX_OPERANDS][2 * PADDING]
    cdef char* moved[MAX_OPERANDS]
    cdef intptr_t whole = n - n % lanes, left = n % lanes, i
    cdef int k
    if not kernel.blocked or left == 0 or overrun:
        loop(pointers, strides, n, params)
        return
    if whole:
        loop(pointers, strides, whole, params)
    for k in range(count):
        if k < count - 1 and strides[k] == 0:
            moved[k] = pointers[k]
            continue
        moved[k] = tail[k]
        if k < count - 1:
            memcpy(tail[k], pointers[k] + whole * sizes[k], left * sizes[k])
            for i in range(left, lanes):    # repeat an element rather than meet 0, where log is slow
                memcpy(tail[k] + i * sizes[k], tail[k] + (left - 1) * sizes[k], sizes[k])
    loop(moved, strides, left, params)
    memcpy(pointers[count - 1] + whole * sizes[count - 1], tail[count - 1], left * sizes[count - 1])


cdef void run_range(const cg_kernel* kernel, int dtype, int count, const Operand* operands, int ndim, const intptr_t* shape,
                    const void* params, bint overrun, bint stream, intptr_t start, intptr_t stop) noexcept nogil:
    """Run the elements from start to stop of the merged iteration."""
    cdef char scratch[MAX_OPERANDS][BLOCK * CG_LARGEST + PADDING]
    cdef char* pointers[MAX_OPERANDS]
    cdef intptr_t strides[MAX_OPERANDS]
    cdef int sizes[MAX_OPERANDS]
    cdef bint direct[MAX_OPERANDS]
    cdef bint scalar[MAX_OPERANDS]
    cdef bint simple = True, constant, two = count == 3 and not kernel.blocked
    cdef intptr_t index = start, n, row = shape[ndim - 1] if ndim else 1, rest, offset, inner
    cdef int k, d, lanes = _vector_bytes // cg_itemsize[dtype], output = count - 1
    cdef cg_loop loop = kernel.loops[dtype]
    for k in range(count):
        sizes[k] = cg_itemsize[operands[k].loop_dtype]
        inner = operands[k].strides[ndim - 1] if ndim else sizes[k]
        constant = k != output
        for d in range(ndim):
            constant = constant and operands[k].strides[d] == 0
        # A loop of two inputs takes one of them as a scalar; otherwise a constant is spread over a block, once.
        scalar[k] = constant and ndim > 0 and two and not (k == 1 and scalar[0])
        direct[k] = operands[k].dtype == operands[k].loop_dtype and inner == sizes[k] and (ndim <= 1 or row >= LONG_ROW)
        strides[k] = 0 if scalar[k] else sizes[k]
        if scalar[k]:
            pack(&operands[k], 0, shape, 0, 1, scratch[k])
            pointers[k] = scratch[k]
        elif constant and not direct[k]:
            pack(&operands[k], 0, shape, 0, BLOCK, scratch[k])
            pointers[k] = scratch[k]
            scalar[k] = True
        simple = simple and (direct[k] or scalar[k])
    overrun = overrun and ndim <= 1
    stream = (stream and ndim <= 1 and kernel.streams[dtype] is not NULL and direct[output]
              and <size_t>operands[output].data % _vector_bytes == 0)
    while index < stop:
        n = stop - index
        for k in range(count):
            if not direct[k] and strides[k]:
                n = min(n, BLOCK)
                break
        if ndim > 1 and row >= LONG_ROW:
            n = min(n, row - index % row)
        for k in range(count):
            if direct[k]:
                rest = index
                offset = 0
                for d in range(ndim - 1, -1, -1):
                    offset += rest % shape[d] * operands[k].strides[d]
                    rest = rest // shape[d]
                pointers[k] = operands[k].data + offset
            elif not scalar[k]:
                pointers[k] = scratch[k]
                if k != output:
                    pack(&operands[k], ndim, shape, index, n, scratch[k])
        if stream and n >= lanes:
            n -= n % lanes
            kernel.streams[dtype](pointers, strides, n, params)
        else:
            call(kernel, loop, count, pointers, strides, sizes, lanes, n, params, overrun)
        if not direct[output]:
            walk(&operands[output], ndim, shape, index, n, scratch[output],
                 cast(operands[output].loop_dtype, operands[output].dtype), True)
        index += n
    if stream:
        cg_stream_end()


cdef void run(const cg_kernel* kernel, int dtype, int count, Operand* operands, int ndim, const intptr_t* shape,
              const void* params, int cost, bint fresh) noexcept nogil:
    """Run a kernel over a broadcast iteration. `fresh`: the output is new, padded memory, so loops may run over its end."""
    cdef intptr_t merged[MAX_DIMS]
    cdef intptr_t total = 1, chunk, chunks, c
    cdef int d, k, threads
    cdef bint overrun = fresh, stream
    for d in range(ndim):
        total *= shape[d]
    if total == 0:
        return
    for k in range(count - 1):
        overrun = overrun and operands[k].padded
    ndim = merge(count, operands, ndim, shape, merged)
    threads = threads_for(total, cost)
    stream = fresh and total * cg_itemsize[operands[count - 1].dtype] >= STREAM_BYTES * max(threads, 1)
    if threads <= 1:
        run_range(kernel, dtype, count, operands, ndim, merged, params, overrun, stream, 0, total)
        return
    chunk = (total + threads - 1) // threads
    chunk = (chunk + CHUNK - 1) // CHUNK * CHUNK
    chunks = (total + chunk - 1) // chunk
    for c in prange(chunks, schedule="static", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        run_range(kernel, dtype, count, operands, ndim, merged, params, overrun, stream, c * chunk, min(total, (c + 1) * chunk))


cdef void copy_range(const Operand* target, const Operand* source, int ndim, const intptr_t* shape, intptr_t start,
                     intptr_t stop) noexcept nogil:
    """Copy (and convert) the elements from start to stop, row by row where rows are long, else through a block."""
    cdef char block[BLOCK * CG_LARGEST]
    cdef cg_cast convert = cast(source.dtype, target.dtype)
    cdef intptr_t n, row = shape[ndim - 1] if ndim else 1, rest, column
    cdef char* to
    cdef char* source_data
    cdef int d
    while start < stop:
        if ndim and (ndim == 1 or row >= LONG_ROW):
            column = start % row
            n = min(stop - start, row - column)
            to, source_data, rest = target.data, source.data, start
            for d in range(ndim - 1, -1, -1):
                to += rest % shape[d] * target.strides[d]
                source_data += rest % shape[d] * source.strides[d]
                rest = rest // shape[d]
            convert(to, target.strides[ndim - 1], source_data, source.strides[ndim - 1], n)
        else:
            n = min(stop - start, BLOCK)
            walk(source, ndim, shape, start, n, block, convert, False)
            walk(target, ndim, shape, start, n, block, cast(target.dtype, target.dtype), True)
        start += n


cdef void copy(Operand* target, Operand* source, int ndim, const intptr_t* shape) noexcept nogil:
    """Copy between arrays of one shape, converting; they must be disjoint or the same."""
    cdef Operand operands[2]
    cdef intptr_t merged[MAX_DIMS]
    cdef intptr_t total = 1, chunk, chunks, c
    cdef int d, threads
    for d in range(ndim):
        total *= shape[d]
    if total == 0:
        return
    operands[0] = source[0]
    operands[1] = target[0]
    operands[0].loop_dtype = operands[1].loop_dtype = target.dtype
    ndim = merge(2, operands, ndim, shape, merged)
    threads = threads_for(total, 0)
    if threads <= 1:
        copy_range(&operands[1], &operands[0], ndim, merged, 0, total)
        return
    chunk = (total + threads - 1) // threads
    chunks = (total + chunk - 1) // chunk
    for c in prange(chunks, schedule="static", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        copy_range(&operands[1], &operands[0], ndim, merged, c * chunk, min(total, (c + 1) * chunk))
