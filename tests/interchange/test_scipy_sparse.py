"""SciPy's sparse matrices beside tensors: products by @ are tensors; all other calls raise an error that names the way out."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import gradcheck, gradgradcheck
from cygrad.func import vmap

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")

KINDS = [getattr(sparse, f"{kind}_{form}") for kind in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil") for form in ("matrix", "array")]
MATRIX = np.array([[1.0, 0.0], [2.0, 3.0]])
T, V = cg.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=cg.float64), cg.tensor([1.0, -1.0], dtype=cg.float64)

REFUSED = {
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
    "asarray": cg.asarray,
    "in a list": lambda A: cg.tensor([A, A]),
}


@pytest.mark.cases("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.cases("case", REFUSED)
def test_calls_that_would_give_a_sparse_tensor_are_refused(case, kind):
    with pytest.raises(TypeError, match=r"Give its toarray\(\), sparse.from_scipy\(\)"):
        REFUSED[case](kind(MATRIX))


WIDE = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])


@pytest.mark.cases("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.cases("shape", [(3,), (3, 1), (3, 4), (2, 3, 4), (3, 0), (0, 3, 2)], ids=str)
def test_a_sparse_matrix_times_a_tensor(shape, kind):
    """With and without a history, by @ and by dot; `t @ A` of the transposes."""
    A = kind(WIDE)
    array = np.random.default_rng(0).normal(size=shape)
    for t in (cg.tensor(array), cg.tensor(array, requires_grad=True)):
        products = [(A @ t, WIDE @ array)]
        products += [(A.dot(t), WIDE @ array)] if len(shape) < 3 else []
        turned, other = (t, array) if len(shape) == 1 else (t.mT, np.swapaxes(array, -1, -2))
        products += [(turned @ A.T, other @ WIDE.T)]
        for product, expected in products:
            assert isinstance(product, cg.Tensor) and product.requires_grad == t.requires_grad
            np.testing.assert_allclose(product.detach().numpy(), expected, rtol=1e-14)


@pytest.mark.cases("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.cases("multiply", [lambda A, t: A @ t, lambda A, t: A.dot(t), lambda A, t: t.mT @ A.T], ids=["A @ t", "A.dot(t)", "t @ A"])
def test_derivatives_of_products(multiply, kind):
    A, x = kind(WIDE), cg.randn(3, 2, dtype=cg.float64, requires_grad=True)
    assert gradcheck(lambda x: multiply(A, x), (x,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(lambda x: multiply(A, x), (x,))
    (g,) = cg.autograd.grad((A @ x).sum(), x)
    np.testing.assert_allclose(g.numpy(), A.T @ np.ones((2, 2)))
    complex_A = kind(WIDE * (1 + 2j))
    z = cg.randn(3, 2, dtype=cg.complex128, requires_grad=True)
    for operand in (x, z):
        assert gradcheck(lambda x: multiply(complex_A, x), (operand,))


def test_examples_of_products():
    A, x = sparse.csr_array(WIDE), cg.randn(4, 3, dtype=cg.float64)
    np.testing.assert_allclose(vmap(lambda x: A @ x)(x).numpy(), x.numpy() @ WIDE.T)
    np.testing.assert_allclose(vmap(lambda x: A @ x, in_dims=1, out_dims=1)(x.T).numpy(), WIDE @ x.numpy().T)
    np.testing.assert_allclose(vmap(lambda x: x @ A.T)(x).numpy(), x.numpy() @ WIDE.T)


@pytest.mark.cases("matrix", ["?", "i1", "i8", "f4", "f8", "c8"])
@pytest.mark.cases("tensor", [cg.bool, cg.uint8, cg.int64, cg.float16, cg.bfloat16, cg.float32, cg.float64, cg.complex128], ids=str)
def test_products_have_the_dtype_of_other_products(tensor, matrix):
    A, t = sparse.csr_array(WIDE.astype(matrix)), cg.ones(3, dtype=tensor)
    product = A @ t
    assert product.dtype == cg.promote_types(cg.tensor(WIDE.astype(matrix)).dtype, tensor)
    assert product.tolist() == ([True, True] if product.dtype == cg.bool else [2, 1] if matrix == "?" else [3, 3])


@pytest.mark.skipif(not hasattr(sparse, "coo_array") or sparse.coo_array(np.ones(3)).ndim != 1, reason="an older SciPy has no vectors")
def test_sparse_vectors():
    v, t = sparse.coo_array(WIDE[0]), cg.tensor(WIDE, requires_grad=True)
    assert (t @ v).tolist() == (WIDE @ WIDE[0]).tolist()
    assert (v @ t[1]).shape == () and (v @ t.T).tolist() == (WIDE @ WIDE[0]).tolist()
    cube = sparse.coo_array(np.ones((2, 2, 3)))
    for call in (lambda: cube @ t[0], lambda: t @ cube):
        with pytest.raises(TypeError, match="of 3 dims is no factor of a tensor"):
            call()


@pytest.mark.cases("kind", KINDS, ids=lambda kind: kind.__name__)
def test_sizes_that_do_not_fit(kind):
    A = kind(WIDE)
    for call in (lambda: A @ V, lambda: T @ A.T, lambda: A @ T[None], lambda: cg.ones(3, dtype=cg.float64) @ A):
        with pytest.raises(RuntimeError, match="^mat1 and mat2 shapes cannot be multiplied: the sparse matrix has . entries in each row"):
            call()
    for call in (lambda: A @ V[0], lambda: V[0] @ A):
        with pytest.raises(RuntimeError, match="^both arguments to matmul need to be at least 1D, but they are 0D and 2D"):
            call()


def test_arrays_and_buffers_of_tensors_are_as_ever():
    """Only in products by SciPy a tensor is an object."""
    assert np.asarray(V).tolist() == [1, -1] and memoryview(V).tolist() == [1, -1]
    A = sparse.csr_matrix(MATRIX)
    assert (A.multiply(T.numpy()) != A.multiply(T)).nnz == 0
    solution = pytest.importorskip("scipy.sparse.linalg").spsolve(sparse.csc_matrix(MATRIX), V)
    np.testing.assert_allclose(solution, np.linalg.solve(MATRIX, V.numpy()))


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
