"""Values of Python that a run besides the call of the user has changed: they are put back."""

from __future__ import annotations

import operator
from array import array
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.capture.guards import GuardRole, GuardSource, base_of, first_broken, plain_iterator
from cygrad._core.capture.restoring import restoring

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cygrad._core.capture.guards import Guard
    from cygrad.compiling.observing import Observation


def undone_in_python(observation: Observation) -> restoring[None]:
    """Undo changes of the values that an observation guards, and of containers among its arguments.

    Code in C that has a state which no guard sees does not run: the observation ends it before.
    """
    before = [(value, contents_of(value)) for value in observation.containers.values()]

    def end(_: object) -> None:
        for value, contents in before:
            if contents is not None and not are_like(contents, contents_of(value)):
                fill(value, contents)
        changed = [guard for guard, tensor in observation.tensors if guard.value_now() is not tensor]       # to another one of its kind
        if first_broken(observation.guards, []) is not None:
            changed += [guard for guard in observation.guards if first_broken([guard], []) is not None]
        for guard in sorted(changed, key=lambda guard: guard.source != GuardSource.SIZE):
            with suppress(Exception):       # of a value that cannot be set
                put_back(guard, observation.values)

    return restoring(end)


def contents_of(value: Any) -> Any:
    """Return the items of a list or a dict, or the attributes of an object; None for another value."""
    if isinstance(value, list):
        return list.copy(value)
    if isinstance(value, dict):
        return dict(base_of(value).items(value))
    return dict(vars(value)) if hasattr(value, "__dict__") else None


def are_like(ours: Any, theirs: Any) -> bool:
    """Return True if two copies of contents have the same objects in one order."""
    pairs = [(ours, theirs)] if isinstance(ours, list) else [(ours.keys(), theirs.keys()), (ours.values(), theirs.values())]
    return len(ours) == len(theirs) and all(all(map(operator.is_, mine, others)) for mine, others in pairs)


def fill(value: Any, contents: Any) -> None:
    """Give a container, or an object, its former contents."""
    if isinstance(value, list):
        list.__setitem__(value, slice(None), contents)
        return
    names: Any = value if isinstance(value, dict) else vars(value)
    kind = base_of(names)
    kind.clear(names)
    for key, item in contents.items():
        kind.__setitem__(names, key, item)


def put_back(guard: Guard, values: Mapping[int, Any]) -> None:
    """Give a guarded place its former value."""
    source, holder, name, value = guard.source, guard.holder, guard.name, values.get(id(guard))
    is_absent = guard.role == GuardRole.ABSENT
    if source == GuardSource.SIZE:
        resize(holder, guard.value)
    elif source == GuardSource.NAMES:
        for each in name:
            holder.pop(each, None)
    elif guard.role == GuardRole.CONTENT and isinstance(value, np.ndarray):
        _, _, (dtype, shape, *_), content = guard.value
        whole: Any = value
        whole.dtype, whole.shape = dtype, shape
        whole[...] = np.frombuffer(content, dtype).reshape(shape)
    if source == GuardSource.KEY:
        kind = base_of(holder)
        kind.pop(holder, name, None) if is_absent else kind.__setitem__(holder, name, value)
    elif source == GuardSource.ITEM:
        base_of(holder).__setitem__(holder, name, value)
    elif source == GuardSource.CELL and is_absent:
        del holder.cell_contents
    elif source == GuardSource.CELL:
        holder.cell_contents = value
    elif source in (GuardSource.ATTRIBUTE, GuardSource.CLASS_KEY):
        kind = type if isinstance(holder, type) else object
        kind.__delattr__(holder, name) if is_absent else kind.__setattr__(holder, name, value)


def resize(container: Any, size: Any) -> None:
    """Give a container its former length, keys, or bytes; its items have guards of their own."""
    if isinstance(container, dict):
        fill(container, {key: dict.get(container, key) for key in size})
    elif isinstance(container, set):
        set.clear(container)
        set.update(container, size)
    elif isinstance(container, (list, deque)):
        kind, items = base_of(container), [*plain_iterator(container)][:size]
        kind.clear(container)
        kind.extend(container, items + [None] * (size - len(items)))
    elif isinstance(container, type):
        for name in {*vars(container)} - size:
            type.__delattr__(container, name)
    elif isinstance(container, (bytearray, array)):
        del container[:]
        container.extend(size) if isinstance(container, bytearray) else container.frombytes(size)
    else:
        memoryview(container).cast("B")[:] = size
