# cython: cdivision=True
"""Windows of one to three dims as the columns of a matrix, with zeros around the input, and columns added up where they lie.

Element k of window i along a dim is at i * stride - before + k * dilation. Nothing is recorded.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, intptr_t
from libc.string cimport memcpy

from cygrad._core.compute.moving cimport element
from cygrad._core.compute.places cimport dense, stored
from cygrad._core.graph.constants cimport zero
from cygrad._core.graph.launches cimport Launch, add_changed, add_input, add_output, begin_launch, clear_arguments, run_launch
from cygrad._core.graph.tensor cimport TensorImpl, empty
from cygrad._core.memory.sizes cimport add_overflows, checked_numel, multiply_overflows, parse_sizes
from cygrad._core.operands.operands cimport RELEASE_GIL
from cygrad._kernels.drivers.elementwise cimport CG_FLOAT32, CG_FLOAT64, cg_itemsize, cg_loops_of, cg_real

cdef enum:
    DIMS = 3        # fewer are preceded by dims of one element

cdef struct Geometry:
    intptr_t examples, channels, parts      # parts: of a complex number
    intptr_t[3] sizes, kernel, count, stride, before, dilation, first      # first: of the windows along a dim
    intptr_t row, column, example           # strides of the columns: from row to row, window to window, example to example
    int dtype                               # of the parts
    bint adds                               # the columns to the images, else from them


cdef int read_geometry(Geometry* g, int dims, object steps, object kernel, object count) except -1:
    cdef int d, offset = DIMS - dims
    cdef tuple stride = steps.stride, before = steps.before, dilation = steps.dilation
    if not 0 < dims <= DIMS or len(kernel) != dims or len(count) != dims:
        raise RuntimeError(f"windows of {len(kernel)} dims are no windows of {dims}: the number of dims has changed")
    for d in range(offset):
        g.sizes[d] = g.kernel[d] = g.count[d] = g.stride[d] = g.dilation[d] = 1
        g.before[d] = g.first[d] = 0
    for d in range(dims):
        g.stride[offset + d], g.before[offset + d], g.dilation[offset + d] = stride[d], before[d], dilation[d]
        g.kernel[offset + d], g.count[offset + d], g.first[offset + d] = kernel[d], count[d], 0
    return 0


cdef int check_reach(const Geometry* g) except -1:
    """Refuse windows of which a place, or a distance between two, is no number of 64 bits."""
    cdef intptr_t last, more
    cdef int d
    for d in range(DIMS):
        if (multiply_overflows(g.first[d] + g.count[d] - 1, g.stride[d], &last)
                or multiply_overflows(g.kernel[d] - 1, g.dilation[d], &more) or add_overflows(last, more, &last)
                or add_overflows(last, max(-g.before[d], 0), &last) or add_overflows(g.sizes[d], max(g.before[d], 0), &more)):
            raise RuntimeError(f"windows must lie between place -2**63 and 2**63 - 1: {g.count[d]} windows of {g.kernel[d]} elements with "
                               f"stride {g.stride[d]}, dilation {g.dilation[d]} and padding {g.before[d]} reach further")
    return 0


cdef inline intptr_t windows_inside(const Geometry* g, int d, intptr_t k, intptr_t* end) noexcept nogil:
    """Return the first of the windows along a dim whose element k lies in the input, and where these end."""
    cdef intptr_t start = (g.first[d] * g.stride[d]) - g.before[d] + k * g.dilation[d]      # of the first window's element
    cdef intptr_t first = 0 if start >= 0 else min((-start - 1) // g.stride[d] + 1, g.count[d])
    end[0] = 0 if start >= g.sizes[d] else min((g.sizes[d] - 1 - start) // g.stride[d] + 1, g.count[d])
    end[0] = max(end[0], first)
    return first


cdef inline void move_run(element* elements, element* column, intptr_t count, bint adds) noexcept nogil:
    cdef intptr_t j
    if not adds:
        memcpy(column, elements, count * sizeof(element))
        return
    for j in range(count):
        elements[j] = <element>(elements[j] + column[j])


cdef inline void move_apart(element* elements, element* column, intptr_t count, intptr_t step, intptr_t parts, bint adds) noexcept nogil:
    cdef intptr_t j, part
    for part in range(parts):
        if adds:
            for j in range(count):
                elements[j * step + part] = <element>(elements[j * step + part] + column[j * parts + part])
        else:
            for j in range(count):
                column[j * parts + part] = elements[j * step + part]


cdef inline void clear_elements(element* elements, intptr_t count) noexcept nogil:
    cdef intptr_t j
    for j in range(count):
        elements[j] = 0


cdef inline void move_plane(element* source, element* target, const Geometry* g, const intptr_t* k, bint adds) noexcept nogil:
    """Run over the windows along the last two dims, whose elements k in the first of the image's rows are `source`."""
    cdef intptr_t end1, end2, i
    cdef intptr_t first1 = windows_inside(g, 1, k[1], &end1), first2 = windows_inside(g, 2, k[2], &end2)
    cdef intptr_t width = g.count[2] * g.parts, step = g.stride[2] * g.parts
    cdef intptr_t before = first2 * g.parts, inside = (end2 - first2) * g.parts
    if first2 == end2:      # no element is inside
        end1 = first1
    if not adds:
        clear_elements(target, first1 * width)
        clear_elements(target + end1 * width, (g.count[1] - end1) * width)
    if first1 == end1:
        return
    source += (((first1 + g.first[1]) * g.stride[1] - g.before[1] + k[1] * g.dilation[1]) * g.sizes[2]
               + (first2 + g.first[2]) * g.stride[2] - g.before[2] + k[2] * g.dilation[2]) * g.parts
    target += first1 * width
    for i in range(end1 - first1):
        if i:       # a stride may lead far behind the last row
            source, target = source + g.stride[1] * g.sizes[2] * g.parts, target + width
        if not adds and inside != width:
            clear_elements(target, before)
            clear_elements(target + before + inside, width - before - inside)
        if step == g.parts:
            move_run(source, target + before, inside, adds)
        else:
            move_apart(source, target + before, end2 - first2, step, g.parts, adds)


cdef void move_columns(element* x, element* columns, const Geometry* g, bint adds) noexcept nogil:
    """Copy the elements of windows to columns, 0 outside of the input, or add columns to the elements."""
    cdef intptr_t n, i, row, first, end, plane = g.sizes[1] * g.sizes[2] * g.parts, width = g.count[1] * g.count[2] * g.parts
    cdef intptr_t[3] k
    cdef element* image = x
    cdef element* target
    for n in range(g.examples):
        row = 0
        for _ in range(g.channels):
            for k[0] in range(g.kernel[0]):
                first = windows_inside(g, 0, k[0], &end)
                for k[1] in range(g.kernel[1]):
                    for k[2] in range(g.kernel[2]):
                        target = columns + n * g.example + row * g.row
                        for i in range(g.count[0]):
                            if first <= i < end:
                                move_plane(image + ((i + g.first[0]) * g.stride[0] - g.before[0] + k[0] * g.dilation[0]) * plane,
                                           target, g, k, adds)
                            elif not adds:
                                clear_elements(target, width)
                            target += width
                        row += 1
            image += g.sizes[0] * plane


cdef int move_columns_of(void* arguments, char** data) noexcept nogil:
    cdef Geometry* g = <Geometry*>arguments
    cdef char* x = data[0]
    cdef char* columns = data[1]
    cdef int width = cg_itemsize[g.dtype]
    if g.dtype == CG_FLOAT64:
        move_columns[double](<double*>x, <double*>columns, g, g.adds)
    elif g.dtype == CG_FLOAT32:
        move_columns[float](<float*>x, <float*>columns, g, g.adds)
    elif width == 8:
        move_columns[int64_t](<int64_t*>x, <int64_t*>columns, g, g.adds)
    elif width == 4:
        move_columns[int32_t](<int32_t*>x, <int32_t*>columns, g, g.adds)
    elif width == 2:
        move_columns[int16_t](<int16_t*>x, <int16_t*>columns, g, g.adds)
    else:
        move_columns[int8_t](<int8_t*>x, <int8_t*>columns, g, g.adds)
    return 0


cdef int move_between(TensorImpl x, TensorImpl columns, Geometry* g, bint adds) except -1:
    cdef int dtype = cg_real[x.dtype_nr], parts = cg_itemsize[x.dtype_nr] // cg_itemsize[dtype]
    cdef Launch launch
    check_reach(g)
    g.parts, g.row, g.example, g.dtype, g.adds = parts, g.row * parts, g.example * parts, dtype, adds
    begin_launch(&launch, "columns", move_columns_of, g, sizeof(Geometry))
    if adds:
        add_changed(&launch, x)
        add_input(&launch, columns)
    else:
        add_input(&launch, x)
        add_output(&launch, columns)
    run_launch(&launch, columns.count >= RELEASE_GIL)
    return 0


def columns_of(TensorImpl input not None, steps, kernel, count, bint merged, intptr_t first=0):
    """Return windows of (examples, channels, *sizes) as matrices with a row for each channel and place in the kernel.

    They are (examples, rows, windows), or `merged` (rows, examples * windows). `count`: the number of windows along each dim, from the
    window `first` on along the first dim.
    """
    return window_columns(input, steps, kernel, count, merged, first)


cdef TensorImpl window_columns(TensorImpl input, steps, kernel, count, bint merged, intptr_t first=0):
    cdef Geometry g
    cdef TensorImpl x = dense(input, input.dtype_nr), result
    cdef intptr_t shape[3]
    cdef intptr_t factors[2 + 2 * DIMS]
    cdef intptr_t windows, rows
    cdef int dims = x.ndim - 2, d
    clear_arguments(&g, sizeof(g))
    read_geometry(&g, dims, steps, kernel, count)
    g.first[DIMS - dims] = first
    g.examples, g.channels = x.sizes[0], x.sizes[1]
    for d in range(dims):
        g.sizes[DIMS - dims + d] = x.sizes[2 + d]
    factors[0], factors[1] = g.examples, g.channels
    for d in range(DIMS):
        factors[2 + d], factors[2 + DIMS + d] = g.kernel[d], g.count[d]
    checked_numel(2 + 2 * DIMS, factors, cg_itemsize[x.dtype_nr])       # their products are sizes
    windows, rows = g.count[0] * g.count[1] * g.count[2], g.channels * g.kernel[0] * g.kernel[1] * g.kernel[2]
    if merged:
        shape[0], shape[1] = rows, g.examples * windows
        result = empty(x.dtype_nr, 2, shape)
        g.row, g.example = g.examples * windows, windows
    else:
        shape[0], shape[1], shape[2] = g.examples, rows, windows
        result = empty(x.dtype_nr, 3, shape)
        g.row, g.example = windows, rows * windows
    if result.count:
        move_between(x, result, &g, False)
    return result


def added_columns(TensorImpl input not None, steps, kernel, count, sizes):
    """Return the sums of windows, (examples, rows, windows), where they lie in (examples, channels, *sizes)."""
    return sum_columns(input, steps, kernel, count, sizes)


cdef TensorImpl sum_columns(TensorImpl input, steps, kernel, count, sizes):
    cdef Geometry g
    cdef intptr_t shape[2 + DIMS]
    cdef TensorImpl columns = dense(input, cg_loops_of[input.dtype_nr]), result
    cdef int dims = <int>len(sizes), d
    clear_arguments(&g, sizeof(g))
    read_geometry(&g, dims, steps, kernel, count)
    if columns.ndim != 3 or columns.sizes[2] != g.count[0] * g.count[1] * g.count[2]:
        raise RuntimeError("the columns have no longer the sizes of the windows")
    parse_sizes(sizes, &shape[2])
    for d in range(dims):
        g.sizes[DIMS - dims + d] = shape[2 + d]
    g.examples, g.channels = columns.sizes[0], columns.sizes[1] // (g.kernel[0] * g.kernel[1] * g.kernel[2])
    shape[0], shape[1] = g.examples, g.channels
    g.row, g.example = columns.sizes[2], columns.sizes[1] * columns.sizes[2]
    result = empty(columns.dtype_nr, 2 + dims, shape)
    zero(result)
    if columns.count and result.count:
        move_between(result, columns, &g, True)
    return stored(result, input.dtype_nr)
