# cython: cdivision=True, initializedcheck=False
"""The elementwise driver (see elementwise.pxd for the contract)."""
from libc.string cimport memcpy

from cygrad._kernels.drivers.packing cimport BLOCK, chunk_of, cost_of_layout, count_elements, lies_row_major, merge, repeats_number
from cygrad._kernels.drivers.traversal cimport IN_PLACE, LONGEST_PERIOD, PACKED, PADDING, OperandState, advance, begin_operand, piece, room
from cygrad._kernels.system.isa cimport cg_isa_built_for, cg_isa_name, choose_isa, supported_isas
from cygrad._kernels.system.threads cimport run_in_parts, threads_for

import os

from cygrad._kernels.system.journal import note

cdef enum:
    NO_STRIDE = -1
    SCRATCH = (BLOCK + LONGEST_PERIOD) * CG_LARGEST + PADDING     # bytes of an operand's block

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
    """Return True if a kernel calls vector mathematics, and so runs in whole vectors: it is right to a few ulp, not to the bit."""
    return bool(elementwise_kernel(name).blocked[dtype])


cdef int block_bytes(int dtype) noexcept nogil:
    return cg_block_bytes(dtype, _vector_bytes)


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
    cdef OperandState states[MAX_OPERANDS]
    cdef char* pointers[MAX_OPERANDS]
    cdef intptr_t strides[MAX_OPERANDS]
    cdef int sizes[MAX_OPERANDS]
    cdef int k, output = count - 1, lanes = block_bytes(dtype) // cg_itemsize[dtype]
    cdef intptr_t n
    cdef bint blocked = kernel.blocked[dtype], overrun
    cdef int numbers = 0        # that the loop reads in place
    cdef cg_loop loop = kernel.loops[dtype]
    for k in range(output):     # an operand that is read before it is overwritten is in the cache
        stream = stream and operands[k].data != operands[output].data
    begin_operand(&states[output], &operands[output], ndim, shape, start, BLOCK, lanes if blocked else 1, True, False)
    stream = (stream and kernel.streams[dtype] is not NULL and states[output].traversal == IN_PLACE and states[output].outer == 0
              and <size_t>operands[output].data % _vector_bytes == 0)
    overrun = states[output].traversal == PACKED or fresh and states[output].outer == 0
    for k in range(count):
        if k != output:
            begin_operand(&states[k], &operands[k], ndim, shape, start, BLOCK, lanes if blocked or stream else 1, False,
                          takes_numbers(kernel, dtype, output, numbers + 1))
        states[k].block = block + k * SCRATCH
        numbers += states[k].scalar
        sizes[k] = states[k].itemsize
        strides[k] = 0 if states[k].scalar else sizes[k]
        overrun = overrun and (k == output or states[k].traversal != IN_PLACE or operands[k].padded)
    while start < stop:
        n = stop - start
        for k in range(count):
            n = min(n, room(&states[k]))
        if stream and n >= lanes:
            n -= n % lanes
        for k in range(count):
            pointers[k] = piece(&states[k], &operands[k], n, lanes if blocked else 1, k == output)
        if stream and n >= lanes:
            kernel.streams[dtype](pointers, strides, n, params)
        else:
            call(blocked, loop, count, pointers, strides, sizes, lanes, n, params, overrun)
        for k in range(count):
            advance(&states[k], &operands[k], n, k == output)
        start += n


cdef struct Elements:
    const cg_kernel* kernel
    const Operand* operands
    const intptr_t* shape
    const void* params
    int dtype, count, ndim
    bint fresh, stream


cdef void run_elements(const void* job, intptr_t start, intptr_t stop) noexcept nogil:
    cdef const Elements* e = <const Elements*>job
    run_range(e.kernel, e.dtype, e.count, e.operands, e.ndim, e.shape, e.params, e.fresh, e.stream, start, stop)
    if e.stream:
        cg_stream_end()


cdef inline intptr_t stride_of(const Operand* operand, int ndim, const intptr_t* shape) noexcept nogil:
    """Return the bytes from an element to the next of a row-major operand, 0 of one number in every place, NO_STRIDE of any other."""
    cdef intptr_t size = cg_itemsize[operand.dtype]
    return (size if lies_row_major(operand.strides, size, ndim, shape) else
            0 if repeats_number(operand.strides, ndim, shape) else NO_STRIDE)


cdef bint run_at_once(const cg_kernel* kernel, int dtype, int count, const Operand* operands, int ndim, const intptr_t* shape,
                      intptr_t total, const void* params, bint fresh) noexcept nogil:
    """Run a kernel by one call of its loop; False where an operand does not lie so that the loop takes it."""
    cdef char* pointers[MAX_OPERANDS]
    cdef intptr_t strides[MAX_OPERANDS]
    cdef int sizes[MAX_OPERANDS]
    cdef int k, output = count - 1, numbers = 0
    cdef bint overrun = fresh
    for k in range(count):
        pointers[k], sizes[k], strides[k] = operands[k].data, cg_itemsize[operands[k].dtype], stride_of(&operands[k], ndim, shape)
        if operands[k].dtype != operands[k].loop_dtype or strides[k] == NO_STRIDE:
            return False
        if strides[k] == 0:
            numbers += 1
            if k == output or not takes_numbers(kernel, dtype, output, numbers):
                return False
        elif k != output:
            overrun = overrun and operands[k].padded
    call(kernel.blocked[dtype], kernel.loops[dtype], count, pointers, strides, sizes, block_bytes(dtype) // cg_itemsize[dtype], total,
         params, overrun)
    return True


cdef void run_elementwise_part(const cg_kernel* kernel, int dtype, int count, Operand* operands, int ndim, const intptr_t* shape,
                               const void* params, bint fresh, bint stream) noexcept nogil:
    cdef intptr_t merged[MAX_DIMS]
    cdef intptr_t total = count_elements(ndim, shape)
    # Most operands of small parts are dense.
    if total and (stream or not run_at_once(kernel, dtype, count, operands, ndim, shape, total, params, fresh)):
        ndim = merge(count, operands, ndim, shape, merged)
        run_range(kernel, dtype, count, operands, ndim, merged, params, fresh, stream, 0, total)


cdef void run_elementwise(const cg_kernel* kernel, int dtype, int count, Operand* operands, int ndim, const intptr_t* shape,
                          const void* params, int cost, bint fresh) noexcept nogil:
    """Run a kernel over a broadcast iteration."""
    cdef intptr_t merged[MAX_DIMS]
    cdef intptr_t total = count_elements(ndim, shape)
    cdef int threads
    cdef Elements elements
    if total < SMALL_COUNT:
        run_elementwise_part(kernel, dtype, count, operands, ndim, shape, params, fresh, False)
        return
    ndim = merge(count, operands, ndim, shape, merged)
    threads = threads_for(total, max(cost, cost_of_layout(count, operands, ndim, merged)))
    elements.kernel, elements.operands, elements.shape, elements.params = kernel, operands, merged, params
    elements.dtype, elements.count, elements.ndim, elements.fresh = dtype, count, ndim, fresh
    elements.stream = total * cg_itemsize[operands[count - 1].dtype] >= STREAM_BYTES * max(threads, 1)
    run_in_parts(run_elements, &elements, total, chunk_of(total, threads), threads)


note("instruction set", f"{isa()}, {isa_report()['reason']}")
