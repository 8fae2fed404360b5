"""Systems of linear equations, by matrices and by their factors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.compute.matrices import our_loop
from cygrad._core.operands.arrays import from_array, to_array
from cygrad.data import creation
from cygrad.operators import joining, public_name
from cygrad.operators._language.arguments import delivered, delivered_together, shown_as
from cygrad.operators._language.batches import aligned_matrices, matrices
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.matrices import check_info, checked_matrix
from cygrad.ops.refusals import LOW_PRECISION, NOT_FLOATING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor


def check_sides(operator: Any, a: Tensor, b: Tensor, *, left: bool, first: str = "A") -> None:
    """Refuse the sides of an equation that do not agree."""
    name = public_name(operator.name)
    if a.size(-1) != b.size(-2 if left else -1):
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})")
    if a.dtype != b.dtype:
        raise RuntimeError(f"{name}: Expected {first} and B to have the same dtype, but found {first} of type {a.dtype} and B "
                           f"of type {b.dtype} instead")


# ----- By triangular matrices -----
_triangular = {(upper, unit): our_loop(f"solve_{'unit_' if unit else ''}{'upper' if upper else 'lower'}")
               for upper in (False, True) for unit in (False, True)}


def _solved_by_the_adjoint(g: Tensor, A: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    return linalg_solve_triangular(A.mT, g, upper=not upper, unitriangular=unitriangular)


def _matrix_gradient(shared: Tensor, y: Tensor, upper: bool, unitriangular: bool, A_shape: tuple[int, ...]) -> Tensor:
    """Return -A^-H g X^H where the triangle is (Giles 2008, An extended collection of matrix derivative results, 2.3.1)."""
    product = -(shared @ y.mT)
    triangle = product.triu(int(unitriangular)) if upper else product.tril(-int(unitriangular))
    return triangle.sum_to_size(A_shape)


def _from_the_right(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    return NotImplemented if left else linalg_solve_triangular(A.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT


@operator(shared=_solved_by_the_adjoint, dA=_matrix_gradient, dB=lambda shared, B_shape: shared.sum_to_size(B_shape),
          batch=aligned_matrices, parts=_from_the_right,
          loop="triangular_solve_cpu")
def linalg_solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False,
                            out: Tensor | None = None) -> Tensor:
    """Solution X of A X = B (of X A = B without `left`) for triangular matrices in the last two dims of A; batches broadcast.

    One triangle is read; with `unitriangular` the diagonal is taken as 1 and not read. A zero on the diagonal gives infinities.

    >>> import cygrad
    >>> cygrad.linalg.solve_triangular(cygrad.tensor([[2., 0.], [1., 1.]]), cygrad.tensor([[2.], [3.]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    a = checked_matrix(linalg_solve_triangular, A, square=True)
    b = checked_matrix(linalg_solve_triangular, B, "B")
    if not left:
        check_sides(linalg_solve_triangular, a, b, left=False)
        return delivered(_from_the_right(a, b, upper=upper, left=False, unitriangular=unitriangular), out)
    try:
        result = _triangular[bool(upper), bool(unitriangular)](a, b)
    except RuntimeError:
        check_sides(linalg_solve_triangular, a, b, left=True)
        raise
    return delivered(recorded(linalg_solve_triangular, (a, b), result, upper=bool(upper), unitriangular=bool(unitriangular)), out)


@shown_as("triangular_solve")
class TriangularSolution(NamedTuple):
    """The results of `triangular_solve`."""

    solution: Tensor
    cloned_coefficient: Tensor


@operator
def triangular_solve(input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *,
                     out: Sequence[Tensor] | None = None) -> TriangularSolution:
    """Solution X of A X = input, for triangular A or, with `transpose`, its transposed, and a copy of A: `linalg.solve_triangular` of old.

    >>> import cygrad
    >>> cygrad.triangular_solve(cygrad.ones(1, 1), cygrad.full((1, 1), 2.)).solution
    tensor([[0.5000]])
    """
    a, b = checked_matrix(triangular_solve, A, square=True), checked_matrix(triangular_solve, input, "input")
    solution = linalg_solve_triangular(a.mT if transpose else a, b, upper=bool(upper) != bool(transpose), unitriangular=unitriangular)
    return delivered_together(TriangularSolution, (solution, a.clone()), out)


# ----- By LU factors -----
_lu_factor, _lu_inverse = our_loop("lu_factor"), our_loop("lu_inverse")
_lu_solve = {False: our_loop("lu_solve"), True: our_loop("lu_solve_adjoint")}
_ZERO_PIVOT = "The diagonal element {info} is zero, the inversion could not be completed because the input matrix is singular."


def _by_the_other(g: Tensor, A: Tensor, LU: Tensor, pivots: Tensor, adjoint: bool) -> Any:
    return solved_by_factors(A, g, LU, pivots, not adjoint)[0]


def _matrix_part(shared: Tensor, y: Tensor, adjoint: bool, A_shape: tuple[int, ...]) -> Tensor:
    """Return -A^-H g X^H, or its adjoint (Giles 2008, An extended collection of matrix derivative results, 2.3.1)."""
    product = y @ shared.mH if adjoint else shared @ y.mH
    return -product.sum_to_size(A_shape)


def _solution_tangent(tangent_of: Any, operator: Any, result: Any, A: Tensor, B: Tensor, LU: Any = None, pivots: Any = None,
                      adjoint: bool = False, checks: Any = None) -> Any:
    X, LU, pivots, info = result
    dA, dB = tangent_of(A), tangent_of(B)
    parts = [] if dB is None else [dB.expand(X.shape)]
    parts += [] if dA is None else [-((dA.mH if adjoint else dA) @ X)]
    return (operator(A, sum(parts[1:], parts[0]), LU, pivots, adjoint)[0], None, None, None) if parts else None


@operator(shared=_by_the_other, dA=_matrix_part,
          dB=lambda shared, B_shape: shared.sum_to_size(B_shape), adjoints=True, tangent=_solution_tangent, batch=aligned_matrices,
          node="LinalgSolveExBackward0", function=False, method=False)
def solved_by_factors(A: Tensor, B: Tensor, LU: Any = None, pivots: Any = None, adjoint: bool = False, checks: Any = None) -> Any:
    """Return X of A X = B or, with `adjoint`, of A^H X = B, the LU factors of A, computed where none are given, and their info.

    The value is computed from the factors, and the derivatives are by A: no derivative, of any order, factorises again. `checks`:
    the name of the operator in whose words a singular matrix is refused.
    """
    info = None
    if LU is None:
        LU, pivots, info = _lu_factor(A)
        if checks:
            check_info(checks, info, "The solver failed because the input matrix is singular.")
    X = _lu_solve[adjoint](LU, pivots, B)
    return recorded(solved_by_factors, (A, B), X, LU=LU, pivots=pivots, adjoint=adjoint), LU, pivots, info


def _inverse_tangent(tangent_of: Any, operator: Any, result: Any, A: Tensor, *others: Any, checks: Any = None) -> Any:
    inverse, dA = result[0], tangent_of(A)
    return None if dA is None else (-(inverse @ dA @ inverse), None)


@operator(dA=lambda g, y: -(y.mH @ g @ y.mH), adjoints=True, tangent=_inverse_tangent, batch=aligned_matrices, node="LinalgInvExBackward0",
          function=False, method=False)
def inverted(A: Tensor, LU: Any = None, pivots: Any = None, checks: Any = None) -> Any:
    """Return the inverse from the LU factors, computed where none are given, and their info; see `solved_by_factors`.

    Gradient: -Y^H g Y^H (Giles 2008, An extended collection of matrix derivative results, 2.2.3).
    """
    info = None
    if LU is None:
        LU, pivots, info = _lu_factor(A)
        if checks:
            check_info(checks, info, _ZERO_PIVOT)
    return recorded(inverted, (A,), _lu_inverse(LU, pivots)), info


# ----- Solutions -----
@shown_as("linalg_solve_ex")
class SolveResult(NamedTuple):
    """The results of `linalg.solve_ex`."""

    result: Tensor
    info: Tensor


def _solved(operator: Any, A: Tensor, B: Tensor, left: bool, checks: bool) -> tuple[Tensor, Tensor]:
    """Return the solution and the info; B is a vector, or a batch of such, where it has the shape of A without its last dim."""
    a = checked_matrix(operator, A, square=True)
    vector = B.ndim == 1 or B.ndim == a.ndim - 1 and B.shape == a.shape[:-1]
    b = checked_matrix(operator, B.unsqueeze(-1) if vector else B, "B")
    check_sides(operator, a, b, left=left)
    checked = operator if checks else None
    X, _, _, info = solved_by_factors(a, b, checks=checked) if left else solved_by_factors(a.mT, b.mT, checks=checked)
    X = X if left else X.mT
    return X.squeeze(-1) if vector else X, info


@operator(refuses={"biu": NOT_FLOATING}, loop="lu_cpu")
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False,
                    out: Sequence[Tensor] | None = None) -> SolveResult:
    """Solution as `linalg.solve` gives it, and `info`, which is not 0 for a singular matrix: then the solution has infinities or NaN.

    >>> import cygrad
    >>> cygrad.linalg.solve_ex(cygrad.zeros(1, 1), cygrad.ones(1)).info
    tensor(1, dtype=cygrad.int32)
    """
    return delivered_together(SolveResult, _solved(linalg_solve_ex, A, B, left, check_errors), out)


@operator(refuses={"biu": NOT_FLOATING}, loop="lu_cpu")
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """Solution X of A X = B (of X A = B without `left`) for square matrices in the last two dims of A; batches broadcast.

    B is a vector, or a batch of vectors, where it has one dim or the shape of A without its last one. LinAlgError where A is singular.

    >>> import cygrad
    >>> cygrad.linalg.solve(cygrad.tensor([[2., 1.], [1., 1.]]), cygrad.tensor([3., 2.]))
    tensor([1., 1.])
    """
    return delivered(_solved(linalg_solve, A, B, left, True)[0], out)


@operator
def linalg_tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """Solution X of `tensordot(A, X, X.ndim) = B`; `dims` are moved behind the others of A first.

    >>> import cygrad
    >>> cygrad.linalg.tensorsolve(cygrad.eye(4).reshape(2, 2, 4), cygrad.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    shape = A.shape[B.ndim:]
    unknowns, equations = math.prod(shape), math.prod(A.shape[:B.ndim])
    if unknowns != equations:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but "
                           f"got {unknowns} != {equations}")
    return delivered(linalg_solve(A.reshape(equations, unknowns), B.reshape(-1)).reshape(shape), out)


# ----- Inverses -----
@shown_as("linalg_inv_ex")
class InverseResult(NamedTuple):
    """The results of `linalg.inv_ex`."""

    inverse: Tensor
    info: Tensor


@operator(refuses={"biu": NOT_FLOATING, "f": LOW_PRECISION})
def linalg_inv_ex(A: Tensor, *, check_errors: bool = False, out: Sequence[Tensor] | None = None) -> InverseResult:
    """Inverse of square matrices in the last two dims, and `info`, which is not 0 for a singular one: then it has infinities or NaN.

    >>> import cygrad
    >>> cygrad.linalg.inv_ex(cygrad.zeros(1, 1)).info
    tensor(1, dtype=cygrad.int32)
    """
    checks = linalg_inv_ex if check_errors else None
    return delivered_together(InverseResult, inverted(checked_matrix(linalg_inv_ex, A, square=True), checks=checks), out)


@operator(aliases=("inverse",),
          refuses={"biu": NOT_FLOATING, "f": LOW_PRECISION})
def linalg_inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse of square matrices in the last two dims. LinAlgError where one is singular.

    >>> import cygrad
    >>> cygrad.linalg.inv(cygrad.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return delivered(inverted(checked_matrix(linalg_inv, A, square=True), checks=linalg_inv)[0], out)


@operator
def linalg_tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """Inverse with respect to `tensordot` over `ind` dims: `tensordot(tensorinv(A, ind), A, ind)` is the identity.

    >>> import cygrad
    >>> cygrad.linalg.tensorinv(cygrad.eye(4).reshape(2, 2, 4)).shape
    cygrad.Size([4, 2, 2])
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    behind, before = math.prod(A.shape[ind:]), math.prod(A.shape[:ind])
    if behind != before:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
                           f"{behind} != {before}")
    return delivered(linalg_inv(A.reshape(before, behind)).reshape(A.shape[ind:] + A.shape[:ind]), out)


# ----- By Cholesky's factor -----
def _by_factor(g: Tensor, L: Tensor, upper: bool) -> Tensor:
    return cholesky_solve(g, L, upper)


def _by_whole_factor(left: Tensor, right: Tensor, L: Tensor, upper: bool, L_shape: tuple[int, ...]) -> Tensor:
    """Return the gradient by L for the gradient left right^H of A = L L^H, also in the triangle that is not read, as torch has it.

    That is -C L, or -L C with `upper`, where C = left right^H + right left^H. Of few columns C is not formed.
    """
    if 3 * left.shape[-1] < left.shape[-2]:
        left, right = joining.cat((left, right), -1), joining.cat((right, left), -1)
        product = (L @ left) @ right.mH if upper else left @ (right.mH @ L)
    else:
        half = left @ right.mH
        product = L @ (half + half.mH) if upper else (half + half.mH) @ L
    return -product.sum_to_size(L_shape)


@operator(shared=_by_factor, dinput=lambda shared, input_shape: shared.sum_to_size(input_shape),
          dL=lambda shared, y, L, upper, L_shape: _by_whole_factor(shared, y, L, upper, L_shape), adjoints=True, batch=aligned_matrices)
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Solution X of A X = input, where A = L L^H by Cholesky's factor, which is L^H with `upper`; batches broadcast.

    One triangle is read. The gradient by L is A's times L, as if the other one was, too.

    >>> import cygrad
    >>> cygrad.cholesky_solve(cygrad.ones(1, 1), cygrad.full((1, 1), 2.))
    tensor([[0.2500]])
    """
    for tensor, argument in (input, "b"), (L, "u"):
        if tensor.ndim < 2:
            raise RuntimeError(f"{argument} should have at least 2 dimensions, but has {tensor.ndim} dimensions instead")
    b, factor = checked_matrix(cholesky_solve, input, "input"), checked_matrix(cholesky_solve, L, "L", square=True)
    if factor.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"Incompatible matrix sizes for {cholesky_solve.__name__}: each A matrix is {factor.shape[-2]} by "
                           f"{factor.shape[-1]} but each b matrix is {b.shape[-2]} by {b.shape[-1]}")
    if factor.dtype != b.dtype:
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {b.dtype} and A of type {factor.dtype} instead.")
    adjoint = factor.detach().mH
    lower, higher = (adjoint, factor) if upper else (factor, adjoint)
    result = _triangular[True, False](higher, _triangular[False, False](lower, b))
    return delivered(recorded(cholesky_solve, (b, factor), result, upper=bool(upper)), out)


@operator(dL=lambda g, y, L, upper, L_shape: _by_whole_factor(y @ g, y, L, upper, L_shape), adjoints=True, batch=matrices,
          loop="cholesky_inverse_out_cpu")
def cholesky_inverse(L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Inverse of A = L L^H by Cholesky's factor, which is L^H with `upper`; see `cholesky_solve`. LinAlgError where the factor is singular.

    >>> import cygrad
    >>> cygrad.cholesky_inverse(cygrad.full((1, 1), 2.))
    tensor([[0.2500]])
    """
    factor = checked_matrix(cholesky_inverse, L, "L", square=True)
    zeros = np.diagonal(to_array(factor), axis1=-2, axis2=-1) == 0
    if zeros.any():
        first = np.where(zeros.any(-1), zeros.argmax(-1) + 1, 0)
        check_info(cholesky_inverse, from_array(first.astype(np.int32)), _ZERO_PIVOT)
    lower = factor.detach().mH if upper else factor.detach()
    half = _triangular[False, False](lower, creation.eye(factor.shape[-1], dtype=factor.dtype))
    return delivered(recorded(cholesky_inverse, (factor,), half.mH @ half, upper=bool(upper)), out)
