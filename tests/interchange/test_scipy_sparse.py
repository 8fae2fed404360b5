"""SciPy's sparse matrices beside tensors: SciPy's own products are arrays; all other calls raise an error that names the way out."""

import numpy as np
import pytest

import cygrad as cg

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")

KINDS = [getattr(sparse, f"{kind}_{form}") for kind in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil") for form in ("matrix", "array")]
MATRIX = np.array([[1.0, 0.0], [2.0, 3.0]])
T, V = cg.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=cg.float64), cg.tensor([1.0, -1.0], dtype=cg.float64)

REFUSED = {
    "t @ A": lambda A: T @ A,
    "v @ A": lambda A: V @ A,
    "t * A": lambda A: T * A,
    "t + A": lambda A: T + A,
    "A + t": lambda A: A + T,
    "t - A": lambda A: T - A,
    "A - t": lambda A: A - T,
    "t / A": lambda A: T / A,
    "t ** A": lambda A: T ** A,
    "t < A": lambda A: T < A,
    "t += A": lambda A: T.clone().__iadd__(A),
    "add": lambda A: cg.add(T, A),
    "tensor": cg.tensor,
    "as_tensor": cg.as_tensor,
    "asarray": cg.asarray,
    "in a list": lambda A: cg.tensor([A, A]),
}


@pytest.mark.cases("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.cases("case", REFUSED)
def test_calls_that_would_give_a_sparse_tensor_are_refused(case, kind):
    with pytest.raises(TypeError, match=r"there are no sparse tensors. Give its toarray\(\)"):
        REFUSED[case](kind(MATRIX))


@pytest.mark.cases("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.cases("t", [T, V, T.float(), T.T, T.long()], ids=repr)
def test_products_by_scipy_are_arrays(t, kind):
    A = kind(MATRIX)
    for product in (A @ t, A.dot(t)):
        assert type(product) is np.ndarray and product.tolist() == (MATRIX @ t.numpy()).tolist()
    with pytest.raises(RuntimeError, match="requires grad. Use tensor.detach"):
        A @ t.double().clone().requires_grad_()


# ----- Attributes of a dtype that NumPy and SciPy read -----
@pytest.mark.cases("name", [name for name in dir(np.dtype) if not name.startswith("_")])
@pytest.mark.cases("dtype", [cg.float64, cg.int8, cg.bool, cg.complex64], ids=repr)
def test_a_dtype_has_numpys_attributes(dtype, name):
    theirs, ours = getattr(np.dtype(dtype.name), name), getattr(dtype, name)
    assert ours == theirs or callable(theirs)


def test_a_dtype_has_nothing_else():
    with pytest.raises(AttributeError, match="'cygrad.dtype' object has no attribute 'nonsense'"):
        _ = cg.float32.nonsense
    assert not hasattr(cg.float32, "__array_interface__") and not hasattr(cg.float32, "nonsense")
