"""Sparse tensors as methods: conversions to them, and their parts. Rules of `_sparse` compute them where it is sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.memory.formats import sparse_coo, sparse_csc, sparse_csr, strided
from cygrad.operators._language.declaration import operator
from cygrad.operators._sparse.conversion import checked_layout, sparse_of_dense

if TYPE_CHECKING:
    from cygrad._core.memory.formats import Layout
    from cygrad.tensor import Tensor
    from cygrad.typing import DTypeLike


# ----- Conversions -----
@operator(function=False)
def to_sparse(input: Tensor, sparse_dim: int | None = None, *, layout: Layout | None = None, blocksize: Any = None,
              dense_dim: int | None = None) -> Tensor:
    """Sparse tensor of the elements that are not 0: in coo, or another `layout`; of the first `sparse_dim` dims, all others are values'.

    A sparse tensor is converted to the layout. RuntimeError for a number of dims that does not fit.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse()
    tensor(indices=tensor([[0, 1],
                           [0, 1]]),
           values=tensor([1., 1.]),
           size=(2, 2), nnz=2, layout=cygrad.sparse_coo)
    """
    target = checked_layout(to_sparse, input, sparse_dim, layout, dense_dim)
    return input if target is strided else sparse_of_dense(input, sparse_dim, target)


@operator(function=False)
def to_sparse_coo(input: Tensor) -> Tensor:
    """Sparse tensor by coordinates of the elements that are not 0; a sparse tensor is converted.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse_csr().to_sparse_coo().layout
    cygrad.sparse_coo
    """
    return to_sparse(input, layout=sparse_coo)


@operator(function=False)
def to_sparse_csr(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """Sparse matrix by rows of the elements that are not 0; a sparse tensor is converted.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return sparse_of_dense(input, None, checked_layout(to_sparse_csr, input, None, sparse_csr, dense_dim))


@operator(function=False)
def to_sparse_csc(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """Sparse matrix by columns of the elements that are not 0; a sparse tensor is converted.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse_csc().row_indices()
    tensor([0, 1])
    """
    return sparse_of_dense(input, None, checked_layout(to_sparse_csc, input, None, sparse_csc, dense_dim))


@operator(function=False)
def to_dense(input: Tensor, dtype: DTypeLike | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """All elements of a sparse tensor; a dense one is returned as it is. `masked_grad` changes nothing: gradients are the values'.

    >>> import cygrad
    >>> cygrad.sparse_coo_tensor([[0, 1]], [3., 4.], (3,)).to_dense()
    tensor([3., 4., 0.])
    """
    return input if dtype is None else input._convert(dtype)


@operator(function=False)
def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """Sparse tensor of the elements of a sparse or dense tensor at the places of `mask`, a sparse tensor of the same shape.

    >>> import cygrad
    >>> cygrad.ones(2, 2).sparse_mask(cygrad.eye(2).to_sparse()).values()
    tensor([1., 1.])
    """
    raise RuntimeError(f"{sparse_mask.__name__}(): the mask has to be a sparse tensor")


@operator(function=False)
def to_scipy(input: Tensor) -> Any:
    """Sparse array of SciPy's of the same layout, over the same memory. RuntimeError for a tensor that requires a gradient, as `numpy`.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse_csr().to_scipy().nnz
    2
    """
    raise _refused(to_scipy, "sparse")


# ----- Parts -----
def _refused(operator: Any, layout: str) -> RuntimeError:
    return RuntimeError(f"{operator.name} expected {layout} tensor layout but got Strided: the tensor is dense")


@operator(function=False, copy=True)
def indices(input: Tensor) -> Tensor:
    """Coordinates of a coalesced coo tensor, (dims, entries). RuntimeError for others.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    raise _refused(indices, "sparse coordinate")


@operator(function=False, copy=True)
def values(input: Tensor) -> Tensor:
    """Values of a sparse tensor, on the tape; RuntimeError for a coo tensor that is not coalesced, and for dense tensors.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse().values()
    tensor([1., 1.])
    """
    raise _refused(values, "sparse")


@operator(function=False)
def _indices(input: Tensor) -> Tensor:
    """Return the coordinates of a coo tensor, coalesced or not."""
    raise _refused(_indices, "sparse coordinate")


@operator(function=False)
def _values(input: Tensor) -> Tensor:
    """Return the values of a sparse tensor, coalesced or not, without a history."""
    raise _refused(_values, "sparse")


@operator(function=False)
def _nnz(input: Tensor) -> int:
    """Return the number of values of a sparse tensor."""
    raise _refused(_nnz, "sparse")


@operator(function=False, copy=True)
def crow_indices(input: Tensor) -> Tensor:
    """Where the rows of a csr tensor begin among its values, and their number.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    raise _refused(crow_indices, "sparse row compressed")


@operator(function=False, copy=True)
def col_indices(input: Tensor) -> Tensor:
    """Columns of the values of a csr tensor.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse_csr().col_indices()
    tensor([0, 1])
    """
    raise _refused(col_indices, "sparse row compressed")


@operator(function=False, copy=True)
def ccol_indices(input: Tensor) -> Tensor:
    """Where the columns of a csc tensor begin among its values, and their number.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse_csc().ccol_indices()
    tensor([0, 1, 2])
    """
    raise _refused(ccol_indices, "sparse column compressed")


@operator(function=False, copy=True)
def row_indices(input: Tensor) -> Tensor:
    """Rows of the values of a csc tensor.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse_csc().row_indices()
    tensor([0, 1])
    """
    raise _refused(row_indices, "sparse column compressed")


@operator(function=False)
def sparse_dim(input: Tensor) -> int:
    """Number of dims that have indices: 0 of a dense tensor.

    >>> import cygrad
    >>> cygrad.ones(2, 3).to_sparse(1).sparse_dim()
    1
    """
    return 0


@operator(function=False)
def dense_dim(input: Tensor) -> int:
    """Number of dims of each value: all of a dense tensor.

    >>> import cygrad
    >>> cygrad.ones(2, 3, 4).to_sparse(1).dense_dim()
    2
    """
    return input.ndim


@operator(function=False)
def coalesce(input: Tensor) -> Tensor:
    """Coo tensor of distinct places in their order: values at one place are added.

    >>> import cygrad
    >>> cygrad.sparse_coo_tensor([[1, 1]], [3., 4.], (2,)).coalesce().values()
    tensor([7.])
    """
    raise _refused(coalesce, "sparse coordinate")


@operator(function=False)
def is_coalesced(input: Tensor) -> bool:
    """Return True if a coo tensor is coalesced.

    >>> import cygrad
    >>> cygrad.sparse_coo_tensor([[1, 1]], [3., 4.], (2,)).is_coalesced()
    False
    """
    raise _refused(is_coalesced, "sparse coordinate")


@operator(function=False)
def sparse_resize_(self: Tensor, size: tuple[int, ...], sparse_dim: int, dense_dim: int) -> Tensor:
    """Give a coo tensor another size, and if it has no values, other numbers of dims; sizes of one with values only grow.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse().sparse_resize_((3, 3), 2, 0).shape
    cygrad.Size([3, 3])
    """
    raise _refused(sparse_resize_, "sparse coordinate")
