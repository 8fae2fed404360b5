"""Between sparse tensors and SciPy's matrices, over the same memory where both have the layout."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.levels.sparse import sparse_part
from cygrad._core.memory.formats import sparse_coo, sparse_csc, sparse_csr
from cygrad._core.operands.arrays import from_array, is_sparse
from cygrad.operators._sparse.making import sparse_compressed_tensor, sparse_coo_tensor
from cygrad.operators._sparse.rules import rule

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

_LAYOUTS = {"csr": sparse_csr, "csc": sparse_csc}


def scipy_module(function: str, name: str) -> Any:
    """Return a module of SciPy's for a function that needs it; ImportError where SciPy is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f'sparse.{function}() needs SciPy: pip install "cygrad[sparse]" brings it') from error


def from_scipy(A: Any) -> Tensor:
    """Return a sparse matrix or array of SciPy's as a sparse tensor: csr and csc over the same memory, coo over the same values.

    Other formats become csr. Places are made distinct and sorted first, in a copy, where they are not. TypeError for other objects.

    >>> import cygrad
    >>> import scipy.sparse
    >>> cygrad.sparse.from_scipy(scipy.sparse.eye_array(2, format="csr")).layout
    cygrad.sparse_csr
    """
    if not is_sparse(A):
        raise TypeError(f"from_scipy(): expected a sparse matrix or array of SciPy's, not {type(A).__name__}")
    if A.format == "coo":
        coordinates = np.stack(A.coords if hasattr(A, "coords") else (A.row, A.col))
        return sparse_coo_tensor(from_array(coordinates.astype(np.int64)), from_array(A.data), A.shape)
    if A.ndim != 2:
        return from_scipy(A.tocoo())
    if A.format not in _LAYOUTS:
        A = A.tocsr()
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    return sparse_compressed_tensor(from_array(A.indptr), from_array(A.indices[:A.nnz]), from_array(A.data[:A.nnz]), A.shape,
                                    layout=_LAYOUTS[A.format])


@rule
def to_scipy(input: Tensor) -> Any:
    scipy, part = scipy_module("to_scipy", "scipy.sparse"), sparse_part(input)
    pattern, values = part.pattern, part.inner.numpy()
    if pattern.dense_shape:
        raise RuntimeError("to_scipy(): SciPy has no sparse arrays whose values have dims")
    index = [each.numpy() for each in pattern.indices]
    if pattern.layout is sparse_coo:
        result = scipy.coo_array((values, tuple(index[0])), pattern.shape)
        result.has_canonical_format = pattern.is_coalesced
        return result
    make = scipy.csr_array if pattern.layout is sparse_csr else scipy.csc_array
    return make((values, index[1], index[0]), pattern.shape)
