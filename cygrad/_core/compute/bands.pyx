# cython: cdivision=True
"""Results made of few elements of a dim each: sums by bands, and the largest elements of windows.

A band is a table (rows, entries) of places along a dim, -1 where a row has fewer entries, and weights or None for sums. 16-bit floats are
computed in float32. Nothing is recorded.
"""
cimport numpy
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, intptr_t, uint8_t

from cygrad._core.compute.places cimport dense, stored
from cygrad._core.graph.launches cimport Launch, add_input, add_output, begin_launch, clear_arguments, run_launch
from cygrad._core.graph.tensor cimport TensorImpl, empty
from cygrad._core.operands.operands cimport RELEASE_GIL
from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, CG_FLOAT32, CG_INT8, CG_INT16, CG_INT32, CG_INT64, CG_UINT8, MAX_DIMS,
                                                  cg_is_complex, cg_loops_of, cg_real)

numpy.import_array()

cdef enum:
    MAX_WINDOW_DIMS = 3

ctypedef fused number:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double

cdef struct Table:
    intptr_t rows, entries
    const int64_t* places
    const double* weights       # NULL: all are 1

cdef struct Sums:
    int dtype
    intptr_t outer, size, inner
    Table table

cdef struct Windows:
    int dtype
    intptr_t outer
    intptr_t[MAX_WINDOW_DIMS] sizes
    Table[MAX_WINDOW_DIMS] tables

cdef int64_t first = 0      # the place of a dim of one element


cdef int read_table(object band, intptr_t size, Table* table) except -1:
    """Read the band of a dim; RuntimeError where that has another size, as after a change while arguments were read."""
    cdef numpy.ndarray places = band.places, weights = band.weights
    if band.size != size:
        raise RuntimeError(f"the dim has {size} elements, and no longer {band.size}")
    table.rows, table.entries = places.shape[0], places.shape[1]
    table.places = <const int64_t*>numpy.PyArray_DATA(places)
    table.weights = NULL
    if weights is not None:
        table.weights = <double*>numpy.PyArray_DATA(weights)
    return 0


# ----- Sums -----
cdef void sum_places(const number* x, number* y, intptr_t outer, intptr_t size, const Table* table) noexcept nogil:
    """Write the sum of each row along the last dim."""
    cdef intptr_t r, k, place
    cdef number total, term
    cdef bint begun
    for _ in range(outer):
        for r in range(table.rows):
            total, begun = 0, False
            for k in range(r * table.entries, (r + 1) * table.entries):
                place = table.places[k]
                if place >= 0:
                    term = x[place] if table.weights is NULL else <number>(x[place] * <number>table.weights[k])
                    total, begun = <number>(total + term) if begun else term, True
            y[r] = total
        x, y = x + size, y + table.rows


cdef void sum_rows(const number* x, number* y, intptr_t outer, intptr_t size, intptr_t inner, const Table* table) noexcept nogil:
    """Write the sum of each row, the first term first; `inner` numbers lie behind each place. A sum of nothing is 0."""
    cdef intptr_t r, k, j, place
    cdef const number* source
    cdef number weight
    cdef bint begun
    if inner == 1:
        sum_places(x, y, outer, size, table)
        return
    for _ in range(outer):
        for r in range(table.rows):
            begun = False
            for k in range(r * table.entries, (r + 1) * table.entries):
                place = table.places[k]
                if place < 0:
                    continue
                source = x + place * inner
                if table.weights is NULL:
                    if begun:
                        for j in range(inner):
                            y[j] = <number>(y[j] + source[j])
                    else:
                        for j in range(inner):
                            y[j] = source[j]
                else:
                    weight = <number>table.weights[k]
                    if begun:
                        for j in range(inner):
                            y[j] = <number>(y[j] + source[j] * weight)
                    else:
                        for j in range(inner):
                            y[j] = <number>(source[j] * weight)
                begun = True
            if not begun:
                for j in range(inner):
                    y[j] = 0
            y += inner
        x += size * inner


cdef int sum_rows_of(void* arguments, char** data) noexcept nogil:
    cdef Sums* sums = <Sums*>arguments
    cdef int dtype = sums.dtype
    if dtype == CG_UINT8 or dtype == CG_BOOL:
        sum_rows[uint8_t](<const uint8_t*>data[0], <uint8_t*>data[1], sums.outer, sums.size, sums.inner, &sums.table)
    elif dtype == CG_INT8:
        sum_rows[int8_t](<const int8_t*>data[0], <int8_t*>data[1], sums.outer, sums.size, sums.inner, &sums.table)
    elif dtype == CG_INT16:
        sum_rows[int16_t](<const int16_t*>data[0], <int16_t*>data[1], sums.outer, sums.size, sums.inner, &sums.table)
    elif dtype == CG_INT32:
        sum_rows[int32_t](<const int32_t*>data[0], <int32_t*>data[1], sums.outer, sums.size, sums.inner, &sums.table)
    elif dtype == CG_INT64:
        sum_rows[int64_t](<const int64_t*>data[0], <int64_t*>data[1], sums.outer, sums.size, sums.inner, &sums.table)
    elif dtype == CG_FLOAT32:
        sum_rows[float](<const float*>data[0], <float*>data[1], sums.outer, sums.size, sums.inner, &sums.table)
    else:
        sum_rows[double](<const double*>data[0], <double*>data[1], sums.outer, sums.size, sums.inner, &sums.table)
    return 0


def sums(TensorImpl input not None, tuple bands not None):
    """Return the tensor with each of some dims, (dim, band) in turn, replaced by the sums of a band's rows."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef Sums arguments
    cdef Launch launch
    cdef TensorImpl x = dense(input, cg_loops_of[input.dtype_nr]), y
    cdef int d, dim
    for d in range(x.ndim):
        sizes[d] = x.sizes[d]
    for along, band in bands:
        dim = along
        dim += x.ndim
        if not 0 <= dim < x.ndim:
            raise IndexError(f"the tensor has {x.ndim} dims, and no dim {along}")
        clear_arguments(&arguments, sizeof(arguments))
        read_table(band, sizes[dim], &arguments.table)
        arguments.size, sizes[dim] = sizes[dim], arguments.table.rows
        y = empty(x.dtype_nr, x.ndim, sizes)
        arguments.dtype, arguments.outer, arguments.inner = cg_real[x.dtype_nr], 1, 2 if cg_is_complex[x.dtype_nr] else 1
        for d in range(dim):
            arguments.outer *= sizes[d]
        for d in range(dim + 1, x.ndim):
            arguments.inner *= sizes[d]
        begin_launch(&launch, "sums", sum_rows_of, &arguments, sizeof(arguments))
        launch.owner = <PyObject*>band
        add_input(&launch, x)
        add_output(&launch, y)
        run_launch(&launch, y.count * arguments.table.entries >= RELEASE_GIL)
        x = y
    return stored(x, input.dtype_nr)


# ----- Largest elements -----
cdef void find_largest(const number* x, number* y, int64_t* places, intptr_t outer, const intptr_t* sizes,
                       const Table* tables) noexcept nogil:
    """Write the largest element of each window of three dims, and its place: the first one, or the last NaN."""
    cdef intptr_t i, j, k, a, b, c, plane, row, place, best_place
    cdef const Table* first = &tables[0]
    cdef const Table* second = &tables[1]
    cdef const Table* third = &tables[2]
    cdef number best, value
    cdef bint better
    for _ in range(outer):
        for i in range(first.rows):
            for j in range(second.rows):
                for k in range(third.rows):
                    best, best_place = 0, -1
                    for a in range(i * first.entries, (i + 1) * first.entries):
                        if first.places[a] < 0:
                            continue
                        plane = first.places[a] * sizes[1]
                        for b in range(j * second.entries, (j + 1) * second.entries):
                            if second.places[b] < 0:
                                continue
                            row = (plane + second.places[b]) * sizes[2]
                            for c in range(k * third.entries, (k + 1) * third.entries):
                                if third.places[c] < 0:
                                    continue
                                place = row + third.places[c]
                                value = x[place]
                                better = (best_place < 0) | (value > best)
                                if number is float or number is double:
                                    better |= value != value
                                best = value if better else best
                                best_place = place if better else best_place
                    y[0], places[0] = best, best_place
                    y += 1
                    places += 1
        x += sizes[0] * sizes[1] * sizes[2]


cdef int find_largest_of(void* arguments, char** data) noexcept nogil:
    cdef Windows* windows = <Windows*>arguments
    cdef int64_t* places = <int64_t*>data[2]
    cdef int dtype = windows.dtype
    if dtype == CG_UINT8:
        find_largest[uint8_t](<const uint8_t*>data[0], <uint8_t*>data[1], places, windows.outer, windows.sizes, windows.tables)
    elif dtype == CG_INT8:
        find_largest[int8_t](<const int8_t*>data[0], <int8_t*>data[1], places, windows.outer, windows.sizes, windows.tables)
    elif dtype == CG_INT16:
        find_largest[int16_t](<const int16_t*>data[0], <int16_t*>data[1], places, windows.outer, windows.sizes, windows.tables)
    elif dtype == CG_INT32:
        find_largest[int32_t](<const int32_t*>data[0], <int32_t*>data[1], places, windows.outer, windows.sizes, windows.tables)
    elif dtype == CG_INT64:
        find_largest[int64_t](<const int64_t*>data[0], <int64_t*>data[1], places, windows.outer, windows.sizes, windows.tables)
    elif dtype == CG_FLOAT32:
        find_largest[float](<const float*>data[0], <float*>data[1], places, windows.outer, windows.sizes, windows.tables)
    else:
        find_largest[double](<const double*>data[0], <double*>data[1], places, windows.outer, windows.sizes, windows.tables)
    return 0


def largest(TensorImpl input not None, tuple bands not None):
    """Return the largest element of each window of the last dims, a band for each, and its place, counted in these dims.

    Equal elements: the first one; with NaN the last NaN. Each window has an element.
    """
    cdef Windows windows
    cdef Launch launch
    cdef intptr_t sizes[MAX_DIMS]
    cdef TensorImpl x = dense(input, cg_loops_of[input.dtype_nr]), y, places
    cdef Table* table
    cdef intptr_t work
    cdef int dims = <int>len(bands), before = x.ndim - dims, d
    clear_arguments(&windows, sizeof(windows))
    windows.dtype, windows.outer = x.dtype_nr, 1
    if not 0 < dims <= min(MAX_WINDOW_DIMS, x.ndim):
        raise RuntimeError(f"the tensor has {x.ndim} dims, and no windows of {dims}")
    for d in range(MAX_WINDOW_DIMS - dims):
        windows.tables[d] = Table(1, 1, &first, NULL)
        windows.sizes[d] = 1
    for d in range(before):
        windows.outer *= x.sizes[d]
        sizes[d] = x.sizes[d]
    work = windows.outer
    for d in range(dims):
        table = &windows.tables[MAX_WINDOW_DIMS - dims + d]
        read_table(bands[d], x.sizes[before + d], table)
        windows.sizes[MAX_WINDOW_DIMS - dims + d] = x.sizes[before + d]
        sizes[before + d] = table.rows
        work *= table.rows * table.entries
    y, places = empty(x.dtype_nr, x.ndim, sizes), empty(CG_INT64, x.ndim, sizes)
    begin_launch(&launch, "windows", find_largest_of, &windows, sizeof(windows))
    launch.owner = <PyObject*>bands
    add_input(&launch, x)
    add_output(&launch, y)
    add_output(&launch, places)
    run_launch(&launch, work >= RELEASE_GIL)
    return stored(y, input.dtype_nr), places
