"""Parts of a tensor along a dim: views, of one size or cut at places, and copies."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from cygrad._core.compute import splitting
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.tangents import linear
from cygrad.operators.joining import cat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor


# ----- Views with one node -----
def _joined(gs: Sequence[Tensor | None], shape: Sequence[int], sections: Sequence[int], dim: int) -> Tensor:
    """Join the gradients of the parts of a tensor; those that are undefined are zero."""
    some = next(g for g in gs if g is not None)
    return cat([some.new_zeros((*shape[:dim], size, *shape[dim + 1:])) if g is None else g
                for g, size in zip(gs, sections, strict=True)], dim)


def _sections_of(whole: Tensor, sections: Sequence[int], dim: int) -> tuple[Tensor, ...]:
    return whole.split_with_sizes(sections, dim)


def _parts_of_examples(level: Any, operator: Any, x: Tensor, *arguments: Any, **keywords: Any) -> tuple[Tensor, ...]:
    if not x.ndim:
        raise RuntimeError(f"{operator.name} expects at least a 1-dimensional tensor")
    return shifted("dim")(level, operator, x, *arguments, **keywords)


@operator(splitting.split, dinput=_joined, place=_sections_of, tangent=linear, batch=_parts_of_examples, copy=True)
def split(input: Tensor, split_size_or_sections: int | Sequence[int] | None = None, dim: int = 0, *,
          split_size: int | Sequence[int] | None = None) -> tuple[Tensor, ...]:
    """Views of parts along a dim: of one size (the last may be smaller), or of the sizes listed.

    >>> import cygrad
    >>> cygrad.arange(5).split(2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """


@operator(splitting.split_with_sizes, dinput=_joined, place=_sections_of, tangent=linear, batch=_parts_of_examples, copy=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of consecutive parts of the sizes listed.

    >>> import cygrad
    >>> cygrad.arange(3).split_with_sizes([1, 2])
    (tensor([0]), tensor([1, 2]))
    """


@operator(splitting.chunk, tangent=linear, batch=_parts_of_examples)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of parts of equal size along a dim; the last may be smaller.

    >>> import cygrad
    >>> cygrad.arange(5).chunk(2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """


def _stacked(gs: Sequence[Tensor | None], shape: Sequence[int], dim: int) -> Tensor:
    """Return the gradient of a tensor that was cut into slices."""
    return _joined([None if g is None else g.unsqueeze(dim) for g in gs], shape, (1,) * len(gs), dim)


@operator(splitting.unbind, dinput=_stacked, place=lambda whole, dim: whole.unbind(dim),
          tangent=linear, batch=_parts_of_examples, copy=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Views at each index of a dim.

    >>> import cygrad
    >>> cygrad.arange(2).unbind()
    (tensor(0), tensor(1))
    """


# ----- Views cut at places -----
def _cuts(operator: Any, *arguments: Any) -> Any:
    """Return a number of sections, or indices, from whichever parameter has it."""
    chosen = [value for value in arguments if value is not None]
    if len(chosen) != 1:
        raise TypeError(f"{operator.name}() {'missing 1 required positional argument' if not chosen else 'takes one'}: sections or indices")
    if not isinstance(chosen[0], TensorImpl):
        return chosen[0]
    if not chosen[0].dtype.is_integer:
        raise RuntimeError(f"{operator.name} expected tensor_indices_or_sections to have dtype of long, but got {chosen[0].dtype}")
    return chosen[0].tolist()


@operator(forms=True)
def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor | None = None, dim: int = 0, *,
                 sections: int | None = None, indices: Sequence[int] | None = None,
                 tensor_indices_or_sections: Tensor | None = None) -> tuple[Tensor, ...]:
    """Views of parts along `dim`: so many of nearly one size, or cut at the indices in a tuple or tensor.

    >>> import cygrad
    >>> cygrad.tensor_split(cygrad.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    if input.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = normalized_dim(dim, input.ndim)
    size = input.shape[d]
    cuts = _cuts(tensor_split, indices_or_sections, sections, indices, tensor_indices_or_sections)
    if isinstance(cuts, (tuple, list)):
        bounds = [0, *cuts, size]
        parts = [slice(start, stop) for start, stop in itertools.pairwise(bounds)]
        parts[-1] = slice(bounds[-2], None)
    else:
        if cuts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {cuts}")
        least, more = divmod(size, cuts)
        splitting.check_views(cuts)
        parts = [slice(0)] * cuts
        for number in range(cuts):
            start = number * least + min(number, more)
            parts[number] = slice(start, start + least + (number < more))
    return tuple(input[(slice(None),) * d + (part,)] for part in parts)


def _split_along(operator: Any, input: Tensor, least: int, place: int, *arguments: Any) -> tuple[Tensor, ...]:
    """Cut along a dim, by number into parts of one size; a vector has its only one."""
    cuts = _cuts(operator, *arguments)
    if input.ndim < least:
        raise RuntimeError(f"torch.{operator.name} requires a tensor with at least {least} dimension, but got a tensor with {input.ndim} "
                           "dimensions!")
    dim = 0 if input.ndim == 1 else place
    if isinstance(cuts, int) and (not cuts or input.shape[dim] % cuts):
        raise RuntimeError(f"torch.{operator.name} attempted to split along dimension {dim}, but the size of the dimension "
                           f"{input.shape[dim]} is not divisible by the split_size {cuts}!")
    return tensor_split(input, cuts, dim)


@operator(forms=True)
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int] | None = None, *, sections: int | None = None,
           indices: Sequence[int] | None = None) -> tuple[Tensor, ...]:
    """Views of parts along dim 1, of a vector along dim 0; see `tensor_split`, but sections are of one size.

    >>> import cygrad
    >>> len(cygrad.hsplit(cygrad.zeros(2, 2, 2), 2))
    2
    """
    return _split_along(hsplit, input, 1, 1, indices_or_sections, sections, indices)


@operator(forms=True)
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int] | None = None, *, sections: int | None = None,
           indices: Sequence[int] | None = None) -> tuple[Tensor, ...]:
    """Views of parts along dim 0; see `tensor_split`, but sections are of one size.

    >>> import cygrad
    >>> len(cygrad.vsplit(cygrad.zeros(2, 2, 2), 2))
    2
    """
    return _split_along(vsplit, input, 2, 0, indices_or_sections, sections, indices)


@operator(forms=True)
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int] | None = None, *, sections: int | None = None,
           indices: Sequence[int] | None = None) -> tuple[Tensor, ...]:
    """Views of parts along dim 2; see `tensor_split`, but sections are of one size.

    >>> import cygrad
    >>> len(cygrad.dsplit(cygrad.zeros(2, 2, 2), 2))
    2
    """
    return _split_along(dsplit, input, 3, 2, indices_or_sections, sections, indices)


# ----- Copies -----
@operator
def unsafe_split(input: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """The parts that `split` gives as copies, which may be changed in place.

    (In torch they share the memory of the whole, and gradients are wrong where both are changed.)

    >>> import cygrad
    >>> cygrad.unsafe_split(cygrad.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return tuple(part.clone() for part in input.split(split_size, dim))


@operator
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """The parts that `split_with_sizes` gives as copies; see `unsafe_split`."""
    return tuple(part.clone() for part in input.split_with_sizes(split_sizes, dim))


@operator
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts that `chunk` gives as copies; see `unsafe_split`."""
    return tuple(part.clone() for part in input.chunk(chunks, dim))
