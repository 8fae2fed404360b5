"""Products with sparse matrices of SciPy's, which are data: `A @ t` and `t @ A` are dense tensors, differentiable by t."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import resolve_dtype
from cygrad._core.operands.arrays import computed, to_array
from cygrad.data.limits import promote_types
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.tangents import linear

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


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
