"""Products of vectors, matrices and tensors, of operands of any dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad.numpy_functions.folds import widest
from cygrad.numpy_functions.rows import cast, operand, promoted, row
from cygrad.operators import products, vectors
from cygrad.operators.shapes import broadcast_tensors

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


@row(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Tensor:
    a, b = promoted(a, b)
    if not a.ndim or not b.ndim:
        return a * b
    if a.ndim == 2 and b.ndim <= 2:
        return a @ b
    return products.tensordot(a, b, ([-1], [max(b.ndim - 2, 0)]))


@row(np.inner)
def inner(a: Any, b: Any) -> Tensor:
    a, b = promoted(a, b)
    return a * b if not a.ndim or not b.ndim else products.tensordot(a, b, ([-1], [-1]))


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
    if not isinstance(axes, int):
        axes = tuple([one] if isinstance(one, int) else [*one] for one in axes)
    return products.tensordot(a, b, axes)


@row(np.einsum)
def einsum(*operands: Any, optimize: Any = False, dtype: Any = None, casting: str = "safe") -> Tensor:
    """With any `optimize`, which says in which order to multiply, not what; labels may be letters, or lists beside the operands."""
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
    a, b = broadcast_tensors(a.movedim(axisa, -1), b.movedim(axisb, -1))
    return vectors.linalg_cross(a, b, dim=-1).movedim(-1, axisc)


# ----- Ufuncs of vectors and matrices -----
@row(np.vecdot)
def vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Tensor:
    x1, x2 = promoted(x1, x2)
    return vectors.linalg_vecdot(x1, x2, dim=axis)


def matvec(x1: Any, x2: Any) -> Tensor:
    x1, x2 = promoted(x1, x2)
    return (x1 @ x2.unsqueeze(-1)).squeeze(-1)


def vecmat(x1: Any, x2: Any) -> Tensor:
    x1, x2 = promoted(x1, x2)
    return (x1.conj().unsqueeze(-2) @ x2).squeeze(-2)


if hasattr(np, "matvec"):       # from NumPy 2.2 on
    row(np.matvec)(matvec)
    row(np.vecmat)(vecmat)
