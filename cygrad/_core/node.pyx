# cython: language_level=3, boundscheck=False, wraparound=False
"""Vertices of the graph (see node.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdlib cimport free, realloc

from cygrad._core.saved cimport SavedTensor, packed_by_default, packs_by_default, saved_operand, saved_result
from cygrad._core.storage cimport dtypes
from cygrad._core.tensor cimport (INFERENCE, REQUIRES_GRAD, SAVED, TENSOR_TRACKED, VIEW, TensorImpl, make_untracked, shallow_copy,
                                  sizes_tuple)

cdef extern from "Python.h":
    void PyObject_GC_Track(void* object)
    int PyObject_GC_IsTracked(PyObject* object)

cdef extern from *:
    """
    static __thread int cg_grad_mode = 1;
    static __thread int cg_inference_mode = 0;
    static int *cg_grad_mode_address(void) { return &cg_grad_mode; }
    static int *cg_inference_mode_address(void) { return &cg_inference_mode; }
    """
    int* cg_inference_mode_address() noexcept nogil
    int* cg_grad_mode_address() noexcept nogil


cdef extern from "type_slots.h":
    int cg_traverse(PyObject* object, int (*visit)(PyObject*, void*) noexcept, void* argument) noexcept
    void cg_prepend_dealloc(type kind, void (*before)(PyObject*) noexcept) noexcept
    void cg_inherit_dealloc(type kind) noexcept
    void cg_never_clear(type kind) noexcept
    void cg_refuse_new(type kind) noexcept

cdef unsigned long long last_sequence_nr = 0
cdef int hook_pairs = 0


cdef int* grad_mode() noexcept nogil:
    """Return the address of this thread's grad mode (1: operations are recorded)."""
    return cg_grad_mode_address()


cdef int inference_threads = 0      # threads in inference mode: while there are none, nobody asks for his own mode


cdef bint is_inference_mode() noexcept:
    """Say whether this thread is in inference mode."""
    return inference_threads > 0 and cg_inference_mode_address()[0] != 0


def is_inference_mode_enabled():
    """Say whether this thread makes inference tensors.

    >>> import cygrad
    >>> cygrad.is_inference_mode_enabled()
    False
    """
    return is_inference_mode()


def _set_inference_mode(bint mode):
    """Set whether this thread makes inference tensors; `inference_mode` is the public form."""
    global inference_threads
    inference_threads += mode - cg_inference_mode_address()[0]
    cg_inference_mode_address()[0] = mode


def last_number():
    """Return the sequence number of the newest node."""
    return last_sequence_nr


def is_grad_enabled():
    """Say whether operations are recorded in this thread."""
    return bool(cg_grad_mode_address()[0])


def _set_grad_enabled(bint mode):
    """Set whether operations are recorded in this thread; `set_grad_enabled` is the public form."""
    cg_grad_mode_address()[0] = mode


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


@cython.trashcan(True)
cdef class Node:
    """A vertex of the graph: what `grad_fn` gives."""

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
        return keep(self, place, shallow_copy(tensor) if place == RESULT else tensor, tensor.storage.version)

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
        if tensor.storage.version != version:
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
        """Return the table of hooks, made if there is none."""
        track_reachable(self)
        return hooks_of(self)

    def __call__(self, *grads):
        """Turn gradients of the outputs into those of the inputs, without the engine."""
        cdef PyObject* stack[8]
        cdef PyObject** buffers = stack
        cdef Py_ssize_t k, count = self.outputs + self.edges
        cdef tuple kept = grads
        cdef list result = []
        if len(kept) != self.outputs:
            raise TypeError(f"{self.node_name()} expected {self.outputs} gradients, got {len(kept)}")
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


cdef accumulate_function accumulate = NULL


cdef void set_accumulate(accumulate_function function) noexcept:
    """Set what an AccumulateGrad does; the engine, a layer above, brings it."""
    global accumulate
    accumulate = function


cdef class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives to `.grad`."""

    @property
    def variable(self):
        """The leaf."""
        return self.saved0

    cdef void release(self):
        """Keep the leaf: it is no saved value."""

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        if grads[0] is not NULL:
            accumulate(leaf_of(self), grads[0])
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
cg_prepend_dealloc(AccumulateGrad, forget_accumulator)
cg_never_clear(AccumulateGrad)      # forget_accumulator() needs the leaf


# ----- Errors of saved values -----
cdef object released_error():
    return RuntimeError("Trying to backward through the graph a second time (or directly access saved tensors after they have already "
                        "been freed). Saved intermediate values of the graph are freed when you call .backward() or "
                        "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
                        "you need to access saved tensors after calling backward.")


def released_error_of():
    """Return the error for saved values that were freed."""
    return released_error()


cdef int check_version(TensorImpl tensor, unsigned long long version, Node maker, Node reader) except -1:
    """Refuse a saved tensor that was changed in place; `maker` gave it as an output, `reader` saved it (either may be None)."""
    if tensor.storage.version == version:
        return 0
    source = f"which is output {tensor.output_nr} of {maker.node_name()}, " if maker is not None else ""
    raise RuntimeError("one of the variables needed for gradient computation has been modified by an inplace operation: "
                       f"[cygrad {dtypes[tensor.dtype_nr].name} {list(sizes_tuple(tensor.ndim, tensor.sizes))}], {source}"
                       f"is at version {tensor.storage.version}; expected version {version} instead. It was saved "
                       f"by {reader.node_name() if reader is not None else 'an operation'}: "
                       "use the out-of-place form of what changed it, or clone() it before.")


cdef str saved_name(str argument):
    """Return how torch names an argument of a row or rule among the saved values of a node."""
    return {"x": "self", "a": "self", "input": "self", "b": "other"}.get(argument, argument)


cdef int check_savable(TensorImpl tensor) except -1:
    """Refuse to save an inference tensor: its changes are not counted."""
    if tensor.flags & INFERENCE:
        raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
                           "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use "
                           "it in autograd, or use `cygrad.no_grad()` instead of `cygrad.inference_mode()`.")
    return 0


cdef TensorImpl with_origin(TensorImpl tensor, object origin, int output_nr):
    """Return a tensor with the history it had when it was saved: detach_() may have taken it since, or hooks."""
    cdef TensorImpl copy
    if origin is None and not tensor.flags & REQUIRES_GRAD:
        return tensor
    if origin is not None and (origin is tensor or origin is tensor.node and output_nr == tensor.output_nr
                               or tensor.node is None and <void*>origin == tensor.accumulator):
        return tensor
    copy = shallow_copy(tensor)
    if origin is not None:
        attach(copy, accumulator_of(origin) if output_nr == LEAF else origin, 0 if output_nr == LEAF else output_nr)
    return copy


cdef TensorImpl with_own_history(TensorImpl tensor, Node node, int output_nr):
    """Return a saved result as an output of its node, which keeps it without that."""
    cdef TensorImpl copy = shallow_copy(tensor)
    attach(copy, node, output_nr)
    return copy


cdef AccumulateGrad accumulator_of(TensorImpl leaf):
    """Return the accumulator of a leaf, made if it has none now."""
    cdef AccumulateGrad node
    if leaf.accumulator is not NULL:
        return <AccumulateGrad>leaf.accumulator
    node = AccumulateGrad.__new__(AccumulateGrad)
    init_node(node, 1)
    node.saved0 = leaf
    node.flags = NODE_ACCUMULATES
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
            and tensor.storage is tensor.base.storage):
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
    elif tensor.node is None:
        set_edge(node, index, tensor, LEAF)     # the accumulator can wait: most graphs of a leaf die without a backward
    else:
        if tensor.node.flags & NODE_TRACKED:
            track_node(node)
        set_edge(node, index, tensor.node, tensor.output_nr)
    return 0


cdef int attach(TensorImpl result, Node node, int output_nr) except -1:
    """Make a tensor the output of a node."""
    result.node, result.output_nr = node, output_nr
    result.flags |= REQUIRES_GRAD
    result.view_version = result.storage.version
    if node.flags & NODE_TRACKED:
        track_tensor(result)
    return 0


cdef Hooks hooks_of(Node node):
    if node.hooks is None:
        node.hooks = Hooks()
    return node.hooks


# ----- Garbage collection -----
# Tensors and nodes are created untracked: a tracked survivor counts towards full collections, which makes graphs of some
# thousand nodes several times slower. Whatever closes a cycle tracks what it reaches; what is made from it is tracked too.

cdef void track_node(Node node) noexcept:
    if not node.flags & NODE_TRACKED:
        node.flags |= NODE_TRACKED
        if not PyObject_GC_IsTracked(<PyObject*>node):
            PyObject_GC_Track(<void*>node)


cdef void track_tensor(TensorImpl tensor) noexcept:
    if not tensor.flags & TENSOR_TRACKED:
        tensor.flags |= TENSOR_TRACKED
        if not PyObject_GC_IsTracked(<PyObject*>tensor):
            PyObject_GC_Track(<void*>tensor)


cdef struct Stack:
    PyObject** items        # borrowed: everything here is held by what was walked before
    Py_ssize_t size, capacity


cdef int push(PyObject* object, void* argument) noexcept:
    cdef Stack* stack = <Stack*>argument
    cdef PyObject** items
    if not is_untracked_vertex(object) and not is_container(object):
        return 0
    if stack.size == stack.capacity:
        items = <PyObject**>realloc(stack.items, (2 * stack.capacity + 64) * sizeof(PyObject*))
        if items is NULL:
            return -1
        stack.items, stack.capacity = items, 2 * stack.capacity + 64
    stack.items[stack.size] = object
    stack.size += 1
    return 0


cdef inline bint is_untracked_vertex(PyObject* object) noexcept:
    if isinstance(<object>object, TensorImpl):
        return not (<TensorImpl>object).flags & TENSOR_TRACKED
    if isinstance(<object>object, Node):
        return not (<Node>object).flags & NODE_TRACKED
    return False


cdef inline bint is_container(PyObject* object) noexcept:
    """Say whether an object may stand between two vertices: what nodes keep their edges, parameters and hooks in."""
    cdef type kind = type(<object>object)
    return kind is tuple or kind is list or kind is dict or kind is Hooks or kind is SavedTensor


cdef int track_reachable(object start) except -1:
    """Hand an object and all untracked tensors and nodes it reaches to the garbage collector; iterative."""
    cdef Stack stack
    cdef PyObject* object
    cdef int failed = 0
    cdef set seen = set()       # containers have no flag of their own
    stack.items, stack.size, stack.capacity = NULL, 0, 0
    failed = push(<PyObject*>start, &stack)
    while stack.size and not failed:
        stack.size -= 1
        object = stack.items[stack.size]
        if isinstance(<object>object, TensorImpl):
            if (<TensorImpl>object).flags & TENSOR_TRACKED:
                continue
            track_tensor(<TensorImpl>object)
        elif isinstance(<object>object, Node):
            if (<Node>object).flags & NODE_TRACKED:
                continue
            track_node(<Node>object)
        elif <size_t>object in seen:
            continue
        else:
            seen.add(<size_t>object)
        failed = cg_traverse(object, push, &stack)
    free(stack.items)
    if failed:
        raise MemoryError()
    return 0
