# cython: language_level=3, boundscheck=False, wraparound=False
"""Vertices of the graph (see node.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, realloc

from cygrad._core.tensor cimport REQUIRES_GRAD, TENSOR_TRACKED, TensorImpl, make_untracked

cdef extern from "Python.h":
    void PyObject_GC_Track(void* object)
    int PyObject_GC_IsTracked(PyObject* object)

cdef extern from *:
    """
    static unsigned long long cg_sequence;
    static unsigned long long cg_next_sequence(void) { return __atomic_add_fetch(&cg_sequence, 1, __ATOMIC_RELAXED); }
    static __thread int cg_grad_mode = 1;
    static int *cg_grad_mode_address(void) { return &cg_grad_mode; }
    static int cg_traverse(PyObject *object, visitproc visit, void *argument) {
        return Py_TYPE(object)->tp_traverse(object, visit, argument);
    }
    """
    int cg_traverse(PyObject* object, int (*visit)(PyObject*, void*) noexcept, void* argument) noexcept
    unsigned long long cg_next_sequence() noexcept nogil
    int* cg_grad_mode_address() noexcept nogil


cdef int* grad_mode() noexcept nogil:
    """Return the address of this thread's grad mode (1: operations are recorded)."""
    return cg_grad_mode_address()


def is_grad_enabled():
    """Say whether operations are recorded in this thread."""
    return bool(cg_grad_mode_address()[0])


def _set_grad_enabled(bint mode):
    """Set whether operations are recorded in this thread; `set_grad_enabled` is the public form."""
    cg_grad_mode_address()[0] = mode


cdef class Hooks:
    def __cinit__(self):
        self.tensor, self.retained = {}, {}


@cython.trashcan(True)
cdef class Node:
    """A vertex of the graph: what `grad_fn` gives."""

    def __init__(self):
        if self.sequence_nr == 0:
            raise TypeError("nodes are made by recorded operations")

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        raise NotImplementedError

    cdef void release(self):
        """Free the saved values."""

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


cdef void init_node(Node node, int outputs) noexcept:
    node.sequence_nr = cg_next_sequence()
    node.outputs = outputs


cdef int set_edge(Node node, int index, Node target, int output_nr) except -1:
    """Set the next edge; edges are set in order, None included."""
    node.edges = index + 1
    if target is not None and target.flags & NODE_TRACKED:
        track_node(node)
    if index == 0:
        node.next0, node.nr0 = target, output_nr
    elif index == 1:
        node.next1, node.nr1 = target, output_nr
    elif index == 2:
        node.next2, node.nr2 = target, output_nr
    else:
        if node.more is None:
            node.more = []
        node.more.append((target, output_nr))
    return 0


cdef Node edge(Node node, int index, int* output_nr):
    """Return where the gradient of input `index` goes, or None."""
    if index == 0:
        output_nr[0] = node.nr0
        return node.next0
    if index == 1:
        output_nr[0] = node.nr1
        return node.next1
    if index == 2:
        output_nr[0] = node.nr2
        return node.next2
    output_nr[0] = node.more[index - 3][1]
    return node.more[index - 3][0]


cdef accumulate_function accumulate = NULL


cdef void set_accumulate(accumulate_function function) noexcept:
    """Set what an AccumulateGrad does; the engine, a layer above, brings it."""
    global accumulate
    accumulate = function


@cython.no_gc_clear     # __dealloc__ needs `variable`; a cycle through it is broken at the tensor
@cython.trashcan(True)
cdef class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives to `.grad`."""

    def __dealloc__(self):
        if self.variable is not None:
            self.variable.accumulator = NULL

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        if grads[0] is not NULL:
            accumulate(self.variable, <TensorImpl>grads[0])
        return 0


make_untracked(AccumulateGrad)


cdef Node gradient_edge(TensorImpl tensor, int* output_nr):
    """Return the node that the gradient of a tensor goes to; None if it needs none. The one reader of `tensor.node`."""
    cdef AccumulateGrad node
    output_nr[0] = tensor.output_nr
    if tensor.node is not None:
        return tensor.node
    if not tensor.flags & REQUIRES_GRAD:
        return None
    if tensor.accumulator is not NULL:
        return <AccumulateGrad>tensor.accumulator
    node = AccumulateGrad.__new__(AccumulateGrad)
    init_node(node, 1)
    node.variable = tensor
    tensor.accumulator = <void*>node
    if tensor.flags & TENSOR_TRACKED:
        track_node(node)
    return node


cdef int connect(Node node, int index, TensorImpl tensor) except -1:
    """Make the edge from a node to where the gradient of its input `index` goes."""
    cdef int output_nr = 0
    cdef Node target = gradient_edge(tensor, &output_nr) if tensor is not None else None
    return set_edge(node, index, target, output_nr)


cdef int attach(TensorImpl result, Node node, int output_nr) except -1:
    """Make a tensor the output of a node."""
    result.node, result.output_nr = node, output_nr
    result.flags |= REQUIRES_GRAD
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
    return type(<object>object) is tuple or type(<object>object) is list or type(<object>object) is dict or isinstance(<object>object, Hooks)


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
