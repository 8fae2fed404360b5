# cython: cdivision=True, initializedcheck=False
"""Sums of boxes (see boxes.pxd for the contract)."""
from cython.parallel cimport prange
from libc.string cimport memset

from cygrad._kernels.drivers.elementwise cimport CG_FLOAT32, CG_FLOAT64, MAX_OPERANDS, cg_itemsize, cg_real, cg_team_size
from cygrad._kernels.drivers.sums cimport MAX_TERMS, Sum, SumNumbers, add_term, begin_sum, loop_of_sum, write_numbers
from cygrad._kernels.system.threads cimport COST_ARITHMETIC, note_threads, thread_limit, threads_for


cdef bint has_loop(int dtype) noexcept nogil:
    return cg_real[dtype] == CG_FLOAT32 or cg_real[dtype] == CG_FLOAT64


cdef void add_runs(const Boxes* boxes, char* whole, char** runs, int covering, intptr_t n) noexcept nogil:
    """Write the sum of runs of elements: to the elements that are set, or from the first box, or from zero, on."""
    cdef char* pointers[MAX_OPERANDS]
    cdef intptr_t strides[MAX_OPERANDS]
    cdef SumNumbers numbers
    cdef Sum sum
    cdef int dtype = cg_real[boxes.dtype], k
    cdef bint begun = not boxes.fresh
    for k in range(MAX_TERMS + 1):
        strides[k] = cg_itemsize[dtype]
    begin_sum(&sum)
    if boxes.fresh and not covering & 1:
        sum.start = 0
    for k in range(boxes.count + 1):
        if sum.terms == MAX_TERMS or k == boxes.count and sum.terms > begun:
            pointers[sum.terms] = whole
            write_numbers(&sum, dtype, &numbers)
            loop_of_sum(sum.terms).loops[dtype](pointers, strides, n * cg_itemsize[boxes.dtype] // cg_itemsize[dtype], &numbers)
            begin_sum(&sum)
            begun = True
        if k < boxes.count and covering >> k & 1:
            if begun and not sum.terms:
                pointers[0] = whole
                add_term(&sum, 0, 1)
            pointers[sum.terms] = runs[k]
            add_term(&sum, k, 1)


cdef void add_range(const Boxes* boxes, int d, char* whole, char** data, int covering, intptr_t position, intptr_t end) noexcept nogil:
    """Add boxes to some places of a dim. `covering`: those that cover the place in the dims before (bits)."""
    cdef const Box* box
    cdef char* inner[MAX_BOXES]
    cdef intptr_t whole_bytes = cg_itemsize[boxes.dtype], border, i
    cdef intptr_t box_bytes[MAX_BOXES]
    cdef int k, j, here
    for k in range(boxes.count):
        box_bytes[k] = cg_itemsize[boxes.dtype]
        for j in range(d + 1, boxes.ndim):
            box_bytes[k] *= boxes.boxes[k].sizes[j]
    for j in range(d + 1, boxes.ndim):
        whole_bytes *= boxes.sizes[j]
    while position < end:
        border, here = end, 0
        for k in range(boxes.count):
            box = &boxes.boxes[k]
            if covering >> k & 1 and position < box.starts[d] + box.sizes[d]:
                if position < box.starts[d]:
                    border = min(border, box.starts[d])
                else:
                    border, here = min(border, box.starts[d] + box.sizes[d]), here | 1 << k
        if not here and boxes.fresh:
            memset(whole + position * whole_bytes, 0, (border - position) * whole_bytes)
        for i in range(position, border if here else position):
            for k in range(boxes.count):
                inner[k] = data[k] + (i - boxes.boxes[k].starts[d]) * box_bytes[k]
            if d == boxes.ndim - 1:
                add_runs(boxes, whole + i * whole_bytes, inner, here, border - i)
                break
            add_range(boxes, d + 1, whole + i * whole_bytes, inner, here, 0, boxes.sizes[d + 1])
        position = border


cdef void join_dims(Boxes* boxes) noexcept nogil:
    """Join the last dims where all boxes reach over the last one."""
    cdef Box* box
    cdef int k, last = boxes.ndim - 1
    while last:
        for k in range(boxes.count):
            if boxes.boxes[k].sizes[last] != boxes.sizes[last]:
                return
        for k in range(boxes.count):
            box = &boxes.boxes[k]
            box.starts[last - 1] *= boxes.sizes[last]
            box.sizes[last - 1] *= boxes.sizes[last]
        boxes.sizes[last - 1] *= boxes.sizes[last]
        boxes.ndim = last
        last -= 1


cdef int add_boxes(void* arguments, char** data) noexcept nogil:
    cdef Boxes boxes = (<const Boxes*>arguments)[0]
    cdef intptr_t total = 1, chunk, c
    cdef int d, threads
    join_dims(&boxes)
    for d in range(boxes.ndim):
        total *= boxes.sizes[d]
    threads = threads_for(total, COST_ARITHMETIC)
    if threads <= 1:
        add_range(&boxes, 0, data[0], data + 1, (1 << boxes.count) - 1, 0, boxes.sizes[0])
        return 0
    chunk = (boxes.sizes[0] + threads - 1) // threads
    for c in prange((boxes.sizes[0] + chunk - 1) // chunk, schedule="static", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        add_range(&boxes, 0, data[0], data + 1, (1 << boxes.count) - 1, c * chunk, min(boxes.sizes[0], (c + 1) * chunk))
    return 0
