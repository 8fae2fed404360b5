"""Solutions of linear equations with sparse matrices, by SciPy's SuperLU: the factors serve the adjoint and the second order, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.noted_calls import declare_plain
from cygrad._core.operands.arrays import computed, from_array, to_array
from cygrad.operators import joining
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.matrices import LinAlgError
from cygrad.operators._sparse.scipy_matrices import scipy_module
from cygrad.operators.sparse_products import products_of_rows

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


class Factors:
    """The LU factors of the square matrix of values at the places of a pattern, and of its adjoint.

    They are made at the first solve, and again for other values, so a program may call a solve with its Factors for any values.
    """

    def __init__(self, pattern: Any) -> None:
        self.pattern = self._original = pattern
        self._is_adjoint = False
        self._memory: list[tuple[np.ndarray, Any]] = []     # the latest values and SciPy's factors, which the adjoint shares

    @property
    def adjoint(self) -> Factors:
        """The factors of the adjoint matrix."""
        result = Factors(self._original if self._is_adjoint else self.pattern.transposed)
        result._original, result._memory, result._is_adjoint = self._original, self._memory, not self._is_adjoint
        return result

    def factorize(self, values: Tensor) -> None:
        """Make the factors for some values; LinAlgError where a pivot is 0."""
        self._factors_of(to_array(values.detach()))

    def solve(self, values: Tensor, b: Tensor) -> np.ndarray:
        """Return the solution for a vector, or for each column of a matrix."""
        factors, side = self._factors_of(to_array(values.detach())), to_array(b.detach())
        return factors.solve(np.asfortranarray(side), "H" if self._is_adjoint else "N") if side.size else side

    def _factors_of(self, values: np.ndarray) -> Any:
        values = np.ascontiguousarray(values.conj() if self._is_adjoint else values)
        for latest, factors in self._memory:
            if latest.dtype == values.dtype and np.array_equal(latest.view(np.uint8), values.view(np.uint8)):
                return factors
        factors = _factorized(values, self._original)
        self._memory[:] = [(values.copy(), factors)]
        return factors


declare_plain(Factors)


def _factorized(values: np.ndarray, pattern: Any) -> Any:
    """Return SciPy's factors of a matrix."""
    sparse = scipy_module("spsolve", "scipy.sparse")
    linalg = scipy_module("spsolve", "scipy.sparse.linalg")
    starts, columns, order = pattern.transposed.rows
    numbers = values if order is None else values[to_array(order)]
    matrix = sparse.csc_array((numbers, to_array(columns), to_array(starts)), pattern.shape)
    matrix.sum_duplicates()
    try:
        return linalg.splu(matrix)
    except RuntimeError as error:
        raise LinAlgError(f"sparse.spsolve: The solver failed because the input matrix is singular ({error})") from None


def _by_the_adjoint(g: Tensor, values: Tensor, factors: Factors) -> Tensor:
    return values.conj()._sparse_solve(g, factors.adjoint)


def _tangent(tangent_of: Any, operator: Any, y: Tensor, values: Tensor, b: Tensor, factors: Factors) -> Any:
    """Return the solution for db - dA y."""
    of_values, of_b = tangent_of(values), tangent_of(b)
    side = None if of_values is None else -of_values._sparse_times(y, factors.pattern)
    side = of_b if side is None else side if of_b is None else of_b + side
    return None if side is None else operator(values, side, factors)


def _batched(level: Any, operator: Any, values: Tensor, b: Tensor, factors: Factors) -> Tensor:
    """Solve for the sides of all examples as columns; where matrices differ, one by one."""
    sides = level.enter(b)
    if level.holds(values):
        pairs = zip(level.enter(values).unbind(0), sides.unbind(0), strict=True)
        return level.leave(joining.stack([operator(one, side, Factors(factors.pattern)) for one, side in pairs]))
    columns = sides.movedim(0, -1)
    result = operator(values, columns.reshape(columns.shape[0], -1), factors).reshape(columns.shape)
    return level.leave(result.movedim(-1, 0))


@operator(shared=_by_the_adjoint, dvalues=lambda shared, y, factors: -products_of_rows(shared, y, factors.pattern),
          db=lambda shared: shared, adjoints=True, tangent=_tangent, batch=_batched, function=False, node="SparseSolveBackward0")
def _sparse_solve(values: Tensor, b: Tensor, factors: Any) -> Tensor:
    """Return the solution x of A x = b, of the sparse matrix A of values, by its factors."""
    result = factors.solve(values, b)
    if not np.isfinite(result).all():
        detached = from_array(np.nan_to_num(result))
        residual = (values.detach()._sparse_times(detached, factors.pattern) - b.detach()).abs().amax().item()
        raise LinAlgError(f"sparse.spsolve: the solution is not finite, so the matrix is singular or nearly so: the residual of its finite "
                          f"part is {residual:.3g}")
    return recorded(_sparse_solve, (values, b), computed(np.ascontiguousarray(result)), factors=factors)
