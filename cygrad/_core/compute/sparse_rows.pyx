# cython: cdivision=True
"""Sparse matrices by rows: products with dense ones, rows of coordinates, and checks of index tensors. Nothing is recorded.

Row r has the entries starts[r] to starts[r + 1]: their columns and values. Threads take rows, so their number does not change a result.
"""
from libc.stdint cimport int32_t, int64_t, intptr_t

from cygrad._core.compute.places cimport dense
from cygrad._core.graph.launches cimport Launch, add_input, add_output, begin_launch, clear_arguments, run_decision, run_launch
from cygrad._core.graph.tensor cimport TensorImpl, empty, look_address
from cygrad._core.memory.sizes cimport parse_sizes
from cygrad._core.operands.operands cimport RELEASE_GIL, refused
from cygrad._kernels.drivers.elementwise cimport (CG_COMPLEX64, CG_COMPLEX128, CG_FLOAT32, CG_FLOAT64, CG_INT32, CG_INT64, MAX_DIMS)
from cygrad._kernels.system.threads cimport COST_TRANSCENDENTAL, run_in_parts, threads_for

ctypedef fused number:
    float
    double
    float complex
    double complex

ctypedef fused index:
    int32_t
    int64_t

cdef enum:
    CHUNK = 2048        # rows that a thread takes at once, at the least
    PARTS = 8           # of a thread's share: long streams, and threads with short rows take more of them
    UNROLLED = 8        # entries of a row
    TOGETHER = 4        # elements of a row of the product

cdef extern from *:
    """
    /* Memory is read in long streams, and processors fetch ahead within a page alone: this asks for a page ahead, also behind the end. */
    #define cg_fetch_ahead(address) __builtin_prefetch((const char *)(address) + 4096)
    """
    void fetch_ahead "cg_fetch_ahead"(const void* address) noexcept nogil

cdef struct Rows:
    int dtype
    bint wide           # indices are int64
    intptr_t rows, entries, width


# ----- Products -----
cdef void multiply_rows(const index* starts, const index* columns, const number* values, const number* x, number* y, intptr_t first,
                        intptr_t last, intptr_t width) noexcept nogil:
    """Write rows of the product with a row-major matrix of a width: elements of a row are summed side by side."""
    cdef intptr_t r, k, i, j
    cdef number sums[TOGETHER]
    cdef number value
    cdef const number* row
    for r in range(first, last):
        j = 0
        while j + TOGETHER <= width:
            for i in range(TOGETHER):
                sums[i] = 0
            for k in range(starts[r], starts[r + 1]):
                value, row = values[k], x + columns[k] * width + j
                for i in range(TOGETHER):
                    sums[i] = sums[i] + value * row[i]
            for i in range(TOGETHER):
                y[r * width + j + i] = sums[i]
            j += TOGETHER
        while j < width:
            value = 0
            for k in range(starts[r], starts[r + 1]):
                value = value + values[k] * x[columns[k] * width + j]
            y[r * width + j] = value
            j += 1


cdef void multiply_vector(const index* starts, const index* columns, const number* values, const number* x, number* y, intptr_t first,
                          intptr_t last) noexcept nogil:
    """Write rows of the product with a vector, two sums side by side. Elements of x are not fetched ahead: banded matrices were slower."""
    cdef intptr_t r, j, k = starts[first], end
    cdef number even, odd
    for r in range(first, last):
        end = starts[r + 1]
        even = odd = 0
        fetch_ahead(values + k)
        fetch_ahead(columns + k)
        while k + UNROLLED <= end:
            fetch_ahead(values + k)
            fetch_ahead(columns + k)
            for j in range(0, UNROLLED, 2):
                even = even + values[k + j] * x[columns[k + j]]
                odd = odd + values[k + j + 1] * x[columns[k + j + 1]]
            k += UNROLLED
        while k < end:
            even = even + values[k] * x[columns[k]]
            k += 1
        y[r] = even + odd


cdef void multiply_part(const index* starts, const index* columns, const number* values, const number* x, number* y, intptr_t first,
                        intptr_t last, intptr_t width) noexcept nogil:
    if width == 1:
        multiply_vector(starts, columns, values, x, y, first, last)
    else:
        multiply_rows(starts, columns, values, x, y, first, last, width)


cdef void multiply_dtype(char** data, const number* values, const Rows* g, intptr_t first, intptr_t last) noexcept nogil:
    if g.wide:
        multiply_part(<const int64_t*>data[0], <const int64_t*>data[1], values, <const number*>data[3], <number*>data[4], first, last,
                      g.width)
    else:
        multiply_part(<const int32_t*>data[0], <const int32_t*>data[1], values, <const number*>data[3], <number*>data[4], first, last,
                      g.width)


cdef struct Product:
    char** data         # starts, columns, values, the dense matrix, and the result
    const Rows* rows


cdef void multiply_some(const void* job, intptr_t first, intptr_t last) noexcept nogil:
    cdef const Rows* g = (<const Product*>job).rows
    cdef char** data = (<const Product*>job).data
    if g.dtype == CG_FLOAT32:
        multiply_dtype(data, <const float*>data[2], g, first, last)
    elif g.dtype == CG_FLOAT64:
        multiply_dtype(data, <const double*>data[2], g, first, last)
    elif g.dtype == CG_COMPLEX64:
        multiply_dtype(data, <const float complex*>data[2], g, first, last)
    else:
        multiply_dtype(data, <const double complex*>data[2], g, first, last)


cdef int run_product(void* arguments, char** data) noexcept nogil:
    cdef Product product
    cdef const Rows* g = <const Rows*>arguments
    cdef int threads = threads_for((g.entries + g.rows) * g.width, COST_TRANSCENDENTAL)
    product.data, product.rows = data, g
    run_in_parts(multiply_some, &product, g.rows, max(<intptr_t>CHUNK, g.rows // (PARTS * max(threads, 1))), threads, True)
    return 0


def rows_times(TensorImpl starts not None, TensorImpl columns not None, TensorImpl values not None, TensorImpl matrix not None):
    """Return the product of a sparse matrix, whose indices were checked, with a dense matrix or a vector."""
    cdef Rows g
    cdef Launch launch
    cdef intptr_t[MAX_DIMS] shape
    cdef TensorImpl result, numbers = dense(values, values.dtype_nr), x = dense(matrix, values.dtype_nr)
    clear_arguments(&g, sizeof(g))
    if values.dtype_nr not in (CG_FLOAT32, CG_FLOAT64, CG_COMPLEX64, CG_COMPLEX128):
        raise refused("sparse_rows", values.dtype_nr)
    g.dtype, g.wide, g.rows, g.entries = values.dtype_nr, starts.dtype_nr == CG_INT64, starts.count - 1, columns.count
    g.width = x.sizes[1] if x.ndim == 2 else 1
    shape[0], shape[1] = g.rows, g.width
    result = empty(g.dtype, x.ndim, shape)
    if result.count:
        begin_launch(&launch, "sparse_rows", run_product, &g, sizeof(Rows))
        add_input(&launch, starts)
        add_input(&launch, columns)
        add_input(&launch, numbers)
        add_input(&launch, x)
        add_output(&launch, result)
        run_launch(&launch, (g.entries + g.rows) * g.width >= RELEASE_GIL)
    return result


# ----- Rows of coordinates -----
cdef struct Places:
    intptr_t rows, entries
    bint wide           # results are int64
    bint ordered        # by rows


cdef int find_descent(void* arguments, char** data) noexcept nogil:
    """Return True if an entry has a lower row than the one before it."""
    cdef Places* g = <Places*>arguments
    cdef const int64_t* rows = <const int64_t*>data[0]
    cdef intptr_t k
    for k in range(1, g.entries):
        if rows[k] < rows[k - 1]:
            return 1
    return 0


cdef void count_rows(const int64_t* rows, index* starts, index* columns, int64_t* order, const Places* g) noexcept nogil:
    """Write where rows start, and the columns of entries; of those that are in another order also their numbers."""
    cdef const int64_t* across = rows + g.entries
    cdef intptr_t k, r
    cdef index place
    for r in range(g.rows + 1):
        starts[r] = 0
    for k in range(g.entries):
        starts[rows[k] + 1] += 1
    for r in range(g.rows):
        starts[r + 1] += starts[r]
    if g.ordered:
        for k in range(g.entries):
            columns[k] = <index>across[k]
        return
    for k in range(g.entries):              # which moves a row's start to its end
        place = starts[rows[k]]
        starts[rows[k]] = place + 1
        columns[place], order[place] = <index>across[k], k
    for r in range(g.rows, 0, -1):
        starts[r] = starts[r - 1]
    starts[0] = 0


cdef int run_counting(void* arguments, char** data) noexcept nogil:
    """Run with coordinates, starts, columns, and the order where it is another one."""
    cdef Places* g = <Places*>arguments
    cdef int64_t* order = NULL if g.ordered else <int64_t*>data[3]
    if g.wide:
        count_rows(<const int64_t*>data[0], <int64_t*>data[1], <int64_t*>data[2], order, g)
    else:
        count_rows(<const int64_t*>data[0], <int32_t*>data[1], <int32_t*>data[2], order, g)
    return 0


def rows_of(TensorImpl coordinates not None, intptr_t rows, bint wide):
    """Return checked coordinates, int64 (2, entries), by rows: where these start, the columns, and the order of the entries or None."""
    cdef Places g
    cdef Launch launch
    cdef TensorImpl places = dense(coordinates, CG_INT64), starts, columns, order = None
    cdef intptr_t count = rows + 1
    clear_arguments(&g, sizeof(g))
    g.rows, g.entries, g.wide = rows, places.sizes[1], wide
    g.ordered = run_decision("descent", find_descent, &g, sizeof(Places), places) == 0
    starts = empty(CG_INT64 if wide else CG_INT32, 1, &count)
    columns = empty(starts.dtype_nr, 1, &g.entries)
    begin_launch(&launch, "sparse_order", run_counting, &g, sizeof(Places))
    add_input(&launch, places)
    add_output(&launch, starts)
    add_output(&launch, columns)
    if not g.ordered:
        order = empty(CG_INT64, 1, &g.entries)
        add_output(&launch, order)
    run_launch(&launch, g.entries + g.rows >= RELEASE_GIL)
    return starts, columns, order


# ----- Checks of indices -----
cdef intptr_t dim_outside(const index* places, TensorImpl indices, const intptr_t* sizes) noexcept nogil:
    """Return the first dim of which an index is below 0 or beyond its size, or -1."""
    cdef intptr_t d, k, step = indices.strides[1]
    cdef const index* line
    cdef bint outside
    for d in range(indices.sizes[0]):
        line, outside = places + d * indices.strides[0], False
        for k in range(indices.sizes[1]):
            outside |= line[k * step] < 0 or line[k * step] >= sizes[d]
        if outside:
            return d
    return -1


def first_dim_outside(TensorImpl indices not None, sizes):
    """Return the first dim of coordinates (dims, entries) that has an index outside of its size; -1 if there is none."""
    cdef intptr_t[MAX_DIMS] limits
    cdef int ndim = parse_sizes(sizes, limits)
    cdef const char* address = look_address(indices)
    if indices.ndim != 2 or indices.sizes[0] > ndim:
        raise ValueError("coordinates are a matrix with a row for each size")
    if indices.dtype_nr == CG_INT32:
        return dim_outside(<const int32_t*>address, indices, limits)
    if indices.dtype_nr != CG_INT64:
        raise refused("sparse_rows", indices.dtype_nr)
    return dim_outside(<const int64_t*>address, indices, limits)
