"""Containers among the arguments of a call and in its results: the containers of `cygrad.pytree`, instances of dataclasses included."""

from __future__ import annotations

import operator
from dataclasses import fields
from enum import Enum
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cygrad._core.capture.captured import Uncapturable
from cygrad._core.capture.layouts import Hole, Made
from cygrad._core.capture.signature import attributes_of, is_local_function, is_record, variables_of
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.memory.sizes import Size
from cygrad._core.memory.storage import DType
from cygrad.pytree import DEEPEST, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

PLAIN = (int, float, complex, str, bytes, bool, type(None), np.bool_, np.number, DType, Size)
FACTORIES = (None, int, float, list, dict, set, tuple)      # of a defaultdict: others may be made by the call


def items_of(value: Any) -> tuple[list[Any], Any]:
    """Return the items of a container and its structure; of another value, and of an object with more than its fields, None for these."""
    if is_record(value):
        return opened(value) if vars(value).keys() == {field.name for field in fields(value)} else ([], None)
    is_object = hasattr(type(value), "__dataclass_fields__") or isinstance(value, (tuple, dict)) and bool(getattr(value, "__dict__", None))
    return ([], None) if is_object else opened(value)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return a container of the results of a function for its items; itself if they are the same."""
    items, spec = items_of(value)
    if spec is None:
        return value
    results = list(map(function, items))
    return value if all(map(operator.is_, results, items)) else spec.unflatten(results)


def items_of_function(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any] | None]:
    """Return the values that a partial function, or a local one, has besides its code, and the function that makes one of others."""
    if type(value) is partial and not value.__dict__:
        count = len(value.args) + 1
        return ([value.func, *value.args, *value.keywords.values()],
                lambda items: partial(*items[:count], **dict(zip(value.keywords, items[count:], strict=True))))
    if not is_local_function(value):
        return [], None
    count, empty = len(value.__defaults__ or ()), CellType()

    def again(items: list[Any]) -> FunctionType:
        rest = iter(items[count:])
        closure = tuple(cell if cell == empty else CellType(next(rest)) for cell in value.__closure__ or ())
        result = FunctionType(value.__code__, value.__globals__, value.__name__, tuple(items[:count]) or None, closure)
        result.__qualname__, result.__doc__, result.__annotations__ = value.__qualname__, value.__doc__, value.__annotations__
        result.__dict__.update(zip(attributes_of(value), rest, strict=True))
        return result

    return variables_of(value), again


def containers_in(tree: Any) -> dict[int, Any]:
    """Return the containers in a tree, which may contain itself, sparse tensors, partial and local functions, methods of records, by id."""
    met: dict[int, Any] = {}
    values = [tree]
    while values:
        value, is_container = values.pop(), True
        if isinstance(value, partial):
            items = [value.func, value.args, value.keywords]
        elif isinstance(value, MethodType) and is_record(value.__self__):
            items = [value.__self__]
        elif is_local_function(value):
            items = [each for each in variables_of(value) if is_local_function(each)]
        else:
            items, spec = ([*vars(value).values()], value) if is_record(value) else items_of(value)
            is_container = spec is not None or sparse_part(value) is not None
        if is_container and id(value) not in met:
            met[id(value)] = value
            values += items
    return met


def take_apart(value: Any, tensors: list[Any], outside: Collection[int] = (), levels: int = DEEPEST) -> Any:
    """Return a value with holes for its tensors, which are appended; Uncapturable for objects that may differ each time.

    Numbers that are inputs are appended in place of their tensors, from which the template makes numbers.

    outside: ids of containers and sparse tensors that are no new ones.
    """
    met = {*outside} if levels == DEEPEST else cast("set[int]", outside)        # containers of the value are added
    part = sparse_part(value)
    if part is not None:
        if id(value) in met:
            raise Uncapturable("it returns a sparse tensor from outside, or twice: return a copy, by .clone()")
        met.add(id(value))
        return Made(partial(sparse_again, part.pattern), [take_apart(part.inner, tensors, met, levels - 1)])
    if isinstance(value, TensorImpl):
        if id(value) in met:
            for number, tensor in enumerate(tensors):
                if tensor is value:
                    return Hole(number)
        met.add(id(value))
        tensors.append(value)
        return Hole(len(tensors) - 1)
    if hasattr(type(value), "__of_tensors__"):
        tensors.append(value)
        return Made(value.__of_tensors__, [Hole(len(tensors) - 1)])
    if isinstance(value, PLAIN) and (isinstance(value, Enum) or not getattr(value, "__dict__", None)):
        return value
    items, spec = items_of(value)
    if spec is None or isinstance(value, dict) and not has_plain_keys(value):
        raise Uncapturable(f"it returns a {type(value).__name__}: return tensors, numbers, tuples, lists, dicts and dataclasses")
    if id(value) in met and not isinstance(value, tuple):
        raise Uncapturable(f"it returns a {type(value).__name__} from outside, or twice: return a new one")
    met.add(id(value))
    if not levels:
        raise Uncapturable(f"it returns containers that are nested more than {DEEPEST} deep, or contain themselves")
    parts = [take_apart(item, tensors, met, levels - 1) for item in items]
    is_native = isinstance(value, (tuple, list)) or type(value) is dict     # in C
    return spec.unflatten(parts) if is_native else Made(spec.unflatten, parts)


def sparse_again(pattern: Any, items: list[Any]) -> Any:
    """Return the sparse tensor of values; the pattern where a loop, which takes no sparse tensors, asks for numbers of results."""
    return pattern.around(items[0]) if isinstance(items[0], TensorImpl) else pattern


def is_plain_key(key: Any) -> bool:
    return all(map(is_plain_key, key)) if isinstance(key, tuple) else isinstance(key, PLAIN)


def has_plain_keys(value: dict[Any, Any]) -> bool:
    """Return True for a dict that can be made again: of keys, and by a function for missing ones, that are the same each time."""
    return (all(map(is_plain_key, value))
            and any(getattr(value, "default_factory", None) is factory for factory in FACTORIES))
