"""TensorImpl: geometry, metadata and autograd state (see tensor.pxd for the contract)."""
cimport cython
from cpython.buffer cimport Py_buffer
from cpython.object cimport PyObject
from libc.string cimport memcmp

from cygrad._core.graph.buffers cimport fill_buffer, release_buffer
from cygrad._core.graph.history cimport check_assigned_gradient, gradient_edge, refresh, set_requires_grad
from cygrad._core.graph.modes cimport cg_overrides_off, grad_mode, is_inference_mode
from cygrad._core.graph.node cimport Hooks, NODE_ACCUMULATES, hooks_of, node_for_users
from cygrad._core.graph.notes cimport note_gradient, note_replacement
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.memory.formats cimport is_in_format
from cygrad._core.memory.looks cimport note_look, note_question
from cygrad._core.memory.sizes cimport checked_numel, integer, lies_inside, new_size, sizes_tuple, span, wrap_dim
from cygrad._core.memory.storage cimport DType, Storage, borrow, dtypes, expose, new_storage, owner_of, visible_version
from cygrad._core.memory.upward cimport upward
from cygrad._kernels.drivers.elementwise cimport cg_is_complex, cg_is_differentiable, cg_is_floating_point, cg_itemsize
from cygrad._kernels.drivers.packing cimport count_elements
from cygrad._kernels.programs.settings cimport noted

import warnings
import weakref

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object)

cdef extern from "memory/type_slots.h":
    void cg_inherit_operators(type kind) noexcept
    void cg_inherit_dealloc(type kind) noexcept
    void cg_shorten_dealloc(type kind) noexcept

cdef extern from *:
    """
    CG_KEEP_NEW(tensor)
    CG_RECYCLE(tensor)
    """
    object cg_new_tensor(type kind, tuple no_arguments)
    void cg_keep_new_tensor(type kind) noexcept
    void cg_recycle_tensor(type kind) noexcept


cdef type tensor_type = TensorImpl
cdef int special_active = 0
cdef int overriding = 0
cdef bint seen_overriding = False
cdef tuple no_arguments = ()


def set_tensor_type(type cls not None):
    """Set the class of which results are instances; called once, by the module that defines Tensor."""
    global tensor_type
    tensor_type = cls
    cg_inherit_operators(cls)
    cg_keep_new_tensor(cls)
    cg_recycle_tensor(cls)
    cg_inherit_dealloc(cls.__base__)
    cg_shorten_dealloc(cls)


cpdef object product_of_scipy(object frame):
    """Return the name of the method, "__matmul__" or "dot", in which SciPy multiplies a sparse matrix in a frame; None in other frames."""
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("scipy.sparse._"):
        if frame.f_code.co_name in ("__matmul__", "dot"):
            return frame.f_code.co_name
        frame = frame.f_back
    return None


def tensor_class():
    """Return the class of which results are instances."""
    return tensor_type


cdef inline bint is_dense_row_major(int ndim, const intptr_t* shape, const intptr_t* strides) noexcept nogil:
    cdef intptr_t expected = 1
    cdef bint dense = True
    cdef int d
    for d in range(ndim - 1, -1, -1):
        if shape[d] == 0:
            return True
        dense = dense and (shape[d] == 1 or strides[d] == expected)
        expected *= shape[d]
    return dense


cdef TensorImpl new_tensor(Storage storage, intptr_t start, int dtype, int ndim, const intptr_t* shape, const intptr_t* strides):
    """Make a tensor over a storage, from byte `start` on; `strides` NULL means row-major."""
    cdef TensorImpl tensor = <TensorImpl>cg_new_tensor(tensor_type, no_arguments)
    set_memory(tensor, storage, start, dtype, ndim, shape, strides)
    if is_inference_mode():
        tensor.flags |= INFERENCE
    return tensor


cdef inline int set_memory(TensorImpl tensor, Storage storage, intptr_t start, int dtype, int ndim, const intptr_t* shape,
                           const intptr_t* strides) except -1:
    """Lay a tensor over a storage, from byte `start` on; `strides` NULL means row-major."""
    cdef intptr_t stride = 1
    cdef int d
    tensor.storage, tensor.unsettled, tensor.dtype_nr, tensor.ndim = storage, storage.data + start, dtype, ndim
    if ndim <= INLINE_DIMS:
        tensor.sizes, tensor.strides = tensor.inline_dims, tensor.inline_dims + INLINE_DIMS
    else:
        tensor.many_dims = ManyDims.__new__(ManyDims)
        tensor.sizes, tensor.strides = tensor.many_dims.sizes, tensor.many_dims.strides
    if strides is NULL:
        for d in range(ndim - 1, -1, -1):
            tensor.sizes[d] = shape[d]
            tensor.strides[d] = stride
            stride *= shape[d] if shape[d] > 0 else 1
        tensor.flags |= CONTIGUOUS
    else:
        for d in range(ndim):
            tensor.sizes[d] = shape[d]
            tensor.strides[d] = strides[d]
        if is_dense_row_major(ndim, shape, strides):
            tensor.flags |= CONTIGUOUS
    tensor.count = count_elements(ndim, shape)
    return 0


cdef inline void stay_inference(TensorImpl tensor, TensorImpl source) noexcept:
    """Have a new tensor over the memory of another be an inference tensor exactly if the other is one, in any mode."""
    tensor.flags = (tensor.flags & ~<unsigned>INFERENCE) | source.flags & INFERENCE


cdef TensorImpl new_instance(type cls, TensorImpl source, bint view):
    """Make an instance of a subclass of Tensor in Python over the memory of another tensor; a view of it if `view`.

    Its attributes may close a cycle, so it counts as tracked and tensors made from it are tracked too.
    """
    cdef TensorImpl tensor = <TensorImpl>cg_new_tensor(cls, no_arguments)
    set_memory(tensor, source.storage, byte_offset(source), source.dtype_nr, source.ndim, source.sizes, source.strides)
    stay_inference(tensor, source)
    if view:
        become_view(tensor, source)
    if cls is not tensor_type:
        tensor.flags |= TENSOR_TRACKED
        if getattr(cls, "__torch_function__", None) is not _disabled_torch_function_impl:
            tensor.flags |= OVERRIDES
            begin_overriding()
    return tensor


cdef void begin_overriding() noexcept:
    """Have operators ask classes from now on."""
    global overriding, seen_overriding, special_active
    if not seen_overriding:
        seen_overriding = True
        overriding += 1
        special_active += 1


def count_of_changes(TensorImpl tensor not None):
    """Return how often the memory of a tensor was changed in place: for checks of the package, whose outcome a program repeats."""
    if tensor.flags & SPARSE:
        return count_of_changes(tensor.special.inner)
    if tensor.flags & INFERENCE:
        raise RuntimeError("Inference tensors do not track version counter.")
    return visible_version(tensor.storage.version)


def _disabled_torch_function_impl(cls, function, types, args=(), kwargs=None):
    """Compute a function as for plain tensors: a subclass with this as its `__torch_function__` has plain results."""
    return function(*args, **(kwargs or {}))


cdef TensorImpl empty(int dtype, int ndim, const intptr_t* shape):
    """Make a new row-major tensor with undefined elements."""
    cdef intptr_t numel = checked_numel(ndim, shape, cg_itemsize[dtype])
    cdef Storage storage = new_storage(<size_t>(numel * cg_itemsize[dtype]))
    return new_tensor(storage, 0, dtype, ndim, shape, NULL)


cdef TensorImpl empty_like(TensorImpl tensor, int dtype):
    """Make a new row-major tensor of the shape of another."""
    cdef Storage storage = new_storage(<size_t>(tensor.count * cg_itemsize[dtype]))
    return new_tensor(storage, 0, dtype, tensor.ndim, tensor.sizes, NULL)


cdef TensorImpl empty_strided(int dtype, int ndim, const intptr_t* shape, const intptr_t* strides):
    """Make a new tensor of given non-negative strides, dense in some order of the dims."""
    cdef Storage storage
    checked_numel(ndim, shape, cg_itemsize[dtype])
    storage = new_storage(<size_t>(span(ndim, shape, strides) * cg_itemsize[dtype]))
    return new_tensor(storage, 0, dtype, ndim, shape, strides)


cdef TensorImpl view_of(TensorImpl base, intptr_t offset, int ndim, const intptr_t* shape, const intptr_t* strides):
    """Make a tensor over the memory of another, `offset` elements behind its first one.

    RuntimeError where it would not lie there.
    """
    return view_in(base, offset, base.dtype_nr, ndim, shape, strides)


cdef TensorImpl view_in(TensorImpl base, intptr_t offset, int dtype, int ndim, const intptr_t* shape, const intptr_t* strides):
    """Make a view whose strides count elements of a dtype: of complex numbers, or of their parts."""
    cdef TensorImpl view = <TensorImpl>cg_new_tensor(tensor_type, no_arguments)
    refuse_front(base, "a view of the memory")
    set_memory(view, base.storage, byte_offset(base) + offset * cg_itemsize[base.dtype_nr], dtype, ndim, shape, strides)
    if not lies_inside(view.storage.data, view.storage.nbytes, view.unsettled, cg_itemsize[view.dtype_nr], ndim, view.sizes, view.strides):
        if view.count:
            raise outside_error(view)
        view.unsettled = view.storage.data       # nothing, behind the end of memory
    become_view(view, base)
    return view


cdef object outside_error(TensorImpl view):
    return RuntimeError(f"a view of sizes {list(sizes_tuple(view.ndim, view.sizes))} and strides "
                        f"{list(sizes_tuple(view.ndim, view.strides))} would lie outside of the tensor's memory of "
                        f"{view.storage.nbytes} bytes: the tensor was given other memory or another shape meanwhile, by another thread or "
                        "by an argument's own code")


cdef inline int become_view(TensorImpl view, TensorImpl base) except -1:
    """Make a new tensor over the memory of another a view of it; autograd does not follow views of inference tensors."""
    stay_inference(view, base)
    if base.flags & DUAL:
        upward.share(view, base)
    if base.flags & INFERENCE:
        return 0
    view.base = base if base.base is None else base.base
    view.view_version = base.storage.version
    view.flags |= VIEW | base.flags & CREATED
    if not grad_mode()[0]:
        view.flags = (view.flags & ~<unsigned>CREATED) | (CREATED_IN_INFERENCE if is_inference_mode() else CREATED_WITHOUT_GRAD)
    if view.base.flags & TENSOR_TRACKED:
        track(view)
    return 0


cdef TensorImpl shallow_copy(TensorImpl tensor):
    """Make a tensor of the same memory, geometry and version without history."""
    return copy_in(tensor, tensor.dtype_nr, tensor.ndim, tensor.sizes, tensor.strides)


cdef TensorImpl copy_in(TensorImpl tensor, int dtype, int ndim, const intptr_t* shape, const intptr_t* strides):
    """Make a tensor of the same memory and version, which is read as another dtype, without history."""
    cdef TensorImpl copy = new_tensor(tensor.storage, byte_offset(tensor), dtype, ndim, shape, strides)
    stay_inference(copy, tensor)
    return copy


cdef void stand_alone(TensorImpl view):
    """Make a view no view where its base has no other reference: an operator has laid out its result."""
    view.base = None
    view.flags &= ~<unsigned>(VIEW | CREATED)


cdef bint is_unique(PyObject* object) noexcept:
    """Return True if a result may be written over a tensor: the caller has the only reference to it, it has the only one to its memory, and
    each element has a place of its own. A free-threaded interpreter would need another way."""
    return (Py_REFCNT(object) == 1 and (<TensorImpl>object).base is None and has_own_memory(<TensorImpl>object)
            and is_dense(<TensorImpl>object))


cdef bint has_own_memory(TensorImpl tensor) noexcept:
    """Return True if no other tensor has a tensor's memory."""
    return tensor.storage.padded and Py_REFCNT(<PyObject*>tensor.storage) == 1


cdef int replace_memory(TensorImpl tensor, TensorImpl source, Storage storage) except -1:
    """Lay a tensor over other memory, as `source` is; saved values of it count as changed."""
    if noted:
        note_replacement(tensor)
    storage.version = tensor.storage.version + 1 if storage is tensor.storage else visible_version(tensor.storage.version) + 1
    tensor.flags &= ~<unsigned>CONTIGUOUS
    stay_inference(tensor, source)
    return set_memory(tensor, storage, byte_offset(source), source.dtype_nr, source.ndim, source.sizes, source.strides)


cdef bint lies_at_same_place(TensorImpl a, TensorImpl b):
    """Return True if two tensors are laid out over the same memory in one way."""
    return (owner_of(a.storage) is owner_of(b.storage) and byte_offset(a) == byte_offset(b) and a.dtype_nr == b.dtype_nr
            and a.ndim == b.ndim and not memcmp(a.sizes, b.sizes, a.ndim * sizeof(intptr_t))
            and not memcmp(a.strides, b.strides, a.ndim * sizeof(intptr_t)) and not (a.flags ^ b.flags) & INFERENCE)


cdef intptr_t offset_of(TensorImpl tensor) noexcept:
    """Return the place of the first element in the storage, in elements."""
    return byte_offset(tensor) // cg_itemsize[tensor.dtype_nr]


cdef void track(TensorImpl tensor):
    track_reachable(tensor)


cdef int refuse_values(TensorImpl tensor, str call, object kind=RuntimeError) except -1:
    """Raise an exception of a kind for a tensor that stands for others, whose memory a call would give away."""
    refuse_front(tensor, call)
    if special_active:
        upward.refuse_special(tensor, call, kind)
    return 0


cdef int refuse_front(TensorImpl tensor, str call) except -1:
    """Refuse attributes that need elements: one example of many, inside of vmap, has none of its own, nor has a sparse tensor."""
    if tensor.flags & BATCHED:
        raise RuntimeError(f"vmap: {call} under vmap transform is not allowed: the tensor stands for one of many examples. Use func.grad() "
                           "or autograd.grad() for gradients, and do the rest outside of vmap.")
    if tensor.flags & SPARSE:
        raise RuntimeError(f"{call} is not possible for a sparse tensor, which has no memory with all elements: use to_dense()")
    return 0


@cython.final
@cython.no_gc
cdef class ManyDims:
    """Sizes and strides of a tensor of more than eight dims."""


@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class TensorImpl:
    """The memory, geometry and autograd state of a tensor: the base of `cygrad.Tensor`."""

    # ----- Geometry -----
    @property
    def shape(self):
        """Sizes of the dims, as a `Size`."""
        return new_size(self.ndim, self.sizes)

    @property
    def dtype(self):
        """Type of the elements."""
        return dtypes[self.dtype_nr]

    @property
    def itemsize(self):
        """Bytes of an element."""
        return cg_itemsize[self.dtype_nr]

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.count * cg_itemsize[self.dtype_nr]

    def dim(self):
        """Return the number of dims."""
        return self.ndim

    def numel(self):
        """Return the number of elements."""
        return self.count

    def element_size(self):
        """Return the bytes of an element."""
        return cg_itemsize[self.dtype_nr]

    def size(self, dim=None):
        """Return the shape, or the size of one dim."""
        cdef intptr_t number
        if dim is None:
            return new_size(self.ndim, self.sizes)
        number = integer(dim, "dim")
        return self.sizes[wrap_dim(number, self.ndim)]

    def stride(self, dim=None):
        """Return the strides in elements, or the stride of one dim."""
        cdef intptr_t number
        if self.flags & SPARSE:
            raise RuntimeError("sparse tensors do not have strides")
        if dim is None:
            return sizes_tuple(self.ndim, self.strides)
        number = integer(dim, "dim")
        return self.strides[wrap_dim(number, self.ndim)]

    def storage_offset(self):
        """Return the place of the first element in the storage, in elements."""
        note_question("its place in memory was asked for")
        return offset_of(self)

    def data_ptr(self):
        """Return the address of the first element."""
        refuse_front(self, "data_ptr()")
        expose(self.storage)
        if noted:
            note_look("its address was asked for")
        return place_of(self) if self.count else 0

    def is_contiguous(self, *, memory_format=None):
        """Return True if the elements lie dense in row-major order, or as a memory format has them."""
        return bool(self.flags & CONTIGUOUS) if memory_format is None else is_in_format(memory_format, self.ndim, self.sizes, self.strides)

    def is_floating_point(self):
        """Return True if the elements are floating-point numbers."""
        return bool(cg_is_floating_point[self.dtype_nr])

    def is_complex(self):
        """Return True if the elements are complex numbers."""
        return bool(cg_is_complex[self.dtype_nr])

    def is_signed(self):
        """Return True if the elements can be negative."""
        return (<DType>dtypes[self.dtype_nr]).is_signed

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor; use numel() for the number of elements")
        return self.sizes[0]

    # ----- The buffer protocol -----
    def __getbuffer__(self, Py_buffer* buffer, int flags):
        fill_buffer(self, buffer, flags)
        buffer.obj = self

    def __releasebuffer__(self, Py_buffer* buffer):
        release_buffer(buffer)

    # ----- Autograd state -----
    @property
    def requires_grad(self):
        """Whether operations on this tensor are recorded."""
        return self.special.inner.requires_grad if self.flags & FRONT else needs_grad(self)

    @requires_grad.setter
    def requires_grad(self, value):
        if not isinstance(value, bool):
            raise RuntimeError(f"requires_grad must be a bool, got {type(value).__name__}")
        if self.flags & SPARSE:
            self.special.inner.requires_grad = value
        else:
            set_requires_grad(self, value)

    @property
    def is_leaf(self):
        """Whether the tensor was made by the user, not by a recorded operation."""
        if self.flags & FRONT:
            return self.special.inner.is_leaf
        refresh(self)
        return self.node is None or self.node.flags & NODE_ACCUMULATES != 0

    @property
    def grad_fn(self):
        """The node of the graph that made this tensor, or None."""
        if self.flags & FRONT:
            return self.special.inner.grad_fn
        refresh(self)
        return None if self.node is None or self.node.flags & NODE_ACCUMULATES else node_for_users(self.node)

    @property
    def grad(self):
        """The accumulated gradient, or None."""
        if self.flags & SPARSE:
            gradient = self.special.inner.grad
            return None if gradient is None else self.special.around(gradient)
        if noted:
            note_gradient(self)
        if self.gradient is None and self.node is not None and not self.flags & RETAINS_GRAD:
            warnings.warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
                          "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
                          "Tensor, use .retain_grad() on the non-leaf Tensor.", UserWarning, stacklevel=1)
        return self.gradient

    @grad.setter
    def grad(self, value):
        cdef TensorImpl gradient
        if self.flags & SPARSE:
            self.special.inner.grad = None if value is None else self.special.pattern.values_at(value)
            return
        refuse_front(self, "setting .grad")
        if noted:
            note_gradient(self)
        if value is None:
            self.gradient = None
            return
        if not isinstance(value, TensorImpl):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
        gradient = value
        check_assigned_gradient(self, gradient)
        self.gradient = gradient
        if gradient.node is not None:
            track_reachable(self)

    @grad.deleter
    def grad(self):
        if noted:
            note_gradient(self)
        self.gradient = None

    @property
    def retains_grad(self):
        """Whether a non-leaf keeps its gradient."""
        return self.special.inner.retains_grad if self.flags & SPARSE else bool(self.flags & RETAINS_GRAD)

    def retain_grad(self):
        """Keep the gradient of this non-leaf in `.grad`; a leaf does so anyway."""
        cdef int output_nr
        if self.flags & SPARSE:
            return self.special.inner.retain_grad()
        refuse_front(self, "retain_grad()")
        refresh(self)
        if not needs_grad(self):
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self.node is not None and not self.flags & RETAINS_GRAD:
            hooks_of(gradient_edge(self, &output_nr)).retained[self.output_nr] = weakref.ref(self)
            self.flags |= RETAINS_GRAD

    def _forget_history(self):
        """Make this tensor a leaf that needs no gradient and has no tangent."""
        refuse_front(self, "detach_()")
        self.node, self.output_nr, self.special = None, 0, None
        self.flags &= ~<unsigned>(REQUIRES_GRAD | RETAINS_GRAD | DUAL)

    def _hooks(self):
        """Return the hooks that a hook on this tensor's gradient belongs to, and the output number under which."""
        cdef int output_nr
        refuse_front(self, "a hook")
        refresh(self)
        if not needs_grad(self):
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        track_reachable(self)
        if self.node is None:
            if self.extra is None:
                self.extra = Hooks()
            return self.extra, 0
        node = gradient_edge(self, &output_nr)
        return hooks_of(node), output_nr

    def _gradient_edge(self):
        """Return the node and output number that the gradient goes to; the node notes the shape, for a backward that starts there."""
        cdef int output_nr
        cdef Hooks hooks
        node = gradient_edge(self, &output_nr)
        if self.node is not None:
            hooks = hooks_of(node)
            if hooks.outputs is None:
                hooks.outputs = {}
            hooks.outputs[output_nr] = (self.shape, self.dtype)
        return node, 0 if self.node is None else output_nr

    @property
    def _version(self):
        """How often the memory was changed in place."""
        note_look("its version was asked for")
        return count_of_changes(self)

    def _increment_version(self):
        """Count a change that was made to the memory by other means."""
        count_change(self)

    def is_inference(self):
        """Return True if the tensor was made in inference mode.

        >>> import cygrad
        >>> cygrad.ones(2).is_inference()
        False
        """
        return bool(self.flags & INFERENCE)

    @property
    def _base(self):
        """The tensor that this one is a view of, or None."""
        note_question("its place in memory was asked for")
        return self.base

    def _is_view(self):
        """Return True if the tensor is a view of another."""
        return self.base is not None

    @property
    def data(self):
        """The same memory without history and with a version counter of its own."""
        if self.flags & SPARSE:
            return self.special.around(self.special.inner.data)
        refuse_front(self, "accessing `data`")
        cdef TensorImpl alias = new_tensor(borrow(self.storage), byte_offset(self), self.dtype_nr, self.ndim, self.sizes, self.strides)
        stay_inference(alias, self)
        return new_instance(type(self), alias, False) if self.flags & OVERRIDES and not cg_overrides_off else alias

    @data.setter
    def data(self, value):
        if not isinstance(value, TensorImpl):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        refuse_front(self, "mutating directly with `.data`")
        refuse_front(value, "mutating directly with `.data`")
        refuse_values(self, "an assignment to `.data`")
        if not cg_is_differentiable[(<TensorImpl>value).dtype_nr] and needs_grad(self):
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype, got "
                               f"{(<object>value).dtype!r}; convert it first, e.g. with .float(), or use tensor.detach()")
        if lies_at_same_place(self, value):      # `x.data += 1` has written there
            self.storage.version += 1
        else:
            replace_memory(self, value, borrow((<TensorImpl>value).storage))
