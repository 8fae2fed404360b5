"""Convolutions of few elements, and their gradients, as one product of matrices each: all windows are columns at once. Nothing is recorded.

Each function returns None where there are groups, or the columns have more elements than `most`: then the caller goes by blocks.
"""
from libc.stdint cimport intptr_t

from cygrad._core.compute.patches cimport sum_columns, window_columns
from cygrad._core.compute.places cimport dense
from cygrad._core.compute.products cimport product
from cygrad._core.compute.shapes cimport exchanged
from cygrad._core.graph.tensor cimport TensorImpl, view_of
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS


cdef inline double elements(tuple sizes):
    """Return how many elements there are; a double, as there may be more than memory holds."""
    cdef double count = 1
    for size in sizes:
        count *= <double>size
    return count


cdef inline tuple sizes_behind(TensorImpl x):
    """Return the sizes behind the first two."""
    cdef int d
    return tuple([x.sizes[d] for d in range(2, x.ndim)])


cdef TensorImpl laid_out(TensorImpl x, intptr_t first, intptr_t second, tuple behind=()):
    """Return a row-major tensor as a view of another shape."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef int d
    sizes[0], sizes[1] = first, second
    for d in range(<int>len(behind)):
        sizes[2 + d] = behind[d]
    return view_of(x, 0, 2 + <int>len(behind), sizes, NULL)


def convolved_at_once(TensorImpl x not None, TensorImpl w not None, steps, tuple count not None, intptr_t most):
    """Return the products of windows with kernels, (examples, channels, *count)."""
    cdef tuple kernel = sizes_behind(w)
    cdef intptr_t examples = x.sizes[0], channels = w.sizes[0], inner = <intptr_t>(w.sizes[1] * elements(kernel))
    cdef TensorImpl result
    if steps.groups != 1 or <double>examples * inner * elements(count) > most:
        return None
    result = product(laid_out(dense(w, w.dtype_nr), channels, inner), window_columns(x, steps, kernel, count, True))
    if examples == 1:
        return laid_out(result, 1, channels, count)
    return dense(exchanged(laid_out(result, channels, examples, count), 0, 1), result.dtype_nr)


def kernels_at_once(TensorImpl x not None, TensorImpl y not None, steps, tuple kernel not None, intptr_t most):
    """Return the sums of products of windows with results, (channels of y, channels of x, *kernel)."""
    cdef tuple count = sizes_behind(y)
    cdef intptr_t examples = y.sizes[0], channels = y.sizes[1], places = <intptr_t>elements(count)
    cdef TensorImpl rows = y if examples == 1 else exchanged(y, 0, 1)
    if steps.groups != 1 or not y.count or <double>examples * x.sizes[1] * elements(kernel) * places > most:
        return None
    rows = laid_out(dense(rows, rows.dtype_nr), channels, examples * places)
    return laid_out(product(rows, exchanged(window_columns(x, steps, kernel, count, True), 0, 1)), channels, x.sizes[1], kernel)


def spread_at_once(TensorImpl y not None, TensorImpl w not None, steps, tuple sizes not None, intptr_t most):
    """Return the sums of kernels, times results, at the places of their windows, (examples, channels, *sizes)."""
    cdef tuple kernel = sizes_behind(w), count = sizes_behind(y)
    cdef intptr_t examples = y.sizes[0], own = w.sizes[0], inner = <intptr_t>(w.sizes[1] * elements(kernel))
    cdef intptr_t places = <intptr_t>elements(count)
    cdef TensorImpl matrix, values
    if steps.groups != 1 or <double>examples * inner * places > most:
        return None
    matrix = exchanged(laid_out(dense(w, w.dtype_nr), own, inner), 0, 1)
    values = laid_out(dense(y, y.dtype_nr), examples, own, (places,))
    return sum_columns(product(matrix, values), steps, kernel, count, sizes)
