"""`np.linalg`, by the operators of `cygrad.linalg`: with NumPy's defaults, tolerances and names of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import cygrad.linalg as linalg
from cygrad.numpy_functions import products
from cygrad.numpy_functions.reductions import precise
from cygrad.numpy_functions.rows import operand, operands, promoted, row
from cygrad.operators import vectors

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def matrix(value: Any) -> Tensor:
    """Return matrices, in the dtype that NumPy factorises in: of integers double."""
    return precise(operand(value), None)


# ----- Solved -----
row(np.linalg.inv)(lambda a: linalg.inv(matrix(a)))
row(np.linalg.det)(lambda a: linalg.det(matrix(a)))
row(np.linalg.tensorinv)(lambda a, ind=2: linalg.tensorinv(matrix(a), ind))


@row(np.linalg.solve)
def solve(a: Any, b: Any) -> Tensor:
    """Only one dim makes a vector of b; torch takes a batch of vectors as well, where the sizes fit one."""
    a, b = promoted(matrix(a), matrix(b))
    if not b.ndim:
        raise ValueError("np.linalg.solve: b has no dims, but is a vector or matrices")
    if b.ndim == 1:
        return linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    return linalg.solve(a, b.reshape((1,) * (a.ndim - b.ndim) + tuple(b.shape)))


@row(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    a, b = promoted(matrix(a), matrix(b))
    return linalg.tensorsolve(a, b, axes)


class LogarithmOfDeterminant(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


row(np.linalg.slogdet)(lambda a: LogarithmOfDeterminant(*linalg.slogdet(matrix(a))))


@row(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Tensor, Tensor, int, Tensor]:
    """The results of LAPACK's driver `gelsd`, which is NumPy's; a negative tolerance is the precision of the numbers."""
    a, b = promoted(matrix(a), matrix(b))
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise linalg.LinAlgError(f"np.linalg.lstsq: a is one matrix, and b one or a vector, but they have {a.ndim} and {b.ndim} dims")
    if rcond is not None and rcond < 0:
        rcond = float(np.finfo(a.dtype.dtype).eps)
    x, residuals, rank, _ = linalg.lstsq(a, b, rcond, driver="gelsd")
    return x, residuals, int(rank), linalg.svdvals(a)       # which have a gradient, unlike torch's


# ----- Factors -----
class EigenvaluesAndVectors(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class SingularValues(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


class OrthogonalFactors(NamedTuple):
    Q: Tensor
    R: Tensor


row(np.linalg.cholesky)(lambda a, upper=False: linalg.cholesky(matrix(a), upper=bool(upper)))
row(np.linalg.eigh)(lambda a, UPLO="L": EigenvaluesAndVectors(*linalg.eigh(matrix(a), UPLO)))
row(np.linalg.eigvalsh)(lambda a, UPLO="L": linalg.eigvalsh(matrix(a), UPLO))
row(np.linalg.svdvals)(lambda x: linalg.svdvals(matrix(x)))


def as_real(a: Tensor, *spectrum: Tensor) -> tuple[Tensor, ...]:
    """Return results for eigenvalues of real matrices as real numbers, where all of these are."""
    return tuple(part.real for part in spectrum) if not a.is_complex() and bool((spectrum[0].detach().imag == 0).all()) else spectrum


@row(np.linalg.eig)
def eig(a: Any) -> EigenvaluesAndVectors:
    a = matrix(a)
    return EigenvaluesAndVectors(*as_real(a, *linalg.eig(a)))


@row(np.linalg.eigvals)
def eigvals(a: Any) -> Tensor:
    a = matrix(a)
    return as_real(a, linalg.eigvals(a))[0]


@row(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    a = matrix(a)
    return SingularValues(*linalg.svd(a, bool(full_matrices))) if compute_uv else linalg.svdvals(a)


@row(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise TypeError(f"np.linalg.qr is not supported on cygrad tensors with mode={mode!r}: choose 'reduced', 'complete' or 'r', or call "
                        "it on tensor.detach().numpy()")
    factors = OrthogonalFactors(*linalg.qr(matrix(a), "complete" if mode == "complete" else "reduced"))
    return factors.R if mode == "r" else factors        # whose gradient needs Q


@row(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Tensor:
    """With a tolerance that is left out of 1e-15, and with None of the precision's."""
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    tolerance = rcond if rcond is not None else 1e-15 if rtol is np._NoValue else rtol
    return linalg.pinv(matrix(a), rtol=tolerance, hermitian=bool(hermitian))


# ----- Norms -----
row(np.linalg.norm)(lambda x, ord=None, axis=None, keepdims=False: linalg.norm(matrix(x), ord, axis, bool(keepdims)))
row(np.linalg.matrix_norm)(
    lambda x, keepdims=False, ord="fro": linalg.matrix_norm(matrix(x), ord, keepdim=bool(keepdims)))
row(np.linalg.vector_norm)(
    lambda x, axis=None, keepdims=False, ord=2: linalg.vector_norm(matrix(x), ord, axis, bool(keepdims)))


@row(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Tensor:
    x = matrix(x)
    result = linalg.cond(x, p)
    return result.masked_fill(result.isnan() & ~x.isnan().any(dim=(-2, -1)), np.inf)        # 0 / 0, of a matrix of zeros


@row(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    A = matrix(A)
    if A.ndim < 2:
        return (A != 0).any().long()
    tolerances = {"rtol": rtol} if tol is None else {"atol": tol, "rtol": 0.0}
    return linalg.matrix_rank(A, hermitian=bool(hermitian), **tolerances)


# ----- Products -----
@row(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Tensor:
    return linalg.matrix_power(operand(a) if n >= 0 else matrix(a), n)


row(np.linalg.multi_dot)(lambda arrays: linalg.multi_dot(promoted(*operands(arrays))))
row(np.linalg.cross)(lambda x1, x2, axis=-1: products.cross(x1, x2, axis=axis))
row(np.linalg.vecdot)(products.vecdot)
row(np.linalg.matmul)(lambda x1, x2: linalg.matmul(*promoted(x1, x2)))
row(np.linalg.diagonal)(lambda x, offset=0: linalg.diagonal(operand(x), offset=offset))
row(np.linalg.outer)(lambda x1, x2: vectors.outer(*promoted(x1, x2)))
row(np.linalg.tensordot)(lambda x1, x2, axes=2: products.tensordot(x1, x2, axes))
row(np.linalg.matrix_transpose)(lambda x: operand(x).swapaxes(-1, -2))


@row(np.linalg.trace)
def trace(x: Any, offset: int = 0, dtype: Any = None) -> Tensor:
    return products.trace(x, offset, -2, -1, dtype)
