# cython: cdivision=True
"""Euclidean distances by differences, of all pairs from two sets or from one, and weighted sums of differences. Nothing is recorded.

The pairs of one set of n are n (n - 1) / 2: 0 and 1, 0 and 2, ..., 1 and 2, ...
"""
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport intptr_t

from cygrad._core.compute.places cimport dense
from cygrad._core.graph.constants cimport zero
from cygrad._core.graph.launches cimport Launch, add_changed, add_input, add_output, begin_launch, clear_arguments, run_launch
from cygrad._core.graph.tensor cimport TensorImpl, empty
from cygrad._core.operands.operands cimport RELEASE_GIL, refused
from cygrad._kernels.drivers.elementwise cimport CG_FLOAT32, CG_FLOAT64, MAX_DIMS

ctypedef fused real:
    float
    double

ctypedef enum Action:
    DISTANCES           # of the rows of the first set and the columns of the second
    PULLED_ROWS
    PRODUCTS            # of pairs
    LENGTHS             # of the differences of pairs
    PULLED_PAIRS

cdef struct Sets:
    int dtype
    Action action
    intptr_t batch, rows, columns, size     # columns: vectors of the second set, or pairs of the one
    intptr_t row, column                    # strides of weights


# ----- Distances from one set to another -----
cdef void distances_of(const real* a, const real* b, real* y, intptr_t batch, intptr_t rows, intptr_t columns,
                       intptr_t size) noexcept nogil:
    """Write sums over coordinates in their order, four side by side; b lies by coordinates: (batch, size, columns)."""
    cdef intptr_t j, k
    cdef real x, d0, d1, d2, d3, s0, s1, s2, s3
    cdef const real* other
    for _matrix in range(batch):
        for _row in range(rows):
            j = 0
            while j + 4 <= columns:
                s0 = s1 = s2 = s3 = 0
                other = b + j
                for k in range(size):
                    x = a[k]
                    d0, d1, d2, d3 = x - other[0], x - other[1], x - other[2], x - other[3]
                    s0, s1, s2, s3 = s0 + d0 * d0, s1 + d1 * d1, s2 + d2 * d2, s3 + d3 * d3
                    other += columns
                y[j], y[j + 1], y[j + 2], y[j + 3] = <real>sqrt(s0), <real>sqrt(s1), <real>sqrt(s2), <real>sqrt(s3)
                j += 4
            while j < columns:
                s0 = 0
                for k in range(size):
                    d0 = a[k] - b[k * columns + j]
                    s0 = s0 + d0 * d0
                y[j] = <real>sqrt(s0)
                j += 1
            a, y = a + size, y + columns
        b += size * columns


# ----- Sums of differences from one set to another -----
cdef inline void pull(real w, const real* a, const real* b, real* y, intptr_t size) noexcept nogil:
    """Add a weight times a difference, four elements side by side."""
    cdef intptr_t k = 0
    cdef real d0, d1, d2, d3
    while k + 4 <= size:
        d0, d1, d2, d3 = a[k] - b[k], a[k + 1] - b[k + 1], a[k + 2] - b[k + 2], a[k + 3] - b[k + 3]
        d0, d1, d2, d3 = y[k] + w * d0, y[k + 1] + w * d1, y[k + 2] + w * d2, y[k + 3] + w * d3
        y[k], y[k + 1], y[k + 2], y[k + 3] = d0, d1, d2, d3
        k += 4
    while k < size:
        y[k] += w * (a[k] - b[k])
        k += 1


cdef void pull_rows(const real* weights, const real* x1, const real* x2, real* y, const Sets* g) noexcept nogil:
    """Add weights times differences x1 - x2 to the rows for x1."""
    cdef intptr_t i, j
    for _ in range(g.batch):
        for i in range(g.rows):
            for j in range(g.columns):
                pull(weights[i * g.row + j * g.column], &x1[i * g.size], &x2[j * g.size], &y[i * g.size], g.size)
        weights, x1, x2, y = weights + g.rows * g.columns, x1 + g.rows * g.size, x2 + g.columns * g.size, y + g.rows * g.size


# ----- Pairs of one set -----
cdef real distance(const real* a, const real* b, intptr_t size) noexcept nogil:
    """Return a distance whose square is out of range, by differences less their largest exponent."""
    cdef real largest = 0, total = 0, part
    cdef intptr_t k
    for k in range(size):
        part = <real>fabs(a[k] - b[k])
        if part != part:
            return part
        largest = max(largest, part)
    if not 0 < largest < INFINITY:
        return largest
    for k in range(size):
        part = (a[k] - b[k]) / largest
        total += part * part
    return largest * <real>sqrt(total)


cdef void multiply_pairs(const real* a, const real* b, real* y, const Sets* g) noexcept nogil:
    """Write the inner products of differences of a and of b, between the same two rows; or the lengths of the differences of a."""
    cdef intptr_t i, j, k
    cdef real total, smallest, largest       # of squares that lost nothing
    smallest, largest = (<real>1e-280, <real>1e300) if real is double else (<real>1e-30, <real>1e37)
    for _ in range(g.batch):
        for i in range(g.rows):
            for j in range(i + 1, g.rows):
                total = 0
                for k in range(g.size):
                    total += (a[i * g.size + k] - a[j * g.size + k]) * (b[i * g.size + k] - b[j * g.size + k])
                if g.action == PRODUCTS:
                    y[0] = total
                elif smallest < total < largest:
                    y[0] = <real>sqrt(total)
                else:
                    y[0] = distance(&a[i * g.size], &a[j * g.size], g.size)
                y += 1
        a, b = a + g.rows * g.size, b + g.rows * g.size


cdef void pull_pairs(const real* weights, const real* x, real* y, const Sets* g) noexcept nogil:
    """Add a weight times the difference of its pair of rows to the first row, and subtract it from the second."""
    cdef intptr_t i, j
    for _ in range(g.batch):
        for i in range(g.rows):
            for j in range(i + 1, g.rows):
                pull(weights[0], &x[i * g.size], &x[j * g.size], &y[i * g.size], g.size)
                pull(weights[0], &x[j * g.size], &x[i * g.size], &y[j * g.size], g.size)
                weights += 1
        x, y = x + g.rows * g.size, y + g.rows * g.size


# ----- Of tensors -----
cdef void run_action(real** data, const Sets* g) noexcept nogil:
    if g.action == DISTANCES:
        distances_of(data[0], data[1], data[2], g.batch, g.rows, g.columns, g.size)
    elif g.action == PULLED_ROWS:
        pull_rows(data[0], data[1], data[2], data[3], g)
    elif g.action == PULLED_PAIRS:
        pull_pairs(data[0], data[1], data[2], g)
    else:
        multiply_pairs(data[0], data[1], data[2], g)


cdef int run_sets(void* arguments, char** data) noexcept nogil:
    cdef Sets* g = <Sets*>arguments
    if g.dtype == CG_FLOAT64:
        run_action[double](<double**>data, g)
    else:
        run_action[float](<float**>data, g)
    return 0


cdef void begin_sets(Launch* launch, Sets* g, Action action, TensorImpl first, TensorImpl second) noexcept:
    g.dtype, g.action = first.dtype_nr, action
    begin_launch(launch, "distances", run_sets, g, sizeof(Sets))
    add_input(launch, first)
    add_input(launch, second)


cdef TensorImpl pulled(Sets* g, Action action, TensorImpl weights, TensorImpl x, TensorImpl other):
    """Return the sums of differences of the rows of x, from the rows of another tensor if there is one."""
    cdef TensorImpl result = empty(x.dtype_nr, x.ndim, x.sizes)
    cdef Launch launch
    zero(result)
    if result.count and weights.count:
        begin_sets(&launch, g, action, weights, x)
        if other is not None:
            add_input(&launch, other)
        add_changed(&launch, result)
        run_launch(&launch, weights.count * g.size >= RELEASE_GIL)
    return result


cdef int check_floats(TensorImpl vectors) except -1:
    """Refuse a dtype without a loop: callers convert 16-bit floats."""
    if vectors.dtype_nr != CG_FLOAT32 and vectors.dtype_nr != CG_FLOAT64:
        raise refused("cdist", vectors.dtype_nr)
    return 0


cdef int read_sets(Sets* g, TensorImpl a, TensorImpl b, TensorImpl w) except -1:
    """Read the sizes of two sets of vectors and of their weights."""
    cdef int d
    cdef bint fits = 2 <= a.ndim == b.ndim == w.ndim
    check_floats(a)
    if fits:
        g.rows, g.size, g.columns, g.batch = a.sizes[a.ndim - 2], a.sizes[a.ndim - 1], b.sizes[a.ndim - 2], 1
        g.row, g.column = w.strides[a.ndim - 2], w.strides[a.ndim - 1]
        fits = b.sizes[a.ndim - 1] == g.size and w.sizes[a.ndim - 2] == g.rows and w.sizes[a.ndim - 1] == g.columns
    for d in range(a.ndim - 2 if fits else 0):
        fits = fits and a.sizes[d] == b.sizes[d] == w.sizes[d]
        g.batch *= a.sizes[d]
    if not fits:
        raise RuntimeError("two sets of vectors have a weight for each pair, and the same dims in front")
    return 0


cdef int read_set(Sets* g, TensorImpl a, TensorImpl other) except -1:
    """Read the sizes of a set of vectors (..., n, m), which another tensor of such has as well."""
    cdef int d
    cdef bint fits = a.ndim >= 2 and other.ndim == a.ndim
    check_floats(a)
    g.batch = 1
    for d in range(a.ndim if fits else 0):
        fits = fits and a.sizes[d] == other.sizes[d]
        g.batch *= a.sizes[d] if d < a.ndim - 2 else 1
    if not fits:
        raise RuntimeError("sets of vectors have the same sizes")
    g.rows, g.size = a.sizes[a.ndim - 2], a.sizes[a.ndim - 1]
    g.columns = g.rows * (g.rows - 1) // 2
    return 0


def distances_by_differences(TensorImpl x1 not None, TensorImpl x2 not None):
    """Return the distances of vectors, the rows of (..., n, m) and the columns of (..., m, k), with the same dims in front."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef Sets g
    cdef Launch launch
    cdef TensorImpl a = dense(x1, x1.dtype_nr), b = dense(x2, x1.dtype_nr), result
    cdef intptr_t batch = 1, rows = a.sizes[a.ndim - 2], size = a.sizes[a.ndim - 1], columns = b.sizes[b.ndim - 1]
    cdef int d
    clear_arguments(&g, sizeof(g))
    if a.ndim != b.ndim or size != b.sizes[b.ndim - 2] or a.dtype_nr not in (CG_FLOAT32, CG_FLOAT64):
        raise RuntimeError("sets of vectors have the same coordinates and the same dims in front, of float32 or float64")
    for d in range(a.ndim - 2):
        if a.sizes[d] != b.sizes[d]:
            raise RuntimeError(f"the sizes {a.sizes[d]} and {b.sizes[d]} of dim {d} differ")
        sizes[d] = a.sizes[d]
        batch *= a.sizes[d]
    sizes[a.ndim - 2], sizes[a.ndim - 1] = rows, columns
    result = empty(a.dtype_nr, a.ndim, sizes)
    g.batch, g.rows, g.columns, g.size = batch, rows, columns, size
    begin_sets(&launch, &g, DISTANCES, a, b)
    add_output(&launch, result)
    run_launch(&launch, result.count * size >= RELEASE_GIL)
    return result


def pulled_rows(TensorImpl weights not None, TensorImpl x1 not None, TensorImpl x2 not None):
    """Return the sums over the second set of weights (..., n, k) times differences of the rows of (..., n, m) and (..., k, m).

    All have the same dims in front. The weights of a single pair of sets may lie in any order.
    """
    cdef Sets g
    cdef TensorImpl a = dense(x1, x1.dtype_nr), b = dense(x2, x1.dtype_nr)
    cdef TensorImpl w = weights if weights.ndim == 2 and weights.dtype_nr == x1.dtype_nr else dense(weights, x1.dtype_nr)
    clear_arguments(&g, sizeof(g))
    read_sets(&g, a, b, w)
    return pulled(&g, PULLED_ROWS, w, a, b)


def products_of_pairs(TensorImpl input not None, TensorImpl other not None):
    """Return, for all pairs of rows, the inner product of their difference in one matrix (..., n, m) and in another."""
    return over_pairs(input, other, PRODUCTS)


def distances_of_pairs(TensorImpl input not None):
    """Return the distances of all pairs of rows of a matrix (..., n, m)."""
    return over_pairs(input, input, LENGTHS)


cdef TensorImpl over_pairs(TensorImpl input, TensorImpl other, Action action):
    cdef Sets g
    cdef Launch launch
    cdef intptr_t[MAX_DIMS] sizes
    cdef TensorImpl a = dense(input, input.dtype_nr), b = dense(other, input.dtype_nr), result
    cdef int d
    clear_arguments(&g, sizeof(g))
    read_set(&g, a, b)
    for d in range(a.ndim - 2):
        sizes[d] = a.sizes[d]
    sizes[a.ndim - 2] = g.columns
    result = empty(a.dtype_nr, a.ndim - 1, sizes)
    if result.count:
        begin_sets(&launch, &g, action, a, b)
        add_output(&launch, result)
        run_launch(&launch, result.count * g.size >= RELEASE_GIL)
    return result


def pulled_pairs(TensorImpl weights not None, TensorImpl input not None):
    """Return, for each row of (..., n, m), the sum of its differences from the others, times the weights (..., pairs)."""
    cdef Sets g
    cdef TensorImpl a = dense(input, input.dtype_nr), w = dense(weights, input.dtype_nr)
    clear_arguments(&g, sizeof(g))
    read_set(&g, a, a)
    if w.ndim != a.ndim - 1 or w.count != g.batch * g.columns:
        raise RuntimeError("there is a weight for each pair of rows")
    return pulled(&g, PULLED_PAIRS, w, a, None)
