"""Systems of linear equations, by matrices and by their factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.compute.matrices import our_loop
from cygrad.operators.arguments import delivered
from cygrad.operators.batches import aligned_matrices
from cygrad.operators.declaration import operator, recorded
from cygrad.operators.matrices import checked_matrix

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def _check_sides(name: str, a: Tensor, b: Tensor, *, left: bool) -> None:
    """Refuse the sides of an equation that do not agree."""
    if a.shape[-1] != b.shape[-2 if left else -1]:
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})")
    if a.dtype != b.dtype:
        raise RuntimeError(f"{name}: Expected A and B to have the same dtype, but found A of type {a.dtype} and B of type {b.dtype} instead")


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


@operator(shared=_solved_by_the_adjoint, dA=_matrix_gradient, dB=lambda shared, B_shape: shared.sum_to_size(B_shape), batch=aligned_matrices, parts=_from_the_right)
def linalg_solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False,
                            out: Tensor | None = None) -> Tensor:
    """Solution X of A X = B (of X A = B without `left`) for triangular matrices in the last two dims of A; batches broadcast.

    One triangle is read; with `unitriangular` the diagonal is taken as 1 and not read. A zero on the diagonal gives infinities.

    >>> import cygrad
    >>> cygrad.linalg.solve_triangular(cygrad.tensor([[2., 0.], [1., 1.]]), cygrad.tensor([[2.], [3.]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    a = checked_matrix("linalg_solve_triangular", A, square=True)
    b = checked_matrix("linalg_solve_triangular", B, "B")
    if not left:
        _check_sides("linalg.solve_triangular", a, b, left=False)
        return delivered(_from_the_right(a, b, upper=upper, left=False, unitriangular=unitriangular), out)
    try:
        result = _triangular[bool(upper), bool(unitriangular)](a, b)
    except RuntimeError:
        _check_sides("linalg.solve_triangular", a, b, left=True)
        raise
    return delivered(recorded(linalg_solve_triangular, (a, b), result, upper=bool(upper), unitriangular=bool(unitriangular)), out)
