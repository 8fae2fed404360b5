"""Counts and indices drawn by tensors: distributions, seeds, dtypes, layouts, vmap, threads, bad input that leaves the stream as it was."""

import math

import mpmath
import numpy as np
import pytest

import cygrad as cg
from cygrad.func import vmap
from cygrad.operators import random_draws
from samples import array_of

pytestmark = pytest.mark.usefixtures("nothing_left")

WEIGHTS = cg.tensor([1.0, 0.0, 3.0, 4.0, 2.0, 0.0], dtype=cg.float64)
CALLS = {
    "multinomial": lambda **options: cg.multinomial(WEIGHTS, 3, **options),
    "multinomial with replacement": lambda **options: WEIGHTS.multinomial(40, replacement=True, **options),
    "poisson": lambda **options: cg.poisson(cg.arange(20.0).expand(1000, 20), **options),
    "binomial": lambda **options: cg.binomial(cg.arange(20.0).expand(1000, 20), cg.tensor(0.4), **options),
}


def chi_square(counts, chances):
    """Return the probability of a larger distance of counts from their expectation, by Pearson's test."""
    expected = np.asarray(chances) * np.sum(counts)
    assert expected.min() >= 5 and math.isclose(expected.sum(), np.sum(counts))
    statistic = ((np.asarray(counts) - expected) ** 2 / expected).sum()
    return float(mpmath.gammainc((len(expected) - 1) / 2, statistic / 2, regularized=True))


def whole_numbers(drawn, chance, last):
    """Return the same for numbers from 0 on; numbers of little chance at both ends count together."""
    chances = np.array([chance(n) for n in range(last + 1)])
    low, high = (int(i) for i in np.searchsorted(chances.cumsum(), [1e-3, 1 - 1e-3]))
    ends = [low, *range(low + 1, high + 1), np.inf]
    counts = [np.sum((drawn >= a) & (drawn < b)) for a, b in zip([0, *ends[1:-1]], ends[1:], strict=True)]
    inner = [chances[:low + 1].sum(), *chances[low + 1:high]]
    return chi_square(counts, [*inner, 1 - sum(inner)])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_indices_with_replacement(dtype):
    drawn = cg.multinomial(WEIGHTS.to(getattr(cg, dtype)), 20000, replacement=True, rng=1).numpy()
    counts = np.bincount(drawn, minlength=6)
    assert drawn.dtype == np.int64 and counts[1] == counts[5] == 0
    assert chi_square(counts[[0, 2, 3, 4]], [0.1, 0.3, 0.4, 0.2]) > 0.01


def test_indices_without_replacement():
    """The first two of each row against the probabilities of ordered pairs, w_i / W * w_j / (W - w_i)."""
    drawn = cg.multinomial(WEIGHTS.expand(20000, 6), 4, rng=1).numpy()
    assert all(sorted(row) == [0, 2, 3, 4] for row in drawn[:50].tolist())
    w = WEIGHTS.numpy() / 10
    pairs = [(i, j) for i in range(6) for j in range(6) if i != j and w[i] * w[j]]
    counts = [np.sum((drawn[:, 0] == i) & (drawn[:, 1] == j)) for i, j in pairs]
    assert sum(counts) == 20000 and chi_square(counts, [w[i] * w[j] / (1 - w[i]) for i, j in pairs]) > 0.01


def test_one_index_of_each_row():
    rows = cg.tensor([[0.0, 1.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 1e-300]], dtype=cg.float64)
    assert cg.multinomial(rows, 1).tolist() == [[1], [0], [2]]
    assert cg.multinomial(cg.tensor([1e308, 1e308, 0.0], dtype=cg.float64), 50, True).max() <= 1
    assert tuple(cg.multinomial(cg.zeros(0, 3), 2).shape) == (0, 2)


def test_no_end_of_a_draw_meets_a_weight_of_0():
    class Ends:
        def random(self, shape):
            return np.broadcast_to([0.0, 1 - 2.0**-53], shape)

    assert random_draws._with_replacement(Ends(), np.array([0.0, 1.0, 3.0, 0.0]), 2).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_counts_of_poisson(dtype):
    for rate in (0.5, 4.0, 60.0):
        drawn = array_of(cg.poisson(cg.full((20000,), rate, dtype=getattr(cg, dtype)), rng=2))
        assert drawn.dtype == dtype and (drawn == np.floor(drawn)).all()
        assert abs(drawn.mean() - rate) < 4 * math.sqrt(rate / 20000) and drawn.var() == pytest.approx(rate, rel=0.05)
        assert whole_numbers(drawn, lambda n, rate=rate: math.exp(n * math.log(rate) - rate - math.lgamma(n + 1)), 200) > 0.001
    assert cg.poisson(cg.tensor([0.0, 0.0])).tolist() == [0.0, 0.0]


def test_counts_of_binomial():
    for n, p in ((3, 0.5), (40, 0.1), (200, 0.7)):
        drawn = cg.binomial(cg.full((20000,), float(n)), cg.tensor(p), rng=3).numpy()
        assert drawn.min() >= 0 and drawn.max() <= n
        assert abs(drawn.mean() - n * p) < 4 * math.sqrt(n * p * (1 - p) / 20000)
        assert drawn.var() == pytest.approx(n * p * (1 - p), rel=0.05)
        assert whole_numbers(drawn, lambda k, n=n, p=p: math.comb(n, k) * p**k * (1 - p) ** (n - k), n) > 0.001
    edges = cg.binomial(cg.tensor([5.0, 5.0, 0.0]), cg.tensor([0.0, 1.0, 0.5]))
    assert edges.tolist() == [0.0, 5.0, 0.0]
    assert tuple(cg.binomial(cg.ones(3, 1), cg.full((2,), 0.5)).shape) == (3, 2)


@pytest.mark.parametrize("name", CALLS)
def test_seeds_repeat_and_streams_go_on(name):
    generator = cg.Generator().manual_seed(5)
    first, second = CALLS[name](generator=generator), CALLS[name](generator=generator)
    assert cg.equal(CALLS[name](generator=generator.manual_seed(5)), first) and not cg.equal(first, second)
    assert cg.equal(CALLS[name](rng=5), first) and cg.equal(CALLS[name](rng=np.random.default_rng(5)), first)
    cg.manual_seed(5)
    assert cg.equal(CALLS[name](), first)


@pytest.mark.parametrize("name", CALLS)
def test_threads_change_nothing(name):
    threads = cg.get_num_threads()
    try:
        drawn = []
        for count in (1, 2, 8):
            cg.set_num_threads(count)
            drawn.append(CALLS[name](rng=9))
    finally:
        cg.set_num_threads(threads)
    assert all(cg.equal(drawn[0], other) for other in drawn[1:])


def test_layouts_change_nothing():
    rates = cg.arange(6.0).reshape(2, 3)
    across = rates.T.contiguous().T
    assert cg.equal(cg.poisson(rates, rng=1), cg.poisson(across, rng=1))
    assert cg.equal(cg.multinomial(rates + 1, 2, rng=1), cg.multinomial(across + 1, 2, rng=1))
    assert cg.equal(cg.binomial(rates, cg.tensor(0.5), rng=1), cg.binomial(across, cg.full((2, 3), 0.5), rng=1))


def test_a_draw_has_no_history():
    x = cg.full((3,), 0.5, requires_grad=True)
    assert not any(y.requires_grad for y in (cg.multinomial(x, 1), cg.poisson(x), cg.binomial(cg.ones(3), x)))


def test_out():
    out = cg.zeros(3, dtype=cg.int64)
    assert cg.multinomial(WEIGHTS, 3, rng=5, out=out) is out
    assert cg.equal(out, cg.multinomial(WEIGHTS, 3, rng=5))


def test_draws_in_vmap():
    x = cg.full((4, 3), 5.0)
    for call in (cg.poisson, lambda row: row.multinomial(2), lambda row: cg.binomial(row, cg.tensor(0.5))):
        assert vmap(call, randomness="different")(x).shape[0] == 4
        with pytest.raises(RuntimeError, match="randomness error mode"):
            vmap(call)(x)
        with pytest.raises(RuntimeError, match="does not currently support same randomness"):
            vmap(call, randomness="same")(x)
    shared = cg.full((200,), 5.0)
    same, different = (vmap(lambda row: cg.poisson(shared), randomness=randomness)(x) for randomness in ("same", "different"))
    assert cg.equal(same[0], same[1]) and not cg.equal(different[0], different[1])
    nested = vmap(vmap(lambda row: row.multinomial(1), randomness="different"), in_dims=1, out_dims=1, randomness="different")
    weights = cg.zeros(2, 3, 4)
    weights[0, :, 1], weights[1, :, 3] = 1, 1
    assert nested(weights)[..., 0].tolist() == [[1, 1, 1], [3, 3, 3]]


BAD = [
    (lambda: cg.multinomial(cg.tensor([1, 2]), 1), RuntimeError, "multinomial only supports floating-point dtypes for input, got: "),
    (lambda: cg.multinomial(cg.tensor(1.0), 1), RuntimeError, "prob_dist must be 1 or 2 dim, got 0"),
    (lambda: cg.multinomial(cg.ones(2, 2, 2), 1), RuntimeError, "prob_dist must be 1 or 2 dim, got 3"),
    (lambda: cg.multinomial(cg.ones(3), 0), RuntimeError, "cannot sample n_sample <= 0 samples"),
    (lambda: cg.multinomial(cg.ones(3), -1), RuntimeError, "cannot sample n_sample <= 0 samples, got num_samples=-1"),
    (lambda: cg.multinomial(cg.ones(3), 1.5), TypeError, "num_samples"),
    (lambda: cg.multinomial(cg.ones(3), 4), RuntimeError, "cannot sample n_sample > prob_dist.size(-1) samples without replacement"),
    (lambda: cg.multinomial(cg.zeros(0), 1), RuntimeError, "cannot sample n_sample > prob_dist.size(-1) samples without replacement"),
    (lambda: cg.multinomial(cg.zeros(2, 0), 1, True), RuntimeError, "invalid multinomial distribution (sum of probabilities <= 0)"),
    (lambda: cg.multinomial(cg.zeros(3), 1), RuntimeError, "invalid multinomial distribution (sum of probabilities <= 0)"),
    (lambda: cg.multinomial(cg.tensor([1.0, 0.0, 0.0]), 2), RuntimeError, "2 samples of 1 weights over 0"),
    *((lambda bad=bad: cg.multinomial(cg.tensor([1.0, bad]), 1), RuntimeError,
       "probability tensor contains either `inf`, `nan` or element < 0") for bad in (-1.0, math.nan, math.inf)),
    (lambda: cg.multinomial(cg.ones(3), 1, out=cg.zeros(1)), RuntimeError, "multinomial expects Long tensor out, got: "),
    (lambda: cg.poisson(cg.tensor([1])), NotImplementedError, "\"poisson_cpu\" not implemented for 'Long'"),
    (lambda: cg.poisson(cg.tensor([1j])), NotImplementedError, "\"poisson_cpu\" not implemented for 'ComplexFloat'"),
    *((lambda bad=bad: cg.poisson(cg.tensor([1.0, bad])), RuntimeError, "invalid Poisson rate, expected rate to be non-negative")
      for bad in (-1.0, math.nan, math.inf, 1e30)),
    (lambda: cg.poisson([1.0]), TypeError, "must be Tensor, not list"),
    (lambda: cg.binomial(cg.tensor([1]), cg.tensor([0.5])), ValueError, "binomial only supports floating-point dtypes for count, got: "),
    (lambda: cg.binomial(cg.tensor([1.0]), cg.tensor([1])), ValueError, "binomial only supports floating-point dtypes for prob, got: "),
    (lambda: cg.binomial(cg.ones(2), cg.ones(2).double()), RuntimeError, "Found dtype"),
    *((lambda bad=bad: cg.binomial(cg.tensor([bad]), cg.tensor([0.5])), RuntimeError, "binomial expects counts that are whole numbers")
      for bad in (-1.0, 2.5, math.nan, math.inf)),
    *((lambda bad=bad: cg.binomial(cg.tensor([2.0]), cg.tensor([bad])), RuntimeError, "binomial expects probabilities in [0, 1]")
      for bad in (-0.1, 1.1, math.nan)),
    (lambda: cg.binomial(cg.ones(2), cg.ones(3)), RuntimeError, "must match"),
]


@pytest.mark.cases(("call", "error", "message"), BAD)
def test_bad_input_leaves_the_stream(call, error, message):
    before = cg.get_rng_state()
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
    assert cg.equal(cg.get_rng_state(), before)
