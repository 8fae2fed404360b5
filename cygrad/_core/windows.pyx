# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Views that step through memory in other ways than shapes and slices do: diagonals and windows; the shape tensors broadcast to.

The functions are the methods of Tensor too: their first argument is the tensor.
"""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc

from cygrad._core.operands cimport Value, broadcast
from cygrad._core.rules cimport record, rule_op, wanted
from cygrad._core.tensor cimport TensorImpl, normalize_dim, sizes_tuple, view_of
from cygrad._kernels.elementwise cimport MAX_DIMS, cg_itemsize

cdef extern from "Python.h":
    Py_ssize_t PyNumber_AsSsize_t(object value, object exception) except? -1


def diagonal(TensorImpl input not None, offset=0, dim1=0, dim2=1):
    """Return the view of a diagonal of two dims, as the last dim; `offset` counts above (or, negative, below) the main one.

    >>> import cygrad
    >>> cygrad.eye(3).diagonal()
    tensor([1., 1., 1.])
    """
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef int first = normalize_dim(dim1, input.ndim), second = normalize_dim(dim2, input.ndim), d, ndim = 0
    cdef Py_ssize_t above = PyNumber_AsSsize_t(offset, OverflowError)
    cdef char* data = input.data
    cdef intptr_t length
    if input.ndim < 2 or first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}: a diagonal runs through two dims")
    for d in range(input.ndim):
        if d != first and d != second:
            sizes[ndim], strides[ndim] = input.sizes[d], input.strides[d]
            ndim += 1
    length = min(input.sizes[first], input.sizes[second] - above) if above >= 0 else min(input.sizes[first] + above, input.sizes[second])
    length = max(length, 0)
    if length:
        data += (above * input.strides[second] if above >= 0 else -above * input.strides[first]) * cg_itemsize[input.dtype_nr]
    sizes[ndim], strides[ndim] = length, input.strides[first] + input.strides[second]
    cdef TensorImpl result = view_of(input, data, ndim + 1, sizes, strides)
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
    cdef int along = normalize_dim(dimension, input.ndim), d
    cdef Py_ssize_t width = PyNumber_AsSsize_t(size, OverflowError), apart = PyNumber_AsSsize_t(step, OverflowError)
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
        sizes[along], strides[along] = (there - width) // apart + 1, apart * input.strides[along]
    cdef TensorImpl result = view_of(input, input.data, input.ndim + 1, sizes, strides)
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
