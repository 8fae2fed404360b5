"""Sizes, strides, dims and places (see sizes.pxd for the contract)."""
from cpython.bool cimport PyBool_Check
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport MAX_DIMS

from cygrad._core.memory.storage import OutOfMemoryError

cdef extern from "Python.h":
    bint PyIndex_Check(object value)
    bint PySequence_Check(object value)
    object PyNumber_Index(object value)     # an exact int
    ctypedef struct PyMappingMethods:
        object (*mp_subscript)(object, object)
    ctypedef struct PySequenceMethods:
        object (*sq_repeat)(object, Py_ssize_t)
    ctypedef struct PyTypeObject:
        PySequenceMethods* tp_as_sequence
        PyMappingMethods* tp_as_mapping
        object (*tp_alloc)(type kind, Py_ssize_t items)


# ----- Reading arguments -----
cdef str written(object number):
    """Return the text of an integer of any length."""
    return str(number) if number.bit_length() < 256 else f"an integer of {number.bit_length()} bits"


cdef intptr_t integer(object value, str argument) except? -1:
    """Read an integer."""
    cdef int overflow = 0
    cdef long long number
    if type(value) is not int:
        if PyBool_Check(value) or not PyIndex_Check(value):
            raise TypeError(f"argument '{argument}' must be int, not {type(value).__name__}")
        value = PyNumber_Index(value)
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        raise ValueError(f"Overflow when unpacking long long: argument '{argument}' must lie between -2**63 and 2**63 - 1, got "
                         f"{written(value)}")
    return number


cdef tuple read_dims(object dims, str argument="dim"):
    """Read one dim or several; None stays None."""
    if dims is None:
        return None
    if type(dims) is int or PyIndex_Check(dims):
        return (integer(dims, argument),)
    return tuple([integer(dim, argument) for dim in sequence_items(dims, argument)])


cdef tuple sequence_items(object sequence, str argument):
    """Read the items of a sequence of ints."""
    if isinstance(sequence, (tuple, list)):
        return tuple(sequence)
    if isinstance(sequence, (str, bytes)) or not PySequence_Check(sequence) and not hasattr(sequence, "__iter__"):
        raise TypeError(f"argument '{argument}' must be tuple of ints, not {type(sequence).__name__}")
    return tuple(sequence)


cdef int parse_sizes(object sizes, intptr_t* shape, str argument="size") except -1:
    """Read a sequence of at most 64 ints, or one int, into `shape` and return its length."""
    cdef int d = 0
    cdef tuple items = sizes if type(sizes) is tuple else (sizes,) if PyIndex_Check(sizes) else sequence_items(sizes, argument)
    if len(items) > MAX_DIMS:
        raise RuntimeError(f"tensors have at most {MAX_DIMS} dimensions, got {len(items)} sizes")
    for item in items:
        if type(item) is not int and (PyBool_Check(item) or not PyIndex_Check(item)):
            raise TypeError(f"argument '{argument}' must be tuple of ints, but found element of type {type(item).__name__} at pos {d}")
        try:
            shape[d] = integer(item, argument)
        except ValueError as error:
            raise TypeError(f"argument '{argument}' failed to unpack the object at pos {d} with error \"{error}\"") from None
        d += 1
    return d


cdef int sizes_argument(tuple arguments, dict keywords, str name, intptr_t* sizes) except -1:
    """Read sizes given as one sequence, as several ints or by keyword."""
    if keywords:
        if len(keywords) > 1 or arguments or name not in keywords:
            raise TypeError(f"unexpected keyword argument {next(iter(keywords))!r}; give the sizes by position or as {name}=")
        return parse_sizes(keywords[name], sizes, name)
    if len(arguments) == 1 and not PyIndex_Check(arguments[0]):
        return parse_sizes(arguments[0], sizes, name)
    return parse_sizes(arguments, sizes, name)


def index_argument(value, str argument not None):
    """Return an integer argument as an int; TypeError or ValueError, which name the argument, for anything else."""
    return integer(value, argument)


def normalized_dim(dim, int ndim, str argument not None="dim"):
    """Return a dim as a number from 0 on; IndexError where it is out of range."""
    return wrap_dim(integer(dim, argument), ndim)


cdef inline bint are_exact(tuple items):
    for item in items:
        if type(item) is not int:
            return False
    return True


def integers(value):
    """Return one integer or several as a tuple."""
    cdef tuple items = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return items if are_exact(items) else tuple([PyNumber_Index(item) for item in items])


def size_from_arguments(tuple arguments not None, str function not None="size"):
    """Return sizes given as one sequence or as several ints; TypeError, naming the function, for anything else."""
    cdef tuple sizes = arguments
    cdef Py_ssize_t position
    if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)):
        sizes = tuple(arguments[0])
    if not arguments:
        raise TypeError(f"{function}() received an invalid combination of arguments - got (), but expected (tuple of ints size)")
    if are_exact(sizes):
        return sizes
    for position, size in enumerate(sizes):
        if PyBool_Check(size) or not PyIndex_Check(size):
            raise TypeError(f"{function}(): argument 'size' (position 1) must be tuple of ints, but found element of type "
                            f"{type(size).__name__} at pos {position}")
    return tuple([PyNumber_Index(size) for size in sizes])


def normalized_dims(dim, int ndim):
    """Return dims as a tuple of numbers from 0 on; None means all, and so do none."""
    if dim is None:
        return tuple(range(ndim))
    if not isinstance(dim, (tuple, list)):
        return (wrap_dim(integer(dim, "dim"), ndim),)
    return tuple([wrap_dim(integer(item, "dim"), ndim) for item in tuple(dim)]) if dim else tuple(range(ndim))


def distinct_dims(dims, int ndim):
    """Return dims as numbers from 0 on; RuntimeError if one is given twice."""
    cdef tuple normalized = tuple([wrap_dim(integer(dim, "dim"), ndim) for dim in dims])
    dim_bits(normalized, ndim)
    return normalized


# ----- Arithmetic -----
cdef int wrap_dim(intptr_t dim, int ndim) except -1:
    """Return a dim as a number from 0 on; raise IndexError where it is out of range."""
    cdef int limit = max(ndim, 1)
    if dim < -limit or dim >= limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return <int>(dim + limit if dim < 0 else dim)


cdef unsigned long long dim_bits(tuple dims, int ndim) except? 0:
    """Return a bit for each of some dims, for all of them where they are None; RuntimeError if one is given twice."""
    cdef unsigned long long bits = 0, bit
    if dims is None:
        return ~bits
    for dim in dims:
        bit = 1ULL << wrap_dim(dim, ndim)
        if bits & bit:
            raise RuntimeError(f"dim {wrap_dim(dim, ndim)} appears multiple times in the list of dims")
        bits |= bit
    return bits


cdef intptr_t checked_numel(int ndim, const intptr_t* shape, intptr_t itemsize) except -1:
    """Return the number of elements; raise where a size is negative or the bytes do not fit an address.

    A size of 0 makes the product 0, but the strides are still made of the other sizes.
    """
    cdef intptr_t nbytes = itemsize
    cdef bint nothing = False
    cdef int d
    for d in range(ndim):
        if shape[d] < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {shape[d]}: {list(sizes_tuple(ndim, shape))}; "
                               "sizes must be 0 or more")
        nothing = nothing or shape[d] == 0
        if shape[d] > 1 and multiply_overflows(nbytes, shape[d], &nbytes):
            raise OutOfMemoryError(f"Storage size calculation overflowed with sizes={list(sizes_tuple(ndim, shape))} "
                                   f"and {itemsize} bytes an element; use smaller sizes")
    return 0 if nothing else nbytes // itemsize


cdef intptr_t bytes_needed(int ndim, const intptr_t* sizes, const intptr_t* strides, intptr_t offset, intptr_t itemsize) except -1:
    """Return the bytes from the beginning of memory to the end of the last element of a layout; 0 if there is none."""
    cdef intptr_t last = offset, further
    cdef bint nothing = False
    cdef int d
    for d in range(ndim):
        nothing = nothing or sizes[d] == 0
        # A part of nothing may begin at any of these places, so they are addresses too.
        if sizes[d] > 1 and (multiply_overflows(sizes[d] - 1, strides[d], &further) or add_overflows(last, further, &last)):
            break
    else:
        if not add_overflows(last, 1, &last) and not multiply_overflows(last, itemsize, &last):
            return 0 if nothing else last
    raise RuntimeError(f"Storage size calculation overflowed with sizes={list(sizes_tuple(ndim, sizes))}, "
                       f"strides={list(sizes_tuple(ndim, strides))}, storage offset {offset} and {itemsize} bytes an element: the last "
                       "element must end before byte 2**63")


cdef intptr_t span(int ndim, const intptr_t* sizes, const intptr_t* strides) except -1:
    """Return how many places lie from the first element to the last."""
    return bytes_needed(ndim, sizes, strides, 0, 1)


cdef bint lies_inside(const char* memory, size_t nbytes, const char* data, intptr_t itemsize, int ndim, const intptr_t* sizes,
                      const intptr_t* strides) noexcept:
    """Return True if the elements of a layout that begins at `data` lie in memory; so does nothing, if it begins there."""
    cdef intptr_t last = 0, further
    cdef int d
    for d in range(ndim):
        if sizes[d] == 0:
            return memory <= data <= memory + nbytes
        if sizes[d] > 1 and (multiply_overflows(sizes[d] - 1, strides[d], &further) or add_overflows(last, further, &last)):
            return False
    return (memory <= data <= memory + nbytes and not multiply_overflows(last, itemsize, &last)
            and last <= memory + nbytes - data - itemsize)


cdef bint fill_block(int ndim, const intptr_t* sizes, const intptr_t* strides) noexcept:
    cdef intptr_t expected = 1
    cdef int d, used_count = 0, next_dim
    cdef bint used[MAX_DIMS]
    for d in range(ndim):
        used[d] = sizes[d] == 1
        used_count += used[d]
    while used_count < ndim:
        next_dim = -1
        for d in range(ndim):
            if not used[d] and strides[d] == expected:
                next_dim = d
                break
        if next_dim < 0:
            return False
        used[next_dim] = True
        expected *= sizes[next_dim]
        used_count += 1
    return True


cdef void bytes_between(int ndim, const intptr_t* sizes, const intptr_t* strides, intptr_t itemsize, intptr_t* first,
                        intptr_t* end) noexcept:
    """Write where the elements of a layout begin and end, from its first element; strides may be negative."""
    cdef intptr_t reach
    cdef int d
    first[0], end[0] = 0, itemsize
    for d in range(ndim):
        reach = (sizes[d] - 1) * strides[d] * itemsize
        if reach > 0:
            end[0] += reach
        else:
            first[0] += reach


cdef tuple sizes_tuple(int ndim, const intptr_t* sizes):
    cdef tuple items = PyTuple_New(ndim)
    cdef object size
    cdef int d
    for d in range(ndim):
        size = sizes[d]
        Py_INCREF(size)
        PyTuple_SET_ITEM(items, d, size)
    return items


# ----- Shapes -----
class Size(tuple):
    """The shape of a tensor: a tuple of ints that has its number of elements; its parts and sums are Sizes, too.

    >>> import cygrad
    >>> cygrad.zeros(2, 3).shape.numel()
    6
    >>> (5,) + cygrad.zeros(2, 3).shape[:-1]
    cygrad.Size([5, 2])
    """

    __slots__ = ()
    __module__ = "cygrad._core.tensor"      # in pickles

    def __new__(cls, sizes=(), /):
        return as_size(tuple(sizes))

    def __getitem__(self, key):
        return subscript(self, key)

    def __init_subclass__(cls):
        raise TypeError("type 'torch.Size' is not an acceptable base type")

    def __add__(self, other):
        if not isinstance(other, tuple) and not hasattr(type(other), "__radd__"):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to cygrad.Size")
        return as_size(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other):
        return as_size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def numel(self):
        """Return the product of the sizes."""
        product = 1
        for size in self:
            product *= size
        return product

    def __repr__(self):
        return f"cygrad.Size({list(self)})"


cdef type size_type = Size


cdef object subscript(object size, object key):
    part = tuple_subscript(size, key)
    return as_size(part) if isinstance(key, slice) else part


cdef object repeat(object size, Py_ssize_t count):
    return as_size(tuple_repeat(size, count))


# The slots of size[0] and of 2 * size: a method takes five times as long for the former, and NumPy would multiply for the latter.
cdef object (*tuple_subscript)(object, object)
cdef object (*tuple_repeat)(object, Py_ssize_t)
tuple_subscript = (<PyTypeObject*>tuple).tp_as_mapping.mp_subscript
tuple_repeat = (<PyTypeObject*>tuple).tp_as_sequence.sq_repeat
(<PyTypeObject*>size_type).tp_as_mapping.mp_subscript = subscript
(<PyTypeObject*>size_type).tp_as_sequence.sq_repeat = repeat


cdef object as_size(tuple sizes):
    """Return a tuple of integers as a Size."""
    cdef object result
    cdef Py_ssize_t index
    for index in range(len(sizes)):
        if type(sizes[index]) is not int:
            sizes = tuple([size_item(index, item) for index, item in enumerate(sizes)])
            break
    result = (<PyTypeObject*>size_type).tp_alloc(size_type, len(sizes))
    for index in range(len(sizes)):
        size = sizes[index]
        Py_INCREF(size)
        PyTuple_SET_ITEM(result, index, size)
    return result


cdef object size_item(Py_ssize_t index, object item):
    if not PyIndex_Check(item):
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {index} is '{type(item).__name__}')")
    return PyNumber_Index(item)


cdef object new_size(int ndim, const intptr_t* sizes):
    """Return sizes as a Size."""
    cdef object result = (<PyTypeObject*>size_type).tp_alloc(size_type, ndim)
    cdef object size
    cdef int d
    for d in range(ndim):
        size = sizes[d]
        Py_INCREF(size)
        PyTuple_SET_ITEM(result, d, size)
    return result


def extent_of_strides(intptr_t itemsize, shape, strides):
    """Return the bytes from the first element of a layout to the end of its last one; ValueError where it is none."""
    cdef intptr_t lengths[MAX_DIMS]
    cdef intptr_t steps[MAX_DIMS]
    cdef int d, ndim = <int>min(len(shape), MAX_DIMS + 1)
    if len(shape) != len(strides) or ndim > MAX_DIMS:
        raise ValueError(f"a tensor of shape {list(shape)} cannot have the strides {list(strides)}")
    for size, stride in zip(shape, strides):
        if type(size) is not int or type(stride) is not int or size < 0 or stride < 0:
            raise ValueError(f"sizes and strides must be integers of at least 0, got {list(shape)} and {list(strides)}")
    try:
        for d in range(ndim):
            lengths[d], steps[d] = shape[d], strides[d]
        checked_numel(ndim, lengths, itemsize)
        return bytes_needed(ndim, lengths, steps, 0, itemsize)
    except (OverflowError, RuntimeError):
        raise ValueError(f"the shape {list(shape)} with strides {list(strides)} needs more than all addresses there are") from None


def row_major(shape):
    """Return the strides of a dense tensor."""
    cdef list strides = []
    step = 1
    for size in reversed(tuple(shape)):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
