"""Handing tensors and nodes over to the garbage collector (see tracking.pxd for the contract)."""
from cpython.object cimport PyObject
from libc.stdlib cimport free, realloc

from cygrad._core.graph.node cimport NODE_TRACKED, Hooks, Node
from cygrad._core.graph.saved cimport SavedTensor
from cygrad._core.graph.tensor cimport TENSOR_TRACKED, TensorImpl

cdef extern from "Python.h":
    void PyObject_GC_Track(void* object)
    int PyObject_GC_IsTracked(PyObject* object)

cdef extern from "memory/type_slots.h":
    int cg_traverse(PyObject* object, int (*visit)(PyObject*, void*) noexcept, void* argument) noexcept


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
    PyObject** items        # borrowed: each object here has a reference from one that was walked before
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
    """Return True if an object may stand between two vertices: the containers of edges, parameters and hooks of nodes."""
    cdef type kind = type(<object>object)
    return kind is tuple or kind is list or isinstance(<object>object, dict) or kind is Hooks or kind is SavedTensor


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
