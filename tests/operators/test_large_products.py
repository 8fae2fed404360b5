"""Products of large real matrices by blocks: sizes around tiles and blocks, any strides, bits, numbers that are not finite."""

import time

import numpy as np
import pytest

import cygrad as cg
from cygrad._core.compute.matrices import our_loop
from cygrad._kernels.drivers.elementwise import isa
from cygrad._testing import grains, threads_used

by_blocks = our_loop("matmul")      # for all sizes: `@` uses it only where it is quicker
DTYPES = ["float32", "float64"]
EDGES = [*((m, n, k) for m in (1, 8, 23, 49, 194) for n in (1, 7, 48, 257) for k in (0, 1, 16, 257)), (449, 9, 5), (9, 449, 513)]
LAYOUTS = {
    "rows": lambda x: x.contiguous(),
    "columns": lambda x: x.mT.contiguous().mT,
    "steps": lambda x: x.repeat_interleave(2, 0).repeat_interleave(3, 1)[::2, ::3],
    "one row": lambda x: x[:1].expand(x.shape),
    "one column": lambda x: x[:, :1].expand(x.shape),
}
CALLS_OF_BLAS = {
    "product": lambda: cg.ones(90, 90, dtype=cg.complex128) @ cg.ones(90, 90, dtype=cg.complex128),
    "matrix by a column": lambda: drawn("float64", 100, 100) @ drawn("float64", 100),
    "eigenvalues": lambda: cg.linalg.eigh(drawn("float64", 90, 90)),
}


def drawn(dtype, *shape):
    return cg.tensor(np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype))


def assert_product(result, a, b):
    a, b = a.numpy(), b.numpy()
    bound = (np.abs(a).astype("float64") @ np.abs(b)) * max(a.shape[-1], 1) * np.finfo(a.dtype).eps
    assert (np.abs(result.numpy() - a.astype(np.longdouble) @ b.astype(np.longdouble)) <= bound).all()


@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.cases("sizes", EDGES)
def test_sizes_around_tiles_and_blocks(dtype, sizes):
    m, n, k = sizes
    a, b = drawn(dtype, m, k), drawn(dtype, k, n)
    assert_product(by_blocks(a, b), a, b)
    assert_product(by_blocks(b.mT, a.mT).mT, a, b)


@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.cases("left", LAYOUTS)
@pytest.mark.cases("right", LAYOUTS)
def test_matrices_of_any_strides(dtype, left, right):
    a, b = LAYOUTS[left](drawn(dtype, 70, 110)), LAYOUTS[right](drawn(dtype, 110, 91))
    for multiply in (by_blocks, cg.matmul):
        assert_product(multiply(a, b), a, b)


@pytest.mark.cases("dtype", DTYPES)
def test_numbers_that_are_not_finite_spoil_their_rows_and_columns(dtype):
    """0 times infinity is NaN; the padding of a tile reaches no element; old contents of the result's memory do not count."""
    a, b = drawn(dtype, 91, 101), drawn(dtype, 101, 83)
    a[90, 100], a[3, 5], b[7, 82], b[100, 82] = np.inf, np.nan, -np.inf, 0
    for multiply in (by_blocks, cg.matmul):
        filler = cg.full((91, 83), np.nan, dtype=a.dtype)
        del filler
        result = multiply(a, b).numpy()
        assert np.isnan(result[3]).all() and np.isnan(result[90, 82])
        assert np.isinf(result[90, :82]).all()
        assert np.array_equal(np.isfinite(result[:, 82]), np.zeros(91, bool))
        assert np.isfinite(np.delete(result, [3, 90], 0)[:, :82]).all()


@pytest.mark.openmp
@pytest.mark.cases("dtype", DTYPES)
def test_bits_depend_on_neither_threads_nor_places_nor_neighbours(dtype):
    a, b, threads = drawn(dtype, 300, 270), drawn(dtype, 270, 210), cg.get_num_threads()
    expected = by_blocks(a, b)
    try:
        cg.set_num_threads(3)
        time.sleep(0.05)        # BLAS's threads are asleep by then
        with grains(1), threads_used() as used:
            assert cg.equal(by_blocks(a, b), expected)
        assert used.count == 3
        assert cg.equal(a @ b, a @ b)
    finally:
        cg.set_num_threads(threads)
    moved = cg.zeros(a.numel() + 1, dtype=a.dtype)[1:].view(a.shape).copy_(a)
    assert cg.equal(by_blocks(moved, b), expected)
    assert cg.equal(by_blocks(a.mT.contiguous().mT, b.mT.contiguous().mT), expected)
    assert cg.equal(by_blocks(a[30:36], b[:, 17:23]), expected[30:36, 17:23])
    batch = by_blocks(cg.stack([a, -a, a]), b.expand(2, 1, 270, 210))
    assert batch.shape == (2, 3, 300, 210) and cg.equal(batch[1, 2], expected) and cg.equal(batch[0, 1], -expected)


@pytest.mark.openmp
@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.cases("sizes", [(300, 2, 270), (201, 3, 65), (77, 4, 300), (9, 4, 2500), (300, 270, 1), (8, 9, 1), (64, 3, 8)])
def test_thin_products_have_bits_by_sizes_alone(dtype, sizes):
    """A matrix by a few columns, a few rows by a matrix, and a column by a row."""
    m, n, k = sizes
    a, b, threads = drawn(dtype, m, k), drawn(dtype, k, n), cg.get_num_threads()
    expected = by_blocks(a, b)
    assert_product(expected, a, b)
    assert_product(a @ b, a, b)
    for left in "rows", "columns", "steps":
        for right in "rows", "columns", "steps":
            x, y = LAYOUTS[left](a), LAYOUTS[right](b)
            assert cg.equal(by_blocks(x, y), expected) and cg.equal(by_blocks(y.mT, x.mT).mT, expected)
    assert cg.equal(by_blocks(a.flip(0)[::2], b), expected.flip(0)[::2]) or m < 20
    batch = by_blocks(cg.stack([a, -a]), b.expand(2, 1, k, n))
    assert cg.equal(batch[1, 0], expected) and cg.equal(batch[0, 1], -expected)
    try:
        cg.set_num_threads(3)
        time.sleep(0.05)
        with grains(1):
            assert cg.equal(by_blocks(a, b), expected)
    finally:
        cg.set_num_threads(threads)


@pytest.mark.cases("dtype", DTYPES)
def test_thin_products_of_numbers_that_are_not_finite(dtype):
    a, b = drawn(dtype, 150, 131), drawn(dtype, 131, 3)
    a[3, 5], a[7, 130], b[0, 1], a[9, 0] = np.inf, np.nan, -np.inf, 0
    for x in a, a.mT.contiguous().mT:
        result = (x @ b).numpy()
        assert np.isinf(result[3, [0, 2]]).all() and np.isnan(result[7]).all() and np.isnan(result[9, 1])
        assert np.isinf(np.delete(result[:, 1], [3, 7, 9])).all() and np.isfinite(np.delete(result[:, [0, 2]], [3, 7], 0)).all()


@pytest.mark.openmp
@pytest.mark.cases("call", CALLS_OF_BLAS)
def test_our_threads_wait_until_blas_threads_sleep(call):
    a, threads = drawn("float64", 64, 64), cg.get_num_threads()
    cg.set_num_threads(2)
    try:
        CALLS_OF_BLAS[call]()
        with grains(1), threads_used() as used:
            by_blocks(a, a)
        assert used.count == 0
        time.sleep(0.05)
        with grains(1), threads_used() as used:
            by_blocks(a, a)
        assert used.count == 2
    finally:
        cg.set_num_threads(threads)


@pytest.mark.skipif(isa() != "x86-64-v4", reason="elsewhere BLAS is as quick")
@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.cases("sizes", [(81, 81, 81), (8, 300, 300), (300, 8, 300), (1000, 1000, 1), (512, 512, 512)])
def test_products_for_which_blas_would_wake_its_threads_are_computed_by_blocks(dtype, sizes):
    """Those for which BLAS would wake its threads."""
    m, n, k = sizes
    a, b = drawn(dtype, m, k), drawn(dtype, k, n)
    assert cg.equal(a @ b, by_blocks(a, b))


def test_derivatives_of_large_products():
    a, b = (drawn("float64", 96, 96).requires_grad_() for _ in range(2))
    (a @ b).square().sum().backward()
    product = 2 * a.detach() @ b.detach()
    assert cg.allclose(a.grad, product @ b.detach().mT) and cg.allclose(b.grad, a.detach().mT @ product)
