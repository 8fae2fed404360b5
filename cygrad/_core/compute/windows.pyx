# cython: cdivision=True
"""Views that step through memory in other ways than shapes and slices do: diagonals and windows; the shape tensors broadcast to.

The functions are the methods of Tensor too: their first argument is the tensor.
"""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc

from cygrad._core.graph.rules cimport record, rule_op, wanted
from cygrad._core.graph.tensor cimport TensorImpl, view_of
from cygrad._core.memory.sizes cimport checked_numel, integer, multiply_overflows, sizes_tuple, wrap_dim
from cygrad._core.operands.operands cimport Value, broadcast
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize


def diagonal(TensorImpl input not None, offset=0, dim1=0, dim2=1):
    """Return the view of a diagonal of two dims, as the last dim; `offset` counts above (or, negative, below) the main one.

    >>> import cygrad
    >>> cygrad.eye(3).diagonal()
    tensor([1., 1., 1.])
    """
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t above = integer(offset, "offset"), of_rows = integer(dim1, "dim1"), of_columns = integer(dim2, "dim2"), length, start = 0
    cdef int first = wrap_dim(of_rows, input.ndim), second = wrap_dim(of_columns, input.ndim), d, ndim = 0
    if input.ndim < 2 or first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {of_rows}, {of_columns}: a diagonal runs through two dims")
    for d in range(input.ndim):
        if d != first and d != second:
            sizes[ndim], strides[ndim] = input.sizes[d], input.strides[d]
            ndim += 1
    if above >= 0:      # neither difference overflows
        length = min(input.sizes[first], input.sizes[second] - above)
    else:
        length = min(input.sizes[first] + above, input.sizes[second])
    length = max(length, 0)
    if length:
        start = above * input.strides[second] if above >= 0 else -above * input.strides[first]
    sizes[ndim], strides[ndim] = length, input.strides[first] + input.strides[second]
    cdef TensorImpl result = view_of(input, start, ndim + 1, sizes, strides)
    if wanted(input, None):
        record(rule_op("diagonal"), input, None, result, (sizes_tuple(input.ndim, input.sizes), above, first, second))
    return result


def unfold(TensorImpl input not None, dimension, size, step):
    """Return the view of all windows of `size` along a dim, `step` apart; the windows are the last dim.

    >>> import cygrad
    >>> cygrad.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef intptr_t wanted_dim = integer(dimension, "dimension"), width = integer(size, "size"), apart = integer(step, "step")
    cdef int along = wrap_dim(wanted_dim, input.ndim), d
    cdef intptr_t there = input.sizes[along] if input.ndim else 1
    if input.ndim == MAX_DIMS:
        raise RuntimeError(f"tensors have at most {MAX_DIMS} dimensions")
    if width < 0:
        raise RuntimeError(f"size is {width} but must be >= 0")
    if width > there:
        raise RuntimeError(f"maximum size for tensor at dimension {along} is {there} but size is {width}")
    if apart <= 0:
        raise RuntimeError(f"step is {apart} but must be > 0")
    for d in range(input.ndim):
        sizes[d], strides[d] = input.sizes[d], input.strides[d]
    strides[input.ndim], sizes[input.ndim] = input.strides[along] if input.ndim else 1, width
    if input.ndim:
        sizes[along] = (there - width) // apart + 1
        if multiply_overflows(apart, input.strides[along], &strides[along]):
            strides[along] = 1          # of one window
        checked_numel(input.ndim + 1, sizes, cg_itemsize[input.dtype_nr])
    cdef TensorImpl result = view_of(input, 0, input.ndim + 1, sizes, strides)
    if wanted(input, None):
        record(rule_op("unfold"), input, None, result, (sizes_tuple(input.ndim, input.sizes), along, width, apart))
    return result


def broadcast_shape(*tensors):
    """Return the shape that tensors broadcast to; RuntimeError where they do not."""
    cdef intptr_t shape[MAX_DIMS]
    cdef TensorImpl tensor
    cdef int k, ndim
    cdef Value* values = <Value*>malloc(max(len(tensors), 1) * sizeof(Value))
    if values is NULL:
        raise MemoryError()
    try:
        for k, tensor in enumerate(tensors):
            values[k].tensor = <PyObject*>tensor
        ndim = broadcast(<int>len(tensors), values, shape)
    finally:
        free(values)
    return sizes_tuple(ndim, shape)
