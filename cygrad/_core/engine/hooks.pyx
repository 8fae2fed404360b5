"""Hooks on gradients and nodes, called (see hooks.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from cygrad._core.graph.history cimport AccumulateGrad
from cygrad._core.graph.node cimport Hooks, NODE_ACCUMULATES, NODE_STANDS_FOR_SEVERAL, Node, grads_list, leaf_of
from cygrad._core.graph.tensor cimport BATCHED, TensorImpl
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport dtypes
from cygrad._core.operands.operands cimport same_shape


from cygrad._core.compute.dispatch import ops


cdef int refuse_many(TensorImpl grad) except -1:
    """Refuse to keep a gradient, where that is one of many."""
    if grad.flags & BATCHED:
        raise RuntimeError("a gradient for each of many examples arrived at a leaf that is the same for all of them, or at a tensor that "
                           "retains its gradient, and .grad holds one: use autograd.grad(), or func.grad()")
    return 0


cdef int put(PyObject** reference, object grad) except -1:
    """Set a gradient of an array; None makes it undefined."""
    cdef PyObject* old = reference[0]
    if grad is not None:
        Py_INCREF(grad)
    reference[0] = <PyObject*>grad if grad is not None else NULL
    Py_XDECREF(old)
    return 0


cdef int check_hook_result(object old, object result, object hook) except -1:
    """Refuse a value that may not replace a gradient."""
    cdef TensorImpl before, after
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(result, TensorImpl):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'; return a Tensor or None")
    before, after = old, result
    if before.dtype_nr != after.dtype_nr:
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the type of value (was {dtypes[before.dtype_nr].name} got "
                           f"{dtypes[after.dtype_nr].name}); convert it with .to()")
    if not same_shape(before, after):
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the size of value: it got {list(sizes_tuple(before.ndim, before.sizes))} "
                           f"and returned {list(sizes_tuple(after.ndim, after.sizes))}")
    return 0


cdef object hook_name(object hook):
    return getattr(hook, "__name__", "<unknown>")


cdef tuple check_results(tuple old, object result, object hook):
    """Refuse a value that may not replace a tuple of gradients; None leaves them, None inside it makes one undefined."""
    cdef Py_ssize_t k
    if result is None:
        return old
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'; return a tuple of {len(old)} gradients, or None")
    if len(result) != len(old):
        raise RuntimeError(f"hook '{hook_name(hook)}' has returned an incorrect number of values (got {len(result)}, but expected "
                           f"{len(old)})")
    for k in range(len(old)):
        if (<tuple>result)[k] is not None:
            check_hook_result(old[k], (<tuple>result)[k], hook)
    return result


cdef int call_on_one(object table, PyObject** reference) except -1:
    for hook in list((<dict>table).values()):
        grad = <object>reference[0] if reference[0] is not NULL else None
        result = hook(grad)
        if result is not None and result is not grad:
            check_hook_result(grad, result, hook)
            put(reference, result)
    return 0


cdef int call_tensor_hooks(Node node, PyObject** grads) except -1:
    """Call the hooks on the gradients of a node's outputs, then set `.grad` of the tensors that retain theirs."""
    cdef Hooks hooks = node.hooks
    if node.flags & NODE_ACCUMULATES:
        hooks = leaf_of(node).extra
    if hooks is None:
        return 0
    for number, table in list(hooks.tensor.items()):
        if grads[<int>number] is not NULL or not node.flags & NODE_STANDS_FOR_SEVERAL:
            call_on_one(table, &grads[<int>number])
    for number, reference in list(hooks.retained.items()):
        tensor = reference()
        if tensor is not None and (<TensorImpl>tensor).node is node and grads[<int>number] is not NULL:
            keep_grad(tensor, <TensorImpl>grads[<int>number])
    return 0


cdef int keep_grad(TensorImpl tensor, TensorImpl grad) except -1:
    """Add to the `.grad` of a non-leaf: always a new tensor, dense at first, so no reference sees it change."""
    refuse_many(grad)
    if tensor.gradient is not None:
        tensor.gradient = ops["add"](tensor.gradient, grad)
    else:
        tensor.gradient = (<object>grad).contiguous()
        if tensor.gradient is grad:
            tensor.gradient = (<object>grad).clone()
    if tensor.gradient.node is not None:
        track_reachable(tensor)
    return 0


cdef int call_prehooks(Hooks hooks, PyObject** grads, int count) except -1:
    """Call a node's hooks on the gradients of its outputs."""
    cdef tuple items = tuple(grads_list(grads, count))
    for hook in list((<dict>hooks.pre).values()):
        items = check_results(items, hook(items), hook)
    for k in range(count):
        put(&grads[k], items[k])
    return 0


cdef int call_posthooks(Hooks hooks, PyObject** results, int edges, tuple grads) except -1:
    """Call a node's hooks on the gradients of its inputs and of its outputs."""
    cdef tuple items = tuple(grads_list(results, edges))
    for hook in list((<dict>hooks.post).values()):
        items = check_results(items, hook(items, grads), hook)
    for k in range(edges):
        put(&results[k], items[k])
    return 0


cdef int call_accumulated_hooks(AccumulateGrad node) except -1:
    """Call the hooks of a leaf after its gradient was added to."""
    cdef Hooks hooks = leaf_of(node).extra
    if hooks is None or hooks.accumulated is None:
        return 0
    for hook in list((<dict>hooks.accumulated).values()):
        result = hook(leaf_of(node))
        if result is not None and not isinstance(result, TensorImpl):
            raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'; return None")
        if result is not None:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    return 0
