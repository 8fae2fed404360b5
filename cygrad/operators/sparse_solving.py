"""Solutions of linear equations with sparse matrices, by SciPy's SuperLU: the factors serve the adjoint and the second order, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.levels.batches import batched_level
from cygrad._core.operands.arrays import computed, from_array, to_array
from cygrad.operators import joining
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.matrices import LinAlgError
from cygrad.operators._sparse.scipy_matrices import scipy_module
from cygrad.operators.sparse_products import products_of_rows

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


class Factors:
    """The LU factors of a sparse matrix, or of its adjoint: the same ones, in the other order."""

    def __init__(self, factors: Any, is_adjoint: bool = False) -> None:
        self._factors, self._is_adjoint = factors, is_adjoint

    @property
    def adjoint(self) -> Factors:
        """The factors of the adjoint matrix."""
        return Factors(self._factors, not self._is_adjoint)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return the solution for a vector, or for each column of a matrix."""
        return self._factors.solve(b, "H" if self._is_adjoint else "N")


def factors_of(values: Tensor, pattern: Any) -> Factors | None:
    """Return the factors of the square matrix of values at the places of a pattern; LinAlgError where a pivot is 0.

    None for values that differ among the examples of a vmap.
    """
    if batched_level(values) is not None:
        return None
    values = values.detach()
    sparse = scipy_module("spsolve", "scipy.sparse")
    linalg = scipy_module("spsolve", "scipy.sparse.linalg")
    starts, columns, order = pattern.transposed.rows
    numbers = to_array(values if order is None else values.index_select(0, order))
    matrix = sparse.csc_array((numbers, columns.numpy(), starts.numpy()), pattern.shape)
    matrix.sum_duplicates()
    try:
        return Factors(linalg.splu(matrix))
    except RuntimeError as error:
        raise LinAlgError(f"sparse.spsolve: The solver failed because the input matrix is singular ({error})") from None


def _by_the_adjoint(g: Tensor, values: Tensor, pattern: Any, factors: Any) -> Tensor:
    return values.conj()._sparse_solve(g, pattern.transposed, factors.adjoint)


def _tangent(tangent_of: Any, operator: Any, y: Tensor, values: Tensor, b: Tensor, pattern: Any, factors: Any) -> Any:
    """Return the solution for db - dA y."""
    of_values, of_b = tangent_of(values), tangent_of(b)
    side = None if of_values is None else -of_values._sparse_times(y, pattern)
    side = of_b if side is None else side if of_b is None else of_b + side
    return None if side is None else operator(values, side, pattern, factors)


def _batched(level: Any, operator: Any, values: Tensor, b: Tensor, pattern: Any, factors: Any) -> Tensor:
    """Solve for the sides of all examples as columns; where matrices differ, one by one."""
    sides = level.enter(b)
    if level.holds(values):
        pairs = zip(level.enter(values).unbind(0), sides.unbind(0), strict=True)
        return level.leave(joining.stack([operator(one, side, pattern, factors_of(one, pattern)) for one, side in pairs]))
    columns = sides.movedim(0, -1)
    result = operator(values, columns.reshape(columns.shape[0], -1), pattern, factors).reshape(columns.shape)
    return level.leave(result.movedim(-1, 0))


@operator(shared=_by_the_adjoint, dvalues=lambda shared, y, pattern: -products_of_rows(shared, y, pattern), db=lambda shared: shared,
          adjoints=True, tangent=_tangent, batch=_batched, function=False, node="SparseSolveBackward0")
def _sparse_solve(values: Tensor, b: Tensor, pattern: Any, factors: Any) -> Tensor:
    """Return the solution x of A x = b, of the sparse matrix A of values at the places of a pattern, by its factors.

    They are None where the values differ among the examples of a vmap.
    """
    side = to_array(b.detach())
    result = factors.solve(np.asfortranarray(side)) if side.size else side
    if not np.isfinite(result).all():
        detached = from_array(np.nan_to_num(result))
        residual = (values.detach()._sparse_times(detached, pattern) - b.detach()).abs().amax().item()
        raise LinAlgError(f"sparse.spsolve: the solution is not finite, so the matrix is singular or nearly so: the residual of its finite "
                          f"part is {residual:.3g}")
    return recorded(_sparse_solve, (values, b), computed(np.ascontiguousarray(result)), pattern=pattern, factors=factors)
