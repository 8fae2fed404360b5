"""Vertices of the graph (see node.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdlib cimport free, realloc

from cygrad._core.graph.handles cimport register_among
from cygrad._core.graph.history cimport attach, edge, with_origin, with_own_history
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.saved cimport (SavedTensor, check_attached, check_savable, check_version, hook_pairs, packed_by_default,
                                       packs_by_default, released_error, saved_operand, saved_result)
from cygrad._core.graph.tensor cimport SAVED, TensorImpl, VIEW, shallow_copy
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.memory.storage cimport version_of

cdef extern from "memory/type_slots.h":
    void cg_inherit_dealloc(type kind) noexcept
    void cg_make_untracked(type kind) noexcept
    void cg_refuse_new(type kind) noexcept

cdef extern from *:
    """
    CG_BOUND_DEALLOC(node)
    """
    void cg_bound_dealloc_node(type kind, Py_ssize_t link_offset) noexcept

cdef unsigned long long last_sequence_nr = 0


def last_number():
    """Return the sequence number of the newest node."""
    return last_sequence_nr


cdef class Hooks:
    def __cinit__(self):
        self.tensor, self.retained = {}, {}


cdef inline int keep(Node node, int number, object saved, unsigned long long version) except -1:
    """Put a saved value into its place; of several results each is a SavedTensor, which stays."""
    if number == 0:
        node.saved0, node.version0 = saved, version
    elif number == 1:
        node.saved1, node.version1 = saved, version
    elif number == 2:
        node.saved2, node.version2 = saved, version
    else:
        node.result, node.result_version = saved, version
    return 0


@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Node:
    """A vertex of the graph: the value of `grad_fn`; subclasses apply."""

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        raise NotImplementedError

    cdef void release(self):
        """Free the saved values."""
        if Node.frees_values(self):
            if self.flags & NODE_PACKED:
                for saved in (self.saved0, self.saved1, self.saved2, *(self.result if type(self.result) is tuple else (self.result,))):
                    if isinstance(saved, SavedTensor):
                        (<SavedTensor>saved).free()
            self.flags |= NODE_RELEASED
            self.saved0 = self.saved1 = self.saved2 = self.result = None

    cdef bint frees_values(self) except -1:
        """Return True if `release` frees values that `apply` reads."""
        return self.saved0 is not None or self.saved1 is not None or self.saved2 is not None or self.result is not None

    cdef int save(self, int number, TensorImpl tensor) except -1:
        """Keep an operand, or (place RESULT) the result, with its version, or the result of this thread's pack hook."""
        check_savable(tensor)
        tensor.flags |= SAVED
        if tensor.base is not None:
            tensor.base.flags |= SAVED
        if hook_pairs and packs_by_default():
            return self.pack(number, tensor)
        return keep(self, number, shallow_copy(tensor) if number == RESULT else tensor, version_of(tensor.storage))

    cdef int pack(self, int number, TensorImpl tensor) except -1:
        """Keep the result of this thread's pack hook for a tensor; they see a result with its history."""
        if number == RESULT and (tensor.node is not None or tensor.flags & VIEW):
            tensor = with_own_history(tensor, self, 0)      # changed in place: it has its former history still
        elif number == RESULT:
            attach(tensor, self, 0)
        self.flags |= NODE_PACKED
        keep(self, number, packed_by_default(tensor, number == RESULT), 0)
        track_reachable(self)       # hooks may have closed a cycle
        return track_reachable(tensor)

    cdef int save_results(self, tuple results, int reads) except -1:
        """Keep those results, which are outputs of this node already, whose bit in `reads` is set."""
        cdef list saved = [None] * len(results)
        cdef TensorImpl tensor
        cdef int k
        for k, tensor in enumerate(results):
            if reads >> k & 1:
                check_savable(tensor)
                tensor.flags |= SAVED
                saved[k] = packed_by_default(tensor, True) if hook_pairs and packs_by_default() else saved_result(
                    shallow_copy(tensor), version_of(tensor.storage), k)
        self.result = tuple(saved)
        self.flags |= NODE_PACKED
        if hook_pairs:
            track_reachable(self)       # hooks may have closed a cycle
            for tensor in results:
                track_reachable(tensor)
        return 0

    cdef object saved_value(self, int number):
        if number < RESULT:
            return self.saved0 if number == 0 else self.saved1 if number == 1 else self.saved2
        if type(self.result) is tuple:
            return (<tuple>self.result)[number - RESULT]
        return self.result if number == RESULT else None

    cdef object origin(self, int number, int* output_nr):
        """Return where an operand came from: the edge as it is, possibly to a leaf."""
        output_nr[0] = self.nr0 if number == 0 else self.nr1 if number == 1 else self.nr2
        return self.next0 if number == 0 else self.next1 if number == 1 else self.next2

    cdef TensorImpl unpack(self, int number):
        """Return a saved tensor (None if there is none), an operand with its history in grad mode; RuntimeError if it was changed
        in place."""
        cdef object saved, origin
        cdef TensorImpl tensor
        cdef unsigned long long version
        cdef int output_nr
        if number == 0:
            saved, version = self.saved0, self.version0
        elif number == 1:
            saved, version = self.saved1, self.version1
        elif number == 2:
            saved, version = self.saved2, self.version2
        else:
            saved = self.result if number == RESULT and not self.flags & NODE_PACKED else self.saved_value(number)
            version = self.result_version
        if saved is None:
            return None
        if self.flags & NODE_PACKED and isinstance(saved, SavedTensor):
            return (<SavedTensor>saved).value(self, grad_mode()[0])
        tensor = <TensorImpl>saved
        if version_of(tensor.storage) != version:
            check_version(tensor, version, self if number == RESULT else tensor.node, self)
        if number == RESULT:
            return tensor
        origin = self.origin(number, &output_nr)
        check_attached(tensor, origin, output_nr)
        return with_origin(tensor, origin, output_nr) if grad_mode()[0] else tensor

    cdef list unpack_all(self):
        """Return the saved tensor of each place, so that hooks run once for each saved tensor."""
        return [self.unpack(number) for number in range(RESULT + (len(self.result) if type(self.result) is tuple else 1))]

    # ----- Saved values, by name -----
    cdef dict saved_places(self):
        """Return the places of saved tensors by the names of operands that torch has: self, other, result, ..."""
        return {}

    cdef dict saved_params(self):
        """Return the parameters by name."""
        return {}

    cdef object scalar(self, int number):
        """Return an operand that was no tensor; None if it was one, which nothing reads."""

    cdef SavedTensor handle(self, int number):
        """Return a saved tensor as an object that takes hooks, and keep it as such."""
        cdef object origin
        cdef SavedTensor saved
        cdef int output_nr
        cdef unsigned long long version
        if isinstance(self.saved_value(number), SavedTensor):
            return self.saved_value(number)
        if number >= RESULT:
            saved = saved_result(self.saved_value(number), self.result_version, number - RESULT)
        else:
            origin = self.origin(number, &output_nr)
            version = self.version0 if number == 0 else self.version1 if number == 1 else self.version2
            saved = saved_operand(self.saved_value(number), version, origin, output_nr)
        if self.saved_value(number) is not None:
            self.flags |= NODE_PACKED
            keep(self, number, saved, 0)
            track_reachable(self)
        saved.freed = self.flags & NODE_RELEASED != 0
        return saved

    cdef object saved_attribute(self, str name):
        """Return `_saved_x`, or `_raw_saved_x`, which takes hooks."""
        cdef str field = name.removeprefix("_raw").removeprefix("_saved_")
        cdef dict numbers, params
        cdef int number, mode
        if name in ("_saved_" + field, "_raw_saved_" + field):
            numbers, params = self.saved_places(), self.saved_params()
            if field in numbers:
                number = numbers[field]
                if name.startswith("_raw"):
                    return self.handle(number)
                if self.flags & NODE_RELEASED:
                    raise released_error()
                if self.saved_value(number) is None:
                    return self.scalar(number)
                mode = grad_mode()[0]
                grad_mode()[0] = True
                try:
                    return with_own_history(self.unpack(number), self, number - RESULT) if number >= RESULT else self.unpack(number)
                finally:
                    grad_mode()[0] = mode
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
            pairs.append((None if node is None else node_for_users(node), output_nr))
        return tuple(pairs)

    def _sequence_nr(self):
        """Return the number that orders nodes by their creation."""
        return self.sequence_nr

    def _frees_values(self):
        """Return True if a backward that does not keep the graph frees values of this node, so that a second one is an error."""
        return self.frees_values()

    def _hooks(self):
        """Return the hooks of the node, made if there is nothing; hooks may close a cycle, so the node is tracked."""
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
        return register_among(self._hooks(), "post", fn, self)

    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` each time before this node computes; a tuple it returns replaces `grad_outputs`.

        Returns a handle with `remove()`.
        """
        return register_among(self._hooks(), "pre", fn, self)

    def __call__(self, *grads):
        """Turn gradients of the outputs into gradients of the inputs, without the engine.

        A node writes over a gradient with one reference; `grads` may be the tuple that the caller holds them by, so they get one more.
        """
        cdef PyObject* stack[8]
        cdef PyObject** buffers = stack
        cdef Py_ssize_t k, count = self.outputs + self.edges
        cdef list gradients = list(grads), result = []
        if len(gradients) != self.outputs:
            raise TypeError(f"expected {self.outputs} arguments, got {len(gradients)} instead: {self.node_name()} takes a gradient for "
                            "each of its outputs")
        if count > 8:
            buffers = <PyObject**>realloc(NULL, count * sizeof(PyObject*))
            if buffers is NULL:
                raise MemoryError()
        for k in range(self.outputs):
            buffers[k] = NULL if gradients[k] is None else <PyObject*><TensorImpl?>gradients[k]
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


cdef bint bounded           # a kind of node may be made while this module is being imported, so the first one asks for Node


cdef void bound_destructor() noexcept:
    """Have chains of nodes destroyed in constant stack; a dead node is put off linked by its sequence number."""
    global bounded
    cdef Node node
    if not bounded:
        bounded = True
        node = Node.__new__(Node)
        cg_bound_dealloc_node(Node, <char*>&node.sequence_nr - <char*><PyObject*>node)
        cg_refuse_new(Node)


bound_destructor()


cdef void inherit_destructor(type kind) noexcept:
    """Give a kind of node that has no objects of its own the destructor of Node."""
    cg_inherit_dealloc(kind)


cdef void finish_node_type(type kind) noexcept:
    """Set the type slots of a kind of node that has no objects of its own and is made untracked."""
    bound_destructor()
    cg_make_untracked(kind)
    cg_inherit_dealloc(kind)
    cg_refuse_new(kind)


cdef Hooks hooks_of(Node node):
    if node.hooks is None:
        node.hooks = Hooks()
    return node.hooks


cdef bint has_gradient_hooks(Node node) noexcept:
    cdef Hooks hooks = node.hooks
    return hooks is not None and (hooks.pre is not None or hooks.post is not None or bool(hooks.tensor) or bool(hooks.retained))


cdef list grads_list(PyObject** grads, int count):
    """Return gradients of an array; None where one is undefined."""
    return [<object>grads[k] if grads[k] is not NULL else None for k in range(count)]
