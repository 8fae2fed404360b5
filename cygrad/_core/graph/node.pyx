"""Vertices of the graph (see node.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdlib cimport free, realloc

from cygrad._core.graph.saved cimport (SavedTensor, check_savable, check_version, packed_by_default, packs_by_default, released_error,
                                       saved_operand, saved_result)
from cygrad._core.graph.tensor cimport (BATCHED, REQUIRES_GRAD, RETAINS_GRAD, SAVED, TENSOR_TRACKED, VIEW, TensorImpl, inherit_special,
                                        make_untracked, shallow_copy)
from cygrad._core.graph.tracking cimport track_node, track_reachable, track_tensor
from cygrad._core.memory.storage cimport version_of, visible_version
from cygrad._core.memory.upward cimport upward

import weakref

cdef extern from *:
    """
    static __thread int cg_grad_mode = 1;
    static __thread int cg_inference_mode = 0;
    static int *cg_grad_mode_address(void) { return &cg_grad_mode; }
    static int *cg_inference_mode_address(void) { return &cg_inference_mode; }
    """
    int* cg_inference_mode_address() noexcept nogil
    int* cg_grad_mode_address() noexcept nogil


cdef extern from "memory/type_slots.h":
    void cg_inherit_dealloc(type kind) noexcept
    void cg_never_clear(type kind) noexcept
    void cg_refuse_new(type kind) noexcept

cdef extern from *:
    """
    CG_BOUND_DEALLOC(node)
    CG_PREPEND_DEALLOC(accumulator)
    """
    void cg_bound_dealloc_node(type kind, Py_ssize_t link_offset) noexcept
    void cg_prepend_dealloc_accumulator(type kind, void (*before)(PyObject*) noexcept) noexcept

cdef unsigned long long last_sequence_nr = 0
cdef int hook_pairs = 0
cdef int anomaly_mode = 0
cdef object node_created = None     # what anomaly mode does with a new node,
cdef object node_failed = None      # and with one whose backward raised an error


cdef int* grad_mode() noexcept nogil:
    """Return the address of this thread's grad mode (1: operations are recorded)."""
    return cg_grad_mode_address()


cdef int inference_threads = 0      # threads in inference mode: while there are none, nobody asks for his own mode


cdef bint is_inference_mode() noexcept:
    """Say whether this thread is in inference mode."""
    return inference_threads > 0 and cg_inference_mode_address()[0] == 1


cdef bint is_inference_suspended() noexcept:
    """Say whether this thread takes a derivative that was asked for in inference mode."""
    return cg_inference_mode_address()[0] == SUSPENDED


def is_inference_mode_enabled():
    """Say whether this thread makes inference tensors.

    >>> import cygrad
    >>> cygrad.is_inference_mode_enabled()
    False
    """
    return is_inference_mode()


cdef int exchange_inference_mode(int mode) noexcept:
    """Set whether this thread makes inference tensors (a negative mode: leave it) and return what it did before."""
    global inference_threads
    cdef int before = cg_inference_mode_address()[0]
    if mode >= 0:
        inference_threads += (mode == 1) - (before == 1)
        cg_inference_mode_address()[0] = mode
    return before


def _set_inference_mode(int mode):
    """Set what `exchange_inference_mode` sets, for a thread that works in another's place; `inference_mode` is the public form."""
    return exchange_inference_mode(mode)


def last_number():
    """Return the sequence number of the newest node."""
    return last_sequence_nr


def is_grad_enabled():
    """Say whether operations are recorded in this thread."""
    return bool(cg_grad_mode_address()[0])


def _set_grad_enabled(bint mode):
    """Set whether operations are recorded in this thread; `set_grad_enabled` is the public form."""
    cg_grad_mode_address()[0] = mode


def set_anomaly_mode(bint mode, bint checks_nan, created, failed):
    """Set anomaly mode and what is called while it is on: created(node) and failed(node)."""
    global anomaly_mode, node_created, node_failed
    node_created, node_failed = created, failed
    anomaly_mode = 0 if not mode else ANOMALY_DETECTED | ANOMALY_CHECKS_NAN if checks_nan else ANOMALY_DETECTED


def is_anomaly_mode():
    """Say whether anomaly mode is on."""
    return anomaly_mode != 0


cdef int note_creation(Node node) except -1:
    node_created(node)
    return 0


cdef int note_failure(Node node) except -1:
    node_failed(node)
    return 0


class HookTable(dict):
    """Hooks by the id of their handle, which has a weak reference to this."""

    __slots__ = ("__weakref__",)


cdef class Hooks:
    def __cinit__(self):
        self.tensor, self.retained = {}, {}


cdef inline int keep(Node node, int place, object saved, unsigned long long version) except -1:
    """Put a saved value into its place."""
    if place == 0:
        node.saved0, node.version0 = saved, version
    elif place == 1:
        node.saved1, node.version1 = saved, version
    elif place == 2:
        node.saved2, node.version2 = saved, version
    else:
        node.result, node.result_version = saved, version
    return 0


@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Node:
    """A vertex of the graph: what `grad_fn` gives; subclasses apply."""

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        raise NotImplementedError

    cdef void release(self):
        """Free the saved values."""
        if self.saved0 is not None or self.saved1 is not None or self.saved2 is not None or self.result is not None:
            if self.flags & NODE_PACKED:
                for saved in (self.saved0, self.saved1, self.saved2, self.result):
                    if isinstance(saved, SavedTensor):
                        (<SavedTensor>saved).free()
            self.flags |= NODE_RELEASED
            self.saved0 = self.saved1 = self.saved2 = self.result = None

    cdef int save(self, int place, TensorImpl tensor) except -1:
        """Keep an operand, or (place RESULT) the result, with its version, or what the hooks of this thread make of it."""
        check_savable(tensor)
        tensor.flags |= SAVED
        if tensor.base is not None:
            tensor.base.flags |= SAVED
        if hook_pairs and packs_by_default():
            return self.pack(place, tensor)
        return keep(self, place, shallow_copy(tensor) if place == RESULT else tensor, version_of(tensor.storage))

    cdef int pack(self, int place, TensorImpl tensor) except -1:
        """Keep what the hooks of this thread make of a tensor; they see a result with its history."""
        if place == RESULT and (tensor.node is not None or tensor.flags & VIEW):
            tensor = with_own_history(tensor, self, 0)      # changed in place: it has its former history still
        elif place == RESULT:
            attach(tensor, self, 0)
        self.flags |= NODE_PACKED
        keep(self, place, packed_by_default(tensor, place == RESULT), 0)
        track_reachable(self)       # hooks may have closed a cycle
        return track_reachable(tensor)

    cdef object kept(self, int place):
        return self.saved0 if place == 0 else self.saved1 if place == 1 else self.saved2 if place == 2 else self.result

    cdef object origin(self, int place, int* output_nr):
        """Return where an operand came from: the edge as it is, possibly to a leaf."""
        output_nr[0] = self.nr0 if place == 0 else self.nr1 if place == 1 else self.nr2
        return self.next0 if place == 0 else self.next1 if place == 1 else self.next2

    cdef TensorImpl unpack(self, int place):
        """Return a saved tensor (None if there is none), an operand with its history in grad mode; RuntimeError if it was changed
        in place."""
        cdef object saved, origin
        cdef TensorImpl tensor
        cdef unsigned long long version
        cdef int output_nr
        if place == 0:
            saved, version = self.saved0, self.version0
        elif place == 1:
            saved, version = self.saved1, self.version1
        elif place == 2:
            saved, version = self.saved2, self.version2
        else:
            saved, version = self.result, self.result_version
        if saved is None:
            return None
        if self.flags & NODE_PACKED and isinstance(saved, SavedTensor):
            return (<SavedTensor>saved).value(self, cg_grad_mode_address()[0])
        tensor = <TensorImpl>saved
        if version_of(tensor.storage) != version:
            check_version(tensor, version, self if place == RESULT else tensor.node, self)
        if place == RESULT or not cg_grad_mode_address()[0]:
            return tensor
        origin = self.origin(place, &output_nr)
        return with_origin(tensor, origin, output_nr)

    cdef list unpack_all(self):
        """Return what `unpack` gives for each place, so that hooks run once for each saved tensor."""
        return [self.unpack(place) for place in range(RESULT + 1)]

    # ----- What was saved, by name -----
    cdef dict saved_places(self):
        """Return the places of saved tensors by the names of operands that torch has: self, other, result, ..."""
        return {}

    cdef dict saved_params(self):
        """Return the parameters by name."""
        return {}

    cdef object scalar(self, int place):
        """Return an operand that was no tensor; None if it was one, which nothing reads."""

    cdef SavedTensor handle(self, int place):
        """Return a saved tensor as an object that takes hooks, and keep it as such."""
        cdef object origin
        cdef SavedTensor saved
        cdef int output_nr
        if isinstance(self.kept(place), SavedTensor):
            return self.kept(place)
        if place == RESULT:
            saved = saved_result(self.result, self.result_version, 0)
        else:
            origin = self.origin(place, &output_nr)
            saved = saved_operand(self.kept(place), self.version0 if place == 0 else self.version1 if place == 1 else self.version2,
                                  origin, output_nr)
        if self.kept(place) is not None:
            self.flags |= NODE_PACKED
            keep(self, place, saved, 0)
            track_reachable(self)
        saved.freed = self.flags & NODE_RELEASED != 0
        return saved

    cdef object saved_attribute(self, str name):
        """Return `_saved_x`, or `_raw_saved_x`, which takes hooks."""
        cdef str field = name.removeprefix("_raw").removeprefix("_saved_")
        cdef dict places, params
        cdef int place, mode
        if name in ("_saved_" + field, "_raw_saved_" + field):
            places, params = self.saved_places(), self.saved_params()
            if field in places:
                place = places[field]
                if name.startswith("_raw"):
                    return self.handle(place)
                if self.flags & NODE_RELEASED:
                    raise released_error()
                if self.kept(place) is None:
                    return self.scalar(place)
                mode = cg_grad_mode_address()[0]
                cg_grad_mode_address()[0] = True
                try:
                    return with_own_history(self.unpack(place), self, 0) if place == RESULT else self.unpack(place)
                finally:
                    cg_grad_mode_address()[0] = mode
            if field in params and not name.startswith("_raw"):
                return params[field]
        raise AttributeError(f"'{self.node_name()}' object has no attribute '{name}'")

    def __dir__(self):
        names = [f"_{raw}saved_{name}" for name in self.saved_places() for raw in ("", "raw_")]
        return sorted([*object.__dir__(self), *names, *(f"_saved_{name}" for name in self.saved_params())])

    cdef str node_name(self):
        return type(self).__name__

    def name(self):
        """Return the name, such as `MulBackward0`."""
        return self.node_name()

    def __repr__(self):
        return f"<{self.node_name()}>"

    @property
    def next_functions(self):
        """The (node, output number) pairs that the gradients of the inputs go to; None where one needs none."""
        cdef int output_nr, k
        cdef list pairs = []
        for k in range(self.edges):
            node = edge(self, k, &output_nr)
            pairs.append((node, output_nr))
        return tuple(pairs)

    def _sequence_nr(self):
        """Return the number that orders nodes by their creation."""
        return self.sequence_nr

    def _hooks(self):
        """Return what hangs on the node, made if there is nothing; hooks may close a cycle, so the node is tracked."""
        track_reachable(self)
        return hooks_of(self)

    @property
    def metadata(self):
        """A dict of the user's, and of anomaly mode, that lives as long as the node."""
        cdef Hooks hooks = self._hooks()
        if hooks.metadata is None:
            hooks.metadata = {}
        return hooks.metadata

    @property
    def _input_metadata(self):
        """(Shape, dtype) of each output, as far as known: of leaves, and where a GradientEdge was asked for; else None."""
        known = {} if self.hooks is None else (<Hooks>self.hooks).outputs or {}
        return tuple([known.get(k) for k in range(self.outputs)])

    def register_hook(self, fn):
        """Call `fn(grad_inputs, grad_outputs)` each time after this node has computed; a tuple it returns replaces `grad_inputs`.

        Returns a handle with `remove()`.
        """
        from cygrad._core.engine.hooks import register_among
        return register_among(self._hooks(), "post", fn)

    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` each time before this node computes; a tuple it returns replaces `grad_outputs`.

        Returns a handle with `remove()`.
        """
        from cygrad._core.engine.hooks import register_among
        return register_among(self._hooks(), "pre", fn)

    def __call__(self, *grads):
        """Turn gradients of the outputs into those of the inputs, without the engine."""
        cdef PyObject* stack[8]
        cdef PyObject** buffers = stack
        cdef Py_ssize_t k, count = self.outputs + self.edges
        cdef tuple kept = grads
        cdef list result = []
        if len(kept) != self.outputs:
            raise TypeError(f"expected {self.outputs} arguments, got {len(kept)} instead: {self.node_name()} takes a gradient for each of "
                            "its outputs")
        if count > 8:
            buffers = <PyObject**>realloc(NULL, count * sizeof(PyObject*))
            if buffers is NULL:
                raise MemoryError()
        for k in range(self.outputs):
            buffers[k] = NULL if kept[k] is None else <PyObject*><TensorImpl?>kept[k]
        for k in range(self.outputs, count):
            buffers[k] = NULL
        try:
            self.apply(buffers, buffers + self.outputs)
            for k in range(self.outputs, count):
                result.append(<object>buffers[k] if buffers[k] is not NULL else None)
        finally:
            for k in range(self.outputs, count):
                Py_XDECREF(buffers[k])
            if buffers != stack:
                free(buffers)
        return result[0] if len(result) == 1 else tuple(result)


cdef void bound_destructor(Node node) noexcept:
    """Have chains of nodes destroyed in constant stack; a dead node waits linked by its sequence number."""
    cg_bound_dealloc_node(Node, <char*>&node.sequence_nr - <char*><PyObject*>node)


bound_destructor(Node.__new__(Node))
cg_refuse_new(Node)


cdef int set_edge(Node node, int index, object target, int output_nr) except -1:
    """Set an edge; from the fourth on in order."""
    node.edges = max(node.edges, index + 1)
    if index == 0:
        node.next0, node.nr0 = target, output_nr
    elif index == 1:
        node.next1, node.nr1 = target, output_nr
    elif index == 2:
        node.next2, node.nr2 = target, output_nr
    else:
        if node.more is None:
            node.more = []
        if len(node.more) == index - 3:
            node.more.append(None)
        node.more[index - 3] = (target, output_nr)
    return 0


cdef Node general_edge(Node node, int index, int* output_nr):
    """Return an edge of any kind; an edge to a leaf becomes one to its accumulator."""
    if index == 0:
        target, output_nr[0] = node.next0, node.nr0
    elif index == 1:
        target, output_nr[0] = node.next1, node.nr1
    elif index == 2:
        target, output_nr[0] = node.next2, node.nr2
    else:
        target, output_nr[0] = node.more[index - 3]
    if output_nr[0] == LEAF:
        target, output_nr[0] = accumulator_of(<TensorImpl?>target), 0
        set_edge(node, index, target, 0)
    return target


@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives to `.grad`."""

    @property
    def variable(self):
        """The leaf."""
        return self.saved0

    @property
    def _input_metadata(self):
        return ((<object>self.saved0).shape, (<object>self.saved0).dtype),

    cdef void release(self):
        """Keep the leaf: it is no saved value."""

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        if grads[0] is not NULL and leaf_of(self).flags & REQUIRES_GRAD:
            upward.accumulate(leaf_of(self), grads[0])
        return 0


cdef void forget_accumulator(PyObject* node) noexcept:
    """Tell the leaf that its accumulator dies."""
    if leaf_of(<Node>node) is not None:
        leaf_of(<Node>node).accumulator = NULL


cdef void inherit_destructor(type kind) noexcept:
    """Give a kind of node that has no objects of its own the destructor of Node."""
    cg_inherit_dealloc(kind)


cdef void finish_node_type(type kind) noexcept:
    """Set the type slots of a kind of node that has no objects of its own and is made untracked."""
    make_untracked(kind)
    cg_inherit_dealloc(kind)
    cg_refuse_new(kind)


finish_node_type(AccumulateGrad)
cg_prepend_dealloc_accumulator(AccumulateGrad, forget_accumulator)
cg_never_clear(AccumulateGrad)      # forget_accumulator() needs the leaf


# ----- Saved values -----
cdef TensorImpl with_origin(TensorImpl tensor, object origin, int output_nr):
    """Return a tensor with the history it had when it was saved: detach_() may have taken it since, or hooks."""
    cdef TensorImpl copy
    if tensor.flags & BATCHED:      # the history is that of all examples
        copy = with_origin((<object>tensor.special).inner, origin, output_nr)
        return tensor if copy is (<object>tensor.special).inner else (<object>tensor.special).level.leave(copy)
    if origin is None and not tensor.flags & REQUIRES_GRAD:
        return tensor
    if origin is not None and (origin is tensor or origin is tensor.node and output_nr == tensor.output_nr
                               or tensor.node is None and <void*>origin == tensor.accumulator):
        return tensor
    copy = shallow_copy(tensor)
    inherit_special(copy, tensor)
    if origin is not None:
        attach(copy, accumulator_of(origin) if output_nr == LEAF else origin, 0 if output_nr == LEAF else output_nr)
    return copy


cdef TensorImpl with_own_history(TensorImpl tensor, Node node, int output_nr):
    """Return a saved result as an output of its node, which keeps it without that."""
    cdef TensorImpl copy = shallow_copy(tensor)
    inherit_special(copy, tensor)
    attach(copy, node, output_nr)
    return copy


cdef AccumulateGrad accumulator_of(TensorImpl leaf):
    """Return the accumulator of a leaf, made if it has none now."""
    cdef AccumulateGrad node
    if leaf.accumulator is not NULL:
        return <AccumulateGrad>leaf.accumulator
    node = AccumulateGrad.__new__(AccumulateGrad)
    if leaf.accumulator is not NULL:        # made in another thread, while the collector ran in this one
        return <AccumulateGrad>leaf.accumulator
    # The last in the order of nodes: it runs as soon as it can, since that frees gradients soonest.
    node.sequence_nr, node.outputs, node.flags = <unsigned long long>-1, 1, NODE_ACCUMULATES
    node.saved0 = leaf
    leaf.accumulator = <void*>node
    if leaf.flags & TENSOR_TRACKED:
        track_node(node)
    return node


cdef regenerate_function regenerate = NULL


cdef void set_regenerate(regenerate_function function) noexcept:
    """Set what gives a view a new node; the module of in-place changes, a layer above, brings it."""
    global regenerate
    regenerate = function


cdef int refresh(TensorImpl tensor) except -1:
    """Bring the node of a view up to date with what was done to its base in place."""
    if (tensor.flags & VIEW and tensor.view_version != tensor.storage.version and tensor.base.flags & REQUIRES_GRAD
            and tensor.storage is tensor.base.storage and visible_version(tensor.view_version ^ tensor.storage.version)):
        return regenerate(tensor)
    return 0


cdef Node gradient_edge(TensorImpl tensor, int* output_nr):
    """Return the node that the gradient of a tensor goes to; None if it needs none."""
    refresh(tensor)
    output_nr[0] = tensor.output_nr
    if tensor.node is not None:
        return tensor.node
    return accumulator_of(tensor) if tensor.flags & REQUIRES_GRAD else None


cdef int connect(Node node, int index, TensorImpl tensor) except -1:
    """Make the edge from a node to where the gradient of its input `index` goes. With gradient_edge the readers of `tensor.node`."""
    if tensor is not None:
        refresh(tensor)
    if tensor is None or not tensor.flags & REQUIRES_GRAD:
        set_edge(node, index, None, 0)
    elif tensor.node is None and tensor.accumulator is NULL:
        set_edge(node, index, tensor, LEAF)     # the accumulator can wait: most graphs of a leaf die without a backward
    elif tensor.node is None:                   # it may have hooks, which live as long as it does
        if (<Node>tensor.accumulator).flags & NODE_TRACKED:
            track_node(node)
        set_edge(node, index, <Node>tensor.accumulator, 0)
    else:
        if tensor.node.flags & NODE_TRACKED:
            track_node(node)
        set_edge(node, index, tensor.node, tensor.output_nr)
    return 0


cdef int attach(TensorImpl result, Node node, int output_nr) except -1:
    """Make a tensor the output of a node."""
    if result.flags & RETAINS_GRAD:
        move_retained(result, node, output_nr)
    result.node, result.output_nr = node, output_nr
    result.flags |= REQUIRES_GRAD
    result.view_version = result.storage.version
    if node.flags & NODE_TRACKED:
        track_tensor(result)
    return 0


cdef int move_retained(TensorImpl tensor, Node node, int output_nr) except -1:
    """Have a tensor that was changed in place keep the gradient of what it is now; its hooks stay with what it was."""
    cdef Hooks old = None if tensor.node is None else tensor.node.hooks
    if old is not None and tensor.output_nr in old.retained and old.retained[tensor.output_nr]() is tensor:
        del old.retained[tensor.output_nr]
    hooks_of(node).retained[output_nr] = weakref.ref(tensor)
    return 0


cdef Hooks hooks_of(Node node):
    if node.hooks is None:
        node.hooks = Hooks()
    return node.hooks


cdef list grads_list(PyObject** grads, int count):
    """Return gradients of an array; None where one is undefined."""
    return [<object>grads[k] if grads[k] is not NULL else None for k in range(count)]
