# cython: cdivision=True, initializedcheck=False
"""Sums of boxes (see boxes.pxd for the contract)."""
from libc.string cimport memcpy, memset

from cygrad._kernels.drivers.elementwise cimport CG_FLOAT32, CG_FLOAT64, MAX_OPERANDS, cg_itemsize, cg_loop, cg_real
from cygrad._kernels.drivers.packing cimport count_elements
from cygrad._kernels.drivers.sums cimport MAX_TERMS, Sum, SumNumbers, add_term, begin_sum, loop_of_sum, write_numbers
from cygrad._kernels.system.threads cimport COST_ARITHMETIC, run_in_parts, threads_for


cdef enum:
    WHOLE = -1
    PARTS = 3       # of seven boxes and the whole: four terms, then three more each


cdef bint has_loop(int dtype) noexcept nogil:
    return cg_real[dtype] == CG_FLOAT32 or cg_real[dtype] == CG_FLOAT64


# ----- Rows -----
# A loop that adds boxes; after the first loop, to the elements that it wrote.
cdef struct Part:
    cg_loop loop
    int terms
    int operands[MAX_TERMS + 1]     # numbers of boxes, or WHOLE
    SumNumbers numbers

# Neighbouring elements of rows that the same boxes cover. Without parts they are 0.
cdef struct Segment:
    intptr_t start, stop
    int parts
    Part[PARTS] part


cdef void plan_segment(const Boxes* boxes, int covering, Segment* segment) noexcept nogil:
    """Choose loops for the sum: from the elements that are set on, or from the first box, or from zero."""
    cdef Sum sum
    cdef Part* part
    cdef int dtype = cg_real[boxes.dtype], k
    segment.parts = 0
    begin_sum(&sum)
    if not boxes.fresh:
        add_term(&sum, WHOLE, 1)
    elif not covering & 1:
        sum.start = 0
    for k in range(boxes.count):
        if covering >> k & 1:
            add_term(&sum, k, boxes.boxes[k].factor)
            covering &= ~(1 << k)
        if sum.terms == MAX_TERMS or not covering:
            part = &segment.part[segment.parts]
            segment.parts += 1
            part.loop, part.terms = loop_of_sum(sum.terms).loops[dtype], sum.terms
            memcpy(part.operands, sum.operands, sizeof(part.operands))
            write_numbers(&sum, dtype, &part.numbers)
            if not covering:
                break
            begin_sum(&sum)
            add_term(&sum, WHOLE, 1)


cdef int cut_row(const Boxes* boxes, int covering, intptr_t start, intptr_t stop, Segment* segments) noexcept nogil:
    """Cut a part of rows that some boxes cover into segments, and return their number."""
    cdef intptr_t border
    cdef int here, count = 0
    while start < stop:
        here = cover(boxes, boxes.ndim - 1, covering, start, stop, &border)
        if here or boxes.fresh:
            segments[count].start, segments[count].stop, segments[count].parts = start, border, 0
            if here:
                plan_segment(boxes, here, &segments[count])
            count += 1
        start = border
    return count


cdef void add_rows(const Boxes* boxes, int covering, char* whole, char** data, intptr_t rows, intptr_t start, intptr_t stop
                   ) noexcept nogil:
    """Add boxes to a part of neighbouring rows. `data`: of the boxes in the first row."""
    cdef Segment[2 * MAX_BOXES + 1] segments
    cdef const Segment* segment
    cdef const Part* part
    cdef char* pointers[MAX_OPERANDS]
    cdef intptr_t strides[MAX_OPERANDS]
    cdef intptr_t itemsize = cg_itemsize[boxes.dtype], number_bytes = cg_itemsize[cg_real[boxes.dtype]], i
    cdef int last = boxes.ndim - 1, count = cut_row(boxes, covering, start, stop, segments), j, k, n
    for k in range(MAX_TERMS + 1):
        strides[k] = number_bytes
    for i in range(rows):
        for j in range(count):
            segment = &segments[j]
            if not segment.parts:
                memset(whole + segment.start * itemsize, 0, (segment.stop - segment.start) * itemsize)
            for n in range(segment.parts):
                part = &segment.part[n]
                for k in range(part.terms):
                    pointers[k] = (whole + segment.start * itemsize if part.operands[k] == WHOLE else data[part.operands[k]]
                                   + (i * boxes.boxes[part.operands[k]].sizes[last] + segment.start
                                      - boxes.boxes[part.operands[k]].starts[last]) * itemsize)
                pointers[part.terms] = whole + segment.start * itemsize
                part.loop(pointers, strides, (segment.stop - segment.start) * itemsize // number_bytes, &part.numbers)
        whole += boxes.sizes[last] * itemsize


# ----- Dims -----
cdef int cover(const Boxes* boxes, int d, int covering, intptr_t place, intptr_t end, intptr_t* border) noexcept nogil:
    """Return which of some boxes cover a place of a dim (bits), and up to where."""
    cdef const Box* box
    cdef int k, here = 0
    border[0] = end
    for k in range(boxes.count):
        box = &boxes.boxes[k]
        if covering >> k & 1 and place < box.starts[d] + box.sizes[d]:
            if place < box.starts[d]:
                border[0] = min(border[0], box.starts[d])
            else:
                border[0], here = min(border[0], box.starts[d] + box.sizes[d]), here | 1 << k
    return here


cdef void add_range(const Boxes* boxes, int d, char* whole, char** data, int covering, intptr_t place, intptr_t end) noexcept nogil:
    """Add boxes to some places of a dim. `covering`: those that cover the place in the dims before (bits)."""
    cdef char* inner[MAX_BOXES]
    cdef intptr_t whole_bytes = cg_itemsize[boxes.dtype], border, i
    cdef intptr_t box_bytes[MAX_BOXES]
    cdef int k, j, here
    if d == boxes.ndim - 1:
        add_rows(boxes, covering, whole, data, 1, place, end)
        return
    for k in range(boxes.count):
        box_bytes[k] = cg_itemsize[boxes.dtype]
        for j in range(d + 1, boxes.ndim):
            box_bytes[k] *= boxes.boxes[k].sizes[j]
    for j in range(d + 1, boxes.ndim):
        whole_bytes *= boxes.sizes[j]
    while place < end:
        here = cover(boxes, d, covering, place, end, &border)
        if not here and boxes.fresh:
            memset(whole + place * whole_bytes, 0, (border - place) * whole_bytes)
        for i in range(place, border if here else place):
            for k in range(boxes.count):
                inner[k] = data[k] + (i - boxes.boxes[k].starts[d]) * box_bytes[k]
            if d == boxes.ndim - 2:
                add_rows(boxes, here, whole + i * whole_bytes, inner, border - i, 0, boxes.sizes[d + 1])
                break
            add_range(boxes, d + 1, whole + i * whole_bytes, inner, here, 0, boxes.sizes[d + 1])
        place = border


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


cdef struct Added:
    const Boxes* boxes
    char** data


cdef void add_part(const void* job, intptr_t first, intptr_t last) noexcept nogil:
    cdef const Added* added = <const Added*>job
    add_range(added.boxes, 0, added.data[0], added.data + 1, (1 << added.boxes.count) - 1, first, last)


cdef int add_boxes(void* arguments, char** data) noexcept nogil:
    cdef Boxes boxes = (<const Boxes*>arguments)[0]
    cdef Added added
    cdef int threads
    join_dims(&boxes)
    threads = threads_for(count_elements(boxes.ndim, boxes.sizes), COST_ARITHMETIC)
    added.boxes, added.data = &boxes, data
    run_in_parts(add_part, &added, boxes.sizes[0], (boxes.sizes[0] + threads - 1) // threads, threads)
    return 0
