"""Products of vectors, matrices and tensors, of operands of any dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad.numpy_functions.reductions import widest
from cygrad.numpy_functions.rows import cast, is_integer, operand, promoted, row
from cygrad.operators import products, vectors
from cygrad.operators._language.arguments import integers

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def contracted(a: Tensor, b: Tensor, axes: Any) -> Tensor:
    """Sum over axes of both; axes of size 1 do not broadcast, as they do for torch."""
    for left, right in zip(*(integers(places) for places in axes), strict=True):
        if a.shape[left] != b.shape[right]:
            raise ValueError(f"shape-mismatch for sum: the sizes of axes {left} of {tuple(a.shape)} and {right} of {tuple(b.shape)} differ")
    return products.tensordot(a, b, tuple(list(integers(places)) for places in axes))


@row(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Tensor:
    a, b = promoted(a, b)
    if not a.ndim or not b.ndim:
        return a * b
    if a.ndim == 2 and b.ndim <= 2:
        return a @ b
    return contracted(a, b, (-1, max(b.ndim - 2, 0)))


@row(np.inner)
def inner(a: Any, b: Any) -> Tensor:
    a, b = promoted(a, b)
    return a * b if not a.ndim or not b.ndim else contracted(a, b, (-1, -1))


@row(np.vdot)
def vdot(a: Any, b: Any) -> Tensor:
    a, b = promoted(a, b)
    return vectors.vdot(a.ravel(), b.ravel())


@row(np.outer)
def outer(a: Any, b: Any) -> Tensor:
    a, b = promoted(a, b)
    return vectors.outer(a.ravel(), b.ravel())


@row(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    a, b = promoted(a, b)
    if not is_integer(axes):
        return contracted(a, b, axes)
    if not 0 <= axes <= min(a.ndim, b.ndim):
        raise ValueError(f"np.tensordot: {axes} axes do not fit tensors of {a.ndim} and {b.ndim} dims")
    return contracted(a, b, (tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))))


@row(np.einsum)
def einsum(*operands: Any, optimize: Any = False, dtype: Any = None, casting: str = "safe") -> Tensor:
    """With any `optimize`, which is the order of products; labels may be letters, or lists beside the operands."""
    arguments = [*operands]
    places = range(1, len(arguments)) if isinstance(arguments[0], str) else range(0, len(arguments) - 1, 2)
    for place, tensor in zip(places, promoted(*(arguments[place] for place in places)), strict=True):
        arguments[place] = factor = cast(tensor, dtype, casting)
    return products.einsum(*arguments).to(factor.dtype)


@row(np.kron)
def kron(a: Any, b: Any) -> Tensor:
    return products.kron(*promoted(a, b))


@row(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    a = operand(a)
    return a.diagonal(offset, axis1, axis2).sum(-1, dtype=widest(a, dtype))


@row(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promoted(a, b)
    dims = max(a.ndim, b.ndim)
    a, b = (each.movedim(axis, -1).reshape((1,) * (dims - each.ndim) + tuple(each.movedim(axis, -1).shape))
            for each, axis in ((a, axisa), (b, axisb)))
    return vectors.linalg_cross(a, b, dim=-1).movedim(-1, axisc)


# ----- Ufuncs of vectors and matrices -----
@row(np.vecdot)
def vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Tensor:
    x1, x2 = (factor.movedim(axis, -1) for factor in promoted(x1, x2))
    if not x1.ndim or not x2.ndim or x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"vecdot: there are no products of the last axes of {tuple(x1.shape)} and {tuple(x2.shape)}")
    return vectors.linalg_vecdot(x1, x2)


def matvec(x1: Any, x2: Any) -> Tensor:
    x1, x2 = promoted(x1, x2)
    if x1.ndim < 2 or not x2.ndim:
        raise ValueError(f"matvec: takes a matrix and a vector, not tensors of {x1.ndim} and {x2.ndim} dims")
    return (x1 @ x2.unsqueeze(-1)).squeeze(-1)


def vecmat(x1: Any, x2: Any) -> Tensor:
    x1, x2 = promoted(x1, x2)
    if x2.ndim < 2 or not x1.ndim:
        raise ValueError(f"vecmat: takes a vector and a matrix, not tensors of {x1.ndim} and {x2.ndim} dims")
    return (x1.conj().unsqueeze(-2) @ x2).squeeze(-2)


if hasattr(np, "matvec"):       # from NumPy 2.2 on
    row(np.matvec)(matvec)
    row(np.vecmat)(vecmat)
