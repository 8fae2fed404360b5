"""The functions of `torch.sparse`, which also take dense tensors where the operator does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cygrad._core.levels.sparse import sparse_part
from cygrad._core.operands.arrays import from_array, to_array
from cygrad.operators._language.arguments import checked_tensor
from cygrad.operators._sparse import reductions
from cygrad.operators._sparse.making import sparse_coo_tensor
from cygrad.operators.sparse_products import products_of_rows

if TYPE_CHECKING:
    from cygrad._core.memory.formats import Layout
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


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) at the places of a sparse matrix: no other element of the product is computed.

    Gradients are for its values and for both dense matrices. RuntimeError for sizes or dtypes that do not fit.

    >>> import cygrad
    >>> cygrad.sparse.sampled_addmm(cygrad.eye(2).to_sparse_csr(), cygrad.ones(2, 3), cygrad.ones(3, 2)).to_dense()
    tensor([[4., 0.],
            [0., 4.]])
    """
    part = sparse_part(_checked(sampled_addmm, input))
    for name, matrix in ("mat1", mat1), ("mat2", mat2):
        if checked_tensor(sampled_addmm, matrix, name).ndim != 2 or input.ndim != 2 or part.pattern.sparse_dim != 2:
            raise RuntimeError(f"sampled_addmm: expected a sparse matrix and two dense ones, but {name} is of {matrix.ndim} dims")
        if matrix.dtype != input.dtype:
            raise RuntimeError(f"sampled_addmm: Expected {name} to have the dtype {input.dtype} of the matrix, but got {matrix.dtype}")
    if (mat1.shape[0], mat2.shape[1]) != tuple(input.shape) or mat1.shape[1] != mat2.shape[0]:
        shapes = " and ".join(str(list(each.shape)) for each in (mat1, mat2))
        raise RuntimeError(f"sampled_addmm: the shapes {shapes} cannot be multiplied to {list(input.shape)}")
    products = products_of_rows(mat1, mat2.mH, part.pattern)
    return part.around((part.inner if beta == 1 else part.inner * beta) + (products if alpha == 1 else products * alpha))


def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout: Layout | None = None) -> Tensor:
    """Sparse matrix whose diagonals are the rows of a matrix: element (i, j) is `diagonals[k, j]` where `offsets[k]` is j - i.

    `offsets` are distinct int64. RuntimeError for others, and for sizes that do not fit.

    >>> import cygrad
    >>> cygrad.sparse.spdiags(cygrad.tensor([[1., 2., 3.], [4., 5., 6.]]), cygrad.tensor([0, 1]), (2, 3)).to_dense()
    tensor([[1., 5., 0.],
            [0., 2., 6.]])
    """
    rows = checked_tensor(spdiags, diagonals, "diagonals").reshape(-1, diagonals.shape[-1] if diagonals.ndim else 1)
    steps = to_array(checked_tensor(spdiags, offsets, "offsets", 2)).reshape(-1)
    if offsets.dtype.name != "int64":
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype}")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if len(steps) != rows.shape[0]:
        raise RuntimeError(f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({len(steps)})")
    if len(set(steps.tolist())) != len(steps):
        raise RuntimeError("Offset tensor contains duplicate values")
    columns = np.arange(min(rows.shape[1], shape[1]))
    along = columns - steps[:, None]
    number, column = np.nonzero((along >= 0) & (along < shape[0]))
    values = rows.reshape(-1).index_select(0, from_array(number * rows.shape[1] + column))
    result = sparse_coo_tensor(from_array(np.stack([along[number, column], column])), values, shape)
    return result.to_sparse(layout=layout) if layout else result


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
