"""Direct solves with sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.graph.noted_calls import call_again
from cygrad._core.levels.batches import batched_level
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.memory.formats import sparse_coo
from cygrad.operators._language.arguments import checked_tensor
from cygrad.operators.sparse_solving import Factors

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def _matrix(function: Any, A: Any) -> Any:
    """Return a square sparse matrix with distinct places."""
    part = sparse_part(checked_tensor(function, A, "A"))
    if part is None:
        raise RuntimeError(f"sparse.{function.__name__}: A must be a sparse tensor, but its layout is {A.layout!r}: linalg.solve takes "
                           "dense ones")
    if A.ndim != 2 or part.pattern.sparse_dim != 2 or A.shape[0] != A.shape[1]:
        raise RuntimeError(f"sparse.{function.__name__}: A must be a square matrix, but its shape is {list(A.shape)}")
    return A.coalesce() if A.layout is sparse_coo else A


def _check_side(function: Any, part: Any, b: Any) -> None:
    checked_tensor(function, b, "b", 2)
    name = f"sparse.{function.__name__}"
    if b.ndim not in (1, 2) or b.shape[0] != part.pattern.shape[0]:
        raise RuntimeError(f"{name}: Incompatible shapes of A and b for the equation Ax = b ({list(part.pattern.shape)} and "
                           f"{list(b.shape)})")
    if b.dtype != part.inner.dtype:
        raise RuntimeError(f"{name}: Expected A and b to have the same dtype, but found A of type {part.inner.dtype} and b of type "
                           f"{b.dtype} instead")


def spsolve(A: Tensor, b: Tensor) -> Tensor:
    """Return x of A x = b: `A` a square sparse matrix, `b` a vector or a dense matrix of columns, of the same floating-point dtype.

    By SuperLU, through SciPy. Gradients are for the values of A and for b, by one more solve with the same factors. LinAlgError for a
    singular matrix, RuntimeError for sides that do not fit, ImportError without SciPy.

    >>> import cygrad
    >>> A = cygrad.tensor([[2., 0.], [1., 4.]]).to_sparse_csr()
    >>> cygrad.sparse.spsolve(A, cygrad.tensor([2., 9.]))
    tensor([1., 2.])
    """
    part = sparse_part(_matrix(spsolve, A))
    _check_side(spsolve, part, b)
    return part.inner._sparse_solve(b, Factors(part.pattern))


class Factorization:
    """A sparse matrix with its factors: call it with right sides. Made by `factorized`; gradients are as in `spsolve`."""

    def __init__(self, A: Tensor) -> None:
        self._matrix = _matrix(factorized, A)
        part = sparse_part(self._matrix)
        self._factors = Factors(part.pattern)
        if batched_level(part.inner) is None:
            call_again(self._factors.factorize, (part.inner.detach(),), {})

    def __call__(self, b: Tensor) -> Tensor:
        """Return x of A x = b, for a vector or for columns."""
        part = sparse_part(self._matrix)
        _check_side(factorized, part, b)
        return part.inner._sparse_solve(b, self._factors)


def factorized(A: Tensor) -> Factorization:
    """Return a function that solves A x = b for any b, with the factors of a square sparse matrix; arguments and errors are `spsolve`'s.

    Where the values of A are changed in place, the next solve makes the factors anew.

    >>> import cygrad
    >>> solve = cygrad.sparse.factorized(cygrad.tensor([[2., 0.], [1., 4.]]).to_sparse_csr())
    >>> solve(cygrad.tensor([2., 9.])), solve(cygrad.tensor([4., 2.]))
    (tensor([1., 2.]), tensor([2., 0.]))
    """
    return Factorization(A)
