"""Derivatives of complex numbers, of each row and of each other operator that takes them: against differences of both parts."""

import numpy as np
import pytest

import cygrad as cg
import samples
import torch_refusals
from cygrad.autograd import gradcheck, gradgradcheck
from cygrad.ops import ELEMENTWISE

ROWS = [row for row in ELEMENTWISE.values() if "c" in row.kinds and row.partials]
MODES = {
    "all": (gradcheck, {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}),
    "second": (gradgradcheck, {"fast_mode": True, "check_fwd_over_rev": True}),
}


def complex_operands(arrays, real=None):
    """Return arrays as complex leaves, one of which may stay real; masks stay masks."""
    stream = np.random.default_rng(8)
    return [cg.tensor(array) if array.dtype.kind == "b" else
            cg.tensor(array if place == real else array + 1j * stream.uniform(0.3, 2, array.shape)).requires_grad_()
            for place, array in enumerate(arrays)]


@pytest.mark.cases("mode", MODES)
@pytest.mark.parametrize("row", samples.named(ROWS))
def test_rows(row, mode):
    check, options = MODES[mode]
    call, arrays = samples.function(row), samples.operands(row, "float64", ((2,), (1, 2), ()))
    for real in (None, *(range(len(arrays)) if len(arrays) > 1 else ())):
        assert check(call, complex_operands(arrays, real), **options)


# Operators that refuse complex numbers in some of their forms.
REFUSED = {name for name, _, dtype, *_ in torch_refusals.read() if dtype == "complex128"}


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.cases("mode", MODES)
@pytest.mark.parametrize("name", samples.names_for("complex numbers"))
def test_other_operators(name, mode):
    check, options = MODES[mode]
    for number, call, shapes in samples.of(name, "complex numbers"):
        inputs, tolerances = complex_operands(samples.rule_operands(shapes)), samples.SAMPLES[name][number].tolerances
        try:
            call(*inputs)
        except RuntimeError:
            assert name in REFUSED, 'if complex numbers are refused, its samples have exempt={"complex numbers": ...}'
        else:
            assert check(call, inputs, **options, **tolerances)


@pytest.mark.cases("dtype", ["float64", "complex128"])
@pytest.mark.cases("name", ["abs", "sgn", "angle", "sinc"])
def test_second_derivatives_at_zero(name, dtype):
    """The branch of `where` that is not taken is finite, too."""
    x = cg.tensor(np.zeros(2, dtype)).requires_grad_()
    y = getattr(x, name)()
    first, = cg.autograd.grad(y, x, cg.ones_like(y), create_graph=True)
    second, = cg.autograd.grad(first, x, cg.ones_like(first)) if first.requires_grad else (0 * x,)
    assert first.isfinite().all() and second.isfinite().all()


@pytest.mark.cases("dtype", ["complex64", "complex128"])
@pytest.mark.cases(("name", "z", "slope"), [
    *((name, complex(x, y), 0) for name in ("acosh", "log", "sqrt", "reciprocal") for x in (np.inf, -np.inf) for y in (0.0, 2.0, -2.0)),
    ("atan", 1j, complex(np.inf, -np.inf)), ("atan", -1j, complex(np.inf, -np.inf)), ("log", 0j, complex(np.inf, -np.inf)),
])
def test_slopes_at_infinity_and_at_poles(name, z, slope, dtype):
    x = cg.tensor(z, dtype=getattr(cg, dtype)).requires_grad_()
    assert cg.autograd.grad(getattr(x, name)(), x, cg.tensor(1 - 2j, dtype=x.dtype))[0].item() == slope


EXPONENTS = {"a number": lambda n: n, "a complex number": complex, "a real tensor": lambda n: cg.tensor([float(n)] * 2, requires_grad=True),
             "a complex tensor": lambda n: cg.tensor([complex(n)] * 2, requires_grad=True)}


@pytest.mark.cases("kind", EXPONENTS)
@pytest.mark.cases("exponent", [0, 1, 2, 3])
def test_powers_at_zero(exponent, kind):
    """At z = 0 the derivatives of z ** n are n z ** (n - 1) and n (n - 1) z ** (n - 2); by n it is 0, for any convention of 0 ** 0."""
    z, n = cg.tensor([0j, 1 + 1j], dtype=cg.complex128).requires_grad_(), EXPONENTS[kind](exponent)
    y = z**n
    first, = cg.autograd.grad(y, z, cg.ones_like(y), create_graph=True)
    second, = cg.autograd.grad(first, z, cg.ones_like(first)) if first.requires_grad else (0 * z,)
    expected = np.array([exponent * z.item() ** max(exponent - 1, 0) for z in z.detach()])
    curve = np.array([exponent * (exponent - 1) * z.item() ** max(exponent - 2, 0) for z in z.detach()])
    assert np.allclose(first.detach().numpy(), expected.conj()) and np.allclose(second.numpy(), curve.conj())
    if isinstance(n, cg.Tensor):
        slope, = cg.autograd.grad(z**n, n, cg.ones_like(y))
        assert slope[0] == 0 and slope.isfinite().all()


# ----- Values of operators with formulas of their own for complex numbers -----
STREAM = np.random.default_rng(1)
A, B = (STREAM.standard_normal((3, 4)) + 1j * STREAM.uniform(-1, 1, (3, 4)) for _ in "ab")


def test_logarithms_of_sums():
    assert np.allclose(cg.tensor(A).logaddexp(cg.tensor(B)).numpy(), np.log(np.exp(A) + np.exp(B)))
    assert np.allclose(cg.tensor(A + 2000).logsumexp(1).numpy(), np.log(np.exp(A).sum(1)) + 2000)
    assert np.allclose(cg.tensor(A - 2000).logcumsumexp(0).numpy(), np.log(np.exp(A).cumsum(0)) - 2000)
    assert cg.tensor(A)[:0].logcumsumexp(0).shape == (0, 4) and cg.tensor(1j).logcumsumexp(0).item() == 1j


def test_numbers_with_a_part_that_is_not_finite():
    z = cg.tensor([complex(np.nan, 1), complex(2, -np.inf), complex(np.inf, np.nan)])
    replaced = [7 + 1j, 2 - 5j, 6 + 7j]
    assert z.nan_to_num(7, 6, -5).tolist() == replaced and z.nan_to_num_(7, 6, -5).tolist() == z.tolist() == replaced
    largest = float(np.finfo(np.float32).max)
    assert cg.tensor([complex(np.inf, -np.inf)]).nan_to_num().tolist() == [complex(largest, -largest)]
