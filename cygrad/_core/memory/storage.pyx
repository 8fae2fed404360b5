"""Element types and the memory of tensors (see storage.pxd for the contract)."""
cimport cython
from cpython.buffer cimport Py_buffer
from cpython.object cimport PyObject
from libc.stdlib cimport free

from cygrad._core.memory.upward cimport upward
from cygrad._kernels.programs.settings cimport noted
from cygrad._kernels.system.allocator cimport allocate, allocation_should_fail, count_live, release

from cygrad.ops.dtypes import COMPLEX_OF, DTYPES, NUMBER

cdef extern from "Python.h":
    Py_buffer* PyMemoryView_GET_BUFFER(object view)


cdef extern from "system/poison.h":
    void cg_poison(const void* start, size_t size) noexcept
    void cg_unpoison(const void* start, size_t size) noexcept


cdef extern from *:
    """
    static __thread unsigned long long cg_noting_number;
    static unsigned long long *cg_noting_number_place(void) { return &cg_noting_number; }
    """
    unsigned long long* cg_noting_number_place() noexcept

cdef extern from "memory/type_slots.h":
    void cg_refuse_new(type kind) noexcept

cdef extern from *:
    """
    CG_PREPEND_DEALLOC(storage)
    """
    void cg_prepend_dealloc_storage(type kind, void (*before)(PyObject*) noexcept) noexcept


class OutOfMemoryError(MemoryError, RuntimeError):
    """There is no memory for a tensor."""


@cython.final
@cython.binding(False)
cdef class DType:
    """The type of a tensor's elements, such as `cygrad.float32`."""

    def to_real(self):
        """Return the dtype of the parts of a complex dtype; of another, itself."""
        return dtype_by_name[DTYPES[self.number].real or self.name]

    def to_complex(self):
        """Return the complex dtype whose parts hold a floating-point dtype; of a complex one, itself."""
        row = DTYPES[self.number]
        if row.is_complex:
            return self
        if row.name not in COMPLEX_OF:
            raise RuntimeError(f"Unknown Complex ScalarType for {row.title}; convert to a floating-point dtype first")
        return dtype_by_name[COMPLEX_OF[row.name]]

    @property
    def dtype(self):
        """NumPy's dtype of these numbers: `np.dtype` reads it, as functions of NumPy and SciPy with a dtype do."""
        import numpy
        try:
            return numpy.dtype(self.name)
        except TypeError:       # ml_dtypes adds it to NumPy when it is imported
            try:
                import ml_dtypes
            except ImportError:
                raise TypeError(f"NumPy has no {self.name}: install ml_dtypes, which has one, or convert the tensor, "
                                "e.g. with .float()") from None
            return numpy.dtype(getattr(ml_dtypes, self.name))

    def __getattr__(self, str name):
        """Return an attribute of NumPy's dtype, such as `type` and `char`: SciPy reads them of tensors."""
        if not name.startswith("_"):
            import numpy
            if hasattr(numpy.dtype, name):
                return getattr(self.dtype, name)
        raise AttributeError(f"'cygrad.dtype' object has no attribute '{name}'")

    def __repr__(self):
        return f"cygrad.{self.name}"

    def __reduce__(self):
        return dtype_named, (self.name,)


def dtype_named(str name not None):
    """Return the dtype of a name: pickles call it."""
    if name not in dtype_by_name:
        raise ValueError(f"there is no dtype {name!r}; choose one of {', '.join(dtype_by_name)}")
    return dtype_by_name[name]


dtype_named.__module__ = "cygrad._core.storage"     # in pickles


cdef DType new_dtype(int number, row):
    cdef DType dtype = DType.__new__(DType)
    dtype.number, dtype.name, dtype.itemsize, dtype.kind = number, row.name, row.itemsize, row.kind
    dtype.is_differentiable, dtype.is_floating_point, dtype.is_complex = row.is_differentiable, row.is_floating_point, row.is_complex
    dtype.is_integer = row.is_integer
    dtype.is_signed, dtype.buffer_code = row.signed, row.buffer_format.encode()
    return dtype


cdef list dtypes = [new_dtype(number, row) for number, row in enumerate(DTYPES)]
for _dtype, _row in zip(dtypes, DTYPES):
    (<DType>_dtype).loops = dtypes[NUMBER[_row.loops or _row.name]]
dtype_by_name = {name: dtype for dtype, row in zip(dtypes, DTYPES) for name in (row.name, *row.aliases)}
cdef int default_number = dtype_by_name["float32"].number


cdef int default_dtype() noexcept:
    return default_number


def get_default_dtype():
    """Return the dtype that Python floats become.

    >>> import cygrad
    >>> cygrad.get_default_dtype()
    cygrad.float32
    """
    return dtypes[default_number]


def set_default_dtype(dtype not None):
    """Set the dtype that Python floats become: one of the floating-point dtypes.

    Complex numbers become the complex dtype of such parts. TypeError for any other dtype.

    >>> import cygrad
    >>> cygrad.set_default_dtype(cygrad.float32)
    """
    global default_number
    if not isinstance(dtype, DType) or not (<DType>dtype).is_floating_point:
        raise TypeError(f"{'' if isinstance(dtype, DType) else 'invalid dtype object: '}only floating-point types are supported as the "
                        f"default type, got {dtype!r}: use cygrad.float32 or cygrad.float64")
    default_number = (<DType>dtype).number


cdef int dtype_number(object dtype) except -1:
    """Return the number of a cygrad dtype, of bool, int or float, or of a value that NumPy takes for a dtype."""
    if isinstance(dtype, DType):
        return (<DType>dtype).number
    if isinstance(dtype, str):
        raise TypeError(f"argument 'dtype' must be cygrad.dtype, not str; write cygrad.{dtype}")
    if dtype is bool:
        return dtype_by_name["bool"].number
    if dtype is int:
        return dtype_by_name["int64"].number
    if dtype is float:
        return dtype_by_name["float64"].number
    import numpy
    try:
        name = numpy.dtype(dtype).name if isinstance(dtype, (type, numpy.dtype)) else None
    except TypeError:
        name = None
    if name in dtype_by_name:
        return dtype_by_name[name].number
    raise TypeError(f"argument 'dtype' must be cygrad.dtype, not {type(dtype).__name__}; choose one of {', '.join(map(repr, dtypes))}")


def resolve_dtype(dtype):
    """Return a `dtype=` argument as a DType."""
    return dtypes[dtype_number(dtype)]


@cython.final
@cython.no_gc
@cython.freelist(16384)
cdef class Storage:
    """The memory behind one or more tensors."""


cdef unsigned long long* noting_number() noexcept:
    return cg_noting_number_place()


cdef void settle_all() noexcept:
    """Run all pending programs."""
    upward.run_pending(None, True)


cdef void expose(Storage storage) noexcept:
    """Count one more reader that reaches the memory by itself: results computed from it must not be pending."""
    cdef Storage owner = owner_of(storage)
    settle(owner)
    owner.exports += 1


cdef void unexpose(Storage storage) noexcept:
    cdef Storage owner = owner_of(storage)
    owner.exports -= 1


cdef void release_memory(PyObject* object) noexcept:
    """Give back the memory of a dying Storage."""
    if (<Storage>object).program is not NULL:
        upward.forget_pending(<Storage>object)
    if (<Storage>object).borrowed:
        (<Storage>(<Storage>object).owner).counters -= 1
    if (<Storage>object).writes is not NULL:
        free((<Storage>object).writes)
    if (<Storage>object).padded:
        if (<Storage>object).data == (<Storage>object).small.bytes:
            cg_unpoison((<Storage>object).small.bytes, sizeof(cg_small))
            count_live(-<Py_ssize_t>(<Storage>object).nbytes)
        else:
            release((<Storage>object).data, (<Storage>object).nbytes)


cg_prepend_dealloc_storage(Storage, release_memory)
cg_refuse_new(Storage)
cg_refuse_new(DType)


cdef Storage new_storage(size_t nbytes):
    cdef Storage storage = Storage.__new__(Storage)
    storage.nbytes = nbytes
    if noted:
        storage.note = noting_number()[0]
    if nbytes <= SMALL:
        if allocation_should_fail():
            raise out_of_memory(nbytes)
        storage.data = storage.small.bytes
        cg_poison(storage.small.bytes + nbytes, sizeof(cg_small) - nbytes)
        count_live(<Py_ssize_t>nbytes)
    else:
        storage.data = <char*>allocate(nbytes)
        if storage.data is NULL and upward.run_pending(None, True):      # pending results may have the last references to their operands
            storage.data = <char*>allocate(nbytes)
        if storage.data is NULL:
            raise out_of_memory(nbytes)
    storage.padded = True
    return storage


cdef object out_of_memory(size_t nbytes):
    return OutOfMemoryError(f"cannot allocate memory: you tried to allocate {nbytes} bytes; "
                            "use smaller tensors, free some, or run where there is more memory")


cdef Storage storage_of_buffer(object view):
    """Make a Storage of foreign memory; `view` is a memoryview, whose export is held until the Storage dies."""
    cdef Storage storage = Storage.__new__(Storage)
    cdef Py_buffer* buffer = PyMemoryView_GET_BUFFER(view)
    storage.owner = view
    storage.note = noting_number()[0]
    storage.data = <char*>buffer.buf
    storage.nbytes = buffer.len
    storage.readonly = buffer.readonly
    return storage


cdef Storage borrow(Storage parent):
    """Make a Storage over the same memory with a version counter of its own."""
    cdef Storage storage = Storage.__new__(Storage)
    # The memory's own Storage, so that changes through a borrower of a borrower are noted there too.
    parent = owner_of(parent)
    settle(parent)      # the marks of a borrower are its own
    storage.owner, storage.data, storage.nbytes, storage.readonly = parent, parent.data, parent.nbytes, parent.readonly
    storage.borrowed, storage.counters = True, 1
    parent.counters += 1
    return storage
