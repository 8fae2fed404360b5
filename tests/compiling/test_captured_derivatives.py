"""Derivatives of captured functions, and captures of derivatives."""

import pytest

import cygrad as cg
from capturing import X, captured, same
from cygrad import func
from cygrad.autograd import grad


def energy(x, w):
    return (x.tanh() * w).sum(0).square() + (w * 0.5).exp().mean()


def test_gradients_of_a_compiled_function():
    compiled = captured(energy)
    for k in range(3):
        ours = [(X + k).requires_grad_(), (X * 2).requires_grad_()]
        theirs = [(X + k).requires_grad_(), (X * 2).requires_grad_()]
        loss, expected = compiled(*ours), energy(*theirs)
        same(loss, expected)
        (loss * 3).backward()
        (expected * 3).backward()
        for a, b in zip(ours, theirs, strict=True):
            same(a.grad, b.grad)
    assert loss.grad_fn.name() == "CompiledFunctionBackward"


def test_second_derivatives_and_retained_graphs():
    compiled = captured(energy)
    x = X.clone().requires_grad_()
    for _ in range(2):
        loss = compiled(x, X)
        same(grad(loss, x, retain_graph=True)[0], grad(energy(x, X), x)[0])
        first, = grad(loss, x, create_graph=True)
        expected, = grad(energy(x, X), x, create_graph=True)
        same(grad(first.sum(), x)[0], grad(expected.sum(), x)[0])
    with pytest.raises(RuntimeError, match="second time"):
        grad(loss, x)
        grad(loss, x)


def test_changed_inputs_are_refused_by_the_backward():
    compiled = captured(lambda x, w: (x * w).sum())
    x, w = X.clone().requires_grad_(), X.clone()
    compiled(x, w)
    loss = compiled(x, w)
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_results_that_no_gradient_reads_may_change():
    compiled = captured(lambda x: x * 3)
    x = X.clone().requires_grad_()
    compiled(x)
    result = compiled(x)
    result.add_(1)
    result.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_some_results_without_a_gradient():
    compiled = captured(lambda x: (x * 2, x.exp()))
    x = X.clone().requires_grad_()
    for _ in range(2):
        same(grad(compiled(x)[1].sum(), x)[0], x.exp())


def test_hooks_of_leaves_run_once():
    compiled = captured(lambda x: (x * x).sum())
    x = X.clone().requires_grad_()
    compiled(x)
    x.register_hook(lambda gradient: gradient * 10)
    for _ in range(2):
        x.grad = None
        compiled(x).backward()
        same(x.grad, X * 20)


def test_transforms_inside_and_around():
    inside = captured(lambda x: func.grad(lambda y: (y ** 3).sum())(x))
    jvp = captured(lambda x: func.jvp(cg.sin, (x,), (x * 2,))[1])
    rows = captured(lambda x: func.vmap(lambda row: row * row.sum())(x))
    hessian = captured(lambda x: func.hessian(lambda y: (y ** 3).sum())(x))
    for x in (X, X + 1):
        same(inside(x), 3 * x ** 2)
        same(jvp(x), x.cos() * (x * 2))
        same(rows(x.expand(2, 3)), x.expand(2, 3) * x.sum())
        same(hessian(x), func.hessian(lambda y: (y ** 3).sum())(x))
        around = captured(lambda y: (y ** 3).sum())
        same(func.grad(around)(x), func.grad(lambda y: (y ** 3).sum())(x))
        same(func.vmap(around)(x.expand(2, 3)), (x ** 3).sum().expand(2))
    for function in (inside, jvp, rows, hessian):
        assert function.cache_info().hits == 1


def test_nested_and_recursive():
    inner = captured(lambda x: x + 1)

    @cg.compile(fullgraph=True)
    def recursive(x, depth):
        return inner(x) if depth == 0 else recursive(x * 2, depth - 1)

    for _ in range(2):
        same(recursive(X, 3), X * 8 + 1)
    assert recursive.cache_info().hits == 1


def test_user_functions():
    class Cube(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g * 3 * x * x

    compiled = captured(lambda x: Cube.apply(x).sum())
    for k in range(3):
        x = (X + k).requires_grad_()
        same(grad(compiled(x), x)[0], 3 * (X + k) * (X + k))
