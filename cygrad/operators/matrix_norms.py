"""Norms of matrices, their ranks and condition numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cygrad.operators._language.arguments import delivered, normalized_dims
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.matrices import checked_matrix, tolerance
from cygrad.operators.norms import in_dtype, linalg_vector_norm, vector_norm
from cygrad.operators.solving import linalg_inv_ex
from cygrad.operators.spectra import linalg_eigvalsh, linalg_svdvals
from cygrad.ops.refusals import LOW_PRECISION, NOT_FLOATING

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import Dims, DTypeLike

_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


# ----- Norms -----
@operator(refuses={"biu": NOT_FLOATING, "f": LOW_PRECISION})
def linalg_matrix_norm(A: Tensor, ord: float | str = "fro", dim: Dims = (-2, -1), keepdim: bool = False, *,
                       dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """Norm of the matrices in two dims.

    "fro" is the norm of the elements as a vector; "nuc" the sum, 2 and -2 the largest and the smallest of the singular values; 1 and -1
    of the sums of absolute values of columns, inf and -inf of rows.

    >>> import cygrad
    >>> cygrad.linalg.matrix_norm(cygrad.tensor([[3., 0.], [0., 4.]]), 2)
    tensor(4.)
    """
    if A.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    a = in_dtype(linalg_matrix_norm, A, dtype)
    pair = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(pair) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, pair))}")
    row, column = dims = normalized_dims(pair, a.ndim)
    if row == column:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({pair[0]}, {pair[1]})")
    order: Any = ord
    if order not in _ORDERS:
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if order == "fro":
        return linalg_vector_norm(a, 2, dims, keepdim, out=out)
    if order == "nuc" or abs(order) == 2:
        parts, along = linalg_svdvals(checked_matrix(linalg_matrix_norm, a.movedim(dims, (-2, -1)))), -1
    else:
        inner, along = (row, column) if abs(order) == 1 else (column, row)
        parts = linalg_vector_norm(a, 1, inner)
        along -= along > inner
    chosen = "sum" if order == "nuc" else "amin" if order < 0 else "amax" if parts.shape[along] else "sum"      # nothing is at least 0
    result = getattr(parts, chosen)(along)
    if keepdim:
        for place in sorted(dims):
            result = result.unsqueeze(place)
    return delivered(result, out)


@operator
def linalg_norm(A: Tensor, ord: float | str | None = None, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None,
                out: Tensor | None = None) -> Tensor:
    """Norm of a vector or matrix: of all elements as a vector without `ord`, of one dim or of two dims as `dim` and `ord` say.

    >>> import cygrad
    >>> cygrad.linalg.norm(cygrad.tensor([[3., 0.], [0., 4.]])), cygrad.linalg.norm(cygrad.tensor([[3., 0.], [0., 4.]]), "nuc")
    (tensor(5.), tensor(7.))
    """
    dims = None if dim is None else tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if ord is None:
        return linalg_vector_norm(A, 2, dims, keepdim, dtype=dtype, out=out)
    if dims is None:
        if A.ndim not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D.")
        dims = tuple(range(A.ndim))
    if len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if len(dims) == 2 or isinstance(ord, str):
        return linalg_matrix_norm(A, ord, (-2, -1) if A.ndim < 2 else dims, keepdim, dtype=dtype, out=out)
    return linalg_vector_norm(A, ord, dims, keepdim, dtype=dtype, out=out)


def _norm_parts(input: Tensor, p: Any = "fro", dim: Dims = None, keepdim: bool = False, out: Tensor | None = None,
                dtype: DTypeLike | None = None) -> Tensor:
    if not isinstance(p, str) or p == "fro":
        return linalg_vector_norm(input, 2 if p in (None, "fro") else p, dim, keepdim, dtype=dtype, out=out)
    return linalg_matrix_norm(input, p, tuple(range(input.ndim)) if dim is None and input.ndim > 1 else (-2, -1) if dim is None else dim,
                              keepdim, dtype=dtype, out=out)


@operator(parts=_norm_parts)
def norm(input: Tensor, p: float | str | None = "fro", dim: Dims = None, keepdim: bool = False, out: Tensor | None = None,
         dtype: DTypeLike | None = None) -> Tensor:
    """Norm of the elements as a vector, over all dims or those in `dim`, "fro" being 2; with "nuc" the sum of a matrix's singular values.

    The others are as in `linalg.vector_norm`.

    >>> import cygrad
    >>> cygrad.norm(cygrad.tensor([3., 4.]))
    tensor(5.)
    """
    order: Any = 2.0 if p is None or p == "fro" else p
    if isinstance(order, str):
        return _norm_parts(input, order, dim, keepdim, out, dtype)
    return vector_norm(input, order, dim, keepdim, dtype, out)


@operator(method=False)
def nuclear_norm(input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Sum of the singular values of the matrices in two dims.

    >>> import cygrad
    >>> cygrad.nuclear_norm(cygrad.tensor([[3., 0.], [0., 4.]]))
    tensor(7.)
    """
    return linalg_matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, out=out)


# ----- Condition numbers and ranks -----
@operator
def linalg_cond(A: Tensor, p: float | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Condition numbers of the matrices in the last two dims: their norm times the inverse's; inf where they are singular.

    Without `p` or with 2 that is the largest over the smallest singular value, with -2 its reciprocal; other orders are as in
    `linalg.matrix_norm`, of square matrices.

    >>> import cygrad
    >>> cygrad.linalg.cond(cygrad.tensor([[4., 0.], [0., 2.]]))
    tensor(2.)
    """
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    order: Any = p
    if A.numel() == 0:
        return delivered(A.new_zeros(A.shape[:-2]).real, out)
    if order is None or order in (2, -2):
        values = linalg_svdvals(A)
        largest, smallest = values[..., 0], values[..., -1]
        return delivered(smallest / largest if order == -2 else largest / smallest, out)
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"linalg.cond(ord={p}): A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} "
                           "matrices")
    if order not in _ORDERS:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    inverse, info = linalg_inv_ex(A)
    singular = info != 0
    product = linalg_matrix_norm(A, order) * linalg_matrix_norm(inverse.masked_fill(singular.unsqueeze(-1).unsqueeze(-1), 0), order)
    return delivered(product.masked_fill(singular, math.inf), out)


@operator(refuses={"biuf": RuntimeError("This function doesn't handle types other than float and double")})
def linalg_matrix_rank(A: Tensor, tol: float | Tensor | None = None, hermitian: bool = False, *, atol: float | Tensor | None = None,
                       rtol: float | Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """How many singular values of the matrices in the last two dims are larger than max(atol, rtol * the largest one).

    `rtol` is by default the larger size times the dtype's precision, and 0 beside another `atol` than 0; `tol` is an `atol`. Of
    `hermitian` matrices one triangle is read.

    >>> import cygrad
    >>> cygrad.linalg.matrix_rank(cygrad.ones(3, 2))
    tensor(1)
    """
    a = checked_matrix(linalg_matrix_rank, A).detach()
    values = linalg_eigvalsh(a).abs() if hermitian else linalg_svdvals(a)
    if tol is not None:
        atol, rtol = tol, 0.0
    return delivered((values > tolerance(linalg_matrix_rank, a, values, atol, rtol)).sum(-1), out)
