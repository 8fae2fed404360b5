"""Memory shared with NumPy and other buffers (see arrays.pxd for the contract)."""
cimport cython
cimport numpy
from libc.stdint cimport intptr_t

from cygrad._core.graph.notes cimport note_array_below
from cygrad._core.graph.tensor cimport BATCHED, SPARSE, TensorImpl, export_address, new_tensor
from cygrad._core.memory.sizes cimport span
from cygrad._core.memory.storage cimport DType, Storage, dtypes, expose, storage_of_buffer, unexpose
from cygrad._kernels.drivers.elementwise cimport CG_DTYPES, MAX_DIMS, cg_is_opaque, cg_itemsize, cg_loops_of, cg_real

import numpy

from cygrad._core.memory.storage import dtype_by_name

numpy.import_array()

cdef extern from "Python.h":
    object PyMemoryView_FromObject(object exporter)

cdef dict number_by_type = {}
cdef int[CG_DTYPES] type_by_number      # -1: another package's type, which is looked for when it is asked for
cdef int[CG_DTYPES] bits_by_number      # of integers where the numbers are stored only


cdef int find_types() except -1:
    for dtype in dtypes:
        bits_by_number[dtype.number] = type_of_bits(dtype).num
        try:
            type_by_number[dtype.number] = numpy.dtype(dtype.name).num
        except TypeError:
            type_by_number[dtype.number] = -1
            continue
        number_by_type[type_by_number[dtype.number]] = dtype.number
    return 0


def type_of_bits(DType dtype not None):
    """Return NumPy's dtype for the memory of a dtype: of integers where the numbers are stored only."""
    return numpy.dtype(f"int{8 * dtype.itemsize}" if cg_is_opaque[dtype.number] else dtype.name)


find_types()
# long and long long are two NumPy types of one width: which of them is int64 depends on the platform.
for _type in (numpy.longlong, numpy.long, numpy.intc):
    number_by_type.setdefault(numpy.dtype(_type).num, dtype_by_name[numpy.dtype(_type).name].number)


cdef inline int type_of(int dtype) except -1:
    """Return the number of NumPy's type for a dtype."""
    return type_by_number[dtype] if type_by_number[dtype] >= 0 else find_foreign_type(dtypes[dtype])


cdef int find_foreign_type(DType dtype) except -1:
    type_by_number[dtype.number] = dtype.dtype.num
    number_by_type[type_by_number[dtype.number]] = dtype.number
    return type_by_number[dtype.number]


@cython.final
@cython.no_gc
cdef class Export:
    """The base of a NumPy array: it keeps the memory of a tensor alive, and counts as long as it lives itself."""
    cdef Storage storage

    def __dealloc__(self):
        if self.storage is not None:
            unexpose(self.storage)


cdef object array_of(TensorImpl tensor):
    """Return a NumPy array over the memory of a tensor; it keeps the storage alive."""
    return array_as(tensor, type_of(tensor.dtype_nr))


cdef object values_of(TensorImpl tensor):
    if not cg_is_opaque[tensor.dtype_nr]:
        return array_of(tensor)
    return array_of(<TensorImpl>(<object>tensor).detach().to(dtypes[cg_loops_of[tensor.dtype_nr]]))


cdef object bits_of(TensorImpl tensor):
    return array_as(tensor, bits_by_number[tensor.dtype_nr])


cdef object array_as(TensorImpl tensor, int type):
    """Return a NumPy array over the memory of a tensor, read as one of NumPy's types."""
    cdef Export export
    cdef numpy.npy_intp shape[MAX_DIMS]
    cdef numpy.npy_intp strides[MAX_DIMS]
    cdef int d, flags = 0 if tensor.storage.readonly else numpy.NPY_ARRAY_WRITEABLE
    if tensor.flags & BATCHED:
        raise RuntimeError("vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item(), .tolist() "
                           "or .numpy(): inside of vmap a tensor has no values of its own. Use cygrad.where() for control flow, or compute "
                           "such things outside of vmap.")
    if tensor.flags & SPARSE:
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")
    for d in range(tensor.ndim):
        shape[d], strides[d] = tensor.sizes[d], tensor.strides[d] * cg_itemsize[tensor.dtype_nr]
    export = Export.__new__(Export)
    expose(tensor.storage)
    export.storage = tensor.storage
    array = numpy.PyArray_New(numpy.ndarray, tensor.ndim, shape, type, strides, export_address(tensor), 0, flags, None)
    numpy.set_array_base(array, export)
    return array


cdef TensorImpl tensor_of_array(object source):
    """Return a tensor over the memory of a NumPy array; its buffer is held until the storage dies."""
    cdef numpy.ndarray array = source
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef int d, itemsize
    cdef Storage storage
    number = number_by_type.get(numpy.PyArray_TYPE(array))
    if number is None and array.dtype.name in dtype_by_name:
        number = dtype_by_name[array.dtype.name].number
        type_of(number)
    if not array.dtype.isnative:
        raise ValueError(f"given numpy array has byte order different from the native byte order: {array.dtype!r}. "
                         "Convert it with array.astype(array.dtype.newbyteorder('='))")
    if number is None:
        raise TypeError(f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only supported types are: "
                        f"{', '.join([dtype.name for dtype in dtypes])}")
    if array.dtype.isbuiltin == 2:      # buffers have no types of other packages
        array = array.view(type_of_bits(dtypes[number]))
    itemsize = cg_itemsize[number]
    for d in range(array.ndim):
        if array.strides[d] < 0 and array.shape[d] > 1 and array.size:
            raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                             "currently supported. (You can probably work around this by making a copy of your array with array.copy().)")
        if array.strides[d] % itemsize and array.shape[d] > 1:
            raise ValueError("given numpy array strides not a multiple of the element byte size. Copy the numpy array to a new array "
                             "with array.copy().")
        sizes[d] = array.shape[d]
        strides[d] = array.strides[d] // itemsize if array.shape[d] > 1 else 0
    if <size_t>numpy.PyArray_DATA(array) % cg_itemsize[cg_real[number]]:
        raise ValueError("given numpy array is not aligned to its element size. Copy it with array.copy().")
    # One memoryview is one export, held until the storage dies: neither resize nor free can happen below a tensor.
    storage = storage_of_buffer(PyMemoryView_FromObject(array))
    storage.readonly = not array.flags.writeable
    storage.data = <char*>numpy.PyArray_DATA(array)
    storage.nbytes = span(array.ndim, sizes, strides) * itemsize    # more than the buffer's length where that has gaps
    fix_strides(array.ndim, sizes, strides)
    return new_tensor(storage, 0, number, array.ndim, sizes, strides)


cdef TensorImpl tensor_of_bits(object array, int dtype):
    """Return a tensor over an array as `bits_of` makes it."""
    cdef TensorImpl result = tensor_of_array(array)
    if cg_itemsize[result.dtype_nr] != cg_itemsize[dtype]:
        raise ValueError(f"elements of {array.dtype} are no elements of {dtypes[dtype].name}: their sizes differ")
    result.dtype_nr = dtype
    return result


cdef void fix_strides(int ndim, const intptr_t* sizes, intptr_t* strides) noexcept:
    """Give dims of size 1 the stride they would have in a dense tensor."""
    cdef int d
    for d in range(ndim - 1, -1, -1):
        if sizes[d] <= 1:
            strides[d] = 1 if d == ndim - 1 else strides[d + 1] * max(sizes[d + 1], 1)


def from_array(array not None):
    """Return a tensor over a NumPy array without a copy."""
    if not isinstance(array, numpy.ndarray):
        module = "numpy." if isinstance(array, numpy.generic) else ""
        raise TypeError(f"expected np.ndarray (got {module}{type(array).__name__})")
    return tensor_of_array(array)


def computed(array not None):
    """Return a row-major tensor of NumPy's result, which lies as its operands do."""
    return tensor_of_array(numpy.PyArray_GETCONTIGUOUS(numpy.asarray(array)))


def from_bits(array not None, DType dtype not None):
    """Return a tensor of a dtype over a NumPy array of its memory, of the type of `type_of_bits`."""
    return tensor_of_bits(array, dtype.number)


def to_bits(TensorImpl tensor not None):
    """Return a NumPy array over a tensor's memory: of integers where the numbers are stored only."""
    return bits_of(tensor)


def memory_of(TensorImpl tensor not None):
    """Return a NumPy array over a tensor without a copy."""
    return array_of(tensor)


def to_array(TensorImpl tensor not None):
    """Return a NumPy array of a tensor's numbers: over it, or a copy in the dtype that is computed in."""
    return values_of(tensor)


def first_outside(numpy.ndarray index not None, long long lowest, long long end):
    """Return the first of the integers, in the order of elements, that is less than `lowest` or not less than `end`; or None."""
    cdef numpy.ndarray dense = index
    cdef const long long* numbers
    cdef bint outside = False
    cdef intptr_t i
    if numpy.PyArray_TYPE(index) != numpy.NPY_INT64 or not numpy.PyArray_ISCARRAY_RO(index):
        dense = numpy.ascontiguousarray(index, numpy.int64)
    numbers = <const long long*>numpy.PyArray_DATA(dense)
    for i in range(numpy.PyArray_SIZE(dense)):      # without a branch, as nearly all are inside
        outside |= (numbers[i] < lowest) | (numbers[i] >= end)
    if outside:
        for i in range(numpy.PyArray_SIZE(dense)):
            if numbers[i] < lowest or numbers[i] >= end:
                return numbers[i]
    return None


def readable(numpy.ndarray array not None):
    """Return an array that lies as a tensor can: itself, or a copy. Strides are neither negative nor parts of elements."""
    cdef int d
    cdef bint fits = numpy.PyArray_ISBEHAVED_RO(array)      # aligned, and of the machine's byte order
    for d in range(array.ndim):
        fits = fits and array.strides[d] >= 0 and array.strides[d] % max(numpy.PyArray_ITEMSIZE(array), 1) == 0
    return array if fits else array.astype(array.dtype.newbyteorder("="), order="C")


cpdef bint is_sparse(object value):
    """Return True if a value is a sparse matrix or array of SciPy's."""
    return str(type(value).__module__).startswith("scipy.sparse") and hasattr(value, "toarray")


cpdef object refuse_sparse(object value):
    """Refuse a sparse matrix of SciPy's, which NumPy would take for an object, or a sequence of rows."""
    if is_sparse(value):
        raise TypeError(f"a {type(value).__name__} is no operand. Give its toarray(), sparse.from_scipy() of it, or multiply by @: "
                        "A @ t and t @ A are tensors")


cdef object foreign_operand(object argument):
    """Turn a NumPy array into a tensor over its elements and a NumPy scalar into a number; leave the rest to other packages, and to objects
    in place of these, which override operators.
    """
    if hasattr(type(argument), "__torch_function__"):
        return NotImplemented
    if isinstance(argument, numpy.ndarray):
        return note_array_below(tensor_of_array(readable(argument)), argument)
    for kind, number in (numpy.bool_, bool), (numpy.integer, int), (numpy.floating, float), (numpy.complexfloating, complex):
        if isinstance(argument, kind):
            return number(argument)
    if isinstance(argument, numpy.generic) and argument.dtype.name in dtype_by_name:    # another package's
        return float(argument)
    refuse_sparse(argument)
    return NotImplemented
