"""gradcheck of complex numbers as pairs of real ones: each part of outputs, and in forward mode of inputs, by itself."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import Function, forward_ad, gradcheck, gradgradcheck
from cygrad.autograd.gradcheck import GradcheckError


def leaf(*shape, real=False, dtype=None):
    rng = np.random.default_rng(len(shape))
    array = rng.standard_normal(shape) + (0 if real else 1j * rng.standard_normal(shape))
    return cg.from_numpy(np.asarray(array, dtype)).requires_grad_()


def hooked(function, hook):
    """Return a function whose gradient goes through a hook."""

    def call(*args):
        y = function(*args).clone()
        y.register_hook(hook)
        return y

    return call


class NotConjugated(Function):
    """A product with the gradient g * b, which lacks the conjugate of b."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a

    @staticmethod
    def jvp(ctx, a_tangent, b_tangent):
        a, b = ctx.saved_tensors
        return a_tangent * b.conj() + b_tangent * a.conj()


FACTOR = np.array([0.5 - 2j, 1 + 1j])
RIGHT = {
    "C -> C": (lambda x: x.exp(), [leaf(2)]),
    "C -> R": (lambda x: x.abs(), [leaf(2)]),
    "R -> C": (lambda x: x * cg.from_numpy(FACTOR), [leaf(2, real=True)]),
    "not holomorphic": (lambda x: x.conj() * x * x, [leaf(2)]),
    "real and complex inputs": (lambda x, y: x * y, [leaf(2), leaf(2, real=True)]),
    "real and complex outputs": (lambda x, y: (x * y, y + 1, x.abs()), [leaf(2), leaf(2, real=True)]),
    "0-d": (lambda x: x * x, [leaf()]),
    "no elements": (lambda x: x * x, [leaf(0)]),
    "sum": (lambda x: x.sum(), [leaf(2, 2)]),
}
MODES = {
    "slow": {},
    "fast": {"fast_mode": True},
    "forward": {"check_forward_ad": True, "check_backward_ad": False},
    "fast forward": {"check_forward_ad": True, "fast_mode": True},
    "batched": {"check_batched_grad": True, "check_forward_ad": True, "check_batched_forward_grad": True},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name, mode):
    function, args = RIGHT[name]
    assert gradcheck(function, args, **MODES[mode])


@pytest.mark.parametrize("mode", [{}, {"fast_mode": True}, {"check_fwd_over_rev": True}, {"check_batched_grad": True},
                                  {"gen_non_contig_grad_outputs": True}], ids=str)
@pytest.mark.parametrize("name", ["C -> C", "not holomorphic", "real and complex inputs", "R -> C"])
def test_right_second_derivatives_pass(name, mode):
    function, args = RIGHT[name]
    assert gradgradcheck(function, args, **mode)


IMAGINARY = "^While considering the imaginary part of complex outputs only, Jacobian mismatch for output 0 with respect to input 0,"
REAL = "^While considering the real part of complex outputs only, Jacobian mismatch for output 0 with respect to input 0,"
NO_PART = "^Jacobian mismatch for output 0 with respect to input 0,"


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(("function", "args", "message"), [
    pytest.param(hooked(lambda x: x, lambda g: g + 1e-2), [leaf(2)], IMAGINARY, id="C -> C"),
    pytest.param(hooked(lambda x: x, lambda g: g.conj()), [leaf(2)], IMAGINARY, id="conjugated"),
    pytest.param(hooked(lambda x: x, lambda g: g * (1 + g.abs() - (g - g.conj()).abs() / 2)), [leaf(2)], REAL, id="real part"),
    pytest.param(hooked(RIGHT["R -> C"][0], lambda g: g + 1e-2), [leaf(2, real=True)], IMAGINARY, id="R -> C"),
    pytest.param(hooked(lambda x: x.abs(), lambda g: g + 1e-2), [leaf(2)], NO_PART, id="C -> R"),
    pytest.param(NotConjugated.apply, [leaf(2), leaf(2)], IMAGINARY, id="not conjugated"),
])
def test_wrong_gradients_are_found(function, args, message, fast_mode):
    with pytest.raises(GradcheckError, match=message):
        gradcheck(function, args, fast_mode=fast_mode)
    assert not gradcheck(function, args, fast_mode=fast_mode, raise_exception=False)


def slanted(x, y):
    """Return x + y and y, with a wrong tangent of y."""
    if forward_ad._current_level >= 0:
        value, tangent = forward_ad.unpack_dual(y)
        y = forward_ad.make_dual(value, tangent * 1.1)
    return x + y, y


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("real", [False, True])
def test_wrong_tangents_are_found(real, fast_mode):
    part, mismatch = "While considering the imaginary part of complex inputs only, ", "Jacobian computed with forward mode mismatch for"
    with pytest.raises(GradcheckError, match=f"^{'' if real else part}{mismatch} output 0 with respect to input 1"):
        gradcheck(slanted, (leaf(2), leaf(2, real=real)), check_forward_ad=True, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match=f"^{part}{mismatch} output 0 with respect to input 0"):
        gradcheck(NotConjugated.apply, (leaf(2), leaf(2)), check_forward_ad=True, check_backward_ad=False, fast_mode=fast_mode)


def test_the_jacobian_of_a_complex_input_is_complex():
    """Its rows are dRe + i dIm; the message of fast mode shows the whole Jacobian, too."""
    with pytest.raises(GradcheckError, match=r"(?s)numerical:.*j.*analytical:.*j.*computed \nin fast mode.*The max per-element difference"):
        gradcheck(hooked(lambda x: x.abs(), lambda g: 2 * g), leaf(2), fast_mode=True)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_function_without_gradient_must_be_constant(fast_mode):
    assert gradcheck(lambda x: (x.detach() * 0).abs(), leaf(2), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="^Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach(), leaf(2), fast_mode=fast_mode)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("options", [{}, {"fast_mode": True}, {"check_forward_ad": True}], ids=str)
def test_the_warning_about_precision(name, options):
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    inputs = leaf(2), leaf(2, real=True).detach().to(getattr(cg, name)).requires_grad_()
    message = "^Input #1 requires gradient and is not a double precision floating point or complex. This check will likely fail"
    with pytest.warns(UserWarning, match=message):
        assert gradcheck(lambda x, y: x * y, inputs, eps=0.125, rtol=0.1, atol=0.1, **options)
