# cython: cdivision=True
"""Euclidean distances by differences, of all pairs from two sets. Nothing is recorded."""
from libc.math cimport sqrt
from libc.stdint cimport intptr_t

from cygrad._core.compute.places cimport dense
from cygrad._core.graph.launches cimport Launch, add_input, add_output, begin_launch, run_launch
from cygrad._core.graph.tensor cimport TensorImpl, empty
from cygrad._core.operands.operands cimport RELEASE_GIL
from cygrad._kernels.drivers.elementwise cimport CG_FLOAT32, CG_FLOAT64, MAX_DIMS

ctypedef fused real:
    float
    double

cdef struct Sets:
    int dtype
    intptr_t batch, rows, columns, size


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


cdef int write_distances(void* arguments, char** data) noexcept nogil:
    cdef Sets* sets = <Sets*>arguments
    if sets.dtype == CG_FLOAT64:
        distances_of[double](<const double*>data[0], <const double*>data[1], <double*>data[2], sets.batch, sets.rows, sets.columns,
                             sets.size)
    else:
        distances_of[float](<const float*>data[0], <const float*>data[1], <float*>data[2], sets.batch, sets.rows, sets.columns, sets.size)
    return 0


def distances_by_differences(TensorImpl x1 not None, TensorImpl x2 not None):
    """Return the distances of vectors, the rows of (..., n, m) and the columns of (..., m, k), with the same dims in front."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef Sets sets
    cdef Launch launch
    cdef TensorImpl a = dense(x1, x1.dtype_nr), b = dense(x2, x1.dtype_nr), result
    cdef intptr_t batch = 1, rows = a.sizes[a.ndim - 2], size = a.sizes[a.ndim - 1], columns = b.sizes[b.ndim - 1]
    cdef int d
    if a.ndim != b.ndim or size != b.sizes[b.ndim - 2] or a.dtype_nr not in (CG_FLOAT32, CG_FLOAT64):
        raise RuntimeError("sets of vectors have the same coordinates and the same dims in front, of float32 or float64")
    for d in range(a.ndim - 2):
        if a.sizes[d] != b.sizes[d]:
            raise RuntimeError(f"the sizes {a.sizes[d]} and {b.sizes[d]} of dim {d} differ")
        sizes[d] = a.sizes[d]
        batch *= a.sizes[d]
    sizes[a.ndim - 2], sizes[a.ndim - 1] = rows, columns
    result = empty(a.dtype_nr, a.ndim, sizes)
    sets.dtype, sets.batch, sets.rows, sets.columns, sets.size = a.dtype_nr, batch, rows, columns, size
    begin_launch(&launch, "distances", write_distances, &sets, sizeof(sets))
    add_input(&launch, a)
    add_input(&launch, b)
    add_output(&launch, result)
    run_launch(&launch, result.count * size >= RELEASE_GIL)
    return result
