"""Sparse tensors for tests: a dense matrix of each dtype, and the sparse tensors that stand for it in every layout and state."""

import numpy as np

import cygrad as cg

LAYOUTS = (cg.sparse_coo, cg.sparse_csr, cg.sparse_csc)
DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16", "int64", "int32", "bool")
MATRIX = np.array([[1.5, 0, -2, 0, 0], [0, 0, 0, 0, 0], [0.5, 3, 0, 0, 1], [0, 0, 0, -1, 0]])


def dense_of(matrix, dtype="float64"):
    """Return a matrix as a dense tensor of a dtype, complex ones with imaginary parts."""
    values = matrix * (1 + 0.5j) if dtype.startswith("complex") else matrix
    return cg.tensor(np.asarray(values)).to(getattr(cg, dtype))


def uncoalesced(matrix, dtype="float64"):
    """Return a coo tensor of a matrix whose places are in no order, each value as a sum of two."""
    whole = dense_of(matrix, dtype)
    coo = whole.to_sparse()
    places, values = coo.indices(), coo.values()
    order = list(range(places.shape[1]))[::-1]
    order = cg.tensor(order, dtype=cg.int64)
    parts = [values ^ values, values] if dtype == "bool" else [values * 3, values * -2]
    return cg.sparse_coo_tensor(cg.cat([places, places], 1).index_select(1, cg.cat([order, order + len(order)])),
                                cg.cat(parts).index_select(0, cg.cat([order, order + len(order)])), whole.shape)


# Sparse tensors of all forms, by name: makers from a matrix and a dtype.
FORMS = {
    **{layout.name: lambda matrix, dtype="float64", layout=layout: dense_of(matrix, dtype).to_sparse(layout=layout) for layout in LAYOUTS},
    "uncoalesced": uncoalesced,
    "int32 indices": lambda matrix, dtype="float64": _with_int32(dense_of(matrix, dtype).to_sparse_csr()),
}
MATRICES = {"usual": MATRIX, "empty": np.zeros((4, 5)), "without rows": np.zeros((0, 5)), "without columns": np.zeros((4, 0)),
            "one": np.array([[2.0]])}


def _with_int32(csr):
    return cg.sparse_csr_tensor(csr.crow_indices().int(), csr.col_indices().int(), csr.values(), csr.shape)


def equal(result, expected, tolerance=1e-5):
    """Return True if a result, sparse or dense, has the elements of a dense tensor."""
    result = result.to_dense() if result.layout is not cg.strided else result
    assert result.shape == expected.shape and result.dtype == expected.dtype, (result, expected)
    wide = cg.complex128 if result.is_complex() else cg.float64
    return cg.allclose(result.detach().to(wide), expected.detach().to(wide), rtol=tolerance, atol=tolerance)
