"""fast_mode: products with random vectors instead of Jacobians; the message shows Jacobians where the products differ."""

import pytest

import cygrad as cg
from cygrad.autograd import Function, gradcheck, gradgradcheck
from cygrad.autograd.gradcheck import GradcheckError


def double(*shape):
    return (cg.arange(1.0, 1.0 + cg.zeros(shape).numel(), dtype=cg.float64) / 7).reshape(shape).requires_grad_()


class Scaled(Function):
    """The identity, with a gradient scaled by factors; counts calls of forward and backward."""

    calls, backwards = 0, 0

    @staticmethod
    def forward(ctx, x, factors):
        Scaled.calls += 1
        ctx.save_for_backward(factors)
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        Scaled.backwards += 1
        (factors,) = ctx.saved_tensors
        return g * factors, None


def with_factors(shape, **wrong):
    """Return the function with gradients of one, except at some positions of the flat input."""
    factors = cg.ones(shape, dtype=cg.float64)
    for position, factor in wrong.items():
        factors.view(-1)[int(position.strip("_"))] = factor
    return lambda x: Scaled.apply(x, factors)


# ----- Cost -----
def calls_of(check, x, **options):
    function = with_factors(x.shape)
    Scaled.calls = Scaled.backwards = 0
    assert check(function, x, check_undefined_grad=False, **options) is True
    return Scaled.calls, Scaled.backwards


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_the_calls_do_not_depend_on_the_size(check):
    assert calls_of(check, double(2), fast_mode=True) == calls_of(check, double(40, 50), fast_mode=True)


def test_it_calls_the_function_twice_for_each_input_and_backward_twice_for_each_output():
    assert calls_of(gradcheck, double(5), fast_mode=True) == (1 + 2, 2 + 1)
    assert calls_of(gradcheck, double(5), fast_mode=False) == (1 + 2 * 5, 2 * 5 + 1)


# ----- Errors -----
@pytest.mark.cases("position", range(12))
def test_each_wrong_element_is_found(position):
    function = with_factors((3, 4), **{f"_{position}": 1.5})
    assert gradcheck(function, double(3, 4), fast_mode=True, raise_exception=False) is False


def test_errors_that_cancel_are_found():
    """The sum of the gradient is right; random weights show the errors."""
    assert gradcheck(with_factors((4,), _0=2.0, _1=0.0), double(4), fast_mode=True, raise_exception=False) is False


def test_gradients_of_swapped_inputs_are_found():
    class Swapped(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * a, g * b

    with pytest.raises(GradcheckError, match="mismatch for output 0 with respect to input 0,"):
        gradcheck(Swapped.apply, (double(3), double(3) + 1), fast_mode=True)


# ----- Tolerances -----
@pytest.mark.cases("shape", [(), (1,), (30,), (6, 5)])
@pytest.mark.cases("fast_mode", [False, True])
def test_atol_means_the_same_in_both_modes(fast_mode, shape):
    """The function is constant and its gradient is wrong by `error` in each element of the Jacobian."""
    class Off(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return cg.zeros(x.shape, dtype=cg.float64)

        @staticmethod
        def backward(ctx, g):
            return cg.full(ctx.shape, 1e-3, dtype=cg.float64) * g.sum()

    assert gradcheck(Off.apply, double(*shape), fast_mode=fast_mode, rtol=0, atol=1.01e-3) is True
    assert gradcheck(Off.apply, double(*shape), fast_mode=fast_mode, rtol=0, atol=0.99e-3, raise_exception=False) is False


def test_nondet_tol_is_the_tolerance_of_a_constant_too():
    assert gradcheck(lambda x: x.detach() * 1e-4, double(3), fast_mode=True, nondet_tol=1e-3) is True
    assert gradcheck(lambda x: x.detach() * 1e-4, double(3), fast_mode=True, raise_exception=False) is False


# ----- Messages -----
def test_the_message_shows_products_and_jacobians():
    x = cg.tensor([1.0], dtype=cg.float64, requires_grad=True)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(with_factors((1,), _0=3.0), x, fast_mode=True, eps=0.5)
    assert str(caught.value) == (
        "Jacobian mismatch for output 0 with respect to input 0,\n"
        "numerical:1.0\n"
        "analytical:3.0\n"
        "\n"
        "The above quantities relating the numerical and analytical jacobians are computed \n"
        "in fast mode, along random directions. Below, we recompute numerical and analytical jacobians in slow mode:\n"
        "\n"
        "Numerical:\n tensor([[1.]], dtype=cygrad.float64)\n"
        "Analytical:\ntensor([[3.]], dtype=cygrad.float64)\n"
        "\n"
        "The max per-element difference (slow mode) is: 2.0.\n"
    )


def test_the_jacobians_belong_to_the_output_and_input_that_differ():
    wrong = with_factors((2,), _1=5.0)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda n, a, b: (a.argmax(), a * 2, wrong(b)), (1, double(2), double(2)), fast_mode=True, eps=2.0**-20)
    message = str(caught.value)
    assert "mismatch for output 1 with respect to input 1," in message
    assert caught.value.__notes__ == ["Only tensors that require gradients have a number: "
                                      "input 0, 1 = argument 1, 2; output 0, 1 = result 1, 2."]
    assert "Numerical:\n tensor([[1., 0.],\n        [0., 1.]], dtype=cygrad.float64)" in message
    assert "Analytical:\ntensor([[1., 0.],\n        [0., 5.]], dtype=cygrad.float64)" in message


def test_the_message_says_that_the_jacobians_agree():
    """Small differences in each element add up where the right derivatives cancel."""

    class Offset(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1000.0

        @staticmethod
        def backward(ctx, g):
            return g * 1000.9

    def cancelling(x):
        y = Offset.apply(x)
        return y - cg.cat([y[1:].detach(), y[:1].detach()]) * 0 - x.flip(0) * 990

    x = double(2)
    assert gradcheck(cancelling, x) is True
    with pytest.raises(GradcheckError, match="The above quantities") as caught:
        gradcheck(cancelling, x, fast_mode=True, rtol=1e-3)
    assert "Fast gradcheck failed but element-wise differences are small." in str(caught.value)
