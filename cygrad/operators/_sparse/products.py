"""Products of sparse tensors with dense and with sparse ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.levels.sparse import sparse_part
from cygrad.operators import products
from cygrad.operators._language.arguments import read_factor
from cygrad.operators._sparse.conversion import coalesced
from cygrad.operators._sparse.pattern import in_order, index_of, pattern_of_keys, starts_of, summed
from cygrad.operators._sparse.rules import rule
from cygrad.operators._sparse.scipy_matrices import from_scipy
from cygrad.operators.sparse_products import _sparse_times

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import Number


def _check(name: str, left: Any, right: Any) -> None:
    for operand in (left, right):
        part = sparse_part(operand)
        if part is not None and (part.pattern.sparse_dim != 2 or operand.ndim != 2):
            raise RuntimeError(f"{name}(): a sparse factor is a matrix whose two dims have indices, but it has {part.pattern.sparse_dim} "
                               f"such dims of {operand.ndim}")
    if left.ndim not in (1, 2) or right.ndim not in (1, 2):
        raise RuntimeError(f"{name}(): beside a sparse matrix a factor is a matrix or a vector, not of {left.ndim} and {right.ndim} dims")
    if left.shape[-1] != right.shape[0]:
        shapes = " and ".join("x".join(map(str, operand.shape)) for operand in (left, right))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({shapes})")
    if left.dtype != right.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {left.dtype} != {right.dtype}")


@rule
def matmul(input: Any, other: Any) -> Tensor:
    _check("matmul", input, other)
    left, right = sparse_part(input), sparse_part(other)
    if right is None:
        return _sparse_times(left.inner, other, left.pattern)
    if left is None:
        return _sparse_times(right.inner, input.mT if input.ndim == 2 else input, right.pattern.transposed).t()
    return _product_of_sparse(input, other)


def _product_of_sparse(input: Tensor, other: Tensor) -> Tensor:
    """Return the product of two sparse matrices: all pairs of entries that meet, summed by their places."""
    a, b = sparse_part(input), sparse_part(coalesced(other))
    starts = starts_of(b.pattern.coordinates[0], b.pattern.shape[0])
    rows, inner = a.pattern.coordinates
    counts = np.diff(starts)[inner]
    of_a = np.repeat(np.arange(a.pattern.entries), counts)
    of_b = np.arange(len(of_a)) - np.repeat(np.cumsum(counts) - counts - starts[inner], counts)
    keys = rows[of_a] * b.pattern.shape[1] + b.pattern.coordinates[1][of_b]
    distinct, inverse = np.unique(keys, return_inverse=True)
    pattern = pattern_of_keys(distinct, (a.pattern.shape[0], b.pattern.shape[1]), 2)
    products = in_order(a.inner, index_of(of_a)) * in_order(b.inner, index_of(of_b))
    return pattern.around(summed(products, pattern, index_of(inverse.reshape(-1)))).to_sparse(layout=input.layout)


@rule
def _times_sparse(input: Tensor, matrix: Any, dim: int) -> Tensor:
    """Return the product with a matrix of SciPy's: its transpose from the right along the last dim, else the matrix from the left."""
    if dim == -1:
        return matmul(input, from_scipy(matrix.T))
    return matmul(from_scipy(matrix), input)


@rule
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    for name, operand in (("self", input), ("mat2", mat2)):
        if operand.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    return matmul(input, mat2)


@rule
def mv(input: Tensor, vec: Tensor) -> Tensor:
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {vec.ndim}, {input.ndim}, {vec.ndim}")
    return matmul(input, vec)


@rule
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    product = mm(mat1, mat2)
    beta, alpha = (read_factor(products.addmm, word, factor, input, product) for word, factor in (("beta", beta), ("alpha", alpha)))
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return (input if beta == 1 else input * beta) + scaled
