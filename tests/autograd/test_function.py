"""User functions: ctx, saved tensors, returns of backward and forward, several outputs, second derivatives, refusals."""

import gc
import weakref

import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import Function
from cygrad.autograd.function import once_differentiable


def function(forward, backward, **attributes):
    """Return a Function called Foo."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Foo", (Function,), methods | attributes)


class Product(Function):
    """The product of two tensors, differentiable any number of times."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return (g * b if ctx.needs_input_grad[0] else None, g * a if ctx.needs_input_grad[1] else None)


class Scale(Function):
    """A tensor times a number."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


# ----- The ordinary case -----


def test_apply_records_a_node_of_that_name(x):
    y = Product.apply(x, x)
    assert y.requires_grad
    assert not y.is_leaf
    assert y.grad_fn.name() == "ProductBackward"
    assert [node.name().rpartition("::")[2] for node, _ in y.grad_fn.next_functions] == ["AccumulateGrad"] * 2


def test_gradients(x):
    z = cg.tensor([3.0, 5.0], requires_grad=True)
    (Product.apply(x, z) * 2).sum().backward()
    assert x.grad.tolist() == [6, 10]
    assert z.grad.tolist() == [2, 4]


def test_the_same_input_twice(x):
    Product.apply(x, x).sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_other_arguments_take_none(x):
    Scale.apply(x, 7).sum().backward()
    assert x.grad.tolist() == [7, 7]


NEEDS = [
    (lambda x: (x, x), (True, True)),
    (lambda x: (x, cg.ones(2)), (True, False)),
    (lambda x: (x.detach(), x), (False, True)),
    (lambda x: (cg.ones(2), 3), (False, False)),
]


@pytest.mark.parametrize(("arguments", "expected"), NEEDS)
def test_needs_input_grad(x, arguments, expected):
    seen = []

    def forward(ctx, a, b):
        seen.append(ctx.needs_input_grad)
        return a * b

    y = function(forward, lambda ctx, g: (g, g)).apply(*arguments(x))
    assert seen == [expected]
    assert y.requires_grad is any(expected)
    if y.requires_grad:
        assert y.grad_fn.needs_input_grad == expected


def test_without_grad_nothing_is_recorded(x):
    with cg.no_grad():
        y = Product.apply(x, x)
    assert not y.requires_grad
    assert not Product.apply(x.detach(), x.detach()).requires_grad


def test_forward_runs_without_grad_and_backward_by_create_graph(x):
    modes = []

    def forward(ctx, a):
        modes.append(cg.is_grad_enabled())
        return a * 2

    def backward(ctx, g):
        modes.append(cg.is_grad_enabled())
        return g * 2

    y = function(forward, backward).apply(x).sum()
    autograd.grad(y, x, retain_graph=True)
    autograd.grad(y, x, create_graph=True)
    assert modes == [False, False, True]


def test_setup_context(x):
    class Separate(Function):
        @staticmethod
        def forward(a, factor):
            return a * a * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            a, ctx.factor = inputs
            ctx.save_for_backward(a, output)

        @staticmethod
        def backward(ctx, g):
            a, output = ctx.saved_tensors
            assert output.tolist() == [5, 20]
            return g * 2 * a * ctx.factor, None

    Separate.apply(x, 5).sum().backward()
    assert x.grad.tolist() == [10, 20]


def test_an_attribute_of_ctx_may_be_any_object(x):
    marker = object()

    def forward(ctx, a):
        ctx.marker = marker
        return a * 2

    y = function(forward, lambda ctx, g: g * (2 if ctx.marker is marker else 0)).apply(x)
    assert y.grad_fn.marker is marker
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


# ----- Saved tensors -----


def saving(*tensors):
    def forward(ctx, a):
        ctx.save_for_backward(*(tensor(a) for tensor in tensors))
        return a * 2

    return forward


def test_saved_tensors_are_the_same_tensors(x):
    y = Product.apply(x, x * 3)
    a, b = y.grad_fn.saved_tensors
    assert a is x
    assert b.tolist() == [3, 6]


def test_a_saved_output_has_its_node(x):
    def forward(ctx, a):
        y = a.exp()
        ctx.save_for_backward(y)
        return y

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        assert y.requires_grad
        return g * y

    foo = function(forward, backward)
    assert autograd.gradcheck(foo.apply, x.double().detach().requires_grad_())
    assert autograd.gradgradcheck(foo.apply, x.double().detach().requires_grad_())


def test_a_saved_output_makes_no_uncollectable_cycle(x):
    def forward(ctx, a):
        y = a * 2
        ctx.save_for_backward(y)
        return y

    y = function(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    dead = weakref.ref(y)
    del y
    assert dead() is None


def test_none_and_intermediate_results_may_be_saved(x):
    def backward(ctx, g):
        nothing, intermediate, a = ctx.saved_tensors
        assert nothing is None
        return g * intermediate * a

    foo = function(saving(lambda a: None, lambda a: a * 10, lambda a: a), backward)
    foo.apply(x).sum().backward()
    assert x.grad.tolist() == [10, 40]


def test_the_last_call_of_save_for_backward_counts(x):
    def forward(ctx, a):
        ctx.save_for_backward(a)
        ctx.save_for_backward(a, a, a)
        return a * 2

    function(forward, lambda ctx, g: g * len(ctx.saved_tensors)).apply(x).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_saved_tensors_are_freed_by_backward(x):
    y = Product.apply(x, x)
    z = y.sum()
    z.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        z.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        _ = y.grad_fn.saved_tensors


def test_saved_tensors_stay_with_retain_graph(x):
    y = Product.apply(x, x)
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [4, 8]


def test_only_tensors_may_be_saved(x):
    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 0 is of type int"):
        function(saving(lambda a: 3), lambda ctx, g: g).apply(x)


@pytest.mark.parametrize("saved", ["input", "output"])
def test_an_in_place_change_of_a_saved_tensor_is_found(x, saved):
    a = x * 1

    def forward(ctx, a):
        y = a * 2
        ctx.save_for_backward(a if saved == "input" else y)
        return y

    y = function(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(a)
    z = y * 1
    with cg.no_grad():
        (a if saved == "input" else y).add_(1)
    with pytest.raises(
        RuntimeError, match="one of the variables needed for gradient computation has been modified by an in"
    ):
        z.sum().backward()


# ----- Returns of backward -----

RETURNED = {
    "a tensor": (lambda ctx, g: g * 5, [5, 5]),
    "a tuple": (lambda ctx, g: (g * 5,), [5, 5]),
    "more Nones": (lambda ctx, g: (g * 5, None, None), [5, 5]),
    "the gradient itself": (lambda ctx, g: g, [1, 1]),
    "None": (lambda ctx, g: None, None),
    "something to be summed": (lambda ctx, g: cg.ones(3, 2), [3, 3]),
    "another dtype": (lambda ctx, g: g.double() * 5, [5, 5]),
}


@pytest.mark.parametrize("name", list(RETURNED))
def test_returned(x, name):
    backward, expected = RETURNED[name]
    function(lambda ctx, a: a * 2, backward).apply(x).sum().backward()
    if expected is None:
        assert x.grad is None
    else:
        assert x.grad.tolist() == expected
        assert x.grad.dtype == cg.float32


WRONG = {
    "too many": (
        lambda ctx, g: (g, g),
        1,
        "function FooBackward returned an incorrect number of gradients .expected 1, got 2",
    ),
    "too few": (
        lambda ctx, g: g,
        2,
        "function FooBackward returned an incorrect number of gradients .expected 2, got 1",
    ),
    "for a number": (
        lambda ctx, g: (g, g),
        2,
        "function FooBackward returned a gradient different than None at position 2, but the corresponding forward input was",
    ),
    "a number": (lambda ctx, g: 5, 1, "expected Variable or None .got int"),
    "shape": (
        lambda ctx, g: cg.ones(3),
        1,
        r"Function FooBackward returned an invalid gradient at index 0 - got \[3\] but expected shape compatible with \[2\]",
    ),
    "0-d": (lambda ctx, g: g.sum(), 1, "Function FooBackward returned an invalid gradient at index 0"),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_returns(x, name):
    backward, inputs, message = WRONG[name]
    y = function(lambda ctx, a, *rest: a * 2, backward).apply(x, *[3][: inputs - 1])
    with pytest.raises((RuntimeError, TypeError), match=message):
        y.sum().backward()
    assert x.grad is None


def test_exceptions_of_forward_and_backward_pass_through(x):
    class Mine(Exception):
        pass

    error = Mine("stop")

    def fail(ctx, *_):
        raise error

    with pytest.raises(Mine) as caught:
        function(fail, lambda ctx, g: g).apply(x)
    assert caught.value is error
    assert cg.is_grad_enabled()
    y = function(lambda ctx, a: a * 2, fail).apply(x)
    with pytest.raises(Mine) as caught:
        y.sum().backward()
    assert caught.value is error
    assert "fail" in [entry.name for entry in caught.traceback]
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


# ----- Returns of forward -----


def test_the_input_itself(x):
    y = function(lambda ctx, a: a, lambda ctx, g: g * 7).apply(x)
    assert y is not x
    assert y.grad_fn.name() == "FooBackward"
    y.sum().backward()
    assert x.grad.tolist() == [7, 7]


def test_a_view_of_the_input(x):
    y = function(lambda ctx, a: a.reshape(2, 1), lambda ctx, g: g.reshape(2) * 7).apply(x)
    assert y.grad_fn.name() == "FooBackward"
    y.sum().backward()
    assert x.grad.tolist() == [7, 7]


def test_other_objects_beside_tensors(x):
    y, number, nothing = function(lambda ctx, a: (a * 2, 5, None), lambda ctx, g, h, i: g * 2).apply(x)
    assert (number, nothing) == (5, None)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


incoming_gradients = []


class SumAndProduct(Function):
    """Two outputs of two inputs; the gradients that arrive are recorded."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a + b, a * b

    @staticmethod
    def backward(ctx, of_sum, of_product):
        incoming_gradients.append((of_sum.tolist(), of_product.tolist()))
        a, b = ctx.saved_tensors
        return of_sum + of_product * b, of_sum + of_product * a


OUTPUTS = [
    (lambda s, p: s, ([1, 1], [0, 0]), [1, 1], [1, 1]),
    (lambda s, p: p, ([0, 0], [1, 1]), [3, 4], [1, 2]),
    (lambda s, p: s * 2 + p, ([2, 2], [1, 1]), [5, 6], [3, 4]),
]


@pytest.mark.parametrize(("use", "incoming", "of_a", "of_b"), OUTPUTS)
def test_two_outputs(x, use, incoming, of_a, of_b):
    b = cg.tensor([3.0, 4.0], requires_grad=True)
    outputs = SumAndProduct.apply(x, b)
    assert isinstance(outputs, tuple)
    assert outputs[0].grad_fn is outputs[1].grad_fn
    incoming_gradients.clear()
    use(*outputs).sum().backward()
    assert incoming_gradients == [incoming]
    assert x.grad.tolist() == of_a
    assert b.grad.tolist() == of_b


def test_gradients_are_materialized_unless_disabled(x):
    seen = []

    def make(materialize):
        def forward(ctx, a):
            ctx.set_materialize_grads(materialize)
            return a * 2, a * 3

        def backward(ctx, g, h):
            seen.append(None if g is None else g.tolist())
            return h * 3

        return function(forward, backward)

    make(True).apply(x)[1].sum().backward()
    make(False).apply(x)[1].sum().backward()
    assert seen == [[0, 0], None]


def test_mark_non_differentiable(x):
    seen = []

    def forward(ctx, a):
        b, c = a * 2, a * 3
        ctx.mark_non_differentiable(c)
        return b, c

    def backward(ctx, g, h):
        seen.append(h.tolist())
        return g * 2

    b, c = function(forward, backward).apply(x)
    assert b.requires_grad
    assert not c.requires_grad
    assert c.is_leaf
    b.sum().backward()
    assert seen == [[0, 0]]
    assert x.grad.tolist() == [2, 2]


def test_integer_outputs_are_not_differentiable(x):
    b, c = function(lambda ctx, a: (a * 2, a.long()), lambda ctx, g, h: g * 2).apply(x)
    assert b.requires_grad
    assert not c.requires_grad


# ----- Second derivatives -----


def test_double_backward_through_user_code(x):
    (gradient,) = autograd.grad(Product.apply(x * x, x).sum(), x, create_graph=True)
    assert gradient.tolist() == [3, 12]
    assert autograd.grad(gradient.sum(), x)[0].tolist() == [6, 12]


def test_gradgradcheck_of_a_function():
    a = cg.tensor([0.5, -1.5], dtype=cg.float64, requires_grad=True)
    b = cg.tensor([2.0, 0.25], dtype=cg.float64, requires_grad=True)
    assert autograd.gradcheck(Product.apply, (a, b))
    assert autograd.gradgradcheck(Product.apply, (a, b))


class SquareOnce(Function):
    """x**2 whose gradient may not be differentiated."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        assert not cg.is_grad_enabled()
        return g * 2 * ctx.saved_tensors[0]


def test_once_differentiable(x):
    weight = cg.ones(2, requires_grad=True)
    (gradient,) = autograd.grad(SquareOnce.apply(x), x, weight, create_graph=True)
    assert gradient.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_diff"):
        gradient.sum().backward()


# ----- Memory -----


def test_ctx_attributes_that_close_a_cycle_are_collectable(x):
    def forward(ctx, a):
        y = a * 2
        ctx.output = y
        return y

    y = function(forward, lambda ctx, g: g).apply(x)
    dead = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert dead() is None


# ----- Refusals -----


class NoBackward(Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2


class NoForward(Function):
    @staticmethod
    def backward(ctx, g):
        return g


class BackwardAndVjp(NoBackward):
    @staticmethod
    def backward(ctx, g):
        return g

    @staticmethod
    def vjp(ctx, g):
        return g


REFUSED = [
    (
        lambda x: NoBackward.apply(x).sum().backward(),
        NotImplementedError,
        "You must implement either the backward or vjp method",
    ),
    (lambda x: NoForward.apply(x), NotImplementedError, "You must implement the forward function"),
    (lambda x: BackwardAndVjp.apply(x).sum().backward(), RuntimeError, "Implementing both 'backward' and 'vjp'"),
    (lambda x: Product.apply(x), TypeError, "missing 1 required positional argument"),
    (lambda x: Product.apply(x, x, x), TypeError, "positional arguments but"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(x, call, error, message):
    with pytest.raises(error, match=message):
        call(x)


# ----- OneFlow's forms -----


def test_an_instance_works_like_apply(x):
    y = Product()(x, x)
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_methods_without_staticmethod(x):
    class Plain(Function):
        def forward(ctx, a):
            return a * 3

        def backward(ctx, g):
            return g * 3

    for call in (Plain.apply, Plain()):
        x.grad = None
        call(x).sum().backward()
        assert x.grad.tolist() == [3, 3]
