"""Loops over matrices: batches that broadcast, any strides, sizes that do not agree, and stand-ins for loops that NumPy lacks."""

import numpy as np
import pytest

import cygrad
from cygrad._core.compute.matrices import MatrixLoop, first_failure

KINDS = ["float32", "float64", "complex64", "complex128"]
ufuncs = pytest.importorskip("numpy.linalg._umath_linalg")


def drawn(dtype, *shape):
    array = np.random.default_rng(5).standard_normal((2, *shape))
    return (array[0] + 1j * array[1] if dtype.startswith("c") else array[0]).astype(dtype)


def solve():
    return MatrixLoop("(m,m),(m,n)->(m,n)", ufuncs.solve)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shapes", [((3, 3), (3, 2)), ((2, 1, 3, 3), (4, 3, 2)), ((0, 3, 3), (3, 2)), ((2, 3, 3), (3, 0)),
                                    ((1, 1), (5, 1, 1)), ((2, 3, 2, 3, 3), (3, 1, 3, 1))])
def test_batches_broadcast(dtype, shapes):
    a, b = (drawn(dtype, *shape) for shape in shapes)
    result = solve()(cygrad.tensor(a), cygrad.tensor(b))
    expected = np.linalg.solve(a, b)
    assert result.dtype == cygrad.tensor(a).dtype and tuple(result.shape) == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4)
    assert result.numel() == 0 or result.stride()[-2] == 1


LAYOUTS = {
    "transposed": lambda x: x[:4, :4].mT,
    "steps": lambda x: x[::2, ::2],
    "rows repeat": lambda x: x.diagonal()[:4].expand(4, 4),
    "columns repeat": lambda x: x[:4, :1].expand(4, 4),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_matrices_lie_in_any_way(layout):
    matrix, eye = layout(cygrad.tensor(drawn("float64", 8, 8))), cygrad.eye(4).double()
    assert cygrad.equal(solve()(eye, matrix), matrix)
    array = matrix.numpy()
    np.testing.assert_allclose(solve()(matrix + 9 * eye, matrix).numpy(), np.linalg.solve(array + 9 * eye.numpy(), array))


def test_several_results_and_the_smaller_size():
    a = cygrad.tensor(drawn("complex64", 2, 5, 3))
    u, s, vh = MatrixLoop("(m,n)->(m,p),(p),(p,n)", ufuncs.svd_s)(a) if hasattr(ufuncs, "svd_s") else pytest.skip("another NumPy's name")
    assert (tuple(u.shape), tuple(s.shape), tuple(vh.shape), s.dtype) == ((2, 5, 3), (2, 3), (2, 3, 3), cygrad.float32)
    np.testing.assert_allclose((u * s.unsqueeze(-2) @ vh).numpy(), a.numpy(), atol=1e-5)


@pytest.mark.parametrize("a,b,message", [
    (cygrad.ones(2, 3), cygrad.ones(2, 2), "sizes agree"), (cygrad.ones(2), cygrad.ones(2, 2), "at least 2 dims"),
    (cygrad.ones(2, 2), cygrad.ones(2, 2).double(), "float64"), (cygrad.ones(2, 2, 2), cygrad.ones(3, 2, 2), "must match the size"),
], ids=["sizes", "dims", "dtypes", "batches"])
def test_shapes_that_do_not_fit_are_refused(a, b, message):
    with pytest.raises(RuntimeError, match=message):
        solve()(a, b)


def test_a_loop_that_is_not_there_has_a_function_in_its_place():
    matrix = cygrad.tensor(drawn("float64", 2, 3, 3))
    missing = MatrixLoop("(n,n)->(n),(n,n)", None, lambda a: tuple(np.linalg.eigh(a)))
    values, vectors = missing(matrix)
    assert cygrad.equal(values, MatrixLoop("(n,n)->(n),(n,n)", ufuncs.eigh_lo)(matrix)[0]) and vectors.shape == (2, 3, 3)
    assert MatrixLoop("(n,n)->()", ufuncs.eigh_lo, lambda a: np.linalg.det(a))(matrix).shape == (2,)     # another signature than expected
    with pytest.raises(NotImplementedError):
        MatrixLoop("(n,n)->()")(matrix)


def test_the_first_failure_is_found():
    good, bad = cygrad.eye(3, dtype=cygrad.float64), -cygrad.eye(3, dtype=cygrad.float64)
    factors = MatrixLoop("(n,n)->(n,n)", ufuncs.cholesky_lo)
    assert first_failure(factors(cygrad.stack([good, good])), 2) is None
    assert first_failure(factors(cygrad.stack([good, bad, bad])), 2) == 1
    assert first_failure(cygrad.tensor([0, 0, 7], dtype=cygrad.int32)) == 2
