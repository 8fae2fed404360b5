"""Operators composed of elementwise steps and reductions: by tiles they give the bits of their formula, operator by operator.

A formula runs operator by operator in a profile, and where it is recorded.
"""

import math

import pytest

import cygrad as cg
import samples
from cygrad.autograd import grad, profiler
from cygrad.operators._language.tiled import tiled
from samples import FLOATS, LAYOUTS, array_of, same_bits

CALLS = {
    "softmax": lambda x, dim: x.softmax(dim),
    "log_softmax": lambda x, dim: x.log_softmax(dim),
    "logsumexp": lambda x, dim: x.logsumexp(dim),
    "var": lambda x, dim: x.var(dim),
    "std": lambda x, dim: x.std(dim, keepdim=True),
    "norm": lambda x, dim: x.norm(dim=dim),
    "amax": lambda x, dim: x.amax(dim),
    "amin": lambda x, dim: x.amin(dim, keepdim=True),
}
# One tile; tiles along the first dim, and along two; dims behind the reduced one; more than a tile holds; several dims; whole vectors,
# rows of one block, and just longer.
SHAPES = samples.sizes((
    ((), 0),
    ((7,), 0),
    ((3, 5), 1),
    ((90, 200), 1),
    ((90, 200), 0),
    ((700, 3, 31), 1),
    ((70, 3, 201), 1),
    ((500, 5, 2), 1),
    ((3, 9_000, 2), 2),
    ((2, 70_001), 1),
    ((70_001,), 0),
    ((300, 1, 301), (0, 1, 2)),
    ((12, 40, 50), 2),
    ((12, 40, 50), (0, 2)),
    ((2, 0, 3), 2),
    ((300, 64), 1),
    ((5, 4, 96), 2),
    ((3, 4_096), 1),
    ((2, 4_097), 1),
    ((1, 320), 1),
    ((17, 8, 16), (1, 2)),
))


def results_of(call, x, dim):
    result = call(x, dim)
    weight = cg.tensor(samples.draw(str(result.dtype).split(".")[-1], tuple(result.shape), 8))
    gradients = grad(result, x, weight, retain_graph=True) + grad(result.sum(), x)      # of a sum: one number everywhere
    return [array_of(result), *map(array_of, gradients)]


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.cases(("shape", "dim"), SHAPES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_tiles_have_the_bits_of_the_formula(name, shape, dim, dtype):
    if isinstance(dim, tuple) and "softmax" in name:
        return
    for layout in LAYOUTS:
        x = samples.leaf(samples.draw(dtype, shape, 4), layout)
        by_tiles = results_of(CALLS[name], x, dim)
        with profiler.profile():
            by_operators = results_of(CALLS[name], x, dim)
        assert all(same_bits(a, b) for a, b in zip(by_tiles, by_operators, strict=True))


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.cases(("shape", "dim"), [((3, 7), 1), ((40, 64), 1), ((3, 70_001), 1), ((70_001,), 0), ((3, 70_001), 0), ((4, 9_000), 1),
                                      ((5_000,), 0)], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_tiles_have_the_bits_of_the_formula_for_rows_of_one_value(name, shape, dim, dtype):
    """Zeros, infinities and NaN reach the numbers of a formula, which are the same in all rows."""
    for first, others in (1.0, 0.0), (0.0, -math.inf), (0.0, math.inf), (math.nan, 1.0):
        x = cg.full(shape, others, dtype=getattr(cg, dtype))
        (x.select(1 - dim, 0) if len(shape) > 1 else x[:1]).fill_(first)
        x.requires_grad_()
        by_tiles = results_of(CALLS[name], x, dim)
        with profiler.profile():
            by_operators = results_of(CALLS[name], x, dim)
        assert all(same_bits(a, b) for a, b in zip(by_tiles, by_operators, strict=True))


@pytest.mark.parametrize("name", CALLS)
def test_tiles_of_several_threads_have_the_same_bits(name):
    array = samples.draw("float32", (1_100, 600), 2)
    expected = None
    for threads in (1, 2, 3):
        with samples.threads(threads):
            results = results_of(CALLS[name], samples.leaf(array), 1)
        expected = expected or results
        assert all(same_bits(a, b) for a, b in zip(results, expected, strict=True))


# Two steps at once: elementwise steps of a difference from a reduction, sums of products; and formulas that only resemble one.
JOINED = {
    "exp of a difference": lambda x, y, dim: (x - y.amax(dim, keepdim=True)).exp_(),
    "square of a difference": lambda x, y, dim: (x - y.mean(dim, keepdim=True)).square_().sum(dim, keepdim=True),
    "product with a difference": lambda x, y, dim: x * (y - x.sum(dim, keepdim=True)),
    "product of a difference": lambda x, y, dim: (y - x.sum(dim, keepdim=True)) * x,
    "product with its difference": lambda x, y, dim: x * (x - y.sum(dim, keepdim=True)),
    "product of two differences": lambda x, y, dim: (x - y.amax(dim, keepdim=True)) * (y - x.amax(dim, keepdim=True)),
    "square of a product with a difference": lambda x, y, dim: (x * (x - y.amax(dim, keepdim=True))).square_(),
    "difference from a number": lambda x, y, dim: x * (y - 2.0) + x.amax(dim, keepdim=True),
    "difference of the reduced": lambda x, y, dim: (y.amax(dim, keepdim=True) - x).exp_(),
    "difference of tensors": lambda x, y, dim: (x - y).exp_().sum(dim, keepdim=True),
    "difference that is read twice": lambda x, y, dim: (lambda d: d.exp() + d)(x - y.amax(dim, keepdim=True)),
    "sum of products": lambda x, y, dim: (x * y).sum(dim, keepdim=True),
    "sum of squares": lambda x, y, dim: (x * x).sum(dim, keepdim=True),
    "sum of products with a number": lambda x, y, dim: (x * 3.0).sum(dim, keepdim=True) + y,
    "sum of products with the reduced": lambda x, y, dim: (x * y.amax(dim, keepdim=True)).sum(dim, keepdim=True),
    "sum of a product that is read twice": lambda x, y, dim: (lambda p: p - p.sum(dim, keepdim=True))(x * y),
    "largest product": lambda x, y, dim: (x * y).amax(dim, keepdim=True),
    "sum of exponentials of differences from sums of products":
        lambda x, y, dim: (x - (x * y).sum(dim, keepdim=True)).exp_().sum(dim, keepdim=True),
}


@pytest.mark.cases("dtype", ["float32", "float64"])
@pytest.mark.cases("shape", samples.sizes(((40, 64), (9, 70), (7, 1_000), (300, 1_024), (5, 1_025), (3, 4_096), (2, 63), (1, 1))))
@pytest.mark.parametrize("name", JOINED)
def test_two_steps_at_once_have_the_bits_of_each(name, shape, dtype):
    x, y = (cg.tensor(samples.draw(dtype, shape, seed)) for seed in (1, 2))
    number = cg.tensor(0.5, dtype=x.dtype).expand(shape)
    for first, second in (x, y), (x, x), (number, y), (x, number):
        by_tiles = tiled(JOINED[name])(first, second, 1)
        assert same_bits(array_of(by_tiles), array_of(JOINED[name](first, second, 1)))


def test_a_formula_is_recorded_where_it_is_differentiated():
    @tiled
    def formula(x, factor, dim):
        return ((x * factor).square_() / x.abs().sum(dim, keepdim=True)).masked_fill(x == 2, 5)

    x = cg.tensor([[1.0, 2.0], [-3.0, 4.0]], dtype=cg.float64, requires_grad=True)
    expected = array_of((x * 3).square() / x.abs().sum(1, keepdim=True))
    expected[0, 1] = 5
    assert same_bits(array_of(formula(x.detach(), 3.0, 1)), expected)
    assert same_bits(array_of(formula(x, 3.0, 1)), expected)
    assert formula(x, 3.0, 1).requires_grad
    with cg.no_grad():
        assert not formula(x, 3.0, 1).requires_grad


def test_operands_unfit_for_tiles_are_computed_by_the_operators():
    """Operands of another dtype, of a shape that broadcasts in other ways, empty, or with a dim out of range."""
    @tiled
    def formula(x, y, dim):
        return x + y.sum(dim, keepdim=True)

    x = cg.ones(2, 3)
    assert formula(x, x.double(), 1).dtype == cg.float64
    assert formula(x, cg.ones(3), 0).tolist() == [[4.0] * 3] * 2
    assert formula(cg.ones(2, 0), cg.ones(2, 0), 1).shape == (2, 0)
    assert formula(x.int(), x.int(), 1).tolist() == [[4] * 3] * 2
    for dim, error in (2, IndexError), ((0, -2), RuntimeError):
        with pytest.raises(error):
            formula(x, x, dim)


# Reduced and of the whole shape, read by other steps and not, last and first.
SEVERAL = {
    "reduced": lambda x, y, dim: (lambda a: (y.sum(dim, keepdim=True) - a, a, (x - a).exp_().sum(dim, keepdim=True)))(
        x.amax(dim, keepdim=True)),
    "of both shapes": lambda x, y, dim: (lambda e: (e, e.sum(dim, keepdim=True), e * y))((x - x.amax(dim, keepdim=True)).exp_()),
    "products that are summed": lambda x, y, dim: (lambda p: (p.sum(dim, keepdim=True), p))(x * y),
}


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.cases(("shape", "dim"), samples.sizes((
    ((3, 5), 1), ((40, 64), 1), ((90, 200), 0), ((12, 40, 50), (0, 2)), ((2, 70_001), 1),
)), ids=str)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_results_have_the_bits_of_the_formula(name, shape, dim, dtype):
    x, y = (cg.tensor(samples.draw(dtype, shape, seed)) for seed in (1, 2))
    formula = tiled(SEVERAL[name])
    results = formula(x, y, dim)
    with profiler.profile():
        expected = formula(x, y, dim)
    assert len(results) == len(expected) > 1
    assert all(same_bits(array_of(a), array_of(b)) for a, b in zip(results, expected, strict=True))


def test_values_of_a_formula_are_not_recorded_in_any_layout():
    formula = tiled(lambda x, dim: x - x.sum(dim, keepdim=True))
    for layout in LAYOUTS:
        for x in samples.leaf(samples.draw("float64", (6, 7), 3), layout), cg.ones((), dtype=cg.int64, requires_grad=False).expand(6, 7):
            result = formula.values(x, 1)
            assert not result.requires_grad and result.is_contiguous() and cg.is_grad_enabled()
            assert same_bits(array_of(result), array_of(x.detach() - x.detach().sum(1, keepdim=True)))
