"""Tensors joined along a dim, stacked along a new one, or laid out over a grid."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal

from cygrad._core.compute import joining as compiled
from cygrad._core.graph.tensor import TensorImpl
from cygrad.data import creation, limits
from cygrad.operators._language.arguments import given_tensors
from cygrad.operators._language.batches import behind
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.tangents import joining
from cygrad.operators.shapes import atleast_1d, atleast_2d, atleast_3d

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cygrad.tensor import Tensor


# ----- Along a dim -----
def _parts_of(g: Tensor, sizes: Sequence[int | None], dim: int) -> Sequence[Tensor]:
    """Cut the gradient of joined tensors; size None stands for an empty vector that was left out."""
    if None not in sizes:
        return g.split_with_sizes(sizes, dim)  # type: ignore[arg-type]
    parts = iter(g.split_with_sizes([size for size in sizes if size is not None], dim))
    return [g.new_zeros(0) if size is None else next(parts) for size in sizes]


def _join_examples(level: Any, operator: Any, tensors: Iterable[Tensor], dim: int = 0) -> Tensor:
    items = [level.enter(item) for item in tensors]
    shaped = [item for item in items if item.ndim != 2 or item.shape[1]] or items
    if shaped[0].ndim == 1:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated; use stack()")
    return level.leave(operator(shaped, behind(dim, shaped[0].ndim - 1)))


@operator(compiled.cat, each=_parts_of, tangent=joining, batch=_join_examples, method=False,
          aliases=("concat", "concatenate"))
def cat(tensors: Iterable[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along a dim; all other sizes must be equal.

    >>> import cygrad
    >>> cygrad.cat([cygrad.zeros(2), cygrad.ones(1)])
    tensor([0., 0., 1.])
    """


# ----- Along a new dim -----
def _stack_examples(level: Any, operator: Any, tensors: Iterable[Tensor], dim: int = 0) -> Tensor:
    items = [level.enter(item) for item in tensors]
    return level.leave(operator(items, behind(dim, items[0].ndim)))


@operator(compiled.stack, each=lambda g, dim: g.unbind(dim), tangent=joining, batch=_stack_examples, method=False)
def stack(tensors: Iterable[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Join tensors of one shape along a new dim.

    >>> import cygrad
    >>> cygrad.stack([cygrad.zeros(2), cygrad.ones(2)]).shape
    cygrad.Size([2, 2])
    """


# ----- By NumPy's names -----
def _given(operator: Any, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    parts = given_tensors(operator, (tuple(tensors),))
    if not parts:
        raise RuntimeError(f"{operator.name} expects a non-empty TensorList")
    return parts


@operator(method=False)
def hstack(tensors: Iterable[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along dim 1, vectors along dim 0.

    >>> import cygrad
    >>> cygrad.hstack([cygrad.zeros(2), cygrad.ones(2)])
    tensor([0., 0., 1., 1.])
    """
    parts = [atleast_1d(part) for part in _given(hstack, tensors)]
    return cat(parts, 0 if parts[0].ndim == 1 else 1, out=out)


@operator(method=False, aliases=("row_stack",))
def vstack(tensors: Iterable[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along dim 0, vectors as rows.

    >>> import cygrad
    >>> cygrad.vstack([cygrad.zeros(2), cygrad.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    return cat([atleast_2d(part) for part in _given(vstack, tensors)], out=out)


@operator(method=False)
def dstack(tensors: Iterable[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along dim 2.

    >>> import cygrad
    >>> cygrad.dstack([cygrad.zeros(2), cygrad.ones(2)]).shape
    cygrad.Size([1, 2, 2])
    """
    return cat([atleast_3d(part) for part in _given(dstack, tensors)], 2, out=out)


@operator(method=False)
def column_stack(tensors: Iterable[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along dim 1, vectors as columns.

    >>> import cygrad
    >>> cygrad.column_stack([cygrad.zeros(2), cygrad.ones(2)])
    tensor([[0., 1.],
            [0., 1.]])
    """
    return cat([part if part.ndim > 1 else part.reshape(part.numel(), 1) for part in _given(column_stack, tensors)], 1, out=out)


# ----- Over a grid -----
@operator(method=False)
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: Literal["ij", "xy"] = "ij") -> tuple[Tensor, ...]:
    """Views of vectors, repeated without a copy over the grid they span; `indexing` "xy" exchanges the first two dims.

    >>> import cygrad
    >>> cygrad.meshgrid(cygrad.arange(2), cygrad.arange(3))[0]
    tensor([[0, 0, 0],
            [1, 1, 1]])
    """
    operands = given_tensors(meshgrid, tensors)
    if not operands:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for tensor in operands:
        if tensor.dtype != operands[0].dtype:
            raise RuntimeError(f"meshgrid expects all tensors to have the same dtype: {operands[0].dtype} and {tensor.dtype}")
        if tensor.ndim > 1:
            raise RuntimeError(f"Expected 0D or 1D tensor in the tensor list but got: {list(tensor.shape)}")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    places = list(range(len(operands)))
    if indexing == "xy":
        places[:2] = places[1::-1]
    shape = [operands[place].numel() for place in places]
    return tuple(tensor.reshape([size if place == d else 1 for d, size in enumerate(shape)]).expand(shape)
                 for tensor, place in zip(operands, places, strict=True))


@operator(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrix with matrices along its diagonal and zeros elsewhere; vectors and numbers count as rows.

    >>> import cygrad
    >>> cygrad.block_diag(cygrad.ones(1, 2), cygrad.tensor(3.))
    tensor([[1., 1., 0.],
            [0., 0., 3.]])
    """
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, TensorImpl):
            raise TypeError(f"{block_diag.name}(): expected Tensor as element {number} in argument 0, but got {type(tensor).__name__}")
        if tensor.ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {number} has {tensor.ndim} "
                               "dimensions")
    ranks = [[tensor.dtype for tensor in tensors if bool(tensor.ndim) == dims] for dims in (True, False)]
    samples = [creation.empty([0] * dims, dtype=functools.reduce(limits.promote_types, dtypes))
               for dims, dtypes in zip((1, 0), ranks, strict=True) if dtypes]
    dtype = limits.result_type(samples[0], samples[-1]) if samples else None
    blocks = [atleast_2d(tensor).to(dtype) for tensor in tensors] or [creation.empty(1, 0)]
    widths = [block.shape[1] for block in blocks]
    rows = [cat([block.new_zeros(block.shape[0], sum(widths[:k])), block, block.new_zeros(block.shape[0], sum(widths[k + 1:]))], 1)
            for k, block in enumerate(blocks)]
    return cat(rows)
