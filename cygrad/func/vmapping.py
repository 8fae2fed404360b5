"""`vmap`: a function of one example made a function of many, which computes all of them at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.level import enter_level, exit_level
from cygrad.autograd.arguments import given_tensor
from cygrad.autograd.batches import chunks
from cygrad.operators.joining import cat
from cygrad.pytree import broadcast_prefix, tree_flatten, tree_unflatten


def name_of(function: Any) -> str:
    """Return the name of a callable for messages."""
    if hasattr(function, "__name__"):
        return function.__name__
    return f"functools.partial({name_of(function.func)}, ...)" if isinstance(function, functools.partial) else repr(function)


# ----- Arguments -----
def _input_dims(function: Any, in_dims: Any, arguments: tuple[Any, ...]) -> tuple[list[Any], list[Any], Any]:
    """Return the leaves of the arguments, the dim of each that runs over examples (None: the same for all), and their structure."""
    call = f"vmap({name_of(function)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
                         f"{type(in_dims)}.")
    if not arguments:
        raise ValueError(f"vmap({name_of(function)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
                         "over a function with no inputs. The latter is unsupported.")
    leaves, spec = tree_flatten(arguments)
    try:
        dims = broadcast_prefix(in_dims, arguments)
    except ValueError:
        raise ValueError(f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                         f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}.") from None
    for number, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None.")
        tensor = given_tensor(leaf)
        if not isinstance(tensor, TensorImpl) or (tensor is not leaf and not tensor.ndim):     # a number has no dim
            raise ValueError(f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor "
                             "arguments, please use None as the respective in_dim")
        if not -tensor.ndim <= dim < tensor.ndim:
            raise ValueError(f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {tensor.ndim} so "
                             f"expected in_dim to satisfy -{tensor.ndim} <= in_dim < {tensor.ndim}.")
        leaves[number], dims[number] = tensor, dim % tensor.ndim
    return leaves, dims, spec


def _batch_size(leaves: list[Any], dims: list[Any]) -> int:
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                         f"{sizes} for the mapped dimension")
    return sizes[0]


# ----- Results -----
def _output_dims(function: Any, out_dims: Any, outputs: Any) -> tuple[list[Any], list[Any], Any]:
    """Return the leaves of the outputs, the dim for the examples of each, and their structure."""
    leaves, spec = tree_flatten(outputs)
    if isinstance(outputs, TensorImpl) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims, = out_dims
    try:
        return leaves, broadcast_prefix(out_dims, outputs), spec
    except ValueError:
        raise ValueError(f"vmap({name_of(function)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
                         f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}.") from None


def _all_examples(function: Any, output: Any, dim: Any, level: Any) -> Any:
    """Return an output with the examples along a dim of it."""
    name = name_of(function)
    if dim is None:
        if level.holds(output):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return output
    if not isinstance(output, TensorImpl):
        raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean to set out_dims= to "
                         "None for output?")
    examples = level.enter(output)
    return examples.permute(*_moved(dim, examples.ndim)) if dim else examples


def _moved(dim: int, ndim: int) -> list[int]:
    """Return the order of dims in which dim 0 is in another place; IndexError where there is no such place."""
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    order = list(range(1, ndim))
    order.insert(dim % ndim, 0)
    return order


def _batched(function: Callable[..., Any], leaves: list[Any], dims: list[Any], spec: Any, size: int, out_dims: Any, randomness: str,
             keywords: dict[str, Any]) -> Any:
    """Call a function once for all examples."""
    level = enter_level(size, randomness)
    try:
        examples = [leaf if dim is None else level.leave(leaf if dim == 0 else leaf.movedim(dim, 0))
                    for leaf, dim in zip(leaves, dims, strict=True)]
        outputs = function(*tree_unflatten(examples, spec), **keywords)
        result, places, structure = _output_dims(function, out_dims, outputs)
        return tree_unflatten([_all_examples(function, output, dim, level) for output, dim in zip(result, places, strict=True)], structure)
    finally:
        exit_level(level)


def _joined(function: Any, chunks: list[Any], out_dims: Any) -> Any:
    """Join the results of several calls along the dims that run over examples."""
    _, dims, spec = _output_dims(function, out_dims, chunks[0])
    columns = zip(*(tree_flatten(chunk)[0] for chunk in chunks), strict=True)
    return tree_unflatten([column[0] if dim is None else cat(list(column), dim)
                           for column, dim in zip(columns, dims, strict=True)], spec)


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable[..., Any]:
    """Return a function that applies `func` to each of many examples, all at once.

    Args:
        func: takes and returns tensors, or trees of them, for one example.
        in_dims: the dim of each argument that runs over examples, None where it is the same for all: an int, or a tuple with a tree of
            ints for each argument. Keyword arguments are the same for all.
        out_dims: the dim of each result that runs over examples; an int or a tree of them.
        randomness: how random functions behave: "error", "same" numbers for all examples, or "different" ones.
        chunk_size: how many examples to compute at a time; None: all. It bounds the memory.

    Inside, a tensor has the shape of one example, and no value that could decide a branch: `if`, `.item()` and results of a shape
    that depends on values raise RuntimeError; `cygrad.where` is for that. Nests with itself and with derivatives.

    Raises:
        ValueError: dims that do not fit the arguments or results, or sizes that differ.
        NotImplementedError: an operator that has no rule.

    Example:
        >>> import cygrad
        >>> from cygrad.func import vmap
        >>> vmap(cygrad.dot)(cygrad.ones(3, 2), cygrad.ones(3, 2))
        tensor([2., 2., 2.])
        >>> vmap(lambda x, y: x * y, in_dims=(0, None), out_dims=1)(cygrad.arange(2), cygrad.arange(3)).shape
        cygrad.Size([3, 2])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not (isinstance(chunk_size, int) and chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def batched(*arguments: Any, **keywords: Any) -> Any:
        for dim in tree_flatten(out_dims)[0]:
            if dim is not None and not isinstance(dim, int):
                raise ValueError(f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection "
                                 "of ints representing where in the outputs the vmapped dimension should appear.")
        leaves, dims, spec = _input_dims(func, in_dims, arguments)
        size = _batch_size(leaves, dims)
        if chunk_size is None or chunk_size >= size:
            return _batched(func, leaves, dims, spec, size, out_dims, randomness, keywords)
        results = []
        for start, count in chunks(size, chunk_size, randomness):
            parts = [leaf if dim is None else leaf.narrow(dim, start, count) for leaf, dim in zip(leaves, dims, strict=True)]
            results.append(_batched(func, parts, dims, spec, count, out_dims, randomness, keywords))
        return _joined(func, results, out_dims)

    return batched


