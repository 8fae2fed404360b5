"""gradcheck of forward mode, and of batches of gradients and tangents."""

import re
from functools import partial

import pytest

import cygrad as cg
from cygrad.autograd import Function, forward_ad, gradcheck, gradgradcheck
from cygrad.autograd.gradcheck import GradcheckError

MODES = [False, True]


def double(*shape):
    return (cg.arange(1.0, 1.0 + cg.zeros(shape).numel(), dtype=cg.float64) / 7).reshape(shape).requires_grad_()


def in_forward_mode(*tensors):
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)


class Doubled(Function):
    """Doubles its input; `tangent` and `gradient` compute the results of jvp and backward."""

    jvps = 0

    @staticmethod
    def forward(x, tangent, gradient):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.tangent, ctx.gradient = inputs

    @staticmethod
    def backward(ctx, g):
        return ctx.gradient(g), None, None

    @staticmethod
    def jvp(ctx, t, *others):
        Doubled.jvps += 1
        return ctx.tangent(t)


def right(t):
    return t * 2


def wrong(t):
    return t * 3


# ----- Forward mode -----
SOUND = {
    "exp": (lambda x: x.exp(), lambda: [double(3)]),
    "identity": (lambda x: x, lambda: [double(3)]),
    "view": (lambda x: x.T.reshape(-1), lambda: [double(2, 3)]),
    "matmul": (lambda a, b: a @ b, lambda: [double(2, 3), double(3, 2)]),
    "two outputs": (lambda a, b: (a * b, (a + b).sum()), lambda: [double(3), double(3)]),
    "one input without gradient": (lambda a, b: a * b, lambda: [double(3), double(3).detach()]),
    "a number among the inputs": (lambda n, x: x**n, lambda: [3, double(2)]),
    "output that does not depend on all": (lambda a, b: (a.exp(), b.exp()), lambda: [double(2), double(3)]),
    "other outputs between": (lambda a: (a.argmax(), a.detach()[:1], a * a), lambda: [double(2)]),
    "unused input": (lambda a, b: a * 2, lambda: [double(2), double(3)]),
    "0-d": (lambda x: x * x, lambda: [double()]),
    "empty": (lambda x: x * x, lambda: [double(0)]),
    "empty output": (lambda x: x[:0] * 2, lambda: [double(3)]),
    "steps over memory": (lambda x: x * x, lambda: [double(6).detach()[::2].requires_grad_()]),
    "non-leaf": (lambda x: x * x, lambda: [double(3) * 2]),
    "a user's Function": (lambda x: Doubled.apply(x, right, right), lambda: [double(3)]),
    "a constant": (lambda x: cg.ones(2), lambda: [double(3)]),
}
FORWARD = {"check_forward_ad": True}
EVERYTHING = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True, "check_grad_dtypes": True}


@pytest.mark.cases("fast_mode", MODES)
@pytest.mark.cases("options", [FORWARD, FORWARD | {"check_backward_ad": False}, EVERYTHING], ids=["both", "alone", "everything"])
@pytest.mark.cases("name", list(SOUND))
def test_right_tangents_pass(name, options, fast_mode):
    function, make = SOUND[name]
    assert gradcheck(function, make(), fast_mode=fast_mode, **options) is True


def second_output_wrong(x, y):
    if in_forward_mode(y):
        primal, tangent = forward_ad.unpack_dual(y)
        y = forward_ad.make_dual(primal, tangent * 1.1)
    return x * 2, x + y


class DefinedOnly(Function):
    """The product, whose jvp replaces a missing tangent by ones."""

    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return (None, None) if g is None else (g * b, g * a)

    @staticmethod
    def jvp(ctx, s, t):
        a, b = ctx.saved_tensors
        return (cg.ones_like(a) if s is None else s) * b + (cg.ones_like(b) if t is None else t) * a


MISMATCH = "Jacobian computed with forward mode mismatch for output {} with respect to input {},"
WRONG = {
    "jvp": (lambda x: Doubled.apply(x, wrong, right), 1, MISMATCH.format(0, 0)),
    "second input": (second_output_wrong, 2, MISMATCH.format(1, 1)),
    "undefined": (
        DefinedOnly.apply,
        2,
        "Mismatch in tangent values for output with index: 0 when input: 0 has an undefined tangent value. Got: .* but expected: ",
    ),
}


@pytest.mark.parametrize("fast_mode", MODES)
@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_tangents_are_found(name, fast_mode):
    function, inputs, message = WRONG[name]
    arguments = [double(2) for _ in range(inputs)]
    with pytest.raises(GradcheckError, match=re.compile(message, re.DOTALL)):
        gradcheck(function, arguments, check_forward_ad=True, fast_mode=fast_mode)
    assert gradcheck(function, arguments, check_forward_ad=True, fast_mode=fast_mode, raise_exception=False) is False
    assert gradcheck(function, arguments, fast_mode=fast_mode) is True


def test_undefined_tangents_are_not_checked_without_check_undefined_grad():
    assert gradcheck(DefinedOnly.apply, [double(2), double(2)], check_forward_ad=True, check_undefined_grad=False) is True


@pytest.mark.parametrize("fast_mode", MODES)
def test_the_message_of_forward_mode(fast_mode):
    x = cg.tensor([1.0], dtype=cg.float64, requires_grad=True)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x: Doubled.apply(x, wrong, right), x, check_forward_ad=True, fast_mode=fast_mode, eps=0.5)
    lines = str(caught.value).splitlines()
    assert lines[0] == "Jacobian computed with forward mode mismatch for output 0 with respect to input 0,"
    if fast_mode:
        assert lines[1:3] == ["numerical:tensor([2.], dtype=cygrad.float64)", "analytical:tensor([3.], dtype=cygrad.float64)"]
        assert lines[-4:-2] == ["Analytical:", "tensor([[3.]], dtype=cygrad.float64)"]
    else:
        assert lines[1:] == ["numerical:tensor([[2.]], dtype=cygrad.float64)", "analytical:tensor([[3.]], dtype=cygrad.float64)"]


@pytest.mark.cases("shape", [(), (1,), (30,), (6, 5)])
@pytest.mark.cases("fast_mode", MODES)
def test_atol_means_the_same_in_both_modes(fast_mode, shape):
    """The function is constant and its forward mode wrong by 1e-3 in each element of the Jacobian."""

    class Off(Function):
        @staticmethod
        def forward(x):
            return cg.zeros(x.shape, dtype=cg.float64)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return cg.zeros_like(g)

        @staticmethod
        def jvp(ctx, t):
            return cg.full(t.shape, 1e-3, dtype=cg.float64) * t.sum()

    options = {"fast_mode": fast_mode, "check_forward_ad": True, "rtol": 0}
    assert gradcheck(Off.apply, double(*shape), atol=1.01e-3, **options) is True
    assert gradcheck(Off.apply, double(*shape), atol=0.99e-3, raise_exception=False, **options) is False


@pytest.mark.cases("fast_mode", MODES)
@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("backward", [False, True])
def test_a_direction_that_is_not_checked_does_not_run(forward, backward, fast_mode):
    """If both directions fail, the error is the one of backward."""

    def fail(name):
        def failing(t):
            raise ZeroDivisionError(name)

        return failing

    options = {"check_forward_ad": forward, "check_backward_ad": backward, "check_undefined_grad": backward, "fast_mode": fast_mode}
    if not (forward or backward):
        with pytest.raises(AssertionError, match="Expected at least one of"):
            gradcheck(cg.exp, double(2), **options)
        return
    assert gradcheck(lambda x: Doubled.apply(x, right if forward else fail("jvp"), right if backward else fail("backward")), double(2),
                     **options) is True
    with pytest.raises(ZeroDivisionError, match="backward" if backward else "jvp"):
        gradcheck(lambda x: Doubled.apply(x, fail("jvp"), fail("backward")), double(2), **options)


@pytest.mark.parametrize("fast_mode", MODES)
def test_the_number_of_calls_of_jvp(fast_mode):
    """Each input: one call for each column, two for a missing tangent, three for a batch."""

    def calls(function, *arguments, **options):
        Doubled.jvps = 0
        assert gradcheck(function, arguments, check_forward_ad=True, fast_mode=fast_mode, **options) is True
        return Doubled.jvps

    def function(a, b):
        return Doubled.apply(a + b, right, right)

    pair = [double(1), double(1)]
    assert calls(function, *pair, check_undefined_grad=False) == 2
    assert calls(function, *pair) == 2 + 4
    assert calls(function, *pair, check_batched_forward_grad=True) == 2 + 4 + 6
    assert calls(function, pair[0], pair[1].detach(), check_batched_forward_grad=True) == 1 + 1 + 3


def test_forward_mode_gets_inputs_that_require_no_gradient():
    def function(x, y):
        assert not in_forward_mode(x, y) or not (x.requires_grad or y.requires_grad)
        return x * y

    assert gradcheck(function, (double(2), double(2)), check_batched_forward_grad=True, **FORWARD) is True


# ----- Second derivatives -----
@pytest.mark.cases("fast_mode", MODES)
@pytest.mark.cases("name", sorted(set(SOUND) - {"a user's Function"}))
def test_forward_over_reverse(name, fast_mode):
    function, make = SOUND[name]
    assert gradgradcheck(function, make(), check_fwd_over_rev=True, fast_mode=fast_mode) is True
    assert gradgradcheck(function, make(), check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False,
                         fast_mode=fast_mode) is True
    assert gradgradcheck(function, make(), check_batched_grad=True, fast_mode=fast_mode) is True


class Product(Function):
    """x * g, for a backward; its own backward or jvp may be wrong."""

    @staticmethod
    def forward(x, g, factor, tangent_factor):
        return x * g

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, g, ctx.factor, ctx.tangent_factor = inputs
        ctx.save_for_backward(x, g)
        ctx.save_for_forward(x, g)

    @staticmethod
    def backward(ctx, h):
        x, g = ctx.saved_tensors
        return h * g, ctx.factor(h * x), None, None

    @staticmethod
    def jvp(ctx, s, t, *others):
        x, g = ctx.saved_tensors
        return s * g + ctx.tangent_factor(t * x)


class HalfSquare(Function):
    """x * x / 2, whose backward is `Product`."""

    @staticmethod
    def forward(x, *factors):
        return x * x / 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, *ctx.factors = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, g):
        return Product.apply(ctx.saved_tensors[0], g, *ctx.factors), None, None

    @staticmethod
    def jvp(ctx, t, *others):
        return ctx.saved_tensors[0] * t


def same(t):
    return t * 1


@pytest.mark.parametrize("fast_mode", MODES)
def test_each_direction_over_reverse_is_checked_by_its_option(fast_mode):
    forward_wrong = partial(gradgradcheck, lambda x: HalfSquare.apply(x, same, wrong), double(2), fast_mode=fast_mode)
    reverse_wrong = partial(gradgradcheck, lambda x: HalfSquare.apply(x, wrong, same), double(2), fast_mode=fast_mode)
    assert forward_wrong() is True
    with pytest.raises(GradcheckError, match=MISMATCH.format(0, 1)):
        forward_wrong(check_fwd_over_rev=True)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 1"):
        reverse_wrong()
    assert reverse_wrong(check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False) is True


# ----- Batches -----
def first_of_batch(t):
    """Double a single vector; a batch fails, because the values are read."""
    return t * 2 if t.sum().item() > 0 else t * 2


BATCHES = {
    "backward": (lambda x: Doubled.apply(x, right, first_of_batch), {"check_batched_grad": True},
                 "gradcheck or gradgradcheck failed while testing batched gradient computation."),
    "forward": (lambda x: Doubled.apply(x, first_of_batch, right), FORWARD | {"check_batched_forward_grad": True},
                "gradcheck failed while testing batched gradient computation with forward-mode AD."),
}


@pytest.mark.parametrize("name", list(BATCHES))
def test_functions_that_fail_on_a_batch_are_found(name):
    function, options, message = BATCHES[name]
    with pytest.raises(GradcheckError, match="While computing batched gradients, got: ") as caught:
        gradcheck(function, double(3), **options)
    assert message in str(caught.value)
    assert gradcheck(function, double(3), raise_exception=False, **options) is False
    assert gradcheck(function, double(3), check_forward_ad=True) is True


class WrongTogether(Function):
    """The identity, whose rule for batches adds one."""

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def vmap(info, in_dims, x):
        return x + 1, in_dims[0]


def wrong_together(t):
    return WrongTogether.apply(t) * 2


def test_the_second_backward_is_checked_on_a_batch():
    def function(x):
        return HalfSquare.apply(x, lambda t: first_of_batch(t) / 2, same)

    assert gradgradcheck(function, double(2)) is True
    with pytest.raises(GradcheckError, match="While computing batched gradients, got: "):
        gradgradcheck(function, double(2), check_batched_grad=True)


@pytest.mark.parametrize("name", list(BATCHES))
def test_batches_are_compared_with_one_by_one(name):
    options, message = BATCHES[name][1:]

    def function(a, b):
        return a * 2, Doubled.apply(b, wrong_together, wrong_together)

    with pytest.raises(GradcheckError, match="For output 1 and input 1:") as caught:
        gradcheck(function, (double(1), double(1)), **options)
    assert message in str(caught.value)
    actual, expected = (float(part) for part in re.findall(r"tensor\(\[\[ *(-?[\d.]+)\]", str(caught.value)))
    assert actual == pytest.approx(expected + 2, abs=1e-3)
    assert gradcheck(function, (double(1), double(1)), check_forward_ad=True) is True


def test_random_numbers_are_refused_in_a_batch():
    def function(x):
        return Doubled.apply(x, lambda t: t * 2 + cg.randn_like(t) * 0, right)

    with pytest.raises(GradcheckError, match="vmap: We do not yet support calling random operations inside of vmap"):
        gradcheck(function, double(2), check_batched_forward_grad=True, **FORWARD)
    assert gradcheck(function, double(2), **FORWARD) is True


def test_a_tangent_of_another_dtype_is_an_error_of_forward_mode():
    with pytest.raises(RuntimeError, match="Doubled.jvp returned shape .* and dtype cygrad.float32") as caught:
        gradcheck(lambda x: Doubled.apply(x, lambda t: t.float() * 2, right), double(2), raise_exception=False, **FORWARD)
    assert type(caught.value) is RuntimeError
