"""Reductions, and formulas with reductions inside, hold at all sizes and scales: they give float64's results, rounded once.

Narrow floats have sums and squares far beyond their range; so has float32 at the ends of its own.
"""

import inspect
from importlib import import_module

import numpy as np
import pytest

import cygrad as cg
from cygrad._core.operands.arrays import to_array
from cygrad.ops import REDUCTIONS
from cygrad.ops.dtypes import DTYPES
from samples import as_tuple

NARROW = [row.name for row in DTYPES if row.is_opaque]
FAMILIES = ["exponentials", "norms", "reductions", "scans", "statistics"]


def calls_along_a_dim():
    """Return calls of the operators of the families that take one tensor and a dim, of the rows with a gradient, and of two operands."""
    calls = {}
    for family in FAMILIES:
        module = import_module(f"cygrad.operators.{family}")
        declared = {name: each for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__}
        for name, function in declared.items():
            if name.strip("_") != name or not hasattr(function, "declaration"):
                continue
            parameters = list(inspect.signature(function.__wrapped__).parameters.values())
            required = {each.name for each in parameters[1:] if each.default is each.empty and each.kind is not each.VAR_KEYWORD}
            if required <= {"dim"} and any(each.name == "dim" for each in parameters):
                calls[name] = lambda x, function=function: function(x, dim=0)
    calls |= {name: lambda x, name=name: getattr(x, name)(0) for name, row in REDUCTIONS.items() if row.gradient}
    calls |= {f"norm of order {p}": lambda x, p=p: cg.linalg.vector_norm(x, p, 0) for p in (1, 1.5, 3)}
    return calls | {
        "var without correction": lambda x: x.var(0, correction=0),
        "std of all": lambda x: x.std(),
        "dist": lambda x: x.dist(x.flip(0) * 0.5),
        "vecdot": lambda x: cg.linalg.vecdot(x, x.flip(0), dim=0),
        "dot": lambda x: x.dot(x.flip(0)),
        "cross": lambda x: cg.linalg.cross(x.expand(3, -1) * cg.tensor([[1], [2], [4]]), x.flip(0).expand(3, -1), dim=0),
    }


CALLS = calls_along_a_dim()


def draw(count, scale, positive):
    numbers = np.random.default_rng(count).standard_normal(count) * scale
    return np.abs(numbers) if positive else numbers


def units(dtype, values):
    """Return the distance from each value to the next one of a dtype."""
    limits = cg.finfo(dtype)
    return np.maximum(2.0 ** np.floor(np.log2(np.maximum(np.abs(values), limits.tiny))), limits.tiny) * limits.eps


def check_values(result, exact, tolerance):
    """Compare a result with the rounded exact one: to units in the last place, or to rounding errors of the largest in float32."""
    rounded = to_array(exact.to(result.dtype)).astype(float)
    values = to_array(result).astype(float)
    limits = np.maximum(tolerance * units(result.dtype, rounded), 2.0 ** -22 * np.abs(rounded[np.isfinite(rounded)]).max(initial=0)
                        if result.dtype != cg.float32 else 0)
    with np.errstate(invalid="ignore"):
        assert ((values == rounded) | np.isnan(values) & np.isnan(rounded) | (np.abs(values - rounded) <= limits)).all()


def check_gradient(result, exact, x, z, tolerance):
    """Compare a gradient with the exact one: to units in the last place of its largest element, or of the largest product of the saved
    result and the cotangent, which the gradient of softmax subtracts from each other."""
    cotangent = cg.tensor(np.random.default_rng(7).standard_normal(tuple(result.shape))).to(result.dtype)
    values = to_array(cg.autograd.grad(result, x, cotangent, retain_graph=True)[0]).astype(float)
    expected = to_array(cg.autograd.grad(exact, z, cotangent.double(), retain_graph=True)[0].to(x.dtype)).astype(float)
    finite = np.isfinite(expected)
    assert (np.isfinite(values) == finite).all()
    products = to_array(result.detach() * cotangent) if "Softmax" in str(result.grad_fn) else 0
    largest = max(np.abs(expected[finite]).max(initial=0), np.abs(products).max(initial=0))
    assert np.abs(values - expected)[finite].max(initial=0) <= tolerance * units(x.dtype, largest)


def check(call, dtype, array, value_tolerance, gradient_tolerance):
    x = cg.tensor(array).to(getattr(cg, dtype))
    z = x.double()
    results, exact = as_tuple(call(x.requires_grad_())), as_tuple(call(z.requires_grad_()))
    for one, other in zip(results, exact, strict=True):
        if not one.is_floating_point():
            continue
        check_values(one.detach(), other.detach(), value_tolerance)
        if one.requires_grad and one.isfinite().all():      # the gradient reads the result
            check_gradient(one, other, x, z, gradient_tolerance)


@pytest.mark.cases("positive", [False, True])
@pytest.mark.cases("count", [1, 2, 3, 17, 600, 5000, 70_000])
@pytest.mark.cases("scale", [1e-4, 1, 10, 300])
@pytest.mark.cases("dtype", NARROW)
@pytest.mark.parametrize("name", CALLS)
def test_narrow_floats_are_rounded_once(name, dtype, scale, count, positive):
    if name == "logcumsumexp":
        count = min(count, 600)     # its gradient goes through logarithms of running sums, whose errors in float32 grow
    if name == "cumprod":
        count = min(count, 5000)    # where products overflow, its gradient takes a step of Python for each element
    check(CALLS[name], dtype, draw(count, scale, positive), 1, 4)       # gradients read results that were saved in 16 bits


# The logarithms of cotangents have no digits left beside numbers above 1e8, and the sum that nanmean divides is beyond the range.
BEYOND = {"logcumsumexp": 1e8, "nanmean": 1e35}


@pytest.mark.cases("count", [1, 2, 3, 17, 600, 5000])
@pytest.mark.cases("scale", [1e-38, 1e-30, 1e-20, 1e15, 1e30, 1e37])
@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("cross", "dot", "vecdot")])    # their terms cancel
def test_float32_at_the_ends_of_its_range(name, scale, count):
    """The numbers are positive: sums that cancel lose digits at every scale."""
    if scale < BEYOND.get(name, np.inf):
        check(CALLS[name], "float32", draw(count, scale, positive=True), 8, 64)


@pytest.mark.cases("shape, dim", [((100_000,), 0), ((64,), 0), ((100, 200), 0), ((100, 200), 1), ((9, 5), 0), ((8, 1000), 0),
                                  ((3, 5000), 1), ((2, 2, 77), (0, 2))])
@pytest.mark.parametrize("dtype", [*NARROW, "float32", "complex64"])
def test_sums_that_overflow_on_the_way_are_finite(dtype, shape, dim):
    size = cg.finfo(getattr(cg, dtype)).max / 3
    x = cg.full(shape, size, dtype=getattr(cg, dtype))
    assert x.mean(dim).equal(cg.full((), size, dtype=x.dtype).expand(x.mean(dim).shape))
    total = cg.cat([x, -x], 0).sum()
    assert total.isfinite() and total.abs() <= size * 1e-3


# ----- Degrees of freedom -----
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(("name", "correction", "dim", "expected"), [
    ("var", 3, 0, [-INF, -INF, INF]), ("var", 5, 0, [4 / 3, 1 / 3, -5 / 3]), ("std", 5, 0, [0, 0, 0]), ("std", 3, 0, [NAN] * 3),
    ("var", 3, None, [-INF, -INF, INF]), ("var", 5, None, [-INF, -INF, INF]), ("std", 3, None, [NAN] * 3), ("std", 5, None, [NAN] * 3),
])
def test_gradients_where_no_degree_of_freedom_is_left(name, correction, dim, expected):
    x = cg.tensor([1.0, 2.0, 4.0], dtype=cg.float64, requires_grad=True)
    y = getattr(x, name)(dim, correction=correction)
    gradient, = cg.autograd.grad(y, x)
    assert y.item() == INF
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-14)
