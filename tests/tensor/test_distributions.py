"""Draws of `cygrad.random` from named distributions, and the gradient of gamma numbers by their concentration."""

import math

import mpmath
import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd.gamma_numbers import gamma_slope
from cygrad.func import grad, jvp, vmap

random = cg.random
SIZE = (20000,)
# Draws, and their distribution, of SciPy's module, which takes seconds to import.
DRAWS = {
    "log_normal": (lambda **o: random.log_normal(0.5, 1.0, SIZE, **o), lambda stats: stats.lognorm(1, scale=math.exp(0.5))),
    "exponential": (lambda **o: random.exponential(3.0, SIZE, **o), lambda stats: stats.expon(scale=1 / 3)),
    "cauchy": (lambda **o: random.cauchy(1.0, 2.0, SIZE, **o), lambda stats: stats.cauchy(1, 2)),
    "standard_gamma of 0.3": (lambda **o: random.standard_gamma(cg.full(SIZE, 0.3), **o), lambda stats: stats.gamma(0.3)),
    "standard_gamma of 20": (lambda **o: random.standard_gamma(cg.full(SIZE, 20.0), **o), lambda stats: stats.gamma(20)),
    "beta of 0.5, 2": (lambda **o: random.beta(cg.full(SIZE, 0.5), cg.tensor(2.0), **o), lambda stats: stats.beta(0.5, 2)),
    "beta of 30, 7": (lambda **o: random.beta(cg.full(SIZE, 30.0), cg.tensor(7.0), **o), lambda stats: stats.beta(30, 7)),
    "dirichlet": (lambda **o: random.dirichlet(cg.tensor([0.5, 1.5, 1.0]).expand(*SIZE, 3), **o)[..., 1],
                  lambda stats: stats.beta(1.5, 1.5)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_distributions(name):
    """Kolmogorov's distance; 0.0138 is exceeded once in a thousand seeds."""
    stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    draw, distribution = DRAWS[name]
    assert stats.kstest(draw(rng=1).double().numpy(), distribution(stats).cdf).statistic < 0.0138


def test_geometric():
    drawn = random.geometric(0.25, (40000,), rng=2)
    assert drawn.dtype == cg.int64
    for number in (1, 2, 5):
        assert abs((drawn == number).double().mean().item() - 0.25 * 0.75 ** (number - 1)) < 0.01


@pytest.mark.parametrize("name", [*DRAWS, "geometric"])
def test_seeds_repeat_for_any_number_of_threads(name):
    draw = DRAWS[name][0] if name in DRAWS else lambda **o: random.geometric(0.25, SIZE, **o)
    generator = cg.Generator().manual_seed(5)
    first, second = draw(generator=generator), draw(generator=generator)
    assert not cg.equal(first, second)
    threads = cg.get_num_threads()
    try:
        for count in (1, 3, 8):
            cg.set_num_threads(count)
            assert cg.equal(draw(rng=5), first) and cg.equal(draw(generator=generator.manual_seed(5)), first)
    finally:
        cg.set_num_threads(threads)


def test_sizes_dtypes_and_out():
    assert tuple(random.exponential(2.0, (2, 3)).shape) == (2, 3) and random.exponential(2.0).shape == ()
    assert random.cauchy(0.0, 1.0, (2,), dtype=cg.float64).dtype == cg.float64
    assert random.geometric(0.5, (2,), dtype=cg.float32).dtype == cg.float32
    out = cg.zeros(3)
    assert random.log_normal(0.0, 1.0, (3,), rng=1, out=out) is out and cg.equal(out, random.log_normal(0.0, 1.0, (3,), rng=1))
    for dtype in (cg.float16, cg.bfloat16, cg.float32, cg.float64):
        for drawn in (random.standard_gamma(cg.ones(2, 3, dtype=dtype)), random.beta(cg.ones(3, dtype=dtype), cg.ones(2, 1, dtype=dtype)),
                      random.dirichlet(cg.ones(2, 3, dtype=dtype))):
            assert drawn.dtype == dtype and tuple(drawn.shape) == (2, 3)
    assert random.dirichlet(cg.tensor(2.0)) == 1
    assert random.dirichlet(cg.zeros(0)).numel() == random.standard_gamma(cg.zeros(2, 0)).numel() == 0


def test_small_concentrations():
    """A gamma number is not 0; the shares of small concentrations are right, though the numbers themselves are too small for a float."""
    assert random.standard_gamma(cg.full((500,), 1e-4), rng=1).min() == cg.finfo(cg.float32).tiny
    shares = random.dirichlet(cg.tensor([1e-4, 3e-4]).expand(20000, 2), rng=1)
    assert bool((shares.sum(-1) == 1).all()) and abs(shares.mean(0)[0].item() - 0.25) < 0.015


def true_slope(logarithm, a):
    """Return d ln x / da from differences of the distribution function, from the side where it is small."""
    with mpmath.workdps(40):
        x, a = mpmath.exp(mpmath.mpf(logarithm)), mpmath.mpf(a)
        ends, side = ((0, x), -1) if x < a else ((x, mpmath.inf), 1)
        step = a * mpmath.mpf(10) ** -12
        up, down = (mpmath.gammainc(a + h, *ends, regularized=True) for h in (step, -step))
        return float(side * (up - down) / (2 * step) / mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a)))


@pytest.mark.parametrize("a", [1e-6, 0.03, 0.7, 3.0, 7.9, 25.0, 300.0, 1e4])
def test_the_slope_of_gamma_numbers(a):
    """Across the whole distribution: six deviations above, as far below, and beyond both."""
    numbers = {a / 50, a / 3, max(a - 6 * math.sqrt(a), a / 7), a, a * 1.001 + 0.01, a + 6 * math.sqrt(a), 3 * a + 5}
    logarithms = np.log(sorted(numbers))
    for logarithm, slope in zip(logarithms, gamma_slope(logarithms, np.full(len(logarithms), a)), strict=True):
        assert slope == pytest.approx(true_slope(logarithm, a), rel=5e-12)


def test_the_slope_of_large_concentrations_is_continuous():
    deviations = np.linspace(-6, 6, 13)
    below, above = (np.array([a]) for a in (0.999e8, 1.001e8))
    for a in (below, above):
        expected = 1 + deviations / (2 * np.sqrt(a)) - (deviations**2 - 1) / (6 * a)
        x = a + deviations * np.sqrt(a)
        assert gamma_slope(np.log(x), a.repeat(13)) * x == pytest.approx(expected, abs=1e-10)


def test_gradients_of_gamma_beta_and_dirichlet():
    """Gradients of means are gradients of expectations: a, a / (a + b), and a_i / sum a."""
    a = cg.full((50000,), 1.7, requires_grad=True, dtype=cg.float64)
    (random.standard_gamma(a, rng=1) ** 2).mean().backward()        # its mean is a^2 + a
    assert a.grad.sum().item() == pytest.approx(2 * 1.7 + 1, abs=0.1)
    a, b = (cg.tensor(value, requires_grad=True, dtype=cg.float64) for value in (0.6, 2.4))
    random.beta(a.expand(20000), b, rng=1).mean().backward()
    assert a.grad.item() == pytest.approx(2.4 / 9, abs=0.01) and b.grad.item() == pytest.approx(-0.6 / 9, abs=0.01)
    c = cg.tensor([0.2, 0.5, 1.0], requires_grad=True, dtype=cg.float64)
    random.dirichlet(c.expand(10000, 3), rng=1)[:, 0].mean().backward()
    total = 1.7
    assert c.grad.tolist() == pytest.approx([1.5 / total**2, -0.2 / total**2, -0.2 / total**2], abs=0.02)


@pytest.mark.parametrize("dtype", [cg.bfloat16, cg.float32])
def test_gradients_in_other_dtypes(dtype):
    a = cg.tensor([0.3, 4.0], dtype=dtype, requires_grad=True)
    wide = a.detach().double().requires_grad_()
    for x in (a, wide):
        random.standard_gamma(x, rng=3).sum().backward()
    assert a.grad.dtype == dtype and a.grad.tolist() == pytest.approx(wide.grad.tolist(), rel=0.02)


def test_transforms_of_gamma_numbers():
    a = cg.tensor([0.5, 2.0, 9.0, 40.0], dtype=cg.float64)
    slopes = grad(lambda x: random.standard_gamma(x, rng=1).sum())(a)
    value, tangent = jvp(lambda x: random.standard_gamma(x, rng=1), (a,), (cg.ones(4, dtype=cg.float64),))
    assert cg.equal(tangent, slopes) and cg.equal(value, random.standard_gamma(a, rng=1))
    each = vmap(grad(lambda x: random.standard_gamma(x, rng=1)), randomness="different")(a)
    assert each.tolist() == pytest.approx(slopes.tolist())
    shared = cg.tensor(2.0, dtype=cg.float64)
    alike, apart = (vmap(lambda x: x * random.standard_gamma(shared, rng=1), randomness=randomness)(cg.ones(4)) for randomness in
                    ("same", "different"))
    assert len(set(alike.tolist())) == 1 and len(set(apart.tolist())) == 4
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(random.standard_gamma)(a)


def test_there_is_no_second_derivative():
    a = cg.tensor([0.5, 9.0], requires_grad=True)
    gradient, = cg.autograd.grad(random.standard_gamma(a).sum(), a, create_graph=True)
    with pytest.raises(NotImplementedError, match="a gamma number has first derivatives only"):
        gradient.sum().backward()


BAD = [
    (lambda: random.exponential(0.0, (2,)), RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=0"),
    (lambda: random.exponential(math.nan, (2,)), RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=nan"),
    (lambda: random.exponential("1", (2,)), TypeError, "exponential(): argument 'lambd' must be float, not str"),
    (lambda: random.exponential(1.0, (2,), dtype=cg.int64), RuntimeError, "is a continuous probability distribution"),
    (lambda: random.exponential(1.0, (-2,)), RuntimeError, "negative dimension -2"),
    (lambda: random.cauchy(0.0, -1.0, (2,)), RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=-1"),
    (lambda: random.log_normal(0.0, 0.0, (2,)), RuntimeError, "log_normal_ expects std > 0.0, but found std=0"),
    (lambda: random.geometric(1.5, (2,)), RuntimeError, "geometric_ expects p to be in (0, 1), but got p=1.5"),
    (lambda: random.geometric(0.5, (2,), dtype=cg.bool), NotImplementedError, "not implemented for 'bool'"),
    *((lambda bad=bad: random.standard_gamma(cg.tensor([1.0, bad])), RuntimeError,
       "standard_gamma expects all elements of concentration > 0.0") for bad in (0.0, -1.0, math.nan, math.inf)),
    (lambda: random.standard_gamma(cg.tensor([1])), NotImplementedError, "\"standard_gamma\" not implemented for 'int64'"),
    (lambda: random.standard_gamma(1.0), TypeError, "argument 'concentration' (position 1) must be Tensor, not float"),
    (lambda: random.beta(cg.ones(2), cg.zeros(2)), RuntimeError, "beta expects all elements of concentration > 0.0"),
    (lambda: random.beta(cg.ones(2), cg.ones(3)), RuntimeError, "must match"),
    (lambda: random.dirichlet(cg.tensor([1.0, -1.0])), RuntimeError, "dirichlet expects all elements of concentration > 0.0"),
    (lambda: random.dirichlet(cg.ones(2), generator=3), TypeError, "argument 'generator' must be Generator, not int"),
]


@pytest.mark.cases(("call", "error", "message"), BAD)
def test_bad_input_leaves_the_stream(call, error, message):
    before = cg.get_rng_state()
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
    assert cg.equal(cg.get_rng_state(), before)
