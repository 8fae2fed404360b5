"""Sums of multiples of arrays, which are one loop: they have the bits of additions, differences and products one by one."""

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import defer_from, group_from
from samples import same_bits

SIZE, ARRAYS, PROGRAMS = 24 * 127 + 5, 5, 150
ENDS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 5e-324])
NUMBERS = (1.0, -1.0, 2.0, 0.1, -0.3, 0.0, -0.0, 1e200, float("inf"))
STEPS = [lambda a, b, number: a + b, lambda a, b, number: a - b, lambda a, b, number: b - a, lambda a, b, number: -a,
         lambda a, b, number: a * number, lambda a, b, number: cg.add(b, a, alpha=number), lambda a, b, number: cg.sub(a, b, alpha=number),
         lambda a, b, number: number - a, lambda a, b, number: a - number, lambda a, b, number: a.square(), lambda a, b, number: a * b]


@pytest.fixture
def grouped():
    before = group_from(1)
    yield
    group_from(before)


def arrays(seed, dtype, size=SIZE):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((ARRAYS, size)) < 0.1, rng.choice(ENDS, (ARRAYS, size)), rng.integers(-3, 4, (ARRAYS, size)) / 2)
    with np.errstate(over="ignore"):
        return [cg.tensor(row.astype(dtype)) for row in values]


def random_sum(seed):
    """Return a function of arrays that adds, subtracts and scales its values, and gives back the last two."""
    rng = np.random.default_rng(seed)
    steps = [(rng.integers(len(STEPS)), rng.integers(ARRAYS), rng.integers(1, 4), float(rng.choice(NUMBERS)))
              for _ in range(rng.integers(2, 12))]

    def value(*values):
        values = list(values)
        for kind, other, place, number in steps:
            # Most steps go on from the last value, so that values are read once.
            last, beside = values[-1], values[other] if place < 3 else values[-2]
            values.append(STEPS[kind](last, beside, number))
        return values[-1], values[-2]

    return value


def check(function, values, computed):
    expected = [each.numpy() for each in function(*values)]
    for result, each in zip(computed, expected, strict=True):
        # Of two that are no numbers, either may be the result.
        numbers = ~np.isnan(each)
        assert np.array_equal(np.isnan(result.numpy()), ~numbers)
        assert same_bits(result.numpy()[numbers], each[numbers])


@pytest.mark.usefixtures("grouped")
@pytest.mark.cases("dtype", ["float64", "float32"])
@pytest.mark.cases("size", [SIZE, 1, 3])
def test_compiled_sums_have_the_bits_of_their_steps(dtype, size):
    """Of one double, operations have no loop."""
    for seed in range(PROGRAMS):
        function = random_sum(seed)
        compiled = cg.compile(function)
        for k in range(3):
            values = arrays(seed + k, dtype, size)
            check(function, values, compiled(*values))


@pytest.mark.cases("dtype", ["float64", "float32"])
def test_pending_sums_have_the_bits_of_their_steps(dtype):
    for seed in range(PROGRAMS):
        function, values = random_sum(seed), arrays(seed, dtype)
        before = defer_from(8)
        try:
            computed = function(*[value.clone().requires_grad_() for value in values])
        finally:
            defer_from(before)
        check(function, values, [each.detach() for each in computed])


FACTORS = [1.0, -1.0, 0.25, 3.0]


def parts_of_gradients(seed):
    """Return a function whose gradient adds multiples of slices, of which some are read more than once, and some are small."""
    rng = np.random.default_rng(seed)
    terms = [(int(rng.integers(0, 4)), int(rng.choice([SIZE - 3, 90])), *rng.choice(FACTORS, 2).tolist(), rng.random() < 0.4)
             for _ in range(4)]

    def value(x, weight):
        total = 0.0
        for start, length, first, second, twice in terms:
            part = x[start:start + length] * first * second
            total = total - (part * weight[:length]).sum()
            if twice:
                total = total + (part * weight[1:length + 1]).sum()
        return total

    return value


@pytest.mark.cases("dtype", ["float64", "float32"])
@pytest.mark.parametrize("groups", [1, 1 << 11, 1 << 20])
def test_gradients_of_parts_have_the_bits_of_their_steps(dtype, groups):
    """Smaller arrays than are grouped are terms of sums before."""
    before = group_from(groups)
    try:
        compare_gradients(dtype)
    finally:
        group_from(before)


def compare_gradients(dtype):
    for seed in range(PROGRAMS // 3):
        function = parts_of_gradients(seed)

        def gradient(x, weight, function=function):
            x = x.detach().requires_grad_()
            return cg.autograd.grad(function(x, weight), x)[0], x.detach()

        compiled = cg.compile(gradient, fullgraph=True)
        for k in range(3):
            x, weight = arrays(seed + k, dtype)[:2]
            check(gradient, (x, weight), compiled(x, weight))


@pytest.mark.usefixtures("usual_sizes")
def test_multiples_of_parts_are_factors_of_their_sum():
    def gradient(x):
        x = x.detach().requires_grad_()
        total = x[1:-1] + 0.25 * (x[2:] - 2 * x[1:-1] + x[:-2])
        return cg.autograd.grad((total * total).sum(), x)[0]

    compiled = cg.compile(gradient)
    compiled(cg.ones(SIZE))
    assert "sub_db + mul_db + add_parts" in compiled.explain(cg.ones(SIZE))
