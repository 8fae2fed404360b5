"""Products and linear algebra."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from cygrad import linalg as operators
from cygrad._core.memory.storage import DType
from cygrad.array_api.elementwise import checked
from cygrad.array_api.promotion import by_numpy, is_unsigned, tensors_of
from cygrad.array_api.statistics import sum as summed
from cygrad.operators import products
from cygrad.operators.shapes import broadcast_tensors

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot",
    "vector_norm",
]


class EigenResult(NamedTuple):
    """The results of `eigh` and `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The results of `qr`."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The results of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The results of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


# ----- Products -----
def matmul(x1: Any, x2: Any, /) -> Tensor:
    """Return the matrix product of the last two dims."""
    left, right = tensors_of("matmul", x1, x2)
    if is_unsigned(left.dtype):
        return by_numpy(np.matmul, left, right)
    return left.matmul(right)


def matrix_transpose(x: Any, /) -> Tensor:
    """Return the view with the last two dims exchanged."""
    if checked("matrix_transpose", x).ndim < 2:
        raise ValueError(f"matrix_transpose() expected a tensor with 2 or more dims, but got {x.ndim}")
    return x.mT


def outer(x1: Any, x2: Any, /) -> Tensor:
    """Return the products of each element of a vector with each of another."""
    left, right = tensors_of("outer", x1, x2)
    if is_unsigned(left.dtype):
        return by_numpy(np.outer, left, right)
    return left.outer(right)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """Return the sum of products over dims of both tensors."""
    left, right = tensors_of("tensordot", x1, x2)
    if is_unsigned(left.dtype):
        return by_numpy(np.tensordot, left, right, axes=axes)
    return products.tensordot(left, right, axes)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the sum of products along a dim, of complex numbers with the conjugates of the first."""
    left, right = tensors_of("vecdot", x1, x2)
    if is_unsigned(left.dtype):
        return by_numpy(np.vecdot, left, right, axis=axis)
    return (left.conj() * right).sum(axis, dtype=left.dtype)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the cross product of vectors of 3 along a dim."""
    left, right = broadcast_tensors(*tensors_of("cross", x1, x2))
    if left.shape[axis] != 3:
        raise ValueError(f"cross() expected vectors of size 3, but got {left.shape[axis]}")
    if is_unsigned(left.dtype):
        return by_numpy(np.linalg.cross, left, right, axis=axis)
    return operators.cross(left, right, dim=axis)


# ----- Parts of matrices -----
def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """Return the diagonals of matrices."""
    return checked("diagonal", x).diagonal(offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """Return the sums of the diagonals of matrices."""
    return summed(diagonal(x, offset=offset), axis=-1, dtype=dtype)


# ----- Decompositions and solutions -----
def _called(name: str, x: Any, *arguments: Any, **keywords: Any) -> Any:
    return getattr(operators, name)(checked(name, x), *arguments, **keywords)


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """Return the triangular factors of positive definite matrices."""
    return _called("cholesky", x, upper=upper)


def det(x: Any, /) -> Tensor:
    """Return determinants."""
    return _called("det", x)


def eig(x: Any, /) -> EigenResult:
    """Return the eigenvalues and eigenvectors of matrices, which are complex."""
    return EigenResult(*_called("eig", x))


def eigh(x: Any, /) -> EigenResult:
    """Return the eigenvalues and eigenvectors of Hermitian matrices."""
    return EigenResult(*_called("eigh", x))


def eigvals(x: Any, /) -> Tensor:
    """Return the eigenvalues of matrices, which are complex."""
    return _called("eigvals", x)


def eigvalsh(x: Any, /) -> Tensor:
    """Return the eigenvalues of Hermitian matrices."""
    return _called("eigvalsh", x)


def inv(x: Any, /) -> Tensor:
    """Return inverses."""
    return _called("inv", x)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Return the norms of matrices; of empty ones they are 0."""
    if 0 in checked("matrix_norm", x).shape[-2:]:
        return summed(x.abs(), axis=(-2, -1), keepdims=keepdims)
    return _called("matrix_norm", x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Any, n: int, /) -> Tensor:
    """Return powers of matrices by an integer, which may be negative."""
    return _called("matrix_power", x, n)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return the numbers of singular values above `rtol` times the largest one."""
    return _called("matrix_rank", x, rtol=rtol)


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return pseudoinverses."""
    return _called("pinv", x, rtol=rtol)


def qr(x: Any, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Return orthonormal columns and a triangular matrix, whose product is the matrix."""
    return QRResult(*_called("qr", x, mode))


def slogdet(x: Any, /) -> SlogdetResult:
    """Return the signs of determinants, and the logarithms of their absolute values."""
    return SlogdetResult(*_called("slogdet", x))


def solve(x1: Any, x2: Any, /) -> Tensor:
    """Return the solutions of systems of equations; a vector on the right is one right side for all matrices."""
    left, right = tensors_of("solve", x1, x2)
    return operators.solve(left, right[..., None])[..., 0] if right.ndim == 1 else operators.solve(left, right)


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decomposition."""
    return SVDResult(*_called("svd", x, full_matrices))


def svdvals(x: Any, /) -> Tensor:
    """Return singular values."""
    return _called("svdvals", x)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Return the norms of vectors, along dims or of all elements."""
    if axis == ():      # each element is a vector
        return checked("vector_norm", x).abs() if ord else (x != 0).to(x.abs().dtype)
    if ord == -math.inf and axis is None and keepdims and not x.ndim:
        return x.abs()
    return _called("vector_norm", x, ord, axis, keepdims)
