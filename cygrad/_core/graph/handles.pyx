"""Hooks registered among others in a table, each by a handle; the engine calls them."""
from cygrad._core.graph.history cimport refresh
from cygrad._core.graph.node cimport NODE_ACCUMULATES, Hooks, Node
from cygrad._core.graph.notes cimport current_notes, is_noting
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.graph.tracking cimport track_reachable

import gc
import itertools
import types
import weakref


class HookTable(dict):
    """Hooks by the id of their handle, which has a weak reference to this."""

    __slots__ = ("__weakref__",)


identifiers = itertools.count()
cdef unsigned long long registered = 0      # so far, in all threads


def hooks_registered():
    """Return how many hooks have been registered so far: whether there are new ones."""
    return registered


class RemovableHandle:
    """The handle of a registered hook: `remove()` takes the hook away; also a context manager."""

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


cpdef object register_among(Hooks hooks, str kind, object hook, Node node=None):
    """Add a hook to a table (`pre` or `post` of a node, or `accumulated` of a leaf) and return its handle."""
    table = getattr(hooks, kind)
    if table is None:
        table = HookTable()
        setattr(hooks, kind, table)
    if is_noting() and (node is None or node.flags & NODE_ACCUMULATES or node.sequence_nr <= current_notes().looks.newest_node):
        current_notes().hooks_outside = True
    return register(table, hook)


cpdef object register(object table, object hook):
    """Put a hook into a table of hooks and return its handle."""
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    track_held_objects(hook)
    global registered
    registered += 1
    handle = RemovableHandle(table)
    if is_noting():
        current_notes().hooks.append(hook)
        if current_notes().repeats:
            current_notes().handles.append(handle)
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
    """Replace the table of a tensor's hooks (None: none); a leaf may get one before it requires a gradient."""
    if table is not None and not isinstance(table, dict):
        raise TypeError(f"_backward_hooks must be a dict of hooks or None, got {type(table).__name__}")
    refresh(tensor)
    if tensor.node is None and tensor.extra is None:
        tensor.extra = Hooks()
    hooks, output_nr = (tensor.extra, 0) if tensor.node is None else (<object>tensor)._hooks()
    hooks.tensor.pop(output_nr, None)
    if table is not None:
        track_held_objects(table)
        track_reachable(tensor)
        hooks.tensor[output_nr] = table


cdef enum:
    WALKED = 1000       # objects that are looked at below one hook


cdef int track_held_objects(object hook) except -1:
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
