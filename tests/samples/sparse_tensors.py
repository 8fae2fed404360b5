"""Sparse tensors as methods: a dense matrix to a sparse one, and back by its parts. `tests/sparse_tensors/` has the operators on them."""

import cygrad as cg
from samples.sample import sample

VALUES = {"vmap": "the places of elements that are not 0 differ among examples", "transforms": "as vmap",
          "refusals": "every dtype is taken"}


def whole(x):
    """Return a sparse tensor as a dense one, by all its parts."""
    y = x.coalesce() if x.is_sparse else x
    assert y._nnz() == y._values().numel() and y.sparse_dim() + y.dense_dim() == y.ndim
    if x.is_sparse:
        assert y.is_coalesced() and y._indices().shape == (2, y._nnz())
        return cg.sparse_coo_tensor(y.indices(), y.values(), y.shape).sparse_resize_(y.shape, 2, 0).to_dense()
    if x.is_sparse_csr:
        return cg.sparse_csr_tensor(x.crow_indices(), x.col_indices(), x.values(), x.shape).to_dense()
    return cg.sparse_csc_tensor(x.ccol_indices(), x.row_indices(), x.values(), x.shape).to_dense()


PLAIN = {
    "to_sparse": [sample(lambda x: whole(x.to_sparse()), (2, 3), numpy=lambda a: a, exempt=VALUES)],
    "to_sparse_coo": [sample(lambda x: whole(x.to_sparse_coo()), (2, 3), numpy=lambda a: a, exempt=VALUES)],
    "to_sparse_csr": [sample(lambda x: whole(x.to_sparse_csr()), (2, 3), numpy=lambda a: a, exempt=VALUES)],
    "to_sparse_csc": [sample(lambda x: whole(x.to_sparse_csc()), (2, 3), numpy=lambda a: a, exempt=VALUES)],
    "sparse_mask": [sample(lambda x: x.sparse_mask(x.to_sparse()).to_dense(), (2, 3), numpy=lambda a: a, exempt=VALUES)],
    "to_scipy": [sample(lambda x: cg.sparse.from_scipy(x.detach().to(cg.float64).to_sparse_csr().to_scipy()).to_dense(), (2, 3),
                        exempt={**VALUES, "complex numbers": "made real", "narrow floats": "SciPy has none"})],
}
