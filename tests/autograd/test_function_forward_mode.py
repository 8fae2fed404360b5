"""A user Function's `jvp` in forward mode: its context, and the rules for views and in-place changes.

The facts are torch 2.13's. Where torch fails by an internal assertion (None for an output), None stands for zeros here.
"""

import pytest

import cygrad as cg
from cygrad import func
from cygrad.autograd import Function, forward_ad, gradcheck, gradgradcheck


def applied(forward, jvp, plain=False):
    """Apply a Function of (x, y) to dual tensors; return the tangent of its result. `plain`: x has no tangent."""

    class Made(Function):
        pass

    Made.forward, Made.jvp = staticmethod(forward), staticmethod(jvp)
    with forward_ad.dual_level():
        x = cg.tensor([1.0, 2.0])
        y = forward_ad.make_dual(cg.tensor([3.0, 4.0]), cg.tensor([1.0, 0.0]))
        tangent = forward_ad.unpack_dual(Made.apply(x if plain else forward_ad.make_dual(x, cg.tensor([1.0, 1.0])), y)).tangent
        return None if tangent is None else tangent.tolist()


# ----- The context -----
SAVED = {
    "nothing": (lambda ctx, x, y: None, ()),
    "for backward": (lambda ctx, x, y: ctx.save_for_backward(x, y), ()),
    "for forward": (lambda ctx, x, y: ctx.save_for_forward(x, None), ([1, 2], None)),
    "for both": (lambda ctx, x, y: (ctx.save_for_backward(x, y), ctx.save_for_forward(y)), ([3, 4],)),
}


@pytest.mark.parametrize("saved", SAVED)
def test_saved_tensors_has_only_the_tensors_saved_for_forward(saved):
    save, expected = SAVED[saved]
    values = []

    def forward(ctx, x, y):
        save(ctx, x, y)
        return x * y

    def jvp(ctx, tx, ty):
        values.extend(None if tensor is None else tensor.tolist() for tensor in ctx.saved_tensors)
        return tx

    assert applied(forward, jvp) == [1, 1]
    assert tuple(values) == expected


# ----- Views, changes in place, outputs without a gradient -----
def in_place(ctx, x, y):
    ctx.mark_dirty(x)
    return x.mul_(2)


def constant(ctx, x, y):
    result = x * 2
    ctx.mark_non_differentiable(result)
    return result


NOT_A_VIEW = "A custom Function's forward is returning a view \\(or an input as-is\\) but the jvp is not returning a view."
OTHER_VIEW = "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
OTHER_BASE = "A custom Function is returning a view but the jvp is not returning a view of the same base as the given grad input."
NOT_IN_PLACE = "An inplace custom Function is not modifying the forward mode gradients inplace."
UNASKED = "Function's jvp returned a gradient at position 0, but  the corresponding forward output is not a differentiable Tensor."
RELATIONS = {
    "view of the tangent": (lambda ctx, x, y: x.view(2, 1), lambda ctx, a, b: a.view(2, 1), [[1], [1]]),
    "view of a copy": (lambda ctx, x, y: x.view(2, 1), lambda ctx, a, b: a.clone().view(2, 1), OTHER_VIEW),
    "view of another tangent": (lambda ctx, x, y: x.view(2, 1), lambda ctx, a, b: b.view(2, 1), OTHER_VIEW),
    "no view": (lambda ctx, x, y: x.view(2, 1), lambda ctx, a, b: cg.ones(2, 1), NOT_A_VIEW),
    "None for a view": (lambda ctx, x, y: x.view(2, 1), lambda ctx, a, b: None, NOT_A_VIEW),
    "input as it is, view of the tangent": (lambda ctx, x, y: x, lambda ctx, a, b: a.view_as(a), [1, 1]),
    "input as it is, the tangent": (lambda ctx, x, y: x, lambda ctx, a, b: a, NOT_A_VIEW),
    "input as it is, a copy": (lambda ctx, x, y: x, lambda ctx, a, b: a.clone(), NOT_A_VIEW),
    "in place": (in_place, lambda ctx, a, b: a.mul_(2), [2, 2]),
    "in place, new tangent": (in_place, lambda ctx, a, b: a * 2, NOT_IN_PLACE),
    "in place, view of the tangent": (in_place, lambda ctx, a, b: a.mul_(2).view_as(a), NOT_IN_PLACE),
    "in place, None": (in_place, lambda ctx, a, b: None, NOT_IN_PLACE),
    "new, the tangent": (lambda ctx, x, y: x * 2, lambda ctx, a, b: a, [1, 1]),
    "new, view of the tangent": (lambda ctx, x, y: (x * 2).view(2, 1), lambda ctx, a, b: a.view(2, 1), [[1], [1]]),
    "new, None": (lambda ctx, x, y: x * 2, lambda ctx, a, b: None, None),
    "no gradient, None": (constant, lambda ctx, a, b: None, None),
    "no gradient, tangent": (constant, lambda ctx, a, b: a, UNASKED),
    "integers, tangent": (lambda ctx, x, y: x.long(), lambda ctx, a, b: a, UNASKED),
}


@pytest.mark.cases("name", RELATIONS)
def test_a_jvp_treats_tangents_as_forward_treats_memory(name):
    forward, jvp, expected = RELATIONS[name]
    if isinstance(expected, str):
        with pytest.raises(RuntimeError, match=expected):
            applied(forward, jvp)
    else:
        assert applied(forward, jvp) == expected


@pytest.mark.parametrize(("forward", "jvp", "expected"), [
    (lambda ctx, x, y: x.view(2, 1), lambda ctx, a, b: b.view(2, 1), [[1], [0]]),
    (lambda ctx, x, y: (ctx.mark_dirty(x), x.mul_(y))[1], lambda ctx, a, b: b * 2, [2, 0]),
])
def test_without_a_tangent_of_the_input_there_is_no_relation_to_check(forward, jvp, expected):
    assert applied(forward, jvp, plain=True) == expected


def test_a_tangent_that_is_a_view_has_views_of_its_base():
    class Last(Function):
        @staticmethod
        def forward(ctx, x):
            return x[1:]

        @staticmethod
        def jvp(ctx, t):
            return Last.tangent(t)

    with forward_ad.dual_level():
        whole = cg.arange(6.0)
        x = forward_ad.make_dual(cg.ones(6)[:3], whole[:3])
        Last.tangent = lambda t: t[1:]
        assert forward_ad.unpack_dual(Last.apply(x)).tangent.tolist() == [1, 2]
        Last.tangent = lambda t: cg.ones(t.shape)[1:]
        with pytest.raises(RuntimeError, match=OTHER_BASE):
            Last.apply(x)
        y = forward_ad.make_dual(cg.ones(3), cg.arange(3.0))
        with pytest.raises(RuntimeError, match=OTHER_VIEW):
            Last.apply(y)
        for view in (y[:2], y.view_as(y), y.view(3, 1)):        # parts of the tangent of y, and all of it
            with pytest.raises(RuntimeError, match=OTHER_BASE):
                Last.apply(view)


def test_func_takes_any_tangent_of_a_view():
    """As torch.func does; but an in-place forward needs an in-place jvp there too."""

    class Scaled(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(2, 1)

        @staticmethod
        def jvp(ctx, t):
            return (t * 5).view(2, 1)

    assert func.jvp(Scaled.apply, (cg.ones(2),), (cg.ones(2),))[1].tolist() == [[5], [5]]

    class Changed(Scaled):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, t):
            return t * 2

    with pytest.raises(RuntimeError, match=NOT_IN_PLACE):
        func.jvp(Changed.apply, (cg.ones(2),), (cg.ones(2),))


def test_a_function_that_saves_its_result_is_differentiated_forwards_over_backwards():
    class Exponential(Function):
        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs, output)
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx, g):
            _, y = ctx.saved_tensors
            return g * y

        @staticmethod
        def jvp(ctx, t):
            y, = ctx.saved_tensors
            return t * y

    x = cg.randn(3, requires_grad=True, dtype=cg.float64)
    assert gradcheck(Exponential.apply, x, check_forward_ad=True)
    assert gradgradcheck(Exponential.apply, x, check_fwd_over_rev=True)


# ----- Levels that begin inside -----
def by_duals(x, t):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(forward_ad.make_dual(x, t) ** 3).tangent


INSIDE = {
    "jvp": lambda x, t: func.jvp(lambda x: x ** 3, (x,), (t,))[1],
    "dual level": by_duals,
    "jvp in jvp": lambda x, t: func.jvp(lambda s: func.jvp(lambda r: (x + r) ** 3 * s * t, (x * 0,), (x * 0 + 1,))[1],
                                        (x * 0,), (x * 0 + 1,))[1],
    "jacfwd": lambda x, t: (func.jacfwd(lambda x: x ** 3)(x) @ t.unsqueeze(-1)).squeeze(-1),
    "vmap of jvp": lambda x, t: func.vmap(lambda x, t: func.jvp(lambda x: x ** 3, (x,), (t,))[1])(x, t),
    "grad": lambda x, t: func.grad(lambda x: (x ** 3).sum())(x) * t,
}


@pytest.mark.parametrize("name", INSIDE)
def test_levels_may_begin_inside(name):
    """They see their own tangents, and not the tangents that are out of sight: at any order."""
    class Cube(Function):
        @staticmethod
        def forward(x):
            assert func.jvp(lambda x: x * x, (x,), (cg.ones_like(x),))[1].tolist() == (2 * x).tolist()
            return x ** 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, t):
            x, = ctx.saved_tensors
            return INSIDE[name](x, t)

    x, v = cg.tensor([2.0, 3.0], dtype=cg.float64), cg.tensor([1.0, 0.5], dtype=cg.float64)
    call, plain = Cube.apply, lambda x: x ** 3
    for _ in range(3):
        call, plain = ((lambda x, f=f: func.jvp(f, (x,), (v * x,))[1]) for f in (call, plain))
        assert cg.allclose(call(x), plain(x))
