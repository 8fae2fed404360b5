"""Products of sparse and dense matrices: of sparse tensors, whose values are operands, and of SciPy's matrices, which are data.

SciPy's are `A @ t` and `t @ A`: dense tensors, differentiable by t.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute.sparse_rows import rows_times
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import resolve_dtype
from cygrad._core.operands.arrays import computed, to_array
from cygrad.data.limits import promote_types
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.tangents import bilinear, linear

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


# ----- Sparse tensors -----
def _by_places(values: Tensor, dense: Tensor, pattern: Any) -> Tensor:
    """Return the product composed of others: a term for each entry, summed by rows."""
    rows, columns = pattern.along
    terms = (values if dense.ndim == 1 else values.unsqueeze(-1)) * dense.index_select(0, columns)
    return terms.new_zeros((pattern.shape[0], *dense.shape[1:])).index_add(0, rows, terms)


def products_of_rows(g: Tensor, dense: Tensor, pattern: Any) -> Tensor:
    """Return g[row] times the conjugate of dense[column], summed over the columns of both, for each entry."""
    rows, columns = pattern.along
    terms = g.index_select(0, rows) * dense.index_select(0, columns).conj()
    return terms if dense.ndim == 1 else terms.sum(-1)


def _batched(level: Any, operator: Any, values: Tensor, dense: Tensor, pattern: Any) -> Tensor:
    return _by_places(values, dense, pattern)


@operator(dvalues=lambda g, dense, pattern: products_of_rows(g, dense, pattern),
          ddense=lambda g, values, pattern: values.conj()._sparse_times(g, pattern.transposed),
          adjoints=True, tangent=bilinear, batch=_batched, function=False, node="SparseAddmmBackward0",
          flops=lambda shapes: 2 * shapes[0][0] * prod(shapes[1][1:]))
def _sparse_times(values: Tensor, dense: Tensor, pattern: Any) -> Tensor:
    """Return the product of the sparse matrix of values at the places of a pattern with a dense matrix or a vector."""
    if values.dtype.name not in _WITH_LOOPS:
        return _by_places(values, dense, pattern)
    starts, columns, order = pattern.rows
    numbers = values.detach()
    result = rows_times(starts, columns, numbers if order is None else numbers.index_select(0, order), dense.detach())
    return recorded(_sparse_times, (values, dense), result, pattern=pattern)


_WITH_LOOPS = ("float32", "float64", "complex64", "complex128")


# ----- SciPy's matrices -----
def _check(input: Tensor, matrix: Any) -> None:
    if matrix.ndim > 2:
        raise TypeError(f"a {type(matrix).__name__} of {matrix.ndim} dims is no factor of a tensor: only one of 1 or 2 dims is. "
                        "Give its toarray()")
    if not input.ndim:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are 0D and {matrix.ndim}D")


@operator(dinput=lambda g, matrix, dim: g._product_along((matrix.conj() if matrix.dtype.kind == "c" else matrix).T, dim), tangent=linear,
          batch=shifted("dim"), node="MmBackward0")
def _product_along(input: Tensor, matrix: Any, dim: int) -> Tensor:
    rows = np.moveaxis(to_array(input), dim, 0)
    columns = matrix @ rows.reshape(len(rows), -1)
    result = np.moveaxis(columns.reshape(matrix.shape[0], *rows.shape[1:]), 0, dim)
    return recorded(_product_along, (input,), computed(result), matrix=matrix, dim=dim)


@operator
def _times_sparse(input: Tensor, matrix: Any, dim: int) -> Tensor:
    """Return the sums of the elements along a dim times each row of the matrix, which take the place of that dim.

    A vector of SciPy's is one row, and removes the dim. The result has the common dtype; numbers of 16 bits are multiplied in float32.
    """
    _check(input, matrix)
    d = normalized_dim(dim, input.ndim)
    if matrix.ndim == 1:
        return _times_sparse(input, matrix.reshape(1, -1), d).squeeze(d)
    if matrix.shape[1] != input.shape[d]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied: the sparse matrix has {matrix.shape[1]} entries in each row, but "
                           f"the tensor has the shape {tuple(input.shape)}")
    dtype = promote_types(input.dtype, resolve_dtype(matrix.dtype))
    wide = dtype.loops
    return _product_along(input.to(wide), matrix.astype(wide.name), d).to(dtype)
