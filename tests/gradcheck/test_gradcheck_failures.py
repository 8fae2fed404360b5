"""Each way in which gradcheck must fail; the message names the input and the output."""

import re

import pytest

import cygrad as cg
from cygrad.autograd import Function, gradcheck, gradgradcheck
from cygrad.autograd.gradcheck import GradcheckError


def double(*shape):
    return (cg.arange(1.0, 1.0 + cg.zeros(shape).numel(), dtype=cg.float64) / 7).reshape(shape).requires_grad_()


def hooked(hook):
    """Return the identity whose gradient goes through a hook."""

    def function(x):
        y = x.clone()
        y.register_hook(hook)
        return y

    return function


class WrongFactor(Function):
    """Doubles its input, with the gradient of tripling."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


class WrongSecondInput(Function):
    """A product; its gradient by the second factor is the gradient of a sum."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        (b,) = ctx.saved_tensors
        return g * b, g


class WrongElement(Function):
    """Doubles its input, with the gradient of one element three times too large."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        factors = cg.full(g.shape, 2.0, dtype=g.dtype)
        factors[0] = 6.0
        return g * factors


class Restless(Function):
    """Doubles its input, with a gradient that grows a little each time."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Restless.calls += 1
        return g * (2 + 1e-9 * Restless.calls)


class HalfPrecision(Function):
    """Doubles its input, with a gradient of lower precision."""

    @staticmethod
    def forward(ctx, x, n):
        return x * n

    @staticmethod
    def backward(ctx, g):
        return g.float() * 2, None


class IgnoresGradient(Function):
    """The identity with a gradient of ones, for any weight."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return cg.ones_like(g)


class Needy(Function):
    """Three copies of the input; the backward accepts only some numbers of missing gradients."""

    @staticmethod
    def forward(ctx, x, accepted):
        ctx.set_materialize_grads(False)
        ctx.accepted = accepted
        return x.clone(), x.clone(), x.clone()

    @staticmethod
    def backward(ctx, *grads):
        cotangents = [g for g in grads if g is not None]
        if len(cotangents) not in ctx.accepted:
            raise TypeError(f"{len(cotangents)} of 3")
        return sum(cotangents) if cotangents else None, None


class MakesUpGradient(Function):
    """The identity, whose backward replaces a missing gradient by ones."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.shape = x.shape
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return cg.ones(ctx.shape, dtype=cg.float64) if g is None else g * 1


class CubeWithConstantGradient(Function):
    """x**3 with the right gradient, computed from constants: the second derivative is lost."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x.detach() ** 2


def raising(message):
    def hook(g):
        if g is None:
            raise RuntimeError(message)

    return hook


def mismatch(output, input):
    return f"Jacobian mismatch for output {output} with respect to input {input},\nnumerical:.*\nanalytical:"


UNDEFINED_WARNS = "ignore:Backwards compatibility. New undefined gradient support checking feature"

# function, number of inputs, options, message
WRONG = {
    "factor": (WrongFactor.apply, 1, {}, mismatch(0, 0)),
    "second input": (WrongSecondInput.apply, 2, {}, mismatch(0, 1)),
    "second output": (lambda x: (x * 2, WrongFactor.apply(x)), 1, {}, mismatch(1, 0)),
    "one element": (WrongElement.apply, 1, {}, mismatch(0, 0)),
    "partly detached": (lambda x: x * x.detach(), 1, {}, mismatch(0, 0)),
    "shifted": (hooked(lambda g: g + 1e-2), 1, {}, mismatch(0, 0)),
    "kink": (lambda x: (x - double(2).detach()).relu(), 1, {}, mismatch(0, 0)),
    "not a number": (lambda x: x * float("nan"), 1, {}, mismatch(0, 0)),
    "detached": (
        lambda a, b: (cg.ones(1), (a * b).detach()),
        2,
        {},
        "Numerical gradient for function expected to be zero: no result requires a gradient, but result 1 changes with input 0,\nnumerical",
    ),
    "not deterministic": (
        lambda a, b: (a * 2, Restless.apply(b)),
        2,
        {},
        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values. The "
        r"tolerance for nondeterminism was 0.0, the gradients of output 1 with respect to input 1 differ by [0-9.]+e-[0-9]+: give",
    ),
    "dtype": (
        lambda a, b: (a * 2, (HalfPrecision.apply(b, 2) + a) * 3),
        2,
        {"check_grad_dtypes": True},
        "Gradient has dtype mismatch: HalfPrecisionBackward, used by output 1, returned cygrad.float32 as gradient 1 where its input has "
        "cygrad.float64",
    ),
    "gradient ignored": (
        lambda a, b: (a * 2, IgnoresGradient.apply(b.sum())),
        2,
        {},
        "backward not multiplied by grad_output: input 1 gets a gradient where all grad_outputs are zero",
    ),
    "gradient of zero": (hooked(lambda g: g + 1e-2), 1, {"atol": 1e-1}, "backward not multiplied by grad_output: input 0 gets"),
    "hook without gradient": (
        hooked(raising("x is undefined")),
        1,
        {},
        "Expected backward function to handle undefined output grads. It got none for output 0 and raised: x is undefined.",
    ),
    "all undefined": (
        lambda x: Needy.apply(x, (1, 2, 3)),
        1,
        {},
        "Expected backward function to handle undefined output grads. It got none for outputs 0, 1, 2 and raised: 0 of 3.",
    ),
    "one undefined": (
        lambda x: Needy.apply(x, (0, 1, 3)),
        1,
        {},
        "Expected backward function to handle undefined output grads. It got none for output 0 and raised: 2 of 3.",
    ),
    "undefined made up": (
        lambda a, b: (a * 2, MakesUpGradient.apply(b)),
        2,
        {},
        "Expected all input grads to be undefined or zero when all output grads are undefined or zero. Where outputs 0, 1 had none, input",
    ),
}


@pytest.mark.filterwarnings(UNDEFINED_WARNS)
@pytest.mark.cases("fast_mode", [False, True])
@pytest.mark.cases("name", list(WRONG))
def test_wrong_gradients_are_found(name, fast_mode):
    function, inputs, options, message = WRONG[name]
    arguments = [double(2) for _ in range(inputs)]
    with pytest.raises(GradcheckError, match=re.compile(message, re.DOTALL)):
        gradcheck(function, arguments, fast_mode=fast_mode, **options)
    assert gradcheck(function, arguments, fast_mode=fast_mode, raise_exception=False, **options) is False


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_wrong_second_derivative_is_found_by_gradgradcheck_only(fast_mode):
    assert gradcheck(CubeWithConstantGradient.apply, double(2), fast_mode=fast_mode) is True
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0,"):
        gradgradcheck(CubeWithConstantGradient.apply, double(2), fast_mode=fast_mode)
    assert gradgradcheck(CubeWithConstantGradient.apply, double(2), fast_mode=fast_mode, raise_exception=False) is False


# ----- gradgradcheck -----
class Jittery(Function):
    """The identity, whose gradients of every order grow by a relative step in every other call."""

    calls = 0

    @staticmethod
    def forward(ctx, x, step):
        ctx.step = step
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        Jittery.calls += 1
        return Jittery.apply(g, ctx.step) * (1 + ctx.step * (Jittery.calls % 2)), None


class SecondOnly(Function):
    """x**3, whose gradient is computed by another Function, which may have a wrong gradient itself."""

    @staticmethod
    def forward(ctx, x, gradient):
        ctx.save_for_backward(x)
        ctx.gradient = gradient
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.gradient.apply(g, x), None


class WrongThenDefined(Function):
    """g * 3 * x**2, with a wrong gradient for g."""

    @staticmethod
    def forward(ctx, g, x):
        ctx.save_for_backward(g, x)
        return g * 3 * x**2

    @staticmethod
    def backward(ctx, h):
        g, x = ctx.saved_tensors
        return h * 2 * x**2, h * g * 6 * x


class LowPrecision(Function):
    """g * 3 * x**2, with gradients of lower precision."""

    @staticmethod
    def forward(ctx, g, x):
        ctx.save_for_backward(g, x)
        return g * 3 * x**2

    @staticmethod
    def backward(ctx, h):
        g, x = ctx.saved_tensors
        return (h * 3 * x**2).float(), h * g * 6 * x


class NeedsWeight(Function):
    """g * 3 * x**2, whose backward fails without a gradient."""

    @staticmethod
    def forward(ctx, g, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(g, x)
        return g * 3 * x**2

    @staticmethod
    def backward(ctx, h):
        g, x = ctx.saved_tensors
        return h * 3 * x**2, h * g * 6 * x


SECOND = {
    "wrong": (lambda x: SecondOnly.apply(x, WrongThenDefined), {}, {"atol": 1}, "Jacobian mismatch for output 0 with respect to input 1,"),
    "not deterministic": (
        lambda x: Jittery.apply(x, 1e-12),
        {},
        {"nondet_tol": 1e-5},
        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values.",
    ),
    "dtype": (
        lambda x: SecondOnly.apply(x, LowPrecision),
        {"check_grad_dtypes": True},
        {"check_grad_dtypes": False},
        "Gradient has dtype mismatch: LowPrecisionBackward, used by output 0, returned cygrad.float32 as gradient 1",
    ),
    "undefined": (
        lambda x: SecondOnly.apply(x, NeedsWeight),
        {},
        {"check_undefined_grad": False},
        "Expected backward function to handle undefined output grads. It got none for output 0 and raised: unsupported operand",
    ),
}


@pytest.mark.filterwarnings(UNDEFINED_WARNS)
@pytest.mark.cases("fast_mode", [False, True])
@pytest.mark.parametrize("name", list(SECOND))
def test_wrong_second_derivatives_are_found(name, fast_mode):
    function, options, lenient, message = SECOND[name]
    with pytest.raises(GradcheckError, match=message):
        gradgradcheck(function, double(2), fast_mode=fast_mode, **options)
    assert gradgradcheck(function, double(2), fast_mode=fast_mode, raise_exception=False, **options) is False
    assert gradgradcheck(function, double(2), fast_mode=fast_mode, **lenient) is True


# ----- Messages -----
def test_the_error_shows_both_jacobians():
    with pytest.raises(RuntimeError) as caught:
        gradcheck(WrongFactor.apply, cg.tensor([1.0, 2.0], dtype=cg.float64, requires_grad=True))
    assert str(caught.value) == (
        "Jacobian mismatch for output 0 with respect to input 0,\n"
        "numerical:tensor([[2.0000, 0.0000],\n        [0.0000, 2.0000]], dtype=cygrad.float64)\n"
        "analytical:tensor([[3., 0.],\n        [0., 3.]], dtype=cygrad.float64)\n"
    )


def test_rows_are_elements_of_the_input():
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x: hooked(lambda g: g * 2)(x)[:1] * 3, cg.tensor([1.0, 2.0], dtype=cg.float64, requires_grad=True))
    assert str(caught.value).splitlines()[1:] == [
        "numerical:tensor([[3.0000],",
        "        [0.0000]], dtype=cygrad.float64)",
        "analytical:tensor([[6.],",
        "        [0.]], dtype=cygrad.float64)",
    ]


def test_positions_are_shown_where_they_differ_from_the_numbers():
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda n, x: (x.argmax(), WrongFactor.apply(x)), (3, double(2)))
    assert "for output 0 with respect to input 0," in str(caught.value)
    assert caught.value.__notes__ == ["Only tensors that require gradients have a number: input 0 = argument 1; output 0 = result 1."]
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda a, n, b: (a * 2, IgnoresGradient.apply(b.sum())), (double(2), 3, double(2)))
    assert "input 1 gets a gradient" in str(caught.value)
    assert caught.value.__notes__ == ["Only tensors that require gradients have a number: input 0, 1 = argument 0, 2."]
    with pytest.raises(GradcheckError) as caught:
        gradcheck(WrongFactor.apply, double(2))
    assert not hasattr(caught.value, "__notes__")


def test_inputs_in_the_same_memory_are_named():
    x = double(3)
    for other in (x.detach().requires_grad_(), x.detach()[1:2]):
        with pytest.raises(GradcheckError, match="Input 0 shares memory with argument 1: they move together."):
            gradcheck(lambda a, b: a * b, (x, other))
    columns = double(3, 2).detach()
    with pytest.raises(GradcheckError, match="mismatch for output 0 with respect to input 0,") as caught:
        gradcheck(lambda a, b: WrongFactor.apply(a) * b, [columns[:, n].requires_grad_() for n in range(2)])
    assert "memory" not in str(caught.value), "they lie between each other"


# ----- Results that change -----
def growing(x):
    return cg.cat([x, x]) if (x > 1 / 7).all() else x


def narrowing(x):
    return x.float() if (x > 1 / 7).all() else x


def multiplying(x):
    return (x, x) if (x > 1 / 7).all() else x


CHANGES = {
    "shape": (growing, r"Expected `func` to return outputs with the same shape when inputs are perturbed {}by 1e-06, but got: shapes "
                       r"cygrad.Size\(\[1\]\) and cygrad.Size\(\[2\]\)."),
    "dtype": (narrowing, "Expected `func` to return outputs with the same dtype when inputs are perturbed {}by 1e-06, but got: dtypes "
                         "cygrad.float64 and cygrad.float32."),
    "number": (multiplying, "Expected `func` to return the same number of outputs each time, but got 1 and 2."),
}


@pytest.mark.parametrize(("fast_mode", "place"), [(False, r"on index \(0,\) "), (True, "")])
@pytest.mark.parametrize("name", list(CHANGES))
def test_results_that_change_their_form(name, fast_mode, place):
    function, message = CHANGES[name]
    x = double(1)
    with pytest.raises(AssertionError, match=message.format(place)):
        gradcheck(function, x, fast_mode=fast_mode, raise_exception=False)
    assert x.tolist() == [1 / 7]


# ----- Options that let a wrong gradient pass -----
TOLERANCES = [
    (WrongFactor.apply, {"atol": 1.1}),
    (WrongFactor.apply, {"rtol": 0.6}),
    (Restless.apply, {"nondet_tol": 1e-3}),
    (lambda x: Needy.apply(x, (1, 3)), {"check_undefined_grad": False}),
    (lambda x: HalfPrecision.apply(x, 2), {"check_grad_dtypes": False}),
]


@pytest.mark.cases("fast_mode", [False, True])
@pytest.mark.parametrize(("function", "options"), TOLERANCES)
def test_options_that_let_a_wrong_gradient_pass(function, options, fast_mode):
    assert gradcheck(function, double(2), fast_mode=fast_mode, **options) is True


def test_a_dtype_that_was_converted_elsewhere_does_not_count():
    x = double(2)
    before = HalfPrecision.apply(x, 2)
    before.sum().backward(retain_graph=True)
    assert gradcheck(cg.exp, before, check_grad_dtypes=True) is True
    assert gradcheck(lambda y: HalfPrecision.apply(y.float(), 2).double(), double(2), check_grad_dtypes=True, atol=1, eps=0.5) is True


def test_the_warning_of_undefined_gradients():
    with pytest.warns(UserWarning, match="Backwards compatibility: New undefined gradient support checking feature") as caught:
        assert gradcheck(hooked(raising("no")), double(2), raise_exception=False) is False
    assert caught[0].filename == __file__
