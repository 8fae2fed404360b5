"""Signatures of calls: two of them are equal where one program holds for both, and a call is compared with one without making its own."""

import collections
import itertools

import numpy as np
import pytest

import cygrad as cg
from cygrad._core.capture.kinds import Uncommon, has_signature
from cygrad._core.capture.signature import Parts, signature_of

X = cg.tensor([1.0, -2.0, 3.0])
LEAF, WIDE, BOTH = X.clone().requires_grad_(), cg.ones(3, dtype=cg.float64), cg.arange(6.0)
HOOKED, POINT = X.clone().requires_grad_(), collections.namedtuple("point", "x y")
HOOKED.register_hook(lambda gradient: gradient)
ITSELF: list = [X]
ITSELF.append(ITSELF)
NUMBERS = (0, 1, True, 0.0, -0.0, 0.5, 1.0, float("nan"), 1j, None, "same", b"same", cg.float32, np.float64(0.5))

CALLS = {
    "nothing": ((), {}), "a tensor": ((X,), {}), "a like tensor": ((X + 1,), {}), "a keyword": ((), {"x": X}), "two": ((X, X + 1), {}),
    "one twice": ((X, X), {}), "longer": ((cg.ones(4),), {}), "of another dtype": ((WIDE,), {}), "a leaf": ((LEAF,), {}),
    "computed": ((LEAF * 2,), {}), "a matrix": ((cg.ones(3, 1),), {}), "strided": ((BOTH[::2],), {}), "a view": ((BOTH[:3],), {}),
    "parts of one": ((BOTH[:3], BOTH[3:]), {}), "overlapping": ((BOTH[:3], BOTH[1:4]), {}), "a point": ((cg.tensor(2.0),), {}),
    **{f"with {n!r}": ((X, n), {}) for n in NUMBERS},
    "two keywords": ((), {"x": X, "n": 1}), "in another order": ((), {"n": 1, "x": X}), "a tuple": (((X, 1),), {}),
    "a list": (([X, 1],), {}), "a longer list": (([X, 1, 2],), {}), "a shorter list": (([X],), {}), "an empty list": (([],), {}),
    "a dict": (({"x": X, "y": [LEAF, 0.5]},), {}), "another key": (({"x": X, "z": [LEAF, 0.5]},), {}),
    "another float": (({"x": X, "y": [LEAF, 1.5]},), {}), "an integer key": (({1: X},), {}), "a float key": (({1.0: X},), {}),
    "named": ((POINT(X, 1),), {}), "a size": ((X.shape,), {}), "its numbers": (((3,),), {}), "an array": ((np.ones(3),), {}),
    "a number as a tensor": ((X, cg.tensor(0.5, dtype=cg.float64)), {}),
    "hooks": ((HOOKED,), {}), "itself": ((ITSELF,), {}), "a slice": ((X, slice(1)), {}),
}
SELDOM = {"an integer key", "a float key", "named", "a size", "a slice", "with np.float64(0.5)"}     # which are looked up each time


def signature(name, has_inputs):
    """Return the signature of a call, or None, and its values."""
    parts = Parts()
    try:
        return signature_of(*CALLS[name], parts, has_inputs), parts
    except Uncommon:
        return None, parts


def signature_with(x):
    return signature_of((x,), {}, Parts())


def has_kind(x, known):
    return has_signature((x,), {}, known, [], [])


def test_calls_differ():
    signatures = [signature(name, False)[0] for name in CALLS]
    alike = {(a, b) for (a, x), (b, y) in itertools.combinations(zip(CALLS, signatures, strict=True), 2) if x is not None and x == y}
    assert alike == {("a tensor", "a like tensor")}


def test_a_float_that_is_an_input_is_no_tensor():
    inputs = signature("with 0.5", True)[0]
    assert inputs == signature("with 1.0", True)[0] != signature("with np.float64(0.5)", True)[0]
    assert inputs not in [signature("a number as a tensor", has_inputs)[0] for has_inputs in (False, True)]


@pytest.mark.parametrize("has_inputs", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_comparing_a_call_with_a_signature(name, has_inputs):
    expected, parts = signature(name, has_inputs)
    for other in CALLS:
        compared, objects = [], []
        second = signature(other, has_inputs)[0]
        if second is None:
            continue
        holds = has_signature(*CALLS[name], second, compared, objects, has_inputs)
        assert holds == (second == expected and name not in SELDOM), other
        if holds:
            assert all(a is b or a.ndim == 0 for a, b in zip(compared, parts.tensors, strict=True))
            assert all(a is b for a, b in zip(objects, parts.objects, strict=True))


def test_sparse_tensors_are_alike_by_their_pattern():
    sparse = cg.eye(3).to_sparse_csr()
    known = signature_with(sparse)
    for other, is_alike in [(sparse, True), (sparse * 2, True), (cg.eye(3).to_sparse_csr(), False), (sparse.double(), False),
                            (sparse.values(), False), (sparse.clone().requires_grad_(), False)]:
        assert has_kind(other, known) == (signature_with(other) == known) == is_alike
        assert not is_alike or not has_kind(X, signature_with(other))
    sparse.col_indices()[0] = 1
    assert not has_kind(sparse, known)


def test_modes_belong_to_a_signature():
    other = signature_with(X)
    assert has_kind(X, other)
    with cg.no_grad():
        assert not has_kind(X, other)
    with cg.inference_mode():
        assert not has_kind(X, other)
    cg.set_default_dtype(cg.float64)
    try:
        assert not has_kind(X, other)
    finally:
        cg.set_default_dtype(cg.float32)


def sum_of_product(x, y):
    return (x[:, None] * y).sum(-1)


def sums_of_a_product(x, y):
    product = x[:, None] * y
    return product.sum(-1) + product.sum(1).exp()


def sums_of_a_product_with_a_copy(x, y):
    product = x[:, None] * y
    view = product.detach()
    return product.sum(-1) + view.sum(1).exp()


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("function", [sum_of_product, sums_of_a_product, sums_of_a_product_with_a_copy])
def test_sums_of_products_have_eagers_bits_with_and_without_contractions(function, is_recorded):
    """The first call, which captures, sums elements."""
    compiled, generator = cg.compile(function), cg.Generator().manual_seed(0)
    before = cg.config.set_contraction(True)
    try:
        for contracts in (False, True, False, True):
            cg.config.set_contraction(contracts)
            for number in range(3):
                x, y = (cg.randn(64, 64, dtype=cg.float64, generator=generator).requires_grad_(is_recorded) for _ in range(2))
                ours, theirs = compiled(x, y), function(x, y)
                assert not number or np.array_equal(ours.detach().numpy(), theirs.detach().numpy())
    finally:
        cg.config.set_contraction(before)
    assert compiled.cache_info().misses == 2


def test_the_library_of_fourier_transforms_belongs_to_a_signature():
    pytest.importorskip("scipy", reason="SciPy is not installed")
    known = signature_with(X)
    cg.config.set_fft_library("scipy")
    try:
        assert not has_kind(X, known) and signature_with(X) != known
    finally:
        cg.config.set_fft_library("numpy")
    assert has_kind(X, known)


def test_a_replay_after_one_of_another_kind():
    compiled = cg.compile(lambda x, n: x * n)
    for x, n in [(X, 2), (X, 2), (X, 2), (WIDE, 2), (X, 2), (WIDE, 2), (X, 3), (X, 2), (X, 3), (X, 3)]:
        assert compiled(x, n).tolist() == (x * n).tolist()
    assert compiled.cache_info() == (7, 3, 0, 3)
    compiled.cache_clear()
    assert compiled(X, 2).tolist() == (X * 2).tolist()
    assert compiled.cache_info() == (0, 1, 0, 1)
