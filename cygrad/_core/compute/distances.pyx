# cython: cdivision=True
"""Euclidean distances by differences, of all pairs from two sets. Nothing is recorded."""
from libc.math cimport sqrt
from libc.stdint cimport intptr_t

from cygrad._core.compute.places cimport dense
from cygrad._core.graph.tensor cimport TensorImpl, empty, new_address, value_address
from cygrad._core.operands.operands cimport RELEASE_GIL
from cygrad._kernels.drivers.elementwise cimport CG_FLOAT32, CG_FLOAT64, MAX_DIMS

ctypedef fused real:
    float
    double


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


def distances_by_differences(TensorImpl x1 not None, TensorImpl x2 not None):
    """Return the distances of vectors, the rows of (..., n, m) and the columns of (..., m, k), with the same dims in front."""
    cdef intptr_t sizes[MAX_DIMS]
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
    _held = a.storage, b.storage
    source, other, target = <size_t>value_address(a), <size_t>value_address(b), <size_t>new_address(result)
    if result.count * size < RELEASE_GIL:
        write_distances(a.dtype_nr, source, other, target, batch, rows, columns, size)
    else:
        with nogil:
            write_distances(a.dtype_nr, source, other, target, batch, rows, columns, size)
    return result


cdef void write_distances(int dtype, size_t a, size_t b, size_t y, intptr_t batch, intptr_t rows, intptr_t columns,
                          intptr_t size) noexcept nogil:
    if dtype == CG_FLOAT64:
        distances_of[double](<const double*>a, <const double*>b, <double*>y, batch, rows, columns, size)
    else:
        distances_of[float](<const float*>a, <const float*>b, <float*>y, batch, rows, columns, size)
