"""Factorisations of matrices: Cholesky's, LU and LDL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.compute.matrices import our_loop
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.operands.arrays import to_array
from cygrad.data import creation
from cygrad.operators import joining
from cygrad.operators._language.arguments import all_examples, delivered, delivered_together, shown_as
from cygrad.operators._language.batches import aligned_matrices, matrices
from cygrad.operators._language.declaration import operator, recorded, recorded_together
from cygrad.operators._language.matrices import check_info, checked_matrix
from cygrad.operators._language.tangents import first_linear
from cygrad.operators.solving import check_sides, linalg_solve_triangular
from cygrad.ops.dtypes import DTYPES, NUMBER
from cygrad.ops.refusals import NOT_FLOATING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor


# ----- Cholesky's -----
_cholesky = our_loop("cholesky")


_BLOCK = 48     # columns of a block of the gradient; from three blocks on it takes less time, at 300 x 300 half of it


def _by_whole_matrix(g: Tensor, L: Tensor) -> Tensor:
    """Return L^-H S L^-1, where S is half of tril(L^H g) and half of the adjoint of its part below the diagonal.

    Source: I. Murray, Differentiation of the Cholesky decomposition, 2016, eq. 10. It is Hermitian for real diagonals of g, as torch's.
    """
    inner = (L.mH @ g).tril()
    half = linalg_solve_triangular(L.mH, 0.5 * (inner + inner.tril(-1).mH), upper=True)
    return linalg_solve_triangular(L.mH, half.mH, upper=True).mH


def _cholesky_gradient(g: Tensor, y: Tensor, upper: bool) -> Tensor:
    """Return the gradient by blocks of columns, the last one first, where there are several: a sixth of the operations.

    Source: I. Murray, Differentiation of the Cholesky decomposition, 2016, chol_blocked_rev.
    """
    g, L = (g.mH, y.mH) if upper else (g, y)
    size = L.shape[-1]
    if size < 3 * _BLOCK or L.is_complex():
        return _by_whole_matrix(g, L)
    below, columns = g[..., size:, :], []       # the gradient of the rows below a block, so far; columns of the result
    for stop in range(size, 0, -_BLOCK):
        start = max(0, stop - _BLOCK)
        rows, block = L[..., start:stop, :start], L[..., start:stop, start:stop]
        rest = linalg_solve_triangular(block, below[..., start:], upper=False, left=False)
        whole = _by_whole_matrix(g[..., start:stop, start:stop] - rest.mH @ L[..., stop:, start:stop], block)
        columns.append(joining.cat((g.new_zeros(*g.shape[:-2], start, stop - start), 0.5 * whole, 0.5 * rest), -2))
        beside = g[..., start:stop, :start] - rest.mH @ L[..., stop:, :start] - 2 * whole @ rows
        below = joining.cat((beside, below[..., :start] - rest @ rows), -2)
    half = joining.cat(columns[::-1], -1)
    return half + half.mH


def _factored(operator: Any, A: Tensor, upper: bool, checks: bool) -> tuple[Tensor, Tensor]:
    a = checked_matrix(operator, A, square=True)
    factor, info = _cholesky(a.detach().mH if upper else a)
    if checks:
        check_info(operator, info, "The factorization could not be completed because the input is not positive-definite (the leading "
                                   "minor of order {info} is not positive-definite).")
    return recorded(operator, (a,), factor.mH if upper else factor, upper=upper), info


@operator(dA=_cholesky_gradient, adjoints=True, node="LinalgCholeskyExBackward0", batch=matrices,
          refuses={"biu": NOT_FLOATING}, loop="cholesky_cpu")
def linalg_cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Cholesky's factor L of Hermitian, positive definite matrices in the last two dims, A = L L^H; with `upper` L^H.

    The lower triangle is read, with `upper` the upper one. LinAlgError where a matrix is not positive definite.

    >>> import cygrad
    >>> cygrad.linalg.cholesky(cygrad.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return delivered(_factored(linalg_cholesky, A, bool(upper), True)[0], out)


@shown_as("linalg_cholesky_ex")
class CholeskyResult(NamedTuple):
    """The results of `linalg.cholesky_ex`."""

    L: Tensor
    info: Tensor


@operator(dA=_cholesky_gradient, adjoints=True, batch=matrices,
          refuses={"biu": NOT_FLOATING}, loop="cholesky_cpu")
def linalg_cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False,
                       out: Sequence[Tensor] | None = None) -> CholeskyResult:
    """Cholesky's factor, and `info`: the order of the first leading minor that is not positive definite, 0 where there is none.

    >>> import cygrad
    >>> cygrad.linalg.cholesky_ex(-cygrad.eye(2)).info
    tensor(1, dtype=cygrad.int32)
    """
    return delivered_together(CholeskyResult, _factored(linalg_cholesky_ex, A, bool(upper), check_errors), out)


@operator(dinput=_cholesky_gradient, adjoints=True, batch=matrices)
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Cholesky's factor, as `linalg.cholesky` gives it.

    >>> import cygrad
    >>> cygrad.cholesky(cygrad.full((1, 1), 4.))
    tensor([[2.]])
    """
    return delivered(_factored(cholesky, input, bool(upper), True)[0], out)


# ----- LU -----
_lu = our_loop("lu_factor")
_exchange = {False: our_loop("exchange_rows"), True: our_loop("exchange_rows_back")}
_lu_solve = {False: our_loop("lu_solve"), True: our_loop("lu_solve_adjoint")}


def _exchanged_back(g: Tensor, pivots: Tensor, backwards: bool) -> Any:
    return rows_exchanged(g, pivots, not backwards)


@operator(dA=_exchanged_back, tangent=first_linear, batch=aligned_matrices, function=False, method=False)
def rows_exchanged(A: Tensor, pivots: Tensor, backwards: bool = False) -> Any:
    """Return matrices after the exchanges of rows of an LU factorisation, or, `backwards`, before them."""
    rows = to_array(pivots)
    if rows.size and not 1 <= rows.min() <= rows.max() <= A.shape[-2]:
        raise RuntimeError("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of "
                           "lu_factor?")
    return recorded(rows_exchanged, (A,), _exchange[backwards](A, pivots), pivots=pivots, backwards=backwards)


def _by_adjoint_upper(LU: Tensor, tensor: Tensor) -> Tensor:
    """Return tensor U^-H."""
    return linalg_solve_triangular(LU.mH, tensor, upper=False, left=False)


def _by_adjoint_lower(LU: Tensor, tensor: Tensor) -> Tensor:
    """Return L^-H tensor."""
    return linalg_solve_triangular(LU.mH, tensor, upper=True, unitriangular=True)


def _times_adjoint_lower(LU: Tensor, tensor: Tensor) -> Tensor:
    """Return L^H tensor."""
    return LU.tril(-1).mH @ tensor + tensor


def _lu_gradient(g: Tensor, y: Tensor, y1: Tensor) -> Tensor:
    """Return P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H; of matrices that are not square, with the other rows or columns.

    Source: F. de Hoog, R. Anderssen and M. Lukas, Differentiation of matrix functionals using triangular factorization, 2011.
    """
    m, n = y.shape[-2:]
    k = min(m, n)
    square, below, right = y[..., :k, :k], y[..., k:, :], y[..., :, k:]
    lower, upper = _times_adjoint_lower(square, g[..., :k, :k].tril(-1)), g[..., :k, :k].triu() @ square.triu().mH
    if m > k:
        upper = upper - below.mH @ g[..., k:, :]
    if n > k:
        lower = lower - g[..., :, k:] @ right.mH
    result = _by_adjoint_upper(square, lower.tril(-1) + upper.triu())
    if n > k:
        result = joining.cat((result, g[..., :, k:]), -1)
    result = _by_adjoint_lower(square, result)
    if m > k:
        result = joining.cat((result, _by_adjoint_upper(square, g[..., k:, :])), -2)
    return rows_exchanged(result, y1, True)


@shown_as("linalg_lu_factor_ex")
class LUResult(NamedTuple):
    """The results of `linalg.lu_factor_ex`."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


@shown_as("linalg_lu_factor")
class LUFactors(NamedTuple):
    """The results of `linalg.lu_factor`."""

    LU: Tensor
    pivots: Tensor


@shown_as("linalg_lu")
class LUParts(NamedTuple):
    """The results of `linalg.lu`."""

    P: Tensor
    L: Tensor
    U: Tensor


@operator(dA=_lu_gradient, adjoints=True, batch=matrices, node="LinalgLuFactorExBackward0", function=False, method=False)
def lu_factored(A: Tensor, pivot: bool = True, checks: Any = None) -> LUResult:
    """Return packed LU factors, pivots and info; `checks`: the operator in whose name a singular matrix is refused."""
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    results = _lu(A)
    if checks:
        check_info(checks, results[2], "U[{info},{info}] is zero and using it on lu_solve would result in a division by zero. If you still "
                                       "want to perform the factorization, consider calling linalg.lu(A, pivot) or "
                                       "linalg.lu_factor_ex(A, pivot)")
    return LUResult(*recorded_together(lu_factored, (A,), results))


@operator(loop="lu_cpu")
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Sequence[Tensor] | None = None) -> LUResult:
    """LU factors as `linalg.lu_factor` gives them, and `info`: the first pivot that is 0, counted from 1; 0 where there is none.

    >>> import cygrad
    >>> cygrad.linalg.lu_factor_ex(cygrad.zeros(1, 1)).info
    tensor(1, dtype=cygrad.int32)
    """
    a = checked_matrix(linalg_lu_factor_ex, A)
    return delivered_together(LUResult, lu_factored(a, pivot, linalg_lu_factor_ex if check_errors else None), out)


@operator(loop="lu_cpu")
def linalg_lu_factor(A: Tensor, *, pivot: bool = True, out: Sequence[Tensor] | None = None) -> LUFactors:
    """LU factors of matrices in the last two dims: U above, L below the diagonal, which is 1; and the exchanges of rows, counted from 1.

    LinAlgError where a pivot is 0.

    >>> import cygrad
    >>> cygrad.linalg.lu_factor(cygrad.tensor([[1., 2.], [2., 2.]])).LU
    tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]])
    """
    return delivered_together(LUFactors, lu_factored(checked_matrix(linalg_lu_factor, A), pivot, linalg_lu_factor)[:2], out)


@operator(loop="lu_cpu")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """LU factors and pivots, with `get_infos` also the info: `linalg.lu_factor_ex` of old.

    >>> import cygrad
    >>> cygrad.lu(cygrad.eye(2))[1]
    tensor([1, 2], dtype=cygrad.int32)
    """
    results = lu_factored(checked_matrix(lu, A), pivot)
    return tuple(delivered_together(LUResult, results, out) if get_infos else delivered_together(LUFactors, results[:2], out))


@operator(method=False)
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *,
              out: Sequence[Tensor] | None = None) -> LUParts:
    """Permutation P, lower L and upper U of packed LU factors, A = P L U; parts that are not requested are empty.

    >>> import cygrad
    >>> cygrad.lu_unpack(*cygrad.linalg.lu_factor(cygrad.tensor([[1., 2.], [2., 2.]]))).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    packed, pivots = checked_matrix(lu_unpack, LU_data, "LU_data"), LU_pivots
    if unpack_pivots and pivots.dtype.name != "int32":
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
    m, n = packed.shape[-2:]
    k = min(m, n)
    P = L = U = packed.new_empty((0,))
    if unpack_pivots:
        P = rows_exchanged(creation.eye(m, dtype=packed.dtype), pivots, True).contiguous()
    if unpack_data:
        L = packed[..., :, :k].tril(-1) + creation.eye(m, k, dtype=packed.dtype)
        U = packed[..., :k, :].triu()
    return delivered_together(LUParts, (P, L, U), out)


@operator(loop="lu_cpu")
def linalg_lu(A: Tensor, *, pivot: bool = True, out: Sequence[Tensor] | None = None) -> LUParts:
    """Factors of A = P L U: a permutation, a lower triangle with ones on the diagonal, and an upper triangle.

    >>> import cygrad
    >>> cygrad.linalg.lu(cygrad.tensor([[1., 2.], [2., 2.]])).U
    tensor([[2., 2.],
            [0., 1.]])
    """
    return delivered_together(LUParts, lu_unpack(*lu_factored(checked_matrix(linalg_lu, A), pivot)[:2]), out)


# ----- Solutions by LU -----
def _factors_gradient(shared: Tensor, y: Tensor, LU: Tensor, pivots: Tensor, adjoint: bool, LU_shape: tuple[int, ...]) -> Tensor:
    """Return the parts of -A^-H g X^H, or its adjoint, that belong to L and U of A = P L U, as of the gradient of a product."""
    first, second = (y, shared) if adjoint else (shared, y)
    first = rows_exchanged(first, pivots)
    of_lower, of_upper = first @ (LU.triu() @ second).mH, _times_adjoint_lower(LU, first) @ second.mH
    return -(of_lower.tril(-1) + of_upper.triu()).sum_to_size(LU_shape)


def _by_the_other(g: Tensor, LU: Tensor, pivots: Tensor, adjoint: bool) -> Tensor:
    return linalg_lu_solve(LU, pivots, g, adjoint=not adjoint)


def _from_the_right(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Any:
    return NotImplemented if left else linalg_lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH


@operator(shared=_by_the_other, dLU=_factors_gradient,
          dB=lambda shared, B_shape: shared.sum_to_size(B_shape), adjoints=True, batch=aligned_matrices, parts=_from_the_right,
          refuses={"biu": NOT_FLOATING}, loop="linalg.lu_solve_cpu")
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False,
                    out: Tensor | None = None) -> Tensor:
    """Solution X of A X = B (of X A = B without `left`) by the LU factors of A; with `adjoint` of the equation with A^H.

    >>> import cygrad
    >>> factors = cygrad.linalg.lu_factor(cygrad.tensor([[2., 1.], [1., 1.]]))
    >>> cygrad.linalg.lu_solve(*factors, cygrad.tensor([[3.], [2.]]))
    tensor([[1.],
            [1.]])
    """
    a, b = checked_matrix(linalg_lu_solve, LU, "LU", square=True), checked_matrix(linalg_lu_solve, B, "B")
    check_sides(linalg_lu_solve, a, b, left=left, first="LU")
    if pivots.dtype.name != "int32":
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if not pivots.ndim or pivots.shape[-1] != a.shape[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if not left:
        return delivered(_from_the_right(a, pivots, b, left=False, adjoint=adjoint), out)
    rows = to_array(pivots)
    if rows.size and rows.min() < 1:
        raise RuntimeError("Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of lu_factor?")
    if rows.size and rows.max() > a.shape[-1]:
        raise RuntimeError("Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result of "
                           "lu_factor?")
    result = _lu_solve[bool(adjoint)](a, pivots, b)
    return delivered(recorded(linalg_lu_solve, (a, b), result, pivots=pivots.clone(), adjoint=bool(adjoint)), out)


@operator
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Solution X of A X = input by the LU factors of A: `linalg.lu_solve` of old.

    >>> import cygrad
    >>> cygrad.lu_solve(cygrad.ones(1, 1), cygrad.full((1, 1), 2.), cygrad.ones(1, dtype=cygrad.int32))
    tensor([[0.5000]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, input, out=out)


# ----- LDL -----
_ldl = {False: our_loop("ldl_factor"), True: our_loop("ldl_factor_hermitian")}
_ldl_solve = {False: our_loop("ldl_solve"), True: our_loop("ldl_solve_hermitian")}


@shown_as("linalg_ldl_factor_ex")
class LDLResult(NamedTuple):
    """The results of `linalg.ldl_factor_ex`."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


@shown_as("linalg_ldl_factor")
class LDLFactors(NamedTuple):
    """The results of `linalg.ldl_factor`."""

    LD: Tensor
    pivots: Tensor


@operator(batch=matrices, function=False, method=False)
def ldl_factored(A: Tensor, hermitian: bool = False, checks: Any = None) -> LDLResult:
    """Return packed LDL factors, pivots and info; `checks`: the operator in whose name a singular matrix is refused."""
    if A.requires_grad and is_grad_enabled():
        raise NotImplementedError("the derivative for 'linalg_ldl_factor_ex' is not implemented: detach() the matrices")
    results = _ldl[bool(hermitian)](A)
    if checks:
        check_info(checks, results[2], "D[{info},{info}] is zero: the factorization is complete, but solving by it would divide by zero.")
    return LDLResult(*results)


@operator(refuses={"biu": NOT_FLOATING}, loop="ldl_factor_kernel_cpu")
def linalg_ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False,
                         out: Sequence[Tensor] | None = None) -> LDLResult:
    """LDL factors as `linalg.ldl_factor` gives them, and `info`: the first block of D that is 0, counted from 1; 0 where there is none.

    >>> import cygrad
    >>> cygrad.linalg.ldl_factor_ex(cygrad.zeros(1, 1)).info
    tensor(1, dtype=cygrad.int32)
    """
    a = checked_matrix(linalg_ldl_factor_ex, A, square=True)
    return delivered_together(LDLResult, ldl_factored(a, hermitian, linalg_ldl_factor_ex if check_errors else None), out)


@operator(refuses={"biu": NOT_FLOATING}, loop="ldl_factor_kernel_cpu")
def linalg_ldl_factor(A: Tensor, *, hermitian: bool = False, out: Sequence[Tensor] | None = None) -> LDLFactors:
    """Packed factors of symmetric, with `hermitian` of Hermitian matrices, A = L D L^T, in the format of LAPACK, with its pivots.

    D has blocks of one or two rows (Bunch and Kaufman 1977). The lower triangle is read. There is no derivative.

    >>> import cygrad
    >>> cygrad.linalg.ldl_factor(cygrad.tensor([[2., 1.], [1., 1.]])).LD
    tensor([[2.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    a = checked_matrix(linalg_ldl_factor, A, square=True)
    return delivered_together(LDLFactors, ldl_factored(a, hermitian, linalg_ldl_factor)[:2], out)


def _by_adjoint(g: Tensor, LD: Tensor, pivots: Tensor, hermitian: bool, B_shape: tuple[int, ...]) -> Tensor:
    """Return A^-H g."""
    solution = linalg_ldl_solve(LD, pivots, g if hermitian else g.conj(), hermitian=hermitian)
    return (solution if hermitian else solution.conj()).sum_to_size(B_shape)


@operator(dB=_by_adjoint, dLD=None, adjoints=True, batch=aligned_matrices,
          refuses={"biu": NOT_FLOATING}, loop="ldl_solve_kernel_cpu")
def linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """Solution X of A X = B by the LDL factors of A; its derivative is that by B.

    >>> import cygrad
    >>> cygrad.linalg.ldl_solve(*cygrad.linalg.ldl_factor(cygrad.tensor([[2., 1.], [1., 1.]])), cygrad.tensor([[3.], [2.]]))
    tensor([[1.],
            [1.]])
    """
    a, b = checked_matrix(linalg_ldl_solve, LD, "LD", square=True), checked_matrix(linalg_ldl_solve, B, "B")
    check_sides(linalg_ldl_solve, a, b, left=True, first="LD")
    kind = DTYPES[NUMBER[pivots.dtype.name]]
    if not kind.is_integer:
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {kind.title}")
    if pivots.shape != a.shape[:-1]:
        raise RuntimeError("torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
                           f"{list(pivots.shape)} instead")
    rows = np.abs(to_array(all_examples(pivots)))
    if rows.size and rows.min() < 1:
        raise RuntimeError("Pivots given to ldl_solve must all satisfy |pivot| >= 1. Did you properly pass the result of ldl_factor?")
    if rows.size and rows.max() > a.shape[-1]:
        raise RuntimeError("Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did you properly pass the result of "
                           "ldl_factor?")
    pivots = pivots.int()
    result = _ldl_solve[bool(hermitian)](a, pivots, b)
    return delivered(recorded(linalg_ldl_solve, (b, a), result, pivots=pivots.clone(), hermitian=bool(hermitian)), out)
