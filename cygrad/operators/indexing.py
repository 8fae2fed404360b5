"""Parts of a tensor by an index: views, look-up by tensors and masks, and writes to such places."""

from __future__ import annotations

import builtins
from operator import index as integer
from typing import TYPE_CHECKING, Any

from cygrad._core.compute import indexing
from cygrad._core.compute.creation import scalar_tensor
from cygrad._core.compute.indexing import is_several_indices
from cygrad._core.entry import operators
from cygrad._core.graph.rules import declare_rule
from cygrad._core.levels.batches import batched_level
from cygrad._core.memory.sizes import normalized_dim
from cygrad.data import creation
from cygrad.operators._language.batches import behind, is_tensor, named_arguments
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.tangents import first_linear, linear

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Index, Operand


# ----- Indices of many examples -----
def _is_array(item: Any) -> bool:
    """Return True if an item of an index looks elements up: not an int, slice, None or Ellipsis."""
    if item is None or item is Ellipsis or isinstance(item, builtins.slice):
        return False
    return not hasattr(item, "__index__") or isinstance(item, bool) or getattr(item, "ndim", 0) > 0 or "bool" in _dtype_name(item)


def _dtype_name(item: Any) -> str:
    return str(getattr(item, "dtype", ""))


def _is_mask(item: Any) -> bool:
    return isinstance(item, bool) or "bool" in _dtype_name(item) or is_tensor(item) and "uint8" in _dtype_name(item)


def _lookup(level: Any, x: Tensor, ndim_of_example: int, key: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Return an index into all examples of a tensor, and where its dims go in the result: all examples first, then one's dims."""
    items_of_key = key if isinstance(key, tuple) else tuple(key) if isinstance(key, list) and is_several_indices(key) else (key,)
    if all(isinstance(item, builtins.slice) for item in items_of_key):
        return (builtins.slice(None), *items_of_key), None
    items = [creation.tensor(item) if isinstance(item, (tuple, list, range)) and item else item for item in items_of_key]
    arrays = [item for item in items if _is_array(item)]
    example = next(filter(level.holds, items), None)
    if example is None:
        places = [k for k, item in enumerate(items) if _is_array(item) or arrays and hasattr(item, "__index__")]
        if not arrays or places[-1] - places[0] == len(places) - 1:
            return (builtins.slice(None), *items), None
        # Dims of index arrays that stand apart come first, before the examples' dims.
        dims = max(1 if _is_mask(item) else getattr(item, "ndim", 1) for item in arrays)
        return (builtins.slice(None), *items), (dims, *range(dims))
    if any(map(_is_mask, items)):
        raise RuntimeError("vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing "
                           "with a boolean mask: use where().")
    if any(item is Ellipsis for item in items):
        place = next(k for k, item in enumerate(items) if item is Ellipsis)
        used = sum(item is not None and item is not Ellipsis for item in items)
        items[place:place + 1] = [builtins.slice(None)] * (ndim_of_example - used)
    kinds = [_is_array(item) or hasattr(item, "__index__") for item in items]
    ndim = max(getattr(item, "ndim", 1 if _is_array(item) else 0) for item, kind in zip(items, kinds, strict=True) if kind)
    looked = []
    for item, kind in zip(items, kinds, strict=True):
        if kind and level.holds(item):
            item = level.enter(item)
            item = item.reshape([level.size] + [1] * (ndim + 1 - item.ndim) + list(item.shape[1:]))
        looked.append(item)
    examples = example.new_arange(level.size).reshape([level.size] + [1] * ndim)
    first, last = kinds.index(True), len(kinds) - 1 - kinds[::-1].index(True)
    before = first if all(kinds[first:last + 1]) else 0
    order = None if not before else (0, *range(1 + ndim, 1 + ndim + before), *range(1, 1 + ndim))
    return (examples, *looked), order


def _in_order(result: Tensor, order: tuple[int, ...] | None) -> Tensor:
    """Return a result with the dims named by `order` in front."""
    return result if order is None else result.permute(*order, *range(len(order), result.ndim))


# ----- Parts -----
def _zeros_around(g: Tensor, shape: Sequence[int], key: Any) -> Tensor:
    """Return the gradient of a view of a basic index."""
    return g._scatter_key(shape, key, False)


def _part(whole: Tensor, key: Any) -> Tensor:
    return whole[key]


declare_rule("slice", dinput=_zeros_around, place=_part)
declare_rule("index", dinput=lambda g, shape, key: g._scatter_key(shape, key, True),
             into=lambda whole, g, key: indexing.add_at(whole, key, g))


def _item_of_examples(level: Any, operator: Any, x: Tensor, key: Any) -> Tensor:
    index, order = _lookup(level, x, x.ndim, key)
    return level.leave(_in_order(operator(level.enter(x), index), order))


@operator(operators._item_at, tangent=first_linear, batch=_item_of_examples)
def __getitem__(input: Tensor, key: Index) -> Tensor:
    """The elements at an index: a view where it holds ints and slices only, else a copy."""


def _part_of_examples(level: Any, operator: Any, *arguments: Any, **keywords: Any) -> Tensor:
    x, dim, *places = named_arguments(operator, arguments, keywords).arguments.values()
    if not x.ndim:
        raise IndexError(f"{operator.name}() cannot be applied to a 0-dim tensor.")
    return level.leave(operator(level.enter(x), behind(dim, x.ndim), *map(integer, places)))


@operator(indexing.select, dinput=_zeros_around, place=_part, tangent=linear, batch=_part_of_examples, copy=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """View at one index of a dim, which is dropped.

    >>> import cygrad
    >>> cygrad.arange(6).reshape(2, 3).select(1, 2)
    tensor([2, 5])
    """


@operator(indexing.narrow, tangent=linear, batch=_part_of_examples, copy="method")
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """View of `length` elements from `start` on along a dim; `start` is an int, or a 0-d tensor of one.

    >>> import cygrad
    >>> cygrad.arange(5).narrow(0, 1, 3)
    tensor([1, 2, 3])
    """


@operator(method=False, copy=True)
def slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """View of the elements along a dim from `start` to before `end`, each `step`-th; ends are as in Python's slices.

    Raises:
        RuntimeError: a step that is not positive.
        IndexError: a tensor without dims, or a dim that it does not have.

    >>> import cygrad
    >>> cygrad.slice(cygrad.arange(6), 0, 1, 5, 2)
    tensor([1, 3])
    """
    if not input.ndim:
        raise IndexError(f"{slice.__name__}() cannot be applied to a 0-dim tensor.")
    place = normalized_dim(dim, input.ndim)
    if step <= 0:
        raise RuntimeError(f"slice step must be positive, got {step}")
    return input[(builtins.slice(None),) * place + (builtins.slice(start, end, step),)]


# ----- Writing -----
def _check_target(level: Any, operator: Any, x: Tensor, *others: Any) -> None:
    if not level.holds(x) and any(map(level.holds, others)):
        raise RuntimeError("vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
                           "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but `self` "
                           f"not being vmapped over in a vmap. Please try to use out-of-place operators instead of {operator.name}.")


def _set_item_of_examples(level: Any, operator: Any, x: Tensor, key: Any, value: Any) -> None:
    _check_target(level, operator, x, value, *(key if isinstance(key, tuple) else (key,)))
    index, order = _lookup(level, x, x.ndim, key)
    x = level.enter(x)
    if not is_tensor(value) and hasattr(value, "__len__"):
        value = x.new_tensor(value)
    if is_tensor(value):        # which must not broadcast to the examples
        if not value.ndim and any(map(_is_array, index)):
            value = scalar_tensor(value, x.dtype)
        value, ndim = level.enter(value), x[index].ndim
        while value.ndim > ndim and value.shape[1] == 1:
            value = value.squeeze(1)
        value = value[(builtins.slice(None),) + (None,) * (ndim - value.ndim)]
        if order is not None:
            value = value.permute([(*order, *range(len(order), ndim)).index(d) for d in range(ndim)])
    operator(x, index, value)


@operator(operators._set_item_at, tangent="written", batch=_set_item_of_examples)
def __setitem__(input: Tensor, key: Index, value: Operand) -> None:
    """Write a tensor or a number, broadcast, to an index."""


def with_value_at(x: Tensor, key: Any, value: Any) -> Tensor:
    """Return a copy with a value at an index; it differs among examples where one of the arguments does."""
    for item in (value, *(key if isinstance(key, tuple) else (key,))):
        if is_tensor(item) and batched_level(item) is not None:
            x = x.where(item.new_ones(()) != 0, x)
    result = x.clone()
    result[key] = value
    return result


@operator
def _with_zeros_at(input: Tensor, key: Index) -> Tensor:
    """Return a copy with zeros at an index."""
    return with_value_at(input, key, 0)


def _scatter_examples(level: Any, operator: Any, x: Tensor, shape: Sequence[int], key: Any, accumulate: bool) -> Tensor:
    """Put the examples of a gradient where an index has taken them from."""
    x, zeros = level.enter(x), None
    index, order = _lookup(level, x, len(shape), key)
    if order is not None:
        zeros = x.permute([(*order, *range(len(order), x.ndim)).index(d) for d in range(x.ndim)])
    return level.leave(operator(x if zeros is None else zeros, (level.size, *shape), index, accumulate))


@operator(indexing._scatter_key, dinput=lambda g, key: g[key], tangent=first_linear, batch=_scatter_examples)
def _scatter_key(input: Tensor, shape: Sequence[int], key: Index, accumulate: bool) -> Tensor:
    """Return zeros of a shape with `input` at an index, summed there where the index repeats; the transpose of indexing."""
