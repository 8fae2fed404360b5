# cython: cdivision=True
"""Sums over rows by parts of the elements on grids, which add up without rounding, so in any order. Nothing is recorded.

A grid is given as 1.5 times a power of two: adding it to a smaller number rounds that to the grid, and subtracting it leaves the part.
Columns of a row-major tensor are read in runs of `LANES` elements: of few columns several rows are one run.
"""
from libc.math cimport fabs
from libc.stdint cimport intptr_t

from cygrad._core.compute.places cimport dense
from cygrad._core.graph.constants cimport zero
from cygrad._core.graph.launches cimport Launch, add_changed, add_input, begin_launch, clear_arguments, run_launch
from cygrad._core.graph.tensor cimport TensorImpl, empty
from cygrad._core.operands.operands cimport RELEASE_GIL
from cygrad._kernels.drivers.elementwise cimport CG_FLOAT64

cdef extern from "compute/grid_sums.h":
    enum:
        LANES "CG_LANES"
    void largest_of_run "cg_largest_of_run"(const double* x, intptr_t rows, intptr_t step, double* largest) noexcept nogil
    void sums_of_run "cg_sums_of_run"(const double* x, intptr_t rows, intptr_t step, const double* grids, double* sums) noexcept nogil

cdef struct Rows:
    intptr_t rows, columns
    bint has_grids


cdef void add_row(const double* x, intptr_t columns, const double* grids, double* results) noexcept nogil:
    """Add a single row to the results, or compare it with them."""
    cdef double part
    cdef intptr_t c
    for c in range(columns):
        if grids is NULL:
            results[c] = max(results[c], fabs(x[c]))
        else:
            part = (x[c] + grids[c]) - grids[c]
            results[c] += part
            results[columns + c] += ((x[c] - part) + grids[columns + c]) - grids[columns + c]


cdef int sum_rows_on_grid(void* arguments, char** data) noexcept nogil:
    cdef Rows* g = <Rows*>arguments
    cdef const double* x = <const double*>data[0]
    cdef double* results = <double*>data[1]
    cdef const double* grids = <const double*>data[2] if g.has_grids else NULL
    cdef double[16] grids_of_run
    cdef double[16] run                 # its results
    cdef intptr_t c, k, together = LANES, start = 0
    while together > 1 and g.columns * (together >> 1) % LANES == 0:
        together >>= 1                  # rows that are whole runs
    while start < g.columns * together:
        if g.has_grids:
            for k in range(LANES):
                c = (start + k) % g.columns
                grids_of_run[k], grids_of_run[LANES + k] = grids[c], grids[g.columns + c]
            sums_of_run(x + start, g.rows // together, g.columns * together, grids_of_run, run)
        else:
            largest_of_run(x + start, g.rows // together, g.columns * together, run)
        for k in range(LANES):
            c = (start + k) % g.columns
            if g.has_grids:
                results[c] += run[k]
                results[g.columns + c] += run[LANES + k]
            else:
                results[c] = max(results[c], run[k])
        start += LANES
    for k in range(g.rows - g.rows % together, g.rows):
        add_row(x + k * g.columns, g.columns, grids, results)
    return 0


cdef TensorImpl over_rows(TensorImpl rows, TensorImpl grids):
    cdef Rows g
    cdef Launch launch
    cdef intptr_t[2] sizes
    cdef TensorImpl x = dense(rows, CG_FLOAT64), result
    clear_arguments(&g, sizeof(g))
    if rows.ndim != 2 or grids is not None and (grids.ndim != 2 or grids.sizes[0] != 2 or grids.sizes[1] != rows.sizes[1]):
        raise RuntimeError("rows have two dims, and two grids a number for each column")
    g.rows, g.columns, g.has_grids = x.sizes[0], x.sizes[1], grids is not None
    sizes[0], sizes[1] = 2, g.columns
    result = empty(CG_FLOAT64, 2, sizes) if g.has_grids else empty(CG_FLOAT64, 1, sizes + 1)
    zero(result)
    if x.count:
        begin_launch(&launch, "grid_sums", sum_rows_on_grid, &g, sizeof(Rows))
        add_input(&launch, x)
        add_changed(&launch, result)
        if g.has_grids:
            grids = dense(grids, CG_FLOAT64)
            add_input(&launch, grids)
        run_launch(&launch, x.count >= RELEASE_GIL)
    return result


def largest_of_columns(TensorImpl rows not None):
    """Return the largest magnitude in each column of (rows, columns), 0 where there are no rows; NaN are left out."""
    return over_rows(rows, None)


def sums_on_grids(TensorImpl rows not None, TensorImpl grids not None):
    """Return, for each column of (rows, columns), the sums of the parts on both grids of (2, columns), the coarse ones first."""
    return over_rows(rows, grids)
