# cython: cdivision=True
"""New tensors: memory of a shape, and its first values."""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.compute.copies cimport empty_in_order
from cygrad._core.graph.tensor cimport TensorImpl, empty, settled_address, zero
from cygrad._core.memory.formats cimport order_of
from cygrad._core.memory.sizes cimport integer, parse_sizes
from cygrad._core.memory.storage cimport dtype_number
from cygrad._core.operands.operands cimport Value, copy_into, empty_for, number_tensor, to_value
from cygrad._kernels.drivers.elementwise cimport CG_INT64, MAX_DIMS, cg_is_integer

from cygrad._core.memory.formats import preserve_format


def empty_tensor(sizes, dtype, TensorImpl like=None, memory_format=None):
    """Return an unset tensor; dense, in the order of dims of `like` if that is given, unless a memory format gives another."""
    cdef intptr_t shape[MAX_DIMS]
    cdef int ndim = parse_sizes(sizes, shape), number = dtype_number(dtype)
    cdef Value value
    if memory_format is not None and memory_format is not preserve_format:
        return empty_in_order(order_of("empty", memory_format, ndim), number, ndim, shape)
    value.tensor = <PyObject*>like
    return empty_for(number, ndim, shape, like is not None, &value)


def fill_value(TensorImpl tensor not None, value):
    """Set all elements of a new tensor to a Python number."""
    cdef Value read
    if value == 0:
        zero(tensor)
        return tensor
    to_value(value, &read)
    copy_into(tensor, number_tensor(&read, tensor.dtype_nr))
    return tensor


def arange_into(TensorImpl tensor not None, start, step):
    """Write start, start + step, ... into a new one-dimensional tensor; each by one product, so that errors do not add up."""
    cdef TensorImpl exact = tensor
    cdef intptr_t k
    cdef double real_start, real_step
    cdef long long first, increment
    if cg_is_integer[tensor.dtype_nr] or isinstance(start, int) and isinstance(step, int):
        first, increment = integer(int(start), "start"), integer(int(step), "step")
        exact = tensor if tensor.dtype_nr == CG_INT64 else empty(CG_INT64, 1, tensor.sizes)
        for k in range(tensor.count):
            (<long long*>settled_address(exact))[k] = first + k * increment
    else:
        from cygrad._core.memory.storage import dtype_by_name
        real_start, real_step = start, step
        exact = empty(dtype_number(dtype_by_name["float64"]), 1, tensor.sizes)
        for k in range(tensor.count):
            (<double*>settled_address(exact))[k] = real_start + k * real_step
    if exact is not tensor:
        copy_into(tensor, exact)
    return tensor
