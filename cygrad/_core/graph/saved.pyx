"""Saved-tensor hooks, and saved tensors as objects (see saved.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from cygrad._core.graph.history cimport refresh, with_origin, with_own_history
from cygrad._core.graph.modes cimport grad_mode, is_inference_suspended
from cygrad._core.graph.node cimport LEAF, NODE_ACCUMULATES, Node
from cygrad._core.graph.tensor cimport FRONT, INFERENCE, REQUIRES_GRAD, TensorImpl, shallow_copy, special_active
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport dtypes, version_of, visible_version
from cygrad._core.memory.upward cimport upward
from cygrad._core.memory.writes cimport written_since
from cygrad._kernels.drivers.elementwise cimport cg_itemsize

cdef extern from *:
    """
    static __thread PyObject *cg_pair;          /* (pack, unpack, the pair outside or None), or NULL */
    static __thread PyObject *cg_refusal;       /* the message where hooks are disabled, or NULL */
    """
    PyObject* cg_pair
    PyObject* cg_refusal


# ----- Pairs of hooks of this thread -----
cdef int hook_pairs = 0


cdef inline object get(PyObject* reference):
    return <object>reference if reference is not NULL else None


cdef void set_to(PyObject** reference, object value):
    """Give a thread-local its value; None is NULL."""
    cdef PyObject* old = reference[0]
    if value is not None:
        Py_INCREF(value)
    reference[0] = <PyObject*>value if value is not None else NULL
    Py_XDECREF(old)


@cython.binding(False)
cdef class HookPair:
    """Packs the tensors that this thread saves by a pair of hooks, from entry to exit; leaving allocates nothing, so it always happens."""
    cdef public object pack_hook, unpack_hook

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        check_hooks("saved_tensors_hooks", self.pack_hook, self.unpack_hook)
        if cg_refusal is not NULL:
            raise RuntimeError(get(cg_refusal))
        set_to(&cg_pair, (self.pack_hook, self.unpack_hook, get(cg_pair)))
        global hook_pairs
        hook_pairs += 1

    def __exit__(self, kind=None, error=None, traceback=None):
        if cg_pair is NULL:
            raise RuntimeError("saved_tensors_hooks: no pair of hooks is active in this thread, so there is none to leave")
        global hook_pairs
        hook_pairs -= 1
        set_to(&cg_pair, (<tuple>get(cg_pair))[2])


cdef int pairs_of(object pairs) noexcept:
    cdef int count = 0
    while pairs is not None:
        count, pairs = count + 1, (<tuple>pairs)[2]
    return count


cpdef object thread_hooks():
    """Return this thread's pairs of hooks and the message of their refusal, for a thread that works in its place, or for later."""
    return (get(cg_pair), get(cg_refusal)) if cg_pair is not NULL or cg_refusal is not NULL else None


cpdef void set_thread_hooks(object hooks) noexcept:
    """Set the result of `thread_hooks`; a thread that has another's sets None before it ends."""
    global hook_pairs
    if hooks is None and cg_pair is NULL and cg_refusal is NULL:
        return
    pairs, message = hooks if hooks is not None else (None, None)
    if pairs is not get(cg_pair):
        hook_pairs += pairs_of(pairs) - pairs_of(get(cg_pair))
        set_to(&cg_pair, pairs)
    if message is not get(cg_refusal):
        set_to(&cg_refusal, message)


def disable_hooks(message):
    """Refuse pairs of hooks in this thread with a message (None: allow them again); return the message before."""
    before = get(cg_refusal)
    if message is not None and cg_pair is not NULL:
        raise RuntimeError(message)
    set_to(&cg_refusal, message)
    return before


cdef int check_hooks(str caller, pack, unpack) except -1:
    if not callable(pack) or not callable(unpack):
        raise TypeError(f"{caller}(): incompatible function arguments: pack_hook and unpack_hook must be callable, got "
                        f"{type(pack).__name__} and {type(unpack).__name__}")
    return 0


# ----- Saved tensors -----
@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class SavedTensor:
    """A tensor that a node keeps for its backward; `register_hooks` has it packed."""

    def __init__(self):
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    cdef int pack(self, TensorImpl tensor, object packer, object unpacker) except -1:
        """Keep the result of a pack hook in place of the tensor."""
        cdef unsigned long long version = version_of(tensor.storage)
        cdef int mode = grad_mode()[0]
        if special_active and self.tangents is None:
            self.tangents = upward.tangents_of(tensor)
        grad_mode()[0] = False
        try:
            packed = packer(tensor)
        finally:
            grad_mode()[0] = mode
        if changed_since(tensor, version):
            raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
                               "modified by in-place operations as this can lead to unexpected side-effects. Change a clone() of it.")
        # The saved memory is still checked for changes; a copy is the hook's affair.
        self.shares_memory = isinstance(packed, TensorImpl) and (<TensorImpl>packed).storage is tensor.storage
        self.packed, self.unpacker, self.tensor = packed, unpacker, None
        return 0

    cdef TensorImpl value(self, Node reader, bint with_history):
        """Return the tensor (None if nothing was saved); an output, and any without `with_history`, as it was packed."""
        cdef TensorImpl tensor = self.tensor
        if self.freed:
            raise released_error()
        if tensor is not None or self.shares_memory:
            check_version(self.packed if tensor is None else tensor, self.version,
                          reader if self.is_output else None if self.output_nr == LEAF else self.origin, reader)
        if self.unpacker is not None:
            unpacked = self.unpacker(self.packed)
            if not isinstance(unpacked, TensorImpl):
                raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                                f"{type(unpacked).__name__}")
            tensor = upward.with_tangents(unpacked, self.tangents) if self.tangents else unpacked
        elif tensor is not None and not self.is_output:
            check_attached(tensor, self.origin, self.output_nr)
        if tensor is None or self.is_output or not with_history:
            return tensor
        return with_origin(tensor, self.origin, self.output_nr)

    cpdef void free(self) noexcept:
        """Forget the tensor: a backward is done with it."""
        if self.tensor is not None or self.unpacker is not None:
            self.tensor = self.packed = self.unpacker = self.origin = self.tangents = None
            self.shares_memory, self.freed = False, True

    def unpack(self, Node reader=None):
        """Return the tensor with its history, for the node that saved it; RuntimeError if it was changed in place or freed."""
        cdef TensorImpl tensor = self.value(reader, True)
        return tensor if reader is None or not self.is_output else with_own_history(tensor, reader, self.output_nr)

    def register_hooks(self, pack_hook, unpack_hook):
        """Keep `pack_hook(tensor)` instead of the tensor; `unpack_hook` of that gives the tensor back when it is read.

        RuntimeError where there are hooks already, nothing was saved, it was freed, or changed in place since.
        """
        check_hooks("register_hooks", pack_hook, unpack_hook)
        if self.unpacker is not None:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
                               "is allowed at a time.")
        if self.freed:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph "
                               "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
                               "through the graph a second time or if you need to access saved variables after calling backward.")
        if self.tensor is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        check_version(self.tensor, self.version, None, None)
        self.tangents = upward.tangents_of(self.tensor) if special_active else None
        self.pack(self.tensor if self.is_output else (<object>self.tensor).detach(), pack_hook, unpack_hook)
        track_reachable(self)

    @property
    def data(self):
        """The saved value: the tensor, or the result of the pack hook."""
        return self.tensor if self.unpacker is None else self.packed

    @property
    def unpack_hook(self):
        """The hook that gives the tensor back, or None."""
        return self.unpacker


cdef SavedTensor saved_operand(TensorImpl tensor, unsigned long long version, object origin, int output_nr):
    """Make the handle of a tensor (or None) that a node keeps as it is."""
    cdef SavedTensor saved = SavedTensor.__new__(SavedTensor)
    saved.tensor, saved.version, saved.origin, saved.output_nr = tensor, version, origin, output_nr
    return saved


cdef SavedTensor saved_result(TensorImpl copy, unsigned long long version, int output_nr):
    """Make the handle of a result, given as a copy without history."""
    cdef SavedTensor saved = saved_operand(copy, version, None, output_nr)
    saved.is_output = True
    if copy is not None:
        copy.output_nr = output_nr
    return saved


cdef bint packs_by_default() noexcept:
    """Return True if a pair of hooks is active in this thread."""
    return cg_pair is not NULL


cdef SavedTensor packed_by_default(TensorImpl tensor, bint is_output):
    """Have the hooks of this thread, which are active, pack a tensor."""
    cdef SavedTensor saved = saved_tensor(tensor, is_output)
    pair = get(cg_pair)
    saved.pack(tensor, (<tuple>pair)[0], (<tuple>pair)[1])
    return saved


cdef SavedTensor saved_tensor(TensorImpl tensor, bint is_output):
    cdef unsigned long long version = version_of(tensor.storage)
    cdef TensorImpl owner = tensor      # of the history
    check_savable(tensor)
    while owner.flags & FRONT:
        owner = (<object>owner.special).inner
    refresh(owner)
    if is_output:
        return saved_result(shallow_copy(tensor), version, tensor.output_nr)
    if owner.node is not None:
        return saved_operand(tensor, version, owner.node, owner.output_nr)
    return saved_operand(tensor, version, owner if owner.flags & REQUIRES_GRAD else None, LEAF)


def save_for(Node node, TensorImpl tensor):
    """Return the saved value of a tensor, or of None, for a backward of a node, or (None) of other code that recomputes."""
    cdef bint is_output = tensor is not None and node is not None and tensor.node is node
    if tensor is None:
        return saved_operand(None, 0, None, LEAF)
    return packed_by_default(tensor, is_output) if packs_by_default() else saved_tensor(tensor, is_output)


# ----- Errors of saved values -----
cdef object released_error():
    return RuntimeError("Trying to backward through the graph a second time (or directly access saved tensors after they have already "
                        "been freed). Saved intermediate values of the graph are freed when you call .backward() or "
                        "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
                        "you need to access saved tensors after calling backward.")


def released_error_of():
    """Return the error for saved values that were freed."""
    return released_error()


cdef bint changed_since(TensorImpl tensor, unsigned long long version) noexcept:
    """Return True if a tensor was changed in place since its memory had a version: under its own counter, or its bytes under another."""
    cdef unsigned long long now = version_of(tensor.storage)
    return now != version and (visible_version(now) != visible_version(version) or written_since(
        tensor.storage, version, tensor.unsettled, cg_itemsize[tensor.dtype_nr], tensor.ndim, tensor.sizes, tensor.strides))


cdef int check_version(TensorImpl tensor, unsigned long long version, Node maker, Node reader) except -1:
    """Refuse a saved tensor that was changed in place; `maker` gave it as an output, `reader` saved it (either may be None)."""
    if not changed_since(tensor, version):
        return 0
    now = visible_version(version_of(tensor.storage))
    route = " (it was changed through .data)" if now == visible_version(version) else ""
    source = f"which is output {tensor.output_nr} of {maker.node_name()}, " if maker is not None else ""
    raise RuntimeError("one of the variables needed for gradient computation has been modified by an inplace operation: "
                       f"[cygrad {dtypes[tensor.dtype_nr].name} {list(sizes_tuple(tensor.ndim, tensor.sizes))}], {source}"
                       f"is at version {now}; expected version {visible_version(version)} instead{route}. It was saved "
                       f"by {reader.node_name() if reader is not None else 'an operation'}: "
                       "use the out-of-place form of the operator that changed it, or clone() it before.")


cdef int check_attached(TensorImpl tensor, object origin, int output_nr) except -1:
    """Refuse a saved operand that had a history and lost it since; `origin` is the node, or the leaf, that its gradient goes to."""
    if (tensor.node is not None or origin is None or output_nr == LEAF or (<Node>origin).flags & NODE_ACCUMULATES
            or tensor.flags & FRONT):
        return 0
    raise RuntimeError("Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, please "
                       "use out-of-place `.detach()` instead")


cdef str saved_name(str argument):
    """Return how torch names an argument of a row or rule among the saved values of a node."""
    return {"x": "self", "a": "self", "input": "self", "b": "other"}.get(argument, argument)


cdef bint is_followed(TensorImpl tensor) noexcept:
    """Return True if operations on a tensor alone are recorded: not on an inference tensor, but while a transform differentiates there."""
    return not tensor.flags & INFERENCE or is_inference_suspended()


cdef int check_savable(TensorImpl tensor) except -1:
    """Refuse to save an inference tensor: its changes are not counted."""
    if not is_followed(tensor):
        raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
                           "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use "
                           "it in autograd, or use `cygrad.no_grad()` instead of `cygrad.inference_mode()`.")
    return 0
