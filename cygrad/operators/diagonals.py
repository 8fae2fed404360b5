"""Diagonals and triangles of matrices, and parts written into copies."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute import diagonals
from cygrad._core.compute.creation import empty_tensor, fill_value, scalar_tensor
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad.operators._language.arguments import delivered
from cygrad.operators._language.batches import matrices, shifted
from cygrad.operators._language.declaration import operator, recorded, unrecorded
from cygrad.operators._language.tangents import joining, linear

if TYPE_CHECKING:
    from collections.abc import Callable

    from cygrad.tensor import Tensor
    from cygrad.typing import Number


# ----- Triangles -----
@operator(diagonals.tril, dinput=lambda g, diagonal: g.tril(diagonal), tangent=linear, batch=matrices, in_place=True)
def tril(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Copy of (a batch of) matrices with zeros above the diagonal; `diagonal` counts above the main one.

    >>> import cygrad
    >>> cygrad.tril(cygrad.ones(2, 2)).sum()
    tensor(3.)
    """


@operator(diagonals.triu, dinput=lambda g, diagonal: g.triu(diagonal), tangent=linear, batch=matrices, in_place=True)
def triu(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Copy of (a batch of) matrices with zeros below the diagonal; `diagonal` counts above the main one.

    >>> import cygrad
    >>> cygrad.triu(cygrad.ones(2, 2)).sum()
    tensor(3.)
    """


# ----- Diagonals -----
@operator(diagonals.diagonal, dinput=lambda g, shape, offset, dim1, dim2: g.new_zeros(shape).diagonal_scatter(g, offset, dim1, dim2),
          place=lambda whole, offset, dim1, dim2: whole.diagonal(offset, dim1, dim2),
          tangent=linear, batch=shifted("dim1", "dim2"), copy=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """View of a diagonal of two dims, as the last dim; `offset` counts above (or, negative, below) the main one.

    >>> import cygrad
    >>> cygrad.eye(3).diagonal()
    tensor([1., 1., 1.])
    """


@operator
def fill_diagonal_(self: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Fill the diagonal, places whose indices are all equal, with a number; of more than two dims all sizes are equal.

    With `wrap` a matrix with more rows than columns has a diagonal that begins again, one row after its end.

    Raises:
        RuntimeError: fewer than two dims, or different sizes of more than two.

    >>> import cygrad
    >>> cygrad.zeros(4, 2).fill_diagonal_(1., wrap=True).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    """
    if isinstance(fill_value, TensorImpl) and fill_value.ndim or not isinstance(fill_value, (numbers.Number, np.bool_, TensorImpl)):
        raise TypeError(f"{fill_diagonal_.__name__}(): argument 'fill_value' (position 1) must be Number, not {type(fill_value).__name__}")
    if self.ndim < 2:
        raise RuntimeError(f"dimensions must larger than 1, got {self.ndim}")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError(f"all dimensions of input must be of equal length, got {list(self.shape)}")
    number = scalar_tensor(fill_value, self.dtype)
    rows, columns = self.shape[:2]
    for start in range(0, rows if wrap and self.ndim == 2 and columns else min(rows, 1), columns + 1):
        places = self[start:] if start else self
        while places.ndim > 1:
            places = places.diagonal()
        places.fill_(number)
    return self


@operator
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """View of the diagonals of matrices in the last two dims.

    >>> import cygrad
    >>> cygrad.linalg.diagonal(cygrad.ones(3, 2, 2)).shape
    cygrad.Size([3, 2])
    """
    return diagonal(A, offset, dim1, dim2)


@operator(dinput=lambda g, offset, dim1, dim2: g.diagonal(offset, dim1, dim2), tangent=linear, batch=shifted("dim1", "dim2", extra=1))
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Zeros with the last dim of `input` as the diagonal of two new dims.

    >>> import cygrad
    >>> cygrad.diag_embed(cygrad.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    first, second = normalized_dim(dim1, input.ndim + 1), normalized_dim(dim2, input.ndim + 1)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    *sizes, length = input.shape
    for place in (first, second) if first < second else (second, first):
        sizes.insert(place, length + abs(offset))
    result = fill_value(empty_tensor(sizes, input.dtype), 0)
    result.diagonal(offset, first, second).copy_(input.detach())
    return recorded(diag_embed, (input,), result, offset=offset, dim1=first, dim2=second)


@operator
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Matrix with a vector as its diagonal, or a copy of the diagonal of a matrix.

    >>> import cygrad
    >>> cygrad.diag(cygrad.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"{diag.__name__}(): Supports 1D or 2D tensors. Got {input.ndim}D")
    result = diag_embed(input, diagonal) if input.ndim == 1 else input.diagonal(diagonal).clone()
    return delivered(result, out)


@operator
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Matrix with all elements of `input` as its diagonal.

    >>> import cygrad
    >>> cygrad.diagflat(cygrad.ones(2, 2)).shape
    cygrad.Size([4, 4])
    """
    return diag_embed(input.reshape(-1), offset)


# ----- Parts written into copies -----
def _part_written(operator: Any, input: Tensor, src: Tensor, part: Callable[[Tensor], Tensor], **params: Any) -> Tensor:
    """Return a copy of which `part`, a function that gives a view, holds the source."""
    if not isinstance(src, TensorImpl):
        raise TypeError(f"{operator.__name__}(): argument 'src' (position 2) must be Tensor, not {type(src).__name__}")
    result = input.detach().clone()
    place = part(result)
    if place.shape != src.shape:
        raise RuntimeError("expected src to have a size equal to the slice of self. "
                           f"src size = {list(src.shape)}, slice size = {list(place.shape)}")
    unrecorded(lambda: place.copy_(src.detach()))
    return recorded(operator, (input, src.to(input.dtype)), result, **params)


@operator(dinput=lambda g, src_shape, offset, dim1, dim2: g.diagonal_scatter(g.new_zeros(src_shape), offset, dim1, dim2),
          dsrc=lambda g, offset, dim1, dim2: g.diagonal(offset, dim1, dim2), tangent=joining, batch=shifted("dim1", "dim2"))
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Copy of `input` with `src` in the place of its diagonal; see `diagonal`.

    >>> import cygrad
    >>> cygrad.diagonal_scatter(cygrad.zeros(2, 2), cygrad.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    dims = tuple(normalized_dim(dim, input.ndim) for dim in (dim1, dim2))
    return _part_written(diagonal_scatter, input, src, lambda x: x.diagonal(offset, *dims), offset=offset, dim1=dims[0], dim2=dims[1])


@operator(dinput=lambda g, key: g._with_zeros_at(key), dsrc=lambda g, key: g[key], tangent=joining, batch=shifted("dim"))
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Copy of `input` with `src` at one index of `dim`.

    >>> import cygrad
    >>> cygrad.select_scatter(cygrad.zeros(2, 2), cygrad.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    key = (slice(None),) * normalized_dim(dim, input.ndim) + (index,)
    return _part_written(select_scatter, input, src, lambda x: x.select(dim, index), key=key)


@operator(dinput=lambda g, key: g._with_zeros_at(key), dsrc=lambda g, key: g[key], tangent=joining, batch=shifted("dim"))
def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *,
                  out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `src` in a slice of `dim`.

    >>> import cygrad
    >>> cygrad.slice_scatter(cygrad.zeros(4), cygrad.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    key = (slice(None),) * normalized_dim(dim, input.ndim) + (slice(start, end, step),)
    return delivered(_part_written(slice_scatter, input, src, lambda x: x[key], key=key), out)
