"""`np.linalg`, by the operators of `cygrad.linalg`: with NumPy's defaults, tolerances and names of results."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad.numpy_functions import products
from cygrad.numpy_functions.folds import precise
from cygrad.numpy_functions.rows import F, operand, operands, promoted, row
from cygrad.operators import vectors

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

linalg: Any = import_module("cygrad.linalg")
DECLARED = frozenset(dir(linalg))


def by(names: str, *functions: Any) -> Callable[[F], F]:
    """Declare what stands for functions of NumPy's, if there are the operators that it is made of."""
    return row(*functions) if DECLARED.issuperset(names.split()) else lambda function: function


def matrix(value: Any) -> Tensor:
    """Return matrices, in the dtype that NumPy factorises in: of integers double."""
    return precise(operand(value), None)


# ----- Solved -----
by("inv", np.linalg.inv)(lambda a: linalg.inv(matrix(a)))
by("det", np.linalg.det)(lambda a: linalg.det(matrix(a)))
by("tensorsolve", np.linalg.tensorsolve)(lambda a, b, axes=None: linalg.tensorsolve(*promoted(matrix(a), matrix(b)), axes))
by("tensorinv", np.linalg.tensorinv)(lambda a, ind=2: linalg.tensorinv(matrix(a), ind))


@by("solve", np.linalg.solve)
def solve(a: Any, b: Any) -> Tensor:
    """Only one dim makes a vector of b; torch takes a batch of vectors as well, where the sizes are those of one."""
    a, b = promoted(matrix(a), matrix(b))
    if b.ndim == 1:
        return linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    return linalg.solve(a, b.reshape((1,) * (a.ndim - b.ndim) + tuple(b.shape)))


class LogarithmOfDeterminant(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


by("slogdet", np.linalg.slogdet)(lambda a: LogarithmOfDeterminant(*linalg.slogdet(matrix(a))))


@by("lstsq svdvals", np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Tensor, Tensor, int, Tensor]:
    """With the sums of squared residuals where NumPy gives them: of more equations than unknowns, of full rank."""
    a, b = promoted(matrix(a), matrix(b))
    (rows, columns), singular = a.shape, linalg.svdvals(a)
    tolerance = np.finfo(a.dtype).eps * max(rows, columns) if rcond is None else rcond
    rank = int((singular.detach() > tolerance * singular.detach().max()).sum()) if singular.numel() else 0
    x = linalg.lstsq(a, b.reshape(rows, -1), tolerance).solution.reshape((columns, *b.shape[1:]))
    residual = (b - a @ x).abs().square().sum(0).reshape(-1)
    return x, residual if rank == columns < rows else residual[:0], rank, singular


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


by("cholesky", np.linalg.cholesky)(lambda a, upper=False: linalg.cholesky(matrix(a), upper=bool(upper)))
by("eigh", np.linalg.eigh)(lambda a, UPLO="L": EigenvaluesAndVectors(*linalg.eigh(matrix(a), UPLO)))
by("eigvalsh", np.linalg.eigvalsh)(lambda a, UPLO="L": linalg.eigvalsh(matrix(a), UPLO))
by("svdvals", np.linalg.svdvals)(lambda x: linalg.svdvals(matrix(x)))


def as_real(a: Tensor, *spectrum: Tensor) -> tuple[Tensor, ...]:
    """Return what belongs to eigenvalues of real matrices as real numbers, where all of these are."""
    return tuple(part.real for part in spectrum) if not a.is_complex() and bool((spectrum[0].detach().imag == 0).all()) else spectrum


@by("eig", np.linalg.eig)
def eig(a: Any) -> EigenvaluesAndVectors:
    a = matrix(a)
    return EigenvaluesAndVectors(*as_real(a, *linalg.eig(a)))


@by("eigvals", np.linalg.eigvals)
def eigvals(a: Any) -> Tensor:
    a = matrix(a)
    return as_real(a, linalg.eigvals(a))[0]


@by("svd svdvals", np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    a = matrix(a)
    return SingularValues(*linalg.svd(a, bool(full_matrices))) if compute_uv else linalg.svdvals(a)


@by("qr", np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise TypeError(f"np.linalg.qr is not supported on cygrad tensors with mode={mode!r}: choose 'reduced', 'complete' or 'r', or call "
                        "it on tensor.detach().numpy()")
    factors = OrthogonalFactors(*linalg.qr(matrix(a), "complete" if mode == "complete" else "reduced"))
    return factors.R if mode == "r" else factors        # whose gradient needs Q


@by("pinv", np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = 1e-15) -> Tensor:
    a = matrix(a)
    return linalg.pinv(a, rtol=rtol if rcond is None else rcond, hermitian=bool(hermitian))


# ----- Norms -----
by("norm", np.linalg.norm)(lambda x, ord=None, axis=None, keepdims=False: linalg.norm(matrix(x), ord, axis, bool(keepdims)))
by("matrix_norm", np.linalg.matrix_norm)(
    lambda x, keepdims=False, ord="fro": linalg.matrix_norm(matrix(x), ord, keepdim=bool(keepdims)))
by("vector_norm", np.linalg.vector_norm)(
    lambda x, axis=None, keepdims=False, ord=2: linalg.vector_norm(matrix(x), ord, axis, bool(keepdims)))
by("cond", np.linalg.cond)(lambda x, p=None: linalg.cond(matrix(x), p))


@by("matrix_rank", np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    A = matrix(A)
    if A.ndim < 2:
        return (A != 0).any().long()
    given = {"rtol": rtol} if tol is None else {"atol": tol, "rtol": 0.0}
    return linalg.matrix_rank(A, hermitian=bool(hermitian), **given)


# ----- Products -----
@by("matrix_power", np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Tensor:
    return linalg.matrix_power(operand(a) if n >= 0 else matrix(a), n)


by("multi_dot", np.linalg.multi_dot)(lambda arrays: linalg.multi_dot(promoted(*operands(arrays))))
by("cross", np.linalg.cross)(lambda x1, x2, axis=-1: products.cross(x1, x2, axis=axis))
by("vecdot", np.linalg.vecdot)(products.vecdot)
by("matmul", np.linalg.matmul)(lambda x1, x2: linalg.matmul(*promoted(x1, x2)))
by("diagonal", np.linalg.diagonal)(lambda x, offset=0: linalg.diagonal(operand(x), offset=offset))
row(np.linalg.outer)(lambda x1, x2: vectors.outer(*promoted(x1, x2)))
row(np.linalg.tensordot)(lambda x1, x2, axes=2: products.tensordot(x1, x2, axes))
row(np.linalg.matrix_transpose)(lambda x: operand(x).swapaxes(-1, -2))


@row(np.linalg.trace)
def trace(x: Any, offset: int = 0, dtype: Any = None) -> Tensor:
    return products.trace(x, offset, -2, -1, dtype)
