"""A gradient with a second reference is never written over, however Python holds the reference and whichever call takes it.

Memory is used again if the reference count is one. CPython does not count every reference in that place: a call owns the tuple that
is unpacked into it, and from 3.14 on references on the evaluation stack are not counted.
"""

import functools
import itertools
import types

import pytest

import cygrad as cg
from cygrad.autograd import Function, forward_ad
from cygrad.func import vjp


# ----- Holders of the only reference -----
def in_a_local(make, use):
    g = make()
    use(g)
    return g


def in_an_unpacked_tuple(make, use):
    holder = (make(),)
    use(*holder)
    return holder[0]


def in_an_unpacked_list(make, use):
    holder = [make()]
    use(*holder)
    return holder[0]


def in_an_attribute(make, use):
    holder = types.SimpleNamespace(g=make())
    use(holder.g)
    return holder.g


def in_a_cell(make, use):
    g = make()

    def inner():
        use(g)

    inner()
    return g


def in_a_default(make, use):
    def inner(g=make()):        # noqa: B008
        use(g)

    inner()
    return inner.__defaults__[0]


def in_an_argument(make, use):
    def inner(g):
        use(g)
        return g

    return inner(make())


def in_a_generator(make, use):
    def inner():
        g = make()
        yield use(g)
        yield g

    waiting = inner()
    next(waiting)
    return next(waiting)


def in_a_partial(make, use):
    call = functools.partial(use, make())
    call()
    return call.args[-1]


def in_a_bound_method(make, use):
    method = types.MethodType(lambda g: use(g), make())
    method()
    return method.__self__


def in_a_dict(make, use):
    holder = {0: make()}
    for g in holder.values():
        use(g)
    return holder[0]


def in_a_mapped_list(make, use):
    holder = [make()]
    list(map(use, holder))
    return holder[0]


def in_a_star_mapped_tuple(make, use):
    holder = ((make(),),)
    list(itertools.starmap(use, holder))
    return holder[0][0]


def in_an_exception(make, use):
    try:
        raise ValueError(make())
    except ValueError as error:
        use(*error.args)
        return error.args[0]


HOLDERS = {name: function for name, function in globals().items() if name.startswith("in_")}


# ----- Programs, and calls that take their gradient -----
class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def changed_in_place(x):
    y = x * 1
    y[1:].exp_()
    return y


PROGRAMS = {
    "exp": lambda x: x.exp(),
    "chain": lambda x: ((x * 3).tanh() * x).exp(),
    "product with a number": lambda x: x * 3,
    "sum": lambda x: x + x.sin(),
    "part": lambda x: x[1:],
    "parts": lambda x: cg.cat([x[2:], x[:3].exp(), x.flip(0)]),
    "shape": lambda x: x.reshape(-1, 1).exp().T,
    "broadcast": lambda x: x * cg.full((2, 1), 2.0),
    "sum over a dim": lambda x: (x * cg.full((2, 1), 2.0)).sum(0),
    "other dtype": lambda x: x.double().exp(),
    "softmax": lambda x: x.softmax(0),
    "matrix product": lambda x: x @ cg.full((x.numel(), 3), 0.25),
    "in place": changed_in_place,
    "Function": Twice.apply,
}


def through_a_function(y, g):
    """The Function of another node returns the held gradient."""
    class Given(Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, _):
            return g

    with cg.enable_grad():
        result = Given.apply(y) + y.sum() * 0
    result.backward(retain_graph=True)


def through_a_hook(y, g):
    handle = y.register_hook(lambda _: g)
    y.backward(cg.ones_like(y), retain_graph=True)
    handle.remove()


# For a result: a callable that takes the gradient, called by the holder itself where possible.
TAKERS = {
    "node": lambda y: y.grad_fn,
    "backward": lambda y: functools.partial(y.backward, retain_graph=True),
    "grad": lambda y: functools.partial(cg.autograd.grad, y, inputs_of(y), retain_graph=True),
    "two weights": lambda y: lambda g: cg.autograd.backward([y, y], [g, g], retain_graph=True),
    "hook": lambda y: functools.partial(through_a_hook, y),
    "Function": lambda y: functools.partial(through_a_function, y),
}


def inputs_of(y):
    """Return the leaves of a result's graph."""
    leaves, waiting = [], [y.grad_fn]
    while waiting:
        node = waiting.pop()
        leaves += [node.variable] if node.name() == "AccumulateGrad" else []
        waiting += [follower for follower, _ in node.next_functions if follower is not None]
    return leaves


def values_after(holder, shape, use, dtype=cg.float32):
    """Return the values of a gradient after its only holder has passed it to `use`."""
    with cg.no_grad():
        return HOLDERS[holder](lambda: cg.full(shape, 0.75, dtype=dtype), use).flatten().tolist()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.cases("taker", TAKERS)
@pytest.mark.cases("holder", HOLDERS)
@pytest.mark.cases("size", [5, 5000])
def test_a_held_gradient_stays_as_it_is(program, taker, holder, size):
    y = PROGRAMS[program](cg.full((size,), 0.5, requires_grad=True))
    assert values_after(holder, y.shape, TAKERS[taker](y), y.dtype) == [0.75] * y.numel()


@pytest.mark.cases("holder", HOLDERS)
@pytest.mark.cases("size", [5, 5000])
def test_a_held_gradient_that_a_leaf_has_taken_stays_as_it_is(holder, size):
    """It may have become `.grad`, to which the next gradient is added."""
    y = cg.full((size,), 0.5, requires_grad=True) + 0
    (x,), (accumulator, _) = inputs_of(y), y.grad_fn.next_functions[0]
    with cg.no_grad():
        holder = HOLDERS[holder](lambda: cg.full((size,), 0.75), accumulator)
    y.sum().backward()
    assert (holder.tolist(), x.grad.tolist()) == ([0.75] * size, [1.75] * size)


@pytest.mark.cases("holder", HOLDERS)
def test_a_held_gradient_of_a_pulled_back_function_stays_as_it_is(holder):
    _, pull = vjp(lambda x: (x * 3).tanh().exp(), cg.full((5,), 0.5))
    assert values_after(holder, (5,), pull) == [0.75] * 5


@pytest.mark.cases("holder", HOLDERS)
def test_a_held_tangent_stays_as_it_is(holder):
    with forward_ad.dual_level():
        def use(tangent):
            x = forward_ad.make_dual(cg.full((5,), 0.5), tangent)
            del tangent
            x.mul_(3)
            x[1:].exp_()
            assert forward_ad.unpack_dual(x).tangent[0].item() == 2.25

        assert values_after(holder, (5,), use) == [0.75] * 5
