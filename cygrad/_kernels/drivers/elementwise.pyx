# cython: cdivision=True, initializedcheck=False
"""The elementwise driver (see elementwise.pxd for the contract)."""
from cython.parallel cimport prange
from libc.string cimport memcpy

from cygrad._kernels.drivers.packing cimport (BLOCK, LONG_ROW, cg_advance, cg_cursor, chunk_of, cost_of_layout, gather, lay, merge, scatter,
                                              seek)
from cygrad._kernels.system.isa cimport cg_isa_built_for, cg_isa_name, choose_isa, supported_isas
from cygrad._kernels.system.threads cimport note_threads, thread_limit, threads_for

import os

from cygrad._kernels.system.journal import note

cdef enum:
    PADDING = 64        # bytes that a blocked loop may run over the end
    LONGEST_PERIOD = 128
    SCRATCH = (BLOCK + LONGEST_PERIOD) * CG_LARGEST + PADDING     # bytes of an operand's block
    LONG_REPETITION = 2 * BLOCK     # elements from which a period is worth a block of its own

cdef extern from "drivers/tables.h" nogil:
    const cg_kernel* cg_find_kernel(int level, const char* name)

cdef int level = choose_isa()
cdef int _vector_bytes = vector_bytes()


def isa_report():
    """Return the instruction set whose loops run, those that could, and why it is this one."""
    wish = os.environ.get("CYGRAD_ISA", "").strip()
    return {"chosen": isa(), "available": available_isas(), "requested": wish or None, "built_for": cg_isa_built_for().decode() or None,
            "reason": f"CYGRAD_ISA={wish}" if wish else "the highest that build and processor have"}


def isa():
    """Return the name of the instruction set whose loops run."""
    return cg_isa_name(level).decode()


def available_isas():
    """Return the names of the instruction sets this build has and this processor can run, lowest first."""
    return supported_isas()


cdef const cg_kernel* elementwise_kernel(str name) except NULL:
    cdef const cg_kernel* row = cg_find_kernel(level, name.encode())
    if row is NULL:
        raise RuntimeError(f"the compiled loops have no kernel named {name!r}: they are older than the tables; build again")
    return row


def is_blocked(str name, int dtype=CG_FLOAT64):
    """Say whether a kernel calls vector mathematics, and so runs in whole vectors: it is right to a few ulp, not to the bit."""
    return bool(elementwise_kernel(name).blocked[dtype])


cdef int block_bytes(int dtype) noexcept nogil:
    return cg_block_bytes(dtype, _vector_bytes)


# ----- Operands -----
cdef enum Traversal:
    IN_PLACE        # as it lies: all of it, or row by row
    REPEATED        # a period of a few elements, or one, that is repeated until a row ends
    PACKED          # block by block

cdef struct Place:
    Traversal traversal
    bint scalar             # REPEATED: one number, which the loop takes as such
    bint stale              # REPEATED: the block has not been made for this row
    int itemsize, outer     # dims outside of a row
    intptr_t row, column    # elements of a row, and the next of them
    intptr_t period
    cg_cursor cursor        # the row, or the next element (PACKED)
    char* block


cdef void begin(Place* place, const Operand* operand, int ndim, const intptr_t* shape, intptr_t start, intptr_t lanes, bint is_output,
                bint takes_scalar) noexcept nogil:
    """Choose the way of an operand, and go to element `start`. A row may end after whole multiples of `lanes` only."""
    cdef cg_cursor* cursor = &place.cursor
    cdef bint same_dtype = operand.dtype == operand.loop_dtype
    cdef int last, d
    place.itemsize, place.scalar = cg_itemsize[operand.loop_dtype], False
    if same_dtype and ndim == 1 and (operand.strides[0] == place.itemsize or takes_scalar and operand.strides[0] == 0):
        # Small operands first.
        place.scalar = operand.strides[0] == 0
        place.traversal, place.outer, place.row, place.column = REPEATED if place.scalar else IN_PLACE, 0, shape[0], start
        cursor.address = operand.data
        return
    lay(cursor, operand, ndim, shape)
    last = cursor.ndim - 1
    if same_dtype and cursor.strides[last] == place.itemsize:
        place.traversal, place.outer, place.row = IN_PLACE, last, cursor.shape[last]
        if last == 0 or place.row >= LONG_ROW and place.row % lanes == 0:
            go_to(place, start)
            return
    d = last if cursor.strides[last] == 0 else last - 1
    if d >= 0 and cursor.strides[d] == 0 and not is_output:
        place.period = 1 if d == last else cursor.shape[last]
        place.traversal, place.outer, place.row, place.stale = REPEATED, d, cursor.shape[d] * place.period, True
        place.scalar = takes_scalar and place.period == 1
        if place.period <= LONGEST_PERIOD and (
                d == 0 or place.row >= (LONG_ROW if place.scalar else LONG_REPETITION) and place.row % lanes == 0):
            go_to(place, start)
            return
    place.traversal, place.scalar = PACKED, False
    if start:
        seek(cursor, cursor.ndim, start)


cdef void go_to(Place* place, intptr_t start) noexcept nogil:
    """Go to the row of an element."""
    place.column = start
    if place.outer and start:
        place.column = start % place.row
        seek(&place.cursor, place.outer, start // place.row)


cdef intptr_t room(const Place* place) noexcept nogil:
    """Return how many elements can be reached at once."""
    cdef intptr_t rest = place.row - place.column
    return min(rest, BLOCK) if place.traversal == REPEATED and not place.scalar else BLOCK if place.traversal == PACKED else rest


cdef char* address(Place* place, const Operand* operand, intptr_t n, intptr_t lanes, bint is_output) noexcept nogil:
    """Return where the next n elements are, packed if need be. A loop reads whole multiples of `lanes`."""
    cdef cg_cursor pattern
    if place.traversal == IN_PLACE:
        return place.cursor.address + place.column * place.itemsize
    if place.traversal == PACKED:
        if not is_output:
            gather(operand, &place.cursor, n, place.block)
            while lanes > 1 and n % lanes:      # repeat an element, since other values may be slow
                memcpy(place.block + n * place.itemsize, place.block + (n - 1) * place.itemsize, place.itemsize)
                n += 1
        return place.block
    if place.scalar and operand.dtype == operand.loop_dtype:
        return place.cursor.address
    if place.stale:
        place.stale = False
        pattern.address, pattern.ndim = place.cursor.address, 1 if place.period == 1 else 2
        pattern.shape[0], pattern.strides[0], pattern.index[0] = place.row // place.period, 0, 0
        pattern.shape[1], pattern.strides[1], pattern.index[1] = place.period, place.cursor.strides[place.cursor.ndim - 1], 0
        gather(operand, &pattern, 1 if place.scalar else min(place.row, BLOCK + place.period), place.block)
    return place.block if place.period == 1 else place.block + place.column % place.period * place.itemsize


cdef void advance(Place* place, const Operand* operand, intptr_t n, bint is_output) noexcept nogil:
    """Go on by n elements; the block of an output is written."""
    if place.traversal == PACKED:
        if is_output:
            scatter(operand, &place.cursor, n, place.block)
        return
    place.column += n
    if place.outer and place.column == place.row:
        place.column, place.stale = 0, True
        cg_advance(&place.cursor, place.outer - 1, 1)


# ----- Loops -----
cdef void call(bint blocked, cg_loop loop, int count, char** pointers, const intptr_t* strides, const int* sizes,
               int lanes, intptr_t n, const void* params, bint overrun) noexcept nogil:
    """Run one loop; elements after whole vectors go through padded copies unless the loop may run over the end."""
    cdef char tail[MAX_OPERANDS][2 * PADDING]
    cdef char* moved[MAX_OPERANDS]
    cdef intptr_t whole = n - n % lanes, left = n % lanes, i
    cdef int k
    if not blocked or left == 0 or overrun:
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
                    const void* params, bint fresh, bint stream, intptr_t start, intptr_t stop) noexcept nogil:
    """Run the elements from start to stop of the merged iteration."""
    cdef char memory[MAX_OPERANDS * SCRATCH + PADDING]
    cdef char* block = memory + (-<size_t>memory) % PADDING
    cdef Place places[MAX_OPERANDS]
    cdef char* pointers[MAX_OPERANDS]
    cdef intptr_t strides[MAX_OPERANDS]
    cdef int sizes[MAX_OPERANDS]
    cdef int k, output = count - 1, lanes = block_bytes(dtype) // cg_itemsize[dtype]
    cdef intptr_t n
    cdef bint blocked = kernel.blocked[dtype], scalar = count != 3 or blocked, overrun
    cdef cg_loop loop = kernel.loops[dtype]
    for k in range(output):     # an operand that is read before it is overwritten is in the cache
        stream = stream and operands[k].data != operands[output].data
    begin(&places[output], &operands[output], ndim, shape, start, lanes if blocked else 1, True, False)
    stream = (stream and kernel.streams[dtype] is not NULL and places[output].traversal == IN_PLACE and places[output].outer == 0
              and <size_t>operands[output].data % _vector_bytes == 0)
    overrun = places[output].traversal == PACKED or fresh and places[output].outer == 0
    for k in range(count):
        if k != output:
            begin(&places[k], &operands[k], ndim, shape, start, lanes if blocked or stream else 1, False, not scalar)
        places[k].block = block + k * SCRATCH
        scalar = scalar or places[k].scalar
        sizes[k] = places[k].itemsize
        strides[k] = 0 if places[k].scalar else sizes[k]
        overrun = overrun and (k == output or places[k].traversal != IN_PLACE or operands[k].padded)
    while start < stop:
        n = stop - start
        for k in range(count):
            n = min(n, room(&places[k]))
        if stream and n >= lanes:
            n -= n % lanes
        for k in range(count):
            pointers[k] = address(&places[k], &operands[k], n, lanes if blocked else 1, k == output)
        if stream and n >= lanes:
            kernel.streams[dtype](pointers, strides, n, params)
        else:
            call(blocked, loop, count, pointers, strides, sizes, lanes, n, params, overrun)
        for k in range(count):
            advance(&places[k], &operands[k], n, k == output)
        start += n


cdef void run_elementwise(const cg_kernel* kernel, int dtype, int count, Operand* operands, int ndim, const intptr_t* shape,
                          const void* params, int cost, bint fresh) noexcept nogil:
    """Run a kernel over a broadcast iteration."""
    cdef intptr_t merged[MAX_DIMS]
    cdef intptr_t total = 1, chunk, chunks, c
    cdef int d, threads
    cdef bint stream
    for d in range(ndim):
        total *= shape[d]
    if total == 0:
        return
    ndim = merge(count, operands, ndim, shape, merged)
    threads = threads_for(total, max(cost, cost_of_layout(count, operands, ndim, merged)))
    stream = total * cg_itemsize[operands[count - 1].dtype] >= STREAM_BYTES * max(threads, 1)
    if threads <= 1:
        run_range(kernel, dtype, count, operands, ndim, merged, params, fresh, stream, 0, total)
        if stream:
            cg_stream_end()
        return
    chunk = chunk_of(total, threads)
    chunks = (total + chunk - 1) // chunk
    for c in prange(chunks, schedule="static", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        run_range(kernel, dtype, count, operands, ndim, merged, params, fresh, stream, c * chunk, min(total, (c + 1) * chunk))
        if stream:
            cg_stream_end()


cdef void run_elementwise_part(const cg_kernel* kernel, int dtype, int count, Operand* operands, int ndim, const intptr_t* shape,
                               const void* params, bint fresh, bint stream) noexcept nogil:
    cdef intptr_t merged[MAX_DIMS]
    cdef intptr_t total = 1
    cdef int d
    for d in range(ndim):
        total *= shape[d]
    if total:
        ndim = merge(count, operands, ndim, shape, merged)
        run_range(kernel, dtype, count, operands, ndim, merged, params, fresh, stream, 0, total)


note("instruction set", f"{isa()}, {isa_report()['reason']}")
