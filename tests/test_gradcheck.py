"""gradcheck and gradgradcheck: what they accept, what they find, how they say it."""

import subprocess
import sys

import pytest

import cygrad as cg
from cygrad.autograd import Function, gradcheck, gradgradcheck
from cygrad.autograd.gradcheck import GradcheckError


def double(*shape):
    return (cg.arange(1.0, 1.0 + cg.zeros(shape).numel(), dtype=cg.float64) / 7).reshape(shape).requires_grad_()


class WrongFactor(Function):
    """Doubles, with the gradient of tripling."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


class WrongSecondInput(Function):
    """A product whose second gradient is that of a sum."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        (b,) = ctx.saved_tensors
        return g * b, g


class Restless(Function):
    """Doubles, with a gradient that grows a little each time."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Restless.calls += 1
        return g * (2 + 1e-9 * Restless.calls)


class IgnoresGradient(Function):
    """The identity with a gradient of ones, whatever comes in."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return cg.ones_like(g)


class FailsOnNone(Function):
    """The identity that cannot do without a gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        if g is None:
            raise RuntimeError("no gradient")
        return g.clone()


class CubeWithConstantGradient(Function):
    """x**3 with the right gradient, made of constants: the second derivative is lost."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x.detach() ** 2


SOUND = {
    "exp": (lambda x: x.exp(), lambda: [double(3)]),
    "identity": (lambda x: x, lambda: [double(3)]),
    "view of the input": (lambda x: x.reshape(-1), lambda: [double(2, 3)]),
    "matmul": (lambda a, b: a @ b, lambda: [double(2, 3), double(3, 2)]),
    "two outputs": (lambda a, b: (a * b, (a + b).sum()), lambda: [double(3), double(3)]),
    "one input without gradient": (lambda a, b: a * b, lambda: [double(3), double(3).detach()]),
    "a number among the inputs": (lambda x, n: x**n, lambda: [double(2), 3]),
    "one output without gradient": (lambda a: (a * 2, a.detach() * 3, a * a), lambda: [double(2)]),
    "unused input": (lambda a, b: a * 2, lambda: [double(2), double(3)]),
    "0-d": (lambda x: x * x, lambda: [double()]),
    "empty": (lambda x: x * x, lambda: [double(0)]),
    "empty output": (lambda x: x[:0] * 2, lambda: [double(3)]),
    "transposed": (lambda x: x * x, lambda: [double(3, 2).detach().T.requires_grad_()]),
    "non-leaf": (lambda x: x * x, lambda: [double(3) * 2]),
}


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("name", list(SOUND))
def test_right_gradients_pass(check, name):
    function, make = SOUND[name]
    assert check(function, make(), check_grad_dtypes=True) is True


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_a_lone_tensor_is_an_input(check):
    assert check(cg.exp, double(3)) is True


@pytest.mark.parametrize("function", [lambda x: cg.ones(3), lambda x: x.argmax()], ids=["constant", "integer"])
def test_a_function_without_gradient_must_be_constant(function):
    assert gradcheck(function, double(3)) is True


WRONG = {
    "factor": (WrongFactor.apply, 1, {}, "Jacobian mismatch for output 0 with respect to input 0,"),
    "second input": (WrongSecondInput.apply, 2, {}, "Jacobian mismatch for output 0 with respect to input 1,"),
    "second output": (
        lambda x: (x * 2, WrongFactor.apply(x)),
        1,
        {},
        "Jacobian mismatch for output 1 with respect to input 0,",
    ),
    "detached": (lambda x: x.detach() * 2, 1, {}, "Numerical gradient for function expected to be zero"),
    "partly detached": (lambda x: x * x.detach(), 1, {}, "Jacobian mismatch for output 0 with respect to input 0,"),
    "not deterministic": (Restless.apply, 1, {}, "Backward is not reentrant, i.e., running backward with"),
    "gradient ignored": (lambda x: IgnoresGradient.apply(x.sum()), 1, {}, "backward not multiplied by grad_output"),
    "None refused": (FailsOnNone.apply, 1, {}, "Expected backward function to handle undefined output grads"),
    "kink": (
        lambda x: (x - double(2).detach()).relu(),
        1,
        {},
        "Jacobian mismatch for output 0 with respect to input 0,",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_gradients_are_found(name):
    function, inputs, options, message = WRONG[name]
    with pytest.raises(GradcheckError, match=message):
        gradcheck(function, [double(2) for _ in range(inputs)], **options)
    assert gradcheck(function, [double(2) for _ in range(inputs)], raise_exception=False, **options) is False


def test_a_wrong_second_derivative_is_found_by_gradgradcheck_only():
    assert gradcheck(CubeWithConstantGradient.apply, double(2)) is True
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0,"):
        gradgradcheck(CubeWithConstantGradient.apply, double(2))


def test_the_error_shows_both_jacobians():
    with pytest.raises(RuntimeError) as caught:
        gradcheck(WrongFactor.apply, cg.tensor([1.0, 2.0], dtype=cg.float64, requires_grad=True))
    assert str(caught.value) == (
        "Jacobian mismatch for output 0 with respect to input 0,\n"
        "numerical:tensor([[2.0000, 0.0000],\n        [0.0000, 2.0000]], dtype=cygrad.float64)\n"
        "analytical:tensor([[3., 0.],\n        [0., 3.]], dtype=cygrad.float64)\n"
    )


TOLERANCES = [
    (WrongFactor.apply, {"atol": 1.1}),
    (WrongFactor.apply, {"rtol": 0.6}),
    (Restless.apply, {"nondet_tol": 1e-3}),
    (FailsOnNone.apply, {"check_undefined_grad": False}),
]


@pytest.mark.parametrize(("function", "options"), TOLERANCES)
def test_options_that_let_a_wrong_gradient_pass(function, options):
    assert gradcheck(function, double(2), **options) is True


def test_eps_is_the_step():
    assert gradcheck(lambda x: x**3, double(3), eps=1e-3, atol=1e-5) is True
    assert gradcheck(lambda x: x**3, double(3), eps=0.1, atol=1e-5, rtol=1e-5, raise_exception=False) is False


def test_inputs_come_back_unchanged():
    x = double(3)
    values, version = x.tolist(), x._version
    gradcheck(cg.exp, x)
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda x: x * (1 / (x[0].item() == values[0])), x)
    assert x.tolist() == values
    assert x._version == version
    assert x.grad is None


@pytest.mark.parametrize("strided", [False, True])
def test_grad_outputs_are_drawn_or_given(strided):
    assert gradgradcheck(lambda x: x.T.exp(), double(2, 3), gen_non_contig_grad_outputs=strided) is True
    assert gradgradcheck(lambda x: x.exp(), double(3), double(3)) is True
    assert gradgradcheck(lambda x: x.exp(), double(3), [double(3).detach()]) is True


def test_float32_warns():
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision floating point"):
        gradcheck(lambda x: x * 2, cg.ones(2, requires_grad=True), eps=0.5)


BAD = [
    (
        lambda: gradcheck(cg.exp, cg.ones(2)),
        ValueError,
        "gradcheck expects at least one input tensor to require gradient",
    ),
    (lambda: gradcheck(cg.exp, double(1).expand(3)), RuntimeError, "The 0th input has a dimension with stride 0."),
    (lambda: gradcheck(cg.exp, double(1), check_backward_ad=False), AssertionError, "Expected at least one of"),
    (lambda: gradgradcheck(cg.exp, double(1), check_rev_over_rev=False), AssertionError, "Expected at least one of"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_exceptions_of_the_function_pass_through(check):
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        check(fail, double(2), raise_exception=False)


UNAVAILABLE = [
    (gradcheck, {"check_forward_ad": True}),
    (gradcheck, {"check_batched_grad": True}),
    (gradcheck, {"check_forward_ad": True, "check_batched_forward_grad": True}),
    (gradcheck, {"fast_mode": True}),
    (gradcheck, {"check_sparse_nnz": True}),
    (gradcheck, {"masked": True}),
    (gradgradcheck, {"check_fwd_over_rev": True}),
    (gradgradcheck, {"fast_mode": True}),
]


@pytest.mark.parametrize(("check", "options"), UNAVAILABLE)
def test_what_is_not_there_yet_says_so(check, options):
    with pytest.raises(NotImplementedError, match="is not available yet"):
        check(cg.exp, double(2), **options)


IMPORTS = [
    "from cygrad.autograd import gradcheck",
    "from cygrad.autograd.gradcheck import GradcheckError",
    "from cygrad.autograd.gradcheck import gradcheck",
    "from cygrad.autograd import gradgradcheck",
    "import cygrad.autograd.gradcheck",
]


@pytest.mark.parametrize("statement", IMPORTS)
def test_the_function_wins_over_the_module_of_its_name(statement):
    program = f"{statement}\nimport cygrad as cg\nx = cg.ones(1, dtype=cg.float64, requires_grad=True)\n"
    program += "from cygrad.autograd import gradcheck\nprint(gradcheck(cg.exp, x), cg.autograd.gradcheck(cg.exp, x))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == "True True\n", run.stderr
