"""Random tensors: distributions, seeds and generators, signatures, bad input."""

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import cygrad as cg


def draws(**options):
    """Return a call of each function, for the tests of their common arguments."""
    return {
        "rand": lambda: cg.rand(2, 3, **options),
        "randn": lambda: cg.randn(2, 3, **options),
        "randint": lambda: cg.randint(0, 100, (2, 3), **options),
        "randperm": lambda: cg.randperm(20, **options),
        "normal": lambda: cg.normal(0.0, 2.0, (2, 3), **options),
        "normal of tensors": lambda: cg.normal(cg.zeros(6), cg.ones(6), **options),
        "bernoulli": lambda: cg.bernoulli(cg.full((40,), 0.5), **options),
        "rand_like": lambda: cg.rand_like(cg.zeros(2, 3), **options),
        "randn_like": lambda: cg.randn_like(cg.zeros(2, 3), **options),
        "randint_like": lambda: cg.randint_like(cg.zeros(2, 3), 100, **options),
    }


NAMES = list(draws())


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_repeats_and_a_stream_goes_on(name):
    generator = cg.Generator()
    draw = draws(generator=generator)[name]
    generator.manual_seed(5)
    first, second = draw(), draw()
    generator.manual_seed(5)
    assert cg.equal(draw(), first)
    assert not cg.equal(first, second)
    generator.manual_seed(6)
    assert not cg.equal(draw(), first)


@pytest.mark.parametrize("name", NAMES)
def test_manual_seed_governs_the_default_generator(name):
    draw = draws()[name]
    cg.manual_seed(5)
    first = draw()
    cg.manual_seed(5)
    assert cg.equal(draw(), first)
    assert cg.equal(draws(generator=cg.Generator().manual_seed(5))[name](), first)


@pytest.mark.parametrize("name", NAMES)
def test_rng_takes_a_seed_or_a_numpy_generator(name):
    from_seed = draws(rng=5)[name]()
    assert cg.equal(draws(rng=np.random.default_rng(5))[name](), from_seed)
    assert cg.equal(draws(generator=cg.Generator().manual_seed(5))[name](), from_seed)
    assert not cg.equal(draws(rng=6)[name](), from_seed)


def test_rng_is_drawn_on_from():
    stream = np.random.default_rng(3)
    assert not cg.equal(cg.rand(4, rng=stream), cg.rand(4, rng=stream))


def test_the_numbers_are_numpys():
    stream = np.random.default_rng(7)
    generator = cg.Generator().manual_seed(7)
    for dtype in (cg.float32, cg.float64):
        drawn = cg.rand(5, dtype=dtype, generator=generator).numpy()
        assert (drawn == stream.random(5, dtype=drawn.dtype)).all()


SIZES = [
    (lambda: cg.rand(2, 3), (2, 3)),
    (lambda: cg.rand((2, 3)), (2, 3)),
    (lambda: cg.rand([2, 3]), (2, 3)),
    (lambda: cg.rand(size=(2, 3)), (2, 3)),
    (lambda: cg.rand(np.int64(3)), (3,)),
    (lambda: cg.rand(()), ()),
    (lambda: cg.rand(0), (0,)),
    (lambda: cg.randn(2, 0, 3), (2, 0, 3)),
    (lambda: cg.randint(5, (2, 3)), (2, 3)),
    (lambda: cg.randint(2, 5, (2, 3)), (2, 3)),
    (lambda: cg.randint(high=5, size=(2,)), (2,)),
    (lambda: cg.randint(low=2, high=5, size=(2,)), (2,)),
    (lambda: cg.randint(5, size=[2]), (2,)),
    (lambda: cg.randperm(0), (0,)),
    (lambda: cg.normal(0, 1, (2, 3)), (2, 3)),
    (lambda: cg.normal(0.0, 1.0, size=()), ()),
    (lambda: cg.normal(cg.zeros(3), 1.0), (3,)),
    (lambda: cg.normal(cg.zeros(3), cg.ones(2, 1)), (2, 3)),
    (lambda: cg.normal(0.0, cg.ones(2, 1)), (2, 1)),
    (lambda: cg.rand_like(cg.zeros(3, 2)), (3, 2)),
]


@pytest.mark.cases(("draw", "shape"), SIZES)
def test_sizes(draw, shape):
    assert tuple(draw().shape) == shape


DTYPES = [
    (lambda: cg.rand(2), cg.float32),
    (lambda: cg.randn(2, dtype=cg.float64), cg.float64),
    (lambda: cg.rand(2, dtype=cg.float16), cg.float16),
    (lambda: cg.randn(2, dtype=cg.bfloat16), cg.bfloat16),
    (lambda: cg.rand_like(cg.ones(2, dtype=cg.bfloat16)), cg.bfloat16),
    (lambda: cg.bernoulli(cg.ones(2, dtype=cg.float16)), cg.float16),
    (lambda: cg.normal(0.0, cg.ones(2, dtype=cg.bfloat16)), cg.bfloat16),
    (lambda: cg.randint(5, (2,), dtype=cg.float16), cg.float16),
    (lambda: cg.randperm(5, dtype=cg.bfloat16), cg.bfloat16),
    (lambda: cg.randint(5, (2,)), cg.int64),
    (lambda: cg.randint(5, (2,), dtype=cg.uint8), cg.uint8),
    (lambda: cg.randint(0, 2, (2,), dtype=cg.bool), cg.bool),
    (lambda: cg.randint(5, (2,), dtype=cg.float32), cg.float32),
    (lambda: cg.randperm(5), cg.int64),
    (lambda: cg.randperm(5, dtype=cg.float64), cg.float64),
    (lambda: cg.normal(0.0, 1.0, (2,)), cg.float32),
    (lambda: cg.normal(cg.zeros(2), cg.ones(2, dtype=cg.float64)), cg.float32),
    (lambda: cg.normal(0.0, cg.ones(2, dtype=cg.float64)), cg.float64),
    (lambda: cg.bernoulli(cg.zeros(2, dtype=cg.float64)), cg.float64),
    (lambda: cg.bernoulli(cg.zeros(2, dtype=cg.int32), 0.5), cg.int32),
    (lambda: cg.rand_like(cg.zeros(2, dtype=cg.float64)), cg.float64),
    (lambda: cg.randn_like(cg.zeros(2, dtype=cg.int32), dtype=cg.float32), cg.float32),
    (lambda: cg.randint_like(cg.zeros(2), 5), cg.float32),
]


@pytest.mark.cases(("draw", "dtype"), DTYPES)
def test_dtypes(draw, dtype):
    assert draw().dtype == dtype


@pytest.mark.parametrize("dtype", [cg.float16, cg.bfloat16])
def test_no_number_is_rounded_to_1(dtype):
    x = cg.rand(100000, dtype=dtype, rng=0)
    assert x.min() >= 0 and x.max() == 1 - cg.finfo(dtype).eps / 2
    assert abs(x.float().mean() - 0.5) < 0.01


def test_the_default_dtype_is_drawn():
    try:
        cg.set_default_dtype(cg.float64)
        assert cg.rand(2).dtype == cg.randn(2).dtype == cg.normal(0.0, 1.0, (2,)).dtype == cg.float64
    finally:
        cg.set_default_dtype(cg.float32)


@pytest.mark.parametrize("draw", [cg.rand, cg.randn])
def test_requires_grad_gives_a_leaf(draw):
    x = draw(3, requires_grad=True)
    assert x.requires_grad
    assert x.is_leaf
    assert x._version == 0


MOMENTS = [
    (lambda rng: cg.rand(100_000, rng=rng), 0.5, 1 / 12),
    (lambda rng: cg.rand(100_000, rng=rng, dtype=cg.float64), 0.5, 1 / 12),
    (lambda rng: cg.randn(100_000, rng=rng), 0, 1),
    (lambda rng: cg.randn(100_000, rng=rng, dtype=cg.float64), 0, 1),
    (lambda rng: cg.normal(3.0, 2.0, (100_000,), rng=rng), 3, 4),
    (lambda rng: cg.normal(cg.full((100_000,), 3.0), cg.full((100_000,), 2.0), rng=rng), 3, 4),
    (lambda rng: cg.randint(-3, 4, (100_000,), rng=rng), 0, 4),
    (lambda rng: cg.bernoulli(cg.full((100_000,), 0.25), rng=rng), 0.25, 3 / 16),
    (lambda rng: cg.bernoulli(cg.zeros(100_000), 0.25, rng=rng), 0.25, 3 / 16),
]


@pytest.mark.parametrize(("draw", "mean", "variance"), MOMENTS)
def test_mean_and_variance(draw, mean, variance):
    numbers = draw(0).numpy().astype(np.float64)
    assert numbers.mean() == pytest.approx(mean, abs=5 * (variance / numbers.size) ** 0.5)
    assert numbers.var() == pytest.approx(variance, rel=0.03)


def test_ranges():
    numbers = cg.rand(100_000, rng=0).numpy()
    assert 0 <= numbers.min() < 1e-3
    assert 0.999 < numbers.max() < 1
    assert sorted(set(cg.randint(2, 7, (1000,), rng=0).tolist())) == [2, 3, 4, 5, 6]
    assert set(cg.randint(0, 256, (10_000,), dtype=cg.uint8, rng=0).tolist()) == set(range(256))
    assert set(cg.randint(0, 2, (100,), dtype=cg.bool, rng=0).tolist()) == {False, True}
    assert sorted(cg.randperm(1000, rng=0).tolist()) == list(range(1000))
    assert cg.randperm(1000, rng=0).tolist() != list(range(1000))
    assert cg.bernoulli(cg.tensor([0.0, 1.0])).tolist() == [0, 1]


def test_whole_range_of_int64():
    numbers = cg.randint(-(2**63), 2**63, (1000,), rng=0).numpy()
    assert numbers.min() < -(2**62)
    assert numbers.max() > 2**62


def test_like_draws_in_index_order_and_keeps_strides():
    template = cg.zeros(3, 2).T
    drawn = cg.rand_like(template, rng=0)
    assert drawn.stride() == template.stride()
    assert cg.equal(drawn, cg.rand(2, 3, rng=0))


def test_normal_has_no_history():
    mean = cg.zeros(3, requires_grad=True)
    assert not cg.normal(mean, 1.0).requires_grad
    assert not cg.bernoulli(cg.full((3,), 0.5, requires_grad=True)).requires_grad


@pytest.mark.parametrize("layout", ["dense", "transposed"])
def test_out_is_written_and_returned(layout):
    out = cg.zeros(2, 3) if layout == "dense" else cg.zeros(3, 2).T
    assert cg.rand(2, 3, rng=0, out=out) is out
    assert cg.equal(out, cg.rand(2, 3, rng=0))
    assert out._version > 0


def test_out_decides_the_dtype():
    out = cg.zeros(3, dtype=cg.float64)
    assert cg.equal(cg.randn(3, rng=0, out=out), cg.randn(3, rng=0, dtype=cg.float64))
    assert sorted(cg.randperm(3, out=cg.zeros(3, dtype=cg.int32)).tolist()) == [0, 1, 2]


BAD = [
    (lambda: cg.rand(-1), RuntimeError, "Trying to create tensor with negative dimension -1"),
    (lambda: cg.randperm(-1), RuntimeError, "Trying to create tensor with negative dimension -1"),
    (lambda: cg.randint(0, 5, (-2,)), RuntimeError, "Trying to create tensor with negative dimension -2"),
    (lambda: cg.rand(), TypeError, None),
    (lambda: cg.rand(2.0), TypeError, "float"),
    (lambda: cg.rand("a"), TypeError, "str"),
    (lambda: cg.rand((2, 3), 4), TypeError, None),
    (lambda: cg.rand(2, size=(2,)), TypeError, None),
    (lambda: cg.randperm(3.0), TypeError, "float"),
    (lambda: cg.randint(5), TypeError, None),
    (lambda: cg.randint(0, 5, 2), TypeError, None),
    (lambda: cg.randint(0, 2.5, (2,)), TypeError, None),
    (lambda: cg.rand_like([1.0]), TypeError, "argument 'input' .position 1. must be Tensor, not list"),
    (lambda: cg.rand(2, generator=5), TypeError, "generator"),
    (lambda: cg.normal(0.0, 1.0), TypeError, r"normal\(\) received an invalid combination of arguments"),
    (lambda: cg.rand(2, dtype=cg.int64), NotImplementedError, "not implemented for"),
    (lambda: cg.randn(2, dtype=cg.int64), NotImplementedError, "not implemented for"),
    (lambda: cg.rand_like(cg.zeros(2, dtype=cg.int64)), NotImplementedError, "not implemented for"),
    (lambda: cg.normal(cg.zeros(2, dtype=cg.int64)), NotImplementedError, "not implemented for"),
    (lambda: cg.bernoulli(cg.tensor([1])), NotImplementedError, "not implemented for"),
    (lambda: cg.randperm(3, dtype=cg.bool), NotImplementedError, "not implemented for"),
    (
        lambda: cg.randint(5, 5, (2,)),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=5 >= to=5",
    ),
    (lambda: cg.randint(0, (2,)), RuntimeError, "random_ expects 'from' to be less than 'to', but got from=0 >= to=0"),
    (lambda: cg.randint(-1, 3, (2,), dtype=cg.uint8), RuntimeError, "from is out of bounds for"),
    (lambda: cg.randint(0, 300, (2,), dtype=cg.uint8), RuntimeError, "to - 1 is out of bounds for"),
    (lambda: cg.randint(0, 3, (2,), dtype=cg.bool), RuntimeError, "to - 1 is out of bounds for"),
    (lambda: cg.randint(3, (2,), requires_grad=True), RuntimeError, "floating point"),
    (
        lambda: cg.randperm(257, dtype=cg.uint8),
        RuntimeError,
        "value cannot be converted to type uint8.* without overflow",
    ),
    (lambda: cg.normal(0.0, -1.0, (2,)), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    (lambda: cg.normal(cg.zeros(2), -cg.ones(2)), RuntimeError, "normal expects all elements of std >= 0.0"),
    (
        lambda: cg.normal(cg.zeros(3), cg.ones(2)),
        RuntimeError,
        "The size of tensor a .* must match the size of tensor b",
    ),
    (lambda: cg.bernoulli(cg.tensor([0.5, 2.0])), RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true"),
    (lambda: cg.bernoulli(cg.zeros(2), 2.0), RuntimeError, r"bernoulli_ expects p to be in \[0, 1\], but got p=2"),
    (lambda: cg.rand(2, out=cg.zeros(2), dtype=cg.float64), RuntimeError, "does not match dtype of out parameter"),
    (lambda: cg.rand(2, out=cg.zeros(2, requires_grad=True)), RuntimeError, "don't support automatic differentiation"),
    (lambda: cg.rand(2, device="cuda"), (AssertionError, RuntimeError), "CUDA"),
    (lambda: cg.rand(1 << 40, 1 << 40), RuntimeError, None),
    (lambda: cg.manual_seed(1 << 64), ValueError, "Overflow when unpacking long"),
    (lambda: cg.manual_seed(-(1 << 63) - 1), ValueError, "Overflow when unpacking long"),
    (lambda: cg.manual_seed("a"), ValueError, "invalid literal for int"),
    (lambda: cg.Generator().manual_seed(1.5), RuntimeError, "manual_seed expected a long, but got float"),
    (lambda: cg.Generator().set_state(cg.zeros(3)), TypeError, "RNG state must be a"),
    (
        lambda: cg.Generator().set_state(cg.zeros(3, dtype=cg.uint8)),
        RuntimeError,
        "but found the input RNG state size to be 3",
    ),
]


@pytest.mark.cases(("call", "error", "message"), BAD)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


BAD_RNG = [
    (lambda: cg.rand(2, rng="a"), TypeError),
    (lambda: cg.rand(2, rng=-1), ValueError),
    (lambda: cg.rand(2, rng=1, generator=cg.Generator()), TypeError),
    (lambda: cg.rand(2, out=cg.zeros(3)), RuntimeError),
    (lambda: cg.randint(0, 2**25, (2,), dtype=cg.float32), RuntimeError),
]


@pytest.mark.parametrize(("call", "error"), BAD_RNG)
def test_bad_input_that_torch_lacks(call, error):
    with pytest.raises(error):
        call()


def test_seeds():
    assert cg.manual_seed(3) is cg.random.default_generator
    assert cg.initial_seed() == 3
    assert cg.manual_seed(-3).initial_seed() == 2**64 - 3
    assert cg.manual_seed(1.7).initial_seed() == 1
    assert cg.Generator().initial_seed() == cg.Generator().initial_seed()
    assert cg.seed() == cg.initial_seed() != cg.seed()


def test_state_is_a_snapshot():
    generator = cg.Generator().manual_seed(3)
    cg.randint(0, 2, (3,), dtype=cg.bool, generator=generator)  # leaves half a draw behind
    state = generator.get_state()
    assert state.dtype == cg.uint8
    drawn = cg.randn(5, generator=generator)
    other = cg.Generator()
    assert other.set_state(state) is other
    assert cg.equal(cg.randn(5, generator=other), drawn)
    assert other.initial_seed() == 3


def test_state_of_the_default_generator():
    state = cg.get_rng_state()
    drawn = cg.rand(5)
    cg.set_rng_state(state)
    assert cg.equal(cg.rand(5), drawn)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda generator: pickle.loads(pickle.dumps(generator))])
def test_a_copied_generator_goes_its_own_way(clone):
    generator = cg.Generator().manual_seed(1)
    cg.rand(3, generator=generator)
    twin = clone(generator)
    assert cg.equal(cg.rand(3, generator=twin), cg.rand(3, generator=generator))


def test_threads_share_a_generator_without_drawing_twice():
    generator = cg.Generator().manual_seed(0)
    drawn = []

    def work():
        for _ in range(50):
            drawn.extend(cg.rand(100, dtype=cg.float64, generator=generator).tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 4 * 50 * 100


def test_import_does_not_load_numpy_random():
    program = "import sys, numpy; before = set(sys.modules); import cygrad; print(set(sys.modules) - before)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert "cygrad" in loaded
    assert "numpy.random" not in loaded
