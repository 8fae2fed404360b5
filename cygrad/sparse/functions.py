"""The functions of `torch.sparse`, which also take dense tensors where the operator does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from cygrad._core.levels.sparse import sparse_part
from cygrad.operators._language.arguments import checked_tensor
from cygrad.operators._sparse import reductions

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import DTypeLike, Number


def _checked(function: Any, input: Any) -> Any:
    if sparse_part(checked_tensor(function, input)) is None:
        raise RuntimeError(f"{function.__name__}(): expected a sparse tensor, but the layout is {input.layout!r}")
    return input


def mm(sparse: Tensor, dense: Tensor) -> Tensor:
    """Product of two matrices, sparse or dense: dense if one of them is. Gradients are for values and for dense factors.

    >>> import cygrad
    >>> A = cygrad.sparse_coo_tensor([[0, 1], [1, 0]], [2., 3.], (2, 2), requires_grad=True)
    >>> cygrad.sparse.mm(A, cygrad.ones(2, 1)).sum().backward()
    >>> A.grad.coalesce().values()
    tensor([1., 1.])
    """
    return checked_tensor(mm, sparse, "sparse").mm(dense)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2), of sparse or dense matrices.

    >>> import cygrad
    >>> cygrad.sparse.addmm(cygrad.ones(2, 2), cygrad.eye(2).to_sparse(), cygrad.ones(2, 2), alpha=2)
    tensor([[3., 3.],
            [3., 3.]])
    """
    return checked_tensor(addmm, mat, "mat").addmm(mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: DTypeLike | None = None) -> Tensor:
    """Sum of all elements of a sparse tensor, a number; or over some dims, a sparse tensor if one with indices is left.

    >>> import cygrad
    >>> A = cygrad.tensor([[1., 0.], [2., 3.]]).to_sparse()
    >>> cygrad.sparse.sum(A), cygrad.sparse.sum(A, 0).to_dense()
    (tensor(6.), tensor([3., 3.]))
    """
    return _checked(sum, input).sum(dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Softmax along a dim of the values of a sparse tensor; elements without a value count as minus infinity.

    >>> import cygrad
    >>> cygrad.sparse.softmax(cygrad.tensor([[2., 2.], [0., 3.]]).to_sparse(), 1).to_dense()
    tensor([[0.5000, 0.5000],
            [0.0000, 1.0000]])
    """
    return reductions.softmax(_checked(softmax, input), dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Logarithm of `softmax`, of the values there are.

    >>> import cygrad
    >>> cygrad.sparse.log_softmax(cygrad.tensor([[2., 2.], [0., 3.]]).to_sparse(), 1).values()
    tensor([-0.6931, -0.6931,  0.0000])
    """
    return reductions.log_softmax(_checked(log_softmax, input), dim, dtype)


def to_scipy(input: Tensor) -> Any:
    """Return a sparse tensor as a sparse array of SciPy's, over the same memory: see the method `to_scipy`.

    >>> import cygrad
    >>> cygrad.sparse.to_scipy(cygrad.eye(2).to_sparse_csr()).nnz
    2
    """
    return _checked(to_scipy, input).to_scipy()


class check_sparse_tensor_invariants:
    """Torch's switch for checks of index tensors, a context or a decorator. Here they are always checked, so it changes nothing.

    >>> import cygrad
    >>> cygrad.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    def __init__(self, enable: bool = True) -> None:
        pass

    @staticmethod
    def is_enabled() -> bool:
        """Say that indices are checked."""
        return True

    @staticmethod
    def enable() -> None:
        """Change nothing: indices are checked."""

    @staticmethod
    def disable() -> None:
        """Change nothing: indices are checked, so that no operator reads outside of memory."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function
