"""Systems of linear equations by matrices of few diagonals: memory and time are for these alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.compute.matrices import our_loop
from cygrad.operators import public_name
from cygrad.operators._language.arguments import integers
from cygrad.operators._language.batches import aligned_matrices
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.matrices import check_info, checked_matrix
from cygrad.operators.padding import constant_pad_nd
from cygrad.ops.refusals import NOT_FLOATING

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

_lu, _cholesky = our_loop("banded_lu"), our_loop("banded_cholesky")
_by_lu = {False: our_loop("banded_solve"), True: our_loop("banded_solve_adjoint")}
_by_cholesky = our_loop("banded_cholesky_solve")


# ----- Products with bands -----
def _rows_of_columns(x: Tensor, count: int, lower: int) -> Tensor:
    """Return for each column of x, and each of `count` diagonals, x[i] beside the diagonal's elements (i, j): (..., columns, count, n)."""
    return constant_pad_nd(x.mT, (count - 1 - lower, lower)).unfold(-1, x.shape[-2], 1)


def _product(ab: Tensor, x: Tensor, lower: int, adjoint: bool) -> Tensor:
    """Return the product of a banded matrix, or of its adjoint, with columns."""
    count, n = ab.shape[-2:]
    if adjoint:
        return (ab.conj().unsqueeze(-3) * _rows_of_columns(x, count, lower)).sum(-2).mT
    products = ab.unsqueeze(-3) * x.mT.unsqueeze(-2)
    shape = (*products.shape[:-2], n + count - 1)
    return products._sum_windows(shape, len(shape) - 1, n, 1).narrow(-1, count - 1 - lower, n).mT


def _bands_of_product(left: Tensor, right: Tensor, count: int, lower: int) -> Tensor:
    """Return the diagonals of left right^H."""
    return (_rows_of_columns(left, count, lower) * right.mH.unsqueeze(-2)).sum(-3)


def _halves(like: Tensor) -> Tensor:
    """Return factors of the rows of a lower half W, by which the matrix is W + W^H."""
    weights = like.new_ones((like.shape[-2], 1))
    weights[0] = 0.5
    return weights


# ----- Solutions by factors -----
def _by_the_other(g: Tensor, ab: Tensor, lower: int, definite: bool, factors: Tensor, pivots: Any, adjoint: bool) -> Tensor:
    return solved_by_bands(ab, g, lower, definite, factors, pivots, not adjoint)


def _bands_part(shared: Tensor, y: Tensor, ab: Tensor, lower: int, definite: bool, adjoint: bool) -> Tensor:
    """Return the diagonals of -A^-H g X^H, or of its adjoint (Giles 2008, An extended collection of matrix derivative results, 2.3.1)."""
    left, right = (y, shared) if adjoint else (shared, y)
    bands = _bands_of_product(left, right, ab.shape[-2], lower)
    if definite:
        bands = (bands + _bands_of_product(right, left, ab.shape[-2], lower)) * _halves(ab)
    return -bands.sum_to_size(ab.shape)


def _times(ab: Tensor, x: Tensor, lower: int, definite: bool, adjoint: bool) -> Tensor:
    """Return the product of the matrix, or of its adjoint, with columns."""
    if not definite:
        return _product(ab, x, lower, adjoint)
    half = ab * _halves(ab)
    return _product(half, x, lower, False) + _product(half, x, lower, True)


def _tangent(tangent_of: Any, operator: Any, y: Tensor, ab: Tensor, b: Tensor, lower: int, definite: bool, factors: Any = None,
             pivots: Any = None, adjoint: bool = False, checks: Any = None) -> Tensor | None:
    """Return the solution for db - dA y."""
    of_bands, of_side = tangent_of(ab), tangent_of(b)
    parts = [] if of_side is None else [of_side.expand(y.shape)]
    parts += [] if of_bands is None else [-_times(of_bands, y, lower, definite, adjoint)]
    return operator(ab, sum(parts[1:], parts[0]), lower, definite, factors, pivots, adjoint) if parts else None


@operator(shared=_by_the_other, dab=_bands_part, db=lambda shared, b_shape: shared.sum_to_size(b_shape), adjoints=True, tangent=_tangent,
          batch=aligned_matrices, node="SolveBandedBackward0", function=False, method=False)
def solved_by_bands(ab: Tensor, b: Tensor, lower: int, definite: bool, factors: Any = None, pivots: Any = None, adjoint: bool = False,
                    checks: Any = None) -> Any:
    """Return x of A x = b or, with `adjoint`, of A^H x = b, where ab has the diagonals of A, `lower` of them below the main one.

    Of a `definite` A, which is Hermitian, ab has the main one and these alone. By LU or Cholesky factors, which are computed where none
    are given. `checks`: the name of the operator in whose words a matrix without factors is refused.
    """
    bands, side = ab.detach(), b.detach()
    if factors is None and definite:
        factors, info = _cholesky(bands)
        check_info(checks, info, "The factorization could not be completed because the input is not positive-definite (the leading minor "
                                 "of order {info} is not positive-definite).")
    elif factors is None:
        factors, pivots, info = _lu(bands, size=ab.shape[-2] + lower)
        check_info(checks, info, "The solver failed because the input matrix is singular.")
    result = _by_cholesky(factors, side) if definite else _by_lu[adjoint](bands, factors, pivots, side)
    return recorded(solved_by_bands, (ab, b), result, lower=lower, definite=definite, factors=factors, pivots=pivots, adjoint=adjoint)


# ----- Solutions -----
def _is_vector(ab: Tensor, b: Tensor) -> bool:
    """Return True if b is a vector, or a batch of such: where it has the shape of ab without its diagonals."""
    return b.ndim == 1 or b.shape == (*ab.shape[:-2], ab.shape[-1])


def _solved(operator: Any, ab: Tensor, b: Tensor, lower: int, definite: bool = False) -> Tensor:
    name, n, vector = public_name(operator.name), ab.shape[-1], _is_vector(ab, b)
    side = checked_matrix(operator, b.unsqueeze(-1) if vector else b, "b")
    if side.shape[-2] != n:
        raise RuntimeError(f"{name}: b must have {n} rows, as many as the matrix, but it has the shape {list(b.shape)}")
    if ab.dtype != b.dtype:
        raise RuntimeError(f"{name}: Expected ab and b to have the same dtype, but found ab of type {ab.dtype} and b of type {b.dtype} "
                           "instead")
    x = solved_by_bands(ab, side, lower, definite, checks=operator)
    return x.squeeze(-1) if vector else x


@operator(refuses={"biu": NOT_FLOATING}, loop="lu_cpu")
def linalg_solve_banded(l_and_u: tuple[int, int], ab: Tensor, b: Tensor) -> Tensor:
    """Solution x of A x = b for A with l diagonals below the main one and u above it, which are the rows of `ab`, the highest first.

    As in SciPy: A[i, j] is ab[u + i - j, j], and elements of ab outside of A are not read. b is a vector, or a matrix of several; dims
    in front of both broadcast. By LU factors of the diagonals, which gradients use again.

    Raises:
        RuntimeError: sizes or dtypes that do not fit.
        LinAlgError: a singular matrix.

    >>> import cygrad
    >>> cygrad.linalg.solve_banded((1, 0), cygrad.tensor([[1., 1.], [1., 0.]]), cygrad.tensor([1., 3.]))
    tensor([1., 2.])
    """
    checked_matrix(linalg_solve_banded, ab, "ab")
    below, above = integers(l_and_u)
    count = ab.shape[-2]
    if below < 0 or above < 0 or count != below + above + 1:
        raise RuntimeError(f"linalg.solve_banded: ab must have l + u + 1 rows, one for each diagonal, but it has {count} for "
                           f"{(below, above)}")
    return _solved(linalg_solve_banded, ab, b, below)


@operator(refuses={"biu": NOT_FLOATING}, loop="cholesky_cpu")
def linalg_solveh_banded(ab: Tensor, b: Tensor, lower: bool = False) -> Tensor:
    """Solution x of A x = b for a Hermitian positive definite A, by its upper diagonals, or with `lower` by its lower ones.

    The rows of `ab` are the diagonals, as in SciPy: A[i, j] is ab[u + i - j, j], or ab[i - j, j] with `lower`. b is a vector, or a matrix
    of several; dims in front of both broadcast. By Cholesky's factor of the diagonals, which gradients use again.

    Raises:
        RuntimeError: sizes or dtypes that do not fit.
        LinAlgError: a matrix that is not positive definite.

    >>> import cygrad
    >>> cygrad.linalg.solveh_banded(cygrad.tensor([[4., 5.], [2., 0.]]), cygrad.tensor([6., 7.]), lower=True)
    tensor([1., 1.])
    """
    checked_matrix(linalg_solveh_banded, ab, "ab")
    if not ab.shape[-2]:
        raise RuntimeError("linalg.solveh_banded: ab must have a row for each diagonal, but it has none")
    if lower:
        return _solved(linalg_solveh_banded, ab, b, ab.shape[-2] - 1, True)
    rows = -1 if _is_vector(ab, b) else -2      # backwards, the upper diagonals are the lower ones
    return linalg_solveh_banded(ab.flip((-2, -1)), b.flip(rows), True).flip(rows)
