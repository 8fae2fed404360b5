"""Parts of a tensor along a dim, beside `split` and `chunk`: views cut in other ways, and copies.

Loaded at first use.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from cygrad._core.compute.indexing import check_views
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad.operators.arguments import checked_tensor
from cygrad.operators.elementwise import publish


# ----- Views -----
def _cuts(name: str, *given: Any) -> Any:
    """Return what one of several parameters says: a number of sections, or indices."""
    chosen = [value for value in given if value is not None]
    if len(chosen) != 1:
        raise TypeError(f"{name}() {'missing 1 required positional argument' if not chosen else 'takes one'}: sections or indices")
    if not isinstance(chosen[0], TensorImpl):
        return chosen[0]
    if chosen[0].dtype.kind != "i":
        raise RuntimeError(f"{name} expected tensor_indices_or_sections to have dtype of long, but got {chosen[0].dtype}")
    return chosen[0].tolist()


def tensor_split(input: Any, indices_or_sections: Any = None, dim: int = 0, *, sections: Any = None, indices: Any = None,
                 tensor_indices_or_sections: Any = None) -> tuple[Any, ...]:
    """Views of parts along `dim`: so many of nearly one size, or cut at the indices in a tuple or tensor.

    >>> import cygrad
    >>> cygrad.tensor_split(cygrad.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    checked_tensor("tensor_split", input)
    if input.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = normalized_dim(dim, input.ndim)
    size = input.shape[d]
    cuts = _cuts("tensor_split", indices_or_sections, sections, indices, tensor_indices_or_sections)
    if isinstance(cuts, tuple | list):
        bounds = [0, *cuts, size]
        parts = [slice(start, stop) for start, stop in itertools.pairwise(bounds)]
        parts[-1] = slice(bounds[-2], None)
    else:
        if cuts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {cuts}")
        least, more = divmod(size, cuts)
        check_views(cuts)
        parts = [slice(0)] * cuts
        for number in range(cuts):
            start = number * least + min(number, more)
            parts[number] = slice(start, start + least + (number < more))
    return tuple(input[(slice(None),) * d + (part,)] for part in parts)


def _split_along(name: str, least: int, place: int) -> Callable[..., Any]:
    def function(input: Any, indices_or_sections: Any = None, *, sections: Any = None, indices: Any = None) -> tuple[Any, ...]:
        checked_tensor(name, input)
        cuts = _cuts(name, indices_or_sections, sections, indices)
        if input.ndim < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {input.ndim} "
                               "dimensions!")
        dim = 0 if input.ndim == 1 else place
        if isinstance(cuts, int) and (not cuts or input.shape[dim] % cuts):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {input.shape[dim]} "
                               f"is not divisible by the split_size {cuts}!")
        return tensor_split(input, cuts, dim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"Views of parts along dim {place}; see `tensor_split`, but sections are of one size.\n\n"
                        f">>> import cygrad\n>>> len(cygrad.{name}(cygrad.zeros(2, 2, 2), 2))\n2\n")
    return function


hsplit = _split_along("hsplit", 1, 1)
vsplit = _split_along("vsplit", 2, 0)
dsplit = _split_along("dsplit", 3, 2)


# ----- Copies -----
def unsafe_split(input: Any, split_size: Any, dim: int = 0) -> Any:
    """Return the parts that `split` gives as copies, which may be changed in place.

    (In torch they share the memory of the whole, and gradients are wrong where both are changed.)

    >>> import cygrad
    >>> cygrad.unsafe_split(cygrad.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return tuple(part.clone() for part in checked_tensor("unsafe_split", input).split(split_size, dim))


def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """Return the parts that `split_with_sizes` gives as copies; see `unsafe_split`."""
    return tuple(part.clone() for part in checked_tensor("unsafe_split_with_sizes", input).split_with_sizes(split_sizes, dim))


def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """Return the parts that `chunk` gives as copies; see `unsafe_split`."""
    return tuple(part.clone() for part in checked_tensor("unsafe_chunk", input).chunk(chunks, dim))


publish(__name__, globals())
