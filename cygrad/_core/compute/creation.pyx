# cython: cdivision=True
"""New tensors: memory of a shape, and its first values; numbers that are to be written."""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.compute.copies cimport empty_in_order
from cygrad._core.graph.constants cimport zero
from cygrad._core.graph.launches cimport Launch, add_output, begin_launch, clear_arguments, run_launch
from cygrad._core.graph.tensor cimport TensorImpl, empty
from cygrad._core.levels.fronts cimport innermost
from cygrad._core.memory.formats cimport order_of
from cygrad._core.memory.sizes cimport integer, parse_sizes
from cygrad._core.memory.storage cimport DType, dtype_number
from cygrad._core.operands.arrays cimport values_of
from cygrad._core.operands.operands cimport Value, copy_into, empty_for, number_tensor, to_value
from cygrad._kernels.drivers.elementwise cimport CG_BOOL, CG_FLOAT64, CG_INT64, MAX_DIMS, cg_is_complex, cg_is_integer

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


cdef struct Range:          # each number by one product, so that errors do not add up
    intptr_t count
    long long first, increment
    double real_first, real_increment


cdef int write_integers(void* arguments, char** data) noexcept nogil:
    cdef Range* numbers = <Range*>arguments
    cdef intptr_t k
    for k in range(numbers.count):
        (<long long*>data[0])[k] = numbers.first + k * numbers.increment
    return 0


cdef int write_reals(void* arguments, char** data) noexcept nogil:
    cdef Range* numbers = <Range*>arguments
    cdef intptr_t k
    for k in range(numbers.count):
        (<double*>data[0])[k] = numbers.real_first + k * numbers.real_increment
    return 0


def arange_into(TensorImpl tensor not None, start, step):
    """Write start, start + step, ... into a new one-dimensional tensor."""
    cdef TensorImpl exact = tensor
    cdef Range numbers
    cdef Launch launch
    cdef bint are_integers = cg_is_integer[tensor.dtype_nr] or isinstance(start, int) and isinstance(step, int)
    clear_arguments(&numbers, sizeof(numbers))
    numbers.count = tensor.count
    if are_integers:
        numbers.first, numbers.increment = integer(int(start), "start"), integer(int(step), "step")
    else:
        numbers.real_first, numbers.real_increment = start, step
    if tensor.dtype_nr != (CG_INT64 if are_integers else CG_FLOAT64):
        exact = empty(CG_INT64 if are_integers else CG_FLOAT64, 1, tensor.sizes)
    begin_launch(&launch, "arange", write_integers if are_integers else write_reals, &numbers, sizeof(numbers))
    add_output(&launch, exact)
    run_launch(&launch, False)
    if exact is not tensor:
        copy_into(tensor, exact)
    return tensor


# ----- Numbers that are written -----
cdef int check_held(TensorImpl numbers, int dtype) except -1:
    """Refuse a tensor with a number that is refused where it is written by itself; a tensor for one example of many, by any of these."""
    cdef Value value
    if numbers.dtype_nr != dtype:
        for number in values_of(innermost(numbers)).ravel().tolist():
            to_value(number, &value)
            number_tensor(&value, dtype)
    return 0


def scalar_tensor(number, DType dtype not None):
    """Return a number, or a 0-d tensor, as a 0-d tensor of a dtype, to be written into another; RuntimeError where that does not hold it.

    Each argument that is a number to write goes through this function. The result has the history of the tensor.
    """
    cdef Value value
    alive = to_value(number, &value)
    if alive is NotImplemented:
        raise TypeError(f"expected a number to write into a tensor of {dtype!r}, not {type(number).__name__}")
    if alive is None:
        return number_tensor(&value, dtype.number)
    check_held(<TensorImpl>alive, dtype.number)
    if cg_is_complex[(<TensorImpl>alive).dtype_nr] and not cg_is_complex[dtype.number] and dtype.number != CG_BOOL:
        alive = alive.real      # the imaginary part is 0: nothing to warn of
    return alive.to(dtype)
