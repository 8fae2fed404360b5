"""Memory shared by DLPack (dlpack_structs.h cites the specification): tensors out as capsules, capsules in as tensors.

Each side keeps the other's memory alive: a managed tensor of ours holds the Storage, a Storage over foreign memory
holds a Managed, whose end calls the deleter. Nothing that comes in is believed. The deleter of ours takes the GIL.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.pycapsule cimport (PyCapsule_CheckExact, PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New,
                                PyCapsule_SetName)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, intptr_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport strcmp

from cygrad._core.graph.tensor cimport REQUIRES_GRAD, TensorImpl, export_address, new_tensor
from cygrad._core.memory.storage cimport DType, Storage, dtypes, expose, unexpose
from cygrad._core.operands.arrays cimport fix_strides
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize

from cygrad._core.memory.sizes import extent_of_strides, row_major
from cygrad.ops.dtypes import DTYPES

cdef extern from "Python.h":
    bint Py_IsInitialized() nogil

cdef extern from "exchange/dlpack_structs.h":
    enum: DLPACK_MAJOR, DLPACK_MINOR, DLPACK_CPU, DLPACK_READ_ONLY, DLPACK_IS_COPIED
    ctypedef struct DLPackVersion:
        uint32_t major, minor
    ctypedef struct DLDevice:
        int32_t device_type, device_id
    ctypedef struct DLDataType:
        uint8_t code, bits
        uint16_t lanes
    ctypedef struct DLTensor:
        void* data
        DLDevice device
        int32_t ndim
        DLDataType dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset
    ctypedef struct DLManagedTensor:
        DLTensor dl_tensor
        void* manager_ctx
        void (*deleter)(DLManagedTensor*) noexcept
    ctypedef struct DLManagedTensorVersioned:
        DLPackVersion version
        void* manager_ctx
        void (*deleter)(DLManagedTensorVersioned*) noexcept
        uint64_t flags
        DLTensor dl_tensor

cdef const char* LEGACY = "dltensor"
cdef const char* VERSIONED = "dltensor_versioned"
cdef const char* USED_LEGACY = "used_dltensor"
cdef const char* USED_VERSIONED = "used_dltensor_versioned"

NEWEST = (DLPACK_MAJOR, DLPACK_MINOR)
CPU_DEVICE = (DLPACK_CPU, 0)
cdef dict code_of = {row.name: row.dlpack_code for row in DTYPES}
cdef dict dtype_of = {(code_of[dtype.name], 8 * dtype.itemsize): dtype for dtype in dtypes}


# ----- Out -----
cdef struct Exported:
    DLManagedTensor legacy                  # one of the two, whose manager_ctx is this struct
    DLManagedTensorVersioned versioned
    PyObject* storage                       # owned
    int64_t[2 * MAX_DIMS] geometry


cdef void free_exported(Exported* exported) noexcept nogil:
    if Py_IsInitialized():                  # else the storage is gone with the interpreter
        with gil:
            unexpose(<Storage>exported.storage)
            Py_DECREF(<Storage>exported.storage)
    free(exported)


cdef void delete_legacy(DLManagedTensor* managed) noexcept nogil:
    free_exported(<Exported*>managed.manager_ctx)


cdef void delete_versioned(DLManagedTensorVersioned* managed) noexcept nogil:
    free_exported(<Exported*>managed.manager_ctx)


cdef void delete_unconsumed(object capsule) noexcept:
    """Free the managed tensor of a capsule, unless a consumer has taken it and renamed the capsule."""
    if PyCapsule_IsValid(capsule, LEGACY):
        free_exported(<Exported*>(<DLManagedTensor*>PyCapsule_GetPointer(capsule, LEGACY)).manager_ctx)
    elif PyCapsule_IsValid(capsule, VERSIONED):
        free_exported(<Exported*>(<DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, VERSIONED)).manager_ctx)


cdef void fill_description(TensorImpl tensor, int code, Exported* exported, DLTensor* described) noexcept:
    cdef int d
    described.data = export_address(tensor) if tensor.count else NULL
    described.device.device_type, described.device.device_id = DLPACK_CPU, 0
    described.ndim, described.byte_offset = tensor.ndim, 0
    described.dtype.code, described.dtype.bits, described.dtype.lanes = code, 8 * cg_itemsize[tensor.dtype_nr], 1
    described.shape, described.strides = exported.geometry, exported.geometry + MAX_DIMS
    for d in range(tensor.ndim):
        described.shape[d], described.strides[d] = tensor.sizes[d], tensor.strides[d]


def export(TensorImpl tensor not None, bint versioned, bint copied):
    """Return a capsule over the memory of a tensor; BufferError where the protocol cannot describe the tensor."""
    cdef Exported* exported
    cdef int code
    if tensor.flags & REQUIRES_GRAD:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if tensor.storage.readonly and not versioned:
        raise BufferError("Cannot export a read-only tensor by the old protocol, which cannot say so: ask for max_version=(1, 0) or a copy")
    code = code_of[(<DType>dtypes[tensor.dtype_nr]).name]
    exported = <Exported*>malloc(sizeof(Exported))
    if exported is NULL:
        raise MemoryError()
    if versioned:
        fill_description(tensor, code, exported, &exported.versioned.dl_tensor)
        exported.versioned.version.major, exported.versioned.version.minor = DLPACK_MAJOR, DLPACK_MINOR
        exported.versioned.flags = (DLPACK_READ_ONLY if tensor.storage.readonly else 0) | (DLPACK_IS_COPIED if copied else 0)
        exported.versioned.manager_ctx, exported.versioned.deleter = exported, delete_versioned
    else:
        fill_description(tensor, code, exported, &exported.legacy.dl_tensor)
        exported.legacy.manager_ctx, exported.legacy.deleter = exported, delete_legacy
    try:
        capsule = PyCapsule_New(&exported.versioned if versioned else <void*>&exported.legacy, VERSIONED if versioned else LEGACY,
                                delete_unconsumed)
    except BaseException:
        free(exported)
        raise
    exported.storage = <PyObject*>tensor.storage
    expose(tensor.storage)
    Py_INCREF(tensor.storage)
    return capsule


# ----- In -----
@cython.final
@cython.no_gc
cdef class Managed:
    """A managed tensor of another library, given back when the last tensor over it dies."""

    cdef DLManagedTensor* legacy            # one of the two
    cdef DLManagedTensorVersioned* versioned

    def __dealloc__(self):
        if self.legacy is not NULL and self.legacy.deleter is not NULL:
            self.legacy.deleter(self.legacy)
        if self.versioned is not NULL and self.versioned.deleter is not NULL:
            self.versioned.deleter(self.versioned)


cdef Managed consume(object capsule):
    """Take over the managed tensor of a capsule. Nothing can fail between its new name and the owner, so it is freed exactly once."""
    cdef Managed managed = Managed.__new__(Managed)
    cdef const char* name
    cdef void* pointer
    if not PyCapsule_CheckExact(capsule):
        raise RuntimeError(f"from_dlpack received an invalid capsule. It takes an object with __dlpack__ or a capsule of one, not "
                           f"{type(capsule).__name__}.")
    name = PyCapsule_GetName(capsule)
    if name is NULL or strcmp(name, LEGACY) and strcmp(name, VERSIONED):
        raise RuntimeError("from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
                           f"have already constructed a tensor from it once. Its name is {None if name is NULL else <bytes>name}.")
    pointer = PyCapsule_GetPointer(capsule, name)
    if strcmp(name, VERSIONED):
        PyCapsule_SetName(capsule, USED_LEGACY)
        managed.legacy = <DLManagedTensor*>pointer
    else:
        PyCapsule_SetName(capsule, USED_VERSIONED)
        managed.versioned = <DLManagedTensorVersioned*>pointer
    return managed


def from_capsule(capsule):
    """Return a tensor over the memory of a capsule, and whether its producer says that it is a copy.

    BufferError for another device, a dtype without a counterpart or a layout that cannot be, ValueError for negative strides.
    """
    cdef Managed managed = consume(capsule)
    cdef DLTensor* described
    cdef uint64_t flags = 0
    if managed.versioned is NULL:
        described = &managed.legacy.dl_tensor
    else:
        if managed.versioned.version.major != DLPACK_MAJOR:
            raise BufferError(f"Unsupported DLPack version {managed.versioned.version.major}.{managed.versioned.version.minor}: "
                              f"this is {DLPACK_MAJOR}.{DLPACK_MINOR}; ask for max_version=(1, 0)")
        described, flags = &managed.versioned.dl_tensor, managed.versioned.flags
    return tensor_of(managed, described, flags & DLPACK_READ_ONLY != 0), flags & DLPACK_IS_COPIED != 0


cdef TensorImpl tensor_of(Managed managed, const DLTensor* described, bint readonly):
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t steps[MAX_DIMS]
    cdef char* data = <char*>described.data + described.byte_offset
    cdef DLDataType code_of_type = described.dtype
    cdef Storage storage
    cdef int d, ndim = described.ndim
    if described.device.device_type != DLPACK_CPU:
        raise BufferError(f"cygrad computes on the CPU only, got a DLPack tensor on device type {described.device.device_type}; "
                          "copy it to the CPU first")
    dtype = dtype_of.get((code_of_type.code, code_of_type.bits)) if code_of_type.lanes == 1 else None
    if dtype is None:
        raise BufferError(f"Unsupported DLPack dtype of code {code_of_type.code}, {code_of_type.bits} bits and {code_of_type.lanes} lanes; "
                          f"there are {', '.join([known.name for known in dtypes])}")
    if not 0 <= ndim <= MAX_DIMS or ndim and described.shape is NULL:
        raise BufferError(f"a DLPack tensor of {ndim} dims is not possible here: tensors have at most {MAX_DIMS} dimensions")
    shape = tuple([described.shape[d] for d in range(ndim)])
    if described.strides is NULL or 0 in shape:
        strides = row_major(shape)
    else:       # where there are no two elements along a dim, its stride means nothing and may be anything
        strides = tuple([described.strides[d] if shape[d] > 1 else 0 for d in range(ndim)])
    if any(stride < 0 for stride in strides):
        raise ValueError("At least one stride in the given DLPack tensor is negative, and tensors with negative strides are not currently "
                         "supported. (You can probably work around this by making a copy of your array with array.copy().)")
    try:
        nbytes = extent_of_strides(dtype.itemsize, shape, strides)
    except ValueError as error:
        raise BufferError(f"the DLPack tensor has an impossible layout: {error}") from None
    if nbytes and described.data is NULL:
        raise BufferError(f"the DLPack tensor of shape {list(shape)} has no memory")
    if nbytes and <size_t>data % <size_t>cg_itemsize[dtype.number]:
        raise BufferError(f"the DLPack tensor is not aligned to its elements of {dtype.itemsize} bytes; copy it first")
    for d in range(ndim):
        sizes[d], steps[d] = shape[d], strides[d]
    fix_strides(ndim, sizes, steps)
    storage = Storage.__new__(Storage)
    storage.owner, storage.nbytes, storage.readonly = managed, nbytes, readonly
    storage.data = data if nbytes else storage.small.bytes
    return new_tensor(storage, 0, dtype.number, ndim, sizes, steps)
