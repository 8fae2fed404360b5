"""Hooks: registered by a handle, called by the engine (see hooks.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from cygrad._core.graph.node cimport AccumulateGrad, Hooks, NODE_ACCUMULATES, Node, grads_list, leaf_of, refresh
from cygrad._core.graph.tensor cimport BATCHED, TensorImpl
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport dtypes
from cygrad._core.operands.operands cimport same_shape

import gc
import itertools
import types
import weakref

from cygrad._core.compute.dispatch import ops
from cygrad._core.graph.node import HookTable


# ----- Registering -----
identifiers = itertools.count()
cdef unsigned long long registered = 0      # so far, in all threads


def hooks_registered():
    """Return how many hooks have been registered so far: whether there are new ones."""
    return registered


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away; also a context manager."""

    def __init__(self, hooks_dict):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = next(identifiers)

    def remove(self):
        """Take the hook away; more than once does no harm."""
        table = self.hooks_dict_ref()
        if table is not None:
            table.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, kind=None, error=None, traceback=None):
        self.remove()


def register_among(Hooks hooks not None, str kind, hook):
    """Put a hook among those of a kind (`pre`, `post` or `accumulated`) and return its handle."""
    table = getattr(hooks, kind)
    if table is None:
        table = HookTable()
        setattr(hooks, kind, table)
    return register(table, hook)


def register(table, hook):
    """Put a hook into a table of hooks and return its handle."""
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    track_what_it_holds(hook)
    global registered
    registered += 1
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def exchange_hooks(TensorImpl leaf not None, hooks):
    """Give a leaf other hooks, or None, and return those it had."""
    before, leaf.extra = leaf.extra, hooks
    return before


def hook_table(TensorImpl tensor not None):
    """Return the table of hooks on a tensor's gradient; None where there is none."""
    refresh(tensor)
    hooks, output_nr = (tensor.extra, 0) if tensor.node is None else (<object>tensor)._hooks()
    return None if hooks is None else hooks.tensor.get(output_nr)


def set_hook_table(TensorImpl tensor not None, table):
    """Put a table (None: none) in the place of that of a tensor's hooks; a leaf may get one before it requires a gradient."""
    if table is not None and not isinstance(table, dict):
        raise TypeError(f"_backward_hooks must be a dict of hooks or None, got {type(table).__name__}")
    refresh(tensor)
    if tensor.node is None and tensor.extra is None:
        tensor.extra = Hooks()
    hooks, output_nr = (tensor.extra, 0) if tensor.node is None else (<object>tensor)._hooks()
    hooks.tensor.pop(output_nr, None)
    if table is not None:
        track_what_it_holds(table)
        track_reachable(tensor)
        hooks.tensor[output_nr] = table


cdef enum:
    WALKED = 1000       # objects that are looked at below one hook


cdef int track_what_it_holds(object hook) except -1:
    """Hand the tensors and nodes that a hook holds to the garbage collector, for it may close a cycle through them.

    Walks through closures, instances and containers, not through globals and modules; a bounded number of objects.
    """
    cdef list stack = [hook]
    cdef set seen = set()
    while stack and len(seen) < WALKED:
        item = stack.pop()
        if isinstance(item, (TensorImpl, Node)):
            track_reachable(item)
        elif id(item) not in seen and not isinstance(item, (type, types.ModuleType)):
            seen.add(id(item))
            if isinstance(item, types.FunctionType):
                stack.extend(gc.get_referents(item.__closure__, item.__defaults__, item.__kwdefaults__, item.__dict__))
            else:
                stack.extend(gc.get_referents(item))
    return 0


# ----- Calling -----
cdef int refuse_many(TensorImpl grad) except -1:
    """Refuse to keep a gradient, where that is one of many."""
    if grad.flags & BATCHED:
        raise RuntimeError("a gradient for each of many examples arrived at a leaf that is the same for all of them, or at a tensor that "
                           "retains its gradient, and .grad holds one: use autograd.grad(), or func.grad()")
    return 0


cdef int put(PyObject** place, object grad) except -1:
    """Set a gradient of an array; None makes it undefined."""
    cdef PyObject* old = place[0]
    if grad is not None:
        Py_INCREF(grad)
    place[0] = <PyObject*>grad if grad is not None else NULL
    Py_XDECREF(old)
    return 0


cdef int check_result(object old, object result, object hook) except -1:
    """Refuse what may not take the place of a gradient."""
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
    """Refuse what may not take the place of a tuple of gradients; None leaves them, None inside it makes one undefined."""
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
            check_result(old[k], (<tuple>result)[k], hook)
    return result


cdef int call_on_one(object table, PyObject** place) except -1:
    for hook in list((<dict>table).values()):
        grad = <object>place[0] if place[0] is not NULL else None
        result = hook(grad)
        if result is not None and result is not grad:
            check_result(grad, result, hook)
            put(place, result)
    return 0


cdef int call_tensor_hooks(Node node, PyObject** grads) except -1:
    """Call what hangs on the gradients of a node's outputs: hooks, then the tensors that keep their gradient."""
    cdef Hooks hooks = node.hooks
    if node.flags & NODE_ACCUMULATES:
        hooks = leaf_of(node).extra
    if hooks is None:
        return 0
    for number, table in list(hooks.tensor.items()):
        call_on_one(table, &grads[<int>number])
    for number, reference in list(hooks.retained.items()):
        tensor = reference()
        if tensor is not None and (<TensorImpl>tensor).node is node and grads[<int>number] is not NULL:
            keep_grad(tensor, <TensorImpl>grads[<int>number])
    return 0


cdef int keep_grad(TensorImpl tensor, TensorImpl grad) except -1:
    """Add to the `.grad` of a non-leaf: always a new tensor, dense at first, so nobody sees it change."""
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
    """Call a node's hooks on the gradients of its inputs and those of its outputs that it computed them from."""
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
