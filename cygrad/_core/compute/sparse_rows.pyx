# cython: cdivision=True
"""Sparse matrices by rows: products with dense ones, and checks of index tensors. Nothing is recorded.

Row r has the entries starts[r] to starts[r + 1]: their columns and values. Threads take rows, so their number does not change a result.
"""
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, intptr_t

from cygrad._core.compute.places cimport dense
from cygrad._core.graph.launches cimport Launch, add_input, add_output, begin_launch, run_launch
from cygrad._core.graph.tensor cimport TensorImpl, empty, look_address
from cygrad._core.memory.sizes cimport parse_sizes
from cygrad._core.operands.operands cimport RELEASE_GIL, refused
from cygrad._kernels.drivers.elementwise cimport (CG_COMPLEX64, CG_COMPLEX128, CG_FLOAT32, CG_FLOAT64, CG_INT32, CG_INT64, MAX_DIMS,
                                                  cg_team_size)
from cygrad._kernels.system.threads cimport COST_TRANSCENDENTAL, note_threads, thread_limit, threads_for

ctypedef fused number:
    float
    double
    float complex
    double complex

ctypedef fused index:
    int32_t
    int64_t

cdef enum:
    CHUNK = 2048        # rows that a thread takes at once

cdef struct Rows:
    int dtype
    bint wide           # indices are int64
    intptr_t rows, entries, width


# ----- Products -----
cdef void multiply_rows(const index* starts, const index* columns, const number* values, const number* x, number* y, intptr_t first,
                        intptr_t last, intptr_t width) noexcept nogil:
    """Write rows of the product with a row-major matrix of a width."""
    cdef intptr_t r, k, j
    cdef number value
    cdef const number* row
    cdef number* result
    for r in range(first, last):
        result = y + r * width
        for j in range(width):
            result[j] = 0
        for k in range(starts[r], starts[r + 1]):
            value, row = values[k], x + columns[k] * width
            for j in range(width):
                result[j] = result[j] + value * row[j]


cdef void multiply_vector(const index* starts, const index* columns, const number* values, const number* x, number* y, intptr_t first,
                          intptr_t last) noexcept nogil:
    """Write rows of the product with a vector, two sums side by side. Fetching elements ahead made banded matrices slower."""
    cdef intptr_t r, k = starts[first], end
    cdef number even, odd
    for r in range(first, last):
        end = starts[r + 1]
        even = odd = 0
        while k + 4 <= end:
            even = even + values[k] * x[columns[k]]
            odd = odd + values[k + 1] * x[columns[k + 1]]
            even = even + values[k + 2] * x[columns[k + 2]]
            odd = odd + values[k + 3] * x[columns[k + 3]]
            k += 4
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


cdef void run_rows(const index* starts, const index* columns, const number* values, const number* x, number* y,
                   const Rows* g) noexcept nogil:
    cdef intptr_t chunk
    if threads_for((g.entries + g.rows) * g.width, COST_TRANSCENDENTAL) <= 1:
        multiply_part(starts, columns, values, x, y, 0, g.rows, g.width)
        return
    for chunk in prange((g.rows + CHUNK - 1) // CHUNK, schedule="dynamic", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        multiply_part(starts, columns, values, x, y, chunk * CHUNK, min(g.rows, (chunk + 1) * CHUNK), g.width)


cdef void run_dtype(char** data, const number* values, const Rows* g) noexcept nogil:
    if g.wide:
        run_rows(<const int64_t*>data[0], <const int64_t*>data[1], values, <const number*>data[3], <number*>data[4], g)
    else:
        run_rows(<const int32_t*>data[0], <const int32_t*>data[1], values, <const number*>data[3], <number*>data[4], g)


cdef int run_product(void* arguments, char** data) noexcept nogil:
    """Run with starts, columns, values, the dense matrix, and the result."""
    cdef Rows* g = <Rows*>arguments
    if g.dtype == CG_FLOAT32:
        run_dtype(data, <const float*>data[2], g)
    elif g.dtype == CG_FLOAT64:
        run_dtype(data, <const double*>data[2], g)
    elif g.dtype == CG_COMPLEX64:
        run_dtype(data, <const float complex*>data[2], g)
    else:
        run_dtype(data, <const double complex*>data[2], g)
    return 0


def rows_times(TensorImpl starts not None, TensorImpl columns not None, TensorImpl values not None, TensorImpl matrix not None):
    """Return the product of a sparse matrix, whose indices were checked, with a dense matrix or a vector."""
    cdef Rows g
    cdef Launch launch
    cdef intptr_t[MAX_DIMS] shape
    cdef TensorImpl result, numbers = dense(values, values.dtype_nr), x = dense(matrix, values.dtype_nr)
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
