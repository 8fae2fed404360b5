"""TensorImpl: memory, shape, strides and the autograd state of a tensor.

Strides count elements. Up to eight dims are stored inline. Code that reads or writes elements gets their address from `address`, which
computes pending results; code that makes views gives their offset in elements. Nothing here computes: operators are in the
rooms above.
Plain tensors are not tracked by the garbage collector unless they may be part of a cycle (flag TENSOR_TRACKED).
"""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.graph.node cimport Node
from cygrad._core.memory.looks cimport note_look
from cygrad._core.memory.sizes cimport fill_block
from cygrad._core.memory.storage cimport Storage, settle, settle_value
from cygrad._core.memory.writes cimport note_write
from cygrad._kernels.drivers.elementwise cimport cg_itemsize
from cygrad._kernels.programs.settings cimport noted

cdef enum:
    REQUIRES_GRAD = 1       # a leaf that gathers its gradient, or a result with history
    CONTIGUOUS = 2          # dense, row-major
    TENSOR_TRACKED = 4
    RETAINS_GRAD = 8
    VIEW = 16
    SAVED = 32              # itself, or a view of it, was saved by a node
    INFERENCE = 64          # made in inference mode
    # How a view was made, where that forbids changing it in place while changes are recorded.
    CREATED_WITHOUT_GRAD = 256
    CREATED_IN_INFERENCE = 512
    CREATED_MULTIPLE = 1024         # one of several views that a function returned
    CREATED_BY_FUNCTION = 2048      # a user's
    CREATED = 256 | 512 | 1024 | 2048
    DUAL = 4096                     # `special` is a Dual: it has a tangent
    BATCHED = 8192                  # `special` is a Batch: one of many examples, of which vmap computes all at once
    SPARSE = 262144                 # `special` is a Sparse: the values at some places, all others are 0
    FRONT = BATCHED | SPARSE        # no elements of its own: `special.inner` has them
    SPECIAL = DUAL | FRONT
    FRESH = 16384                   # a leaf that stands for an argument of a function that is differentiated
    RETIRED = 32768                 # such a leaf after the call: its gradient is not needed any more
    SHARES_TANGENTS = 65536         # a view that took on the tangents of its base: its own are views of those
    OVERRIDES = 131072              # of a subclass that has a say in results: operators ask its __torch_function__
    INLINE_DIMS = 8

cdef class ManyDims:
    cdef intptr_t[64] sizes
    cdef intptr_t[64] strides

cdef class TensorImpl:
    cdef char* unsettled            # where the first element is: only address() and its like read this
    cdef intptr_t* sizes
    cdef intptr_t* strides
    cdef intptr_t count             # of elements
    cdef readonly int ndim
    cdef int dtype_nr
    cdef unsigned flags
    cdef readonly int output_nr
    cdef Storage storage
    cdef Node node                  # read through gradient_edge() and grad_fn only
    cdef TensorImpl gradient
    cdef TensorImpl base            # of a view, else None
    cdef ManyDims many_dims         # of more than eight dims, else None
    cdef object extra               # hooks of a leaf, or None
    cdef object special             # its Dual, Batch or Sparse (`levels`), or None
    cdef void* accumulator          # weak: the AccumulateGrad clears it when it dies
    cdef object __weakref__
    cdef unsigned long long view_version    # of the memory when a view got its node
    cdef intptr_t inline_dims[16]

cdef inline char* address(TensorImpl tensor) noexcept:
    """Return where the first element is: to read and write there. No pending program computes or reads the memory any more."""
    settle(tensor.storage)
    return tensor.unsettled

cdef inline char* value_address(TensorImpl tensor) noexcept:
    """Return where the first element is: to read there. No pending program computes the memory any more; some may read it."""
    settle_value(tensor.storage)
    return tensor.unsettled

cdef inline const char* look_address(TensorImpl tensor) noexcept:
    """Return where the first element is: for code that decides by the values, which no kernel computes from."""
    if noted:
        note_look("its values were read")
    return value_address(tensor)

cdef inline char* export_address(TensorImpl tensor) noexcept:
    """Return where the first element is: for other libraries, which read and write there when they like (see `expose`)."""
    if noted:
        note_look("its values were given to Python or NumPy")
    return address(tensor)

cdef inline char* new_address(TensorImpl tensor) noexcept:
    """Return where the first element is of a tensor that was just made, or settled: no pending program has its memory."""
    return tensor.unsettled

cdef inline size_t place_of(TensorImpl tensor) noexcept:
    """Return the number of the first byte: to compare, not to look there."""
    return <size_t>tensor.unsettled

cdef inline intptr_t byte_offset(TensorImpl tensor) noexcept:
    """Return how many bytes of the storage come before the first element."""
    return tensor.unsettled - tensor.storage.data

cdef inline void inherit_special(TensorImpl copy, TensorImpl tensor) noexcept:
    """Give a copy of a tensor over the same memory its tangents too."""
    copy.special = tensor.special
    copy.flags |= tensor.flags & SPECIAL

cdef inline bint needs_grad(TensorImpl tensor) noexcept:
    """Return True if operations on a tensor are recorded: its own flag, or the flag of the base that a view shares memory with."""
    return (tensor.flags & REQUIRES_GRAD or tensor.flags & VIEW and tensor.base.flags & REQUIRES_GRAD
            and tensor.storage is tensor.base.storage)

cdef inline void count_change(TensorImpl tensor) noexcept:
    """Count a change of a tensor's elements."""
    tensor.storage.version += 1
    if tensor.storage.counters:
        note_write(tensor.storage, tensor.unsettled, cg_itemsize[tensor.dtype_nr], tensor.ndim, tensor.sizes, tensor.strides)

cdef type tensor_type
cdef int overriding                 # of special_active: 1 once there is a class that overrides, and one for each entered mode of functions
cdef int special_active             # while 0, no tensor is special and no thread is profiled: operators check nothing else
cdef TensorImpl new_tensor(Storage storage, intptr_t start, int dtype, int ndim, const intptr_t* shape, const intptr_t* strides)
cdef TensorImpl new_instance(type cls, TensorImpl source, bint view)
cdef TensorImpl empty(int dtype, int ndim, const intptr_t* shape)
cdef TensorImpl empty_like(TensorImpl tensor, int dtype)
cdef TensorImpl empty_strided(int dtype, int ndim, const intptr_t* shape, const intptr_t* strides)
cdef TensorImpl view_of(TensorImpl base, intptr_t offset, int ndim, const intptr_t* shape, const intptr_t* strides)
cdef TensorImpl view_in(TensorImpl base, intptr_t offset, int dtype, int ndim, const intptr_t* shape, const intptr_t* strides)
cdef int replace_memory(TensorImpl tensor, TensorImpl source, Storage storage) except -1
cdef TensorImpl shallow_copy(TensorImpl tensor)
cdef TensorImpl copy_in(TensorImpl tensor, int dtype, int ndim, const intptr_t* shape, const intptr_t* strides)
cdef void stand_alone(TensorImpl view)
cdef inline bint is_dense(TensorImpl tensor) noexcept:
    """Return True if the elements fill a block of memory, each once, in some order of the dims."""
    return tensor.flags & CONTIGUOUS or fill_block(tensor.ndim, tensor.sizes, tensor.strides)
cdef bint is_unique(PyObject* object) noexcept
cdef bint has_own_memory(TensorImpl tensor) noexcept
cdef intptr_t offset_of(TensorImpl tensor) noexcept
cdef void track(TensorImpl tensor)
cdef int refuse_front(TensorImpl tensor, str call) except -1
cdef int refuse_values(TensorImpl tensor, str call, object kind=*) except -1
cpdef object product_of_scipy(object frame)
