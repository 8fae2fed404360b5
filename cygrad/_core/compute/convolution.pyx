"""Convolutions of few elements, and their gradients, as one product of matrices each: all windows are columns at once.

Where there are groups, many elements or long kernels, functions of `cygrad.operators.convolutions` compute them.
"""
from libc.stdint cimport intptr_t

from cygrad._core.compute.patches cimport sum_columns, window_columns
from cygrad._core.compute.places cimport dense
from cygrad._core.compute.products cimport product
from cygrad._core.compute.shapes cimport exchanged
from cygrad._core.graph.rule_nodes cimport needs_node, record, stand_alone_unless_shared
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport TensorImpl, view_of
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_is_differentiable

cdef RuleOp CONVOLVE = rule_op("convolve", ("steps", "input_shape", "weight_shape"))
cdef RuleOp SPREAD_KERNELS = rule_op("spread_kernels", ("steps", "input_shape", "weight_shape"))
cdef RuleOp SUM_KERNELS = rule_op("sum_kernels", ("steps", "input_shape", "other_shape"))


cdef object otherwise = None    # computes results that are not computed at once: (the rule's name, both operands, steps, sizes)
cdef intptr_t block = 0         # elements of columns up to which all are copied and multiplied at once
cdef intptr_t gathered = 0      # elements of results from which on columns may be gathered in place of being added up
cdef double long_kernel = 0, many_places = 0        # from which on kernels are multiplied in the frequency domain


def set_ways(intptr_t most_at_once, intptr_t large_results, double large_kernel, double large_count, function):
    """Set which convolutions are computed in which way, and the function for those that are not computed at once."""
    global block, gathered, long_kernel, many_places, otherwise
    block, gathered, long_kernel, many_places, otherwise = most_at_once, large_results, large_kernel, large_count, function


cdef bint takes_spectra(tuple kernel, tuple count, TensorImpl x) except -1:
    return cg_is_differentiable[x.dtype_nr] and elements(kernel) >= long_kernel and elements(count) >= many_places


def is_spectral(kernel, count, TensorImpl x not None):
    """Return True if kernels are multiplied in the frequency domain."""
    return takes_spectra(tuple(kernel), tuple(count), x)


cdef inline double elements(tuple sizes) except -1:
    """Return how many elements there are; a double, as there may be more than memory holds."""
    cdef double count = 1
    for size in sizes:
        count *= <intptr_t>size
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


cdef TensorImpl convolved_at_once(TensorImpl x, TensorImpl w, object steps, tuple count):
    """Return the products of windows with kernels, (examples, channels, *count); None: there are groups, or too many elements."""
    cdef tuple kernel = sizes_behind(w)
    cdef intptr_t examples = x.sizes[0], channels = w.sizes[0], inner = <intptr_t>(w.sizes[1] * elements(kernel))
    cdef TensorImpl result
    if steps.groups != 1 or <double>examples * inner * elements(count) > block:
        return None
    result = product(laid_out(dense(w, w.dtype_nr), channels, inner), window_columns(x, steps, kernel, count, True))
    if examples == 1:
        return laid_out(result, 1, channels, count)
    return dense(exchanged(laid_out(result, channels, examples, count), 0, 1), result.dtype_nr)


cdef TensorImpl kernels_at_once(TensorImpl x, TensorImpl y, object steps, tuple kernel):
    """Return the sums of products of windows with results, (channels of y, channels of x, *kernel); None likewise."""
    cdef tuple count = sizes_behind(y)
    cdef intptr_t examples = y.sizes[0], channels = y.sizes[1], places = <intptr_t>elements(count)
    cdef TensorImpl rows = y if examples == 1 else exchanged(y, 0, 1)
    if steps.groups != 1 or not y.count or <double>examples * x.sizes[1] * elements(kernel) * places > block:
        return None
    rows = laid_out(dense(rows, rows.dtype_nr), channels, examples * places)
    return laid_out(product(rows, exchanged(window_columns(x, steps, kernel, count, True), 0, 1)), channels, x.sizes[1], kernel)


cdef TensorImpl spread_at_once(TensorImpl y, TensorImpl w, object steps, tuple sizes):
    """Return the sums of kernels, times results, at the places of their windows, (examples, channels, *sizes); None likewise."""
    cdef tuple kernel = sizes_behind(w), count = sizes_behind(y)
    cdef intptr_t examples = y.sizes[0], own = w.sizes[0], inner = <intptr_t>(w.sizes[1] * elements(kernel))
    cdef intptr_t places = <intptr_t>elements(count)
    cdef TensorImpl matrix, values
    if steps.groups != 1 or <double>examples * inner * places > block:
        return None
    matrix = exchanged(laid_out(dense(w, w.dtype_nr), own, inner), 0, 1)
    values = laid_out(dense(y, y.dtype_nr), examples, own, (places,))
    return sum_columns(product(matrix, values), steps, kernel, count, sizes)


# ----- Three operators, which are recorded -----
cdef TensorImpl recorded_pair(RuleOp op, TensorImpl one, TensorImpl other, object steps, tuple sizes, TensorImpl at_once):
    """Return a result recorded, which is computed otherwise where it was not computed at once."""
    cdef TensorImpl result = at_once
    if result is None:
        result = otherwise(op.name, one, other, steps, sizes)
    stand_alone_unless_shared((one, other), result)
    if needs_node(one, other):
        record(op, one, other, result, (steps, sizes_tuple(one.ndim, one.sizes), sizes_tuple(other.ndim, other.sizes)))
    return result


def convolve(TensorImpl input not None, TensorImpl weight not None, steps, tuple count not None):
    """Convolve (examples, channels, *sizes) with kernels (channels of the result, channels of a group, *kernel) at so many places."""
    cdef TensorImpl result = None
    if not takes_spectra(sizes_behind(weight), count, weight):
        result = convolved_at_once(input, weight, steps, count)
    return recorded_pair(CONVOLVE, input, weight, steps, count, result)


def spread_kernels(TensorImpl input not None, TensorImpl weight not None, steps, tuple sizes not None):
    """Transpose of `convolve` by its input: from results to a tensor of sizes."""
    cdef TensorImpl result = None
    if not takes_spectra(sizes_behind(weight), sizes_behind(input), weight):
        if input.count >= gathered:
            result = otherwise("gathered", input, weight, steps, sizes)
        if result is None:
            result = spread_at_once(input, weight, steps, sizes)
    return recorded_pair(SPREAD_KERNELS, input, weight, steps, sizes, result)


def sum_kernels(TensorImpl input not None, TensorImpl other not None, steps, tuple kernel not None):
    """Transpose of `convolve` by its kernels: from an input and results to kernels."""
    cdef TensorImpl result = None
    if not takes_spectra(kernel, sizes_behind(other), other):
        result = kernels_at_once(input, other, steps, kernel)
    return recorded_pair(SUM_KERNELS, input, other, steps, kernel, result)
