"""Gradients that a call of grad() does not need are not computed: rules may lack them, and they take time."""

import pytest

import cygrad as cg
from cygrad import autograd


def leaves(count):
    return [cg.tensor([0.3, 0.6], dtype=cg.float64, requires_grad=True) for _ in range(count)]


def test_a_derivative_that_is_missing_is_not_asked_for():
    """As in torch: igamma has no derivative by its first operand."""
    a, x = leaves(2)
    y = cg.igamma(a, x).sum()
    (gradient,) = autograd.grad(y, x, retain_graph=True)
    assert gradient.equal(autograd.grad(cg.igamma(a.detach(), x).sum(), x)[0])
    y.backward(inputs=[x], retain_graph=True)
    assert x.grad.equal(gradient) and a.grad is None
    with pytest.raises(NotImplementedError, match="the derivative for 'igamma: input' is not implemented"):
        autograd.grad(y, a, retain_graph=True)
    with pytest.raises(NotImplementedError, match="the derivative for 'igamma: input' is not implemented"):
        y.backward()


def test_a_node_that_is_called_by_hand_computes_all_gradients():
    """Also from a hook of a run that needs some."""
    a, b = (cg.ones(2, 2, requires_grad=True) for _ in range(2))
    product, other = a @ b, a @ (b * 2)
    results = []
    product.register_hook(lambda g: results.append(other.grad_fn(g)))
    autograd.grad(product.sum(), b, retain_graph=True)
    assert [result.tolist() for result in results[0]] == [[[4.0, 4.0]] * 2, [[2.0, 2.0]] * 2]


def test_hooks_of_a_node_see_none_in_place_of_a_gradient_that_is_not_computed():
    a, b = (cg.ones(2, 2, requires_grad=True) for _ in range(2))
    seen = []
    product = a @ b
    product.grad_fn.register_hook(lambda inputs, outputs: seen.append([gradient is None for gradient in inputs]))
    autograd.grad(product.sum(), b)
    assert seen == [[True, False]]


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_the_same_as_of_all(create_graph):
    x, w = cg.randn(3, 4, dtype=cg.float64, requires_grad=True), cg.randn(4, 2, dtype=cg.float64, requires_grad=True)
    y = cg.cat([(x @ w).softmax(1), x[:, :2]], 1).cumsum(0).sum(1).exp().sum()
    both = autograd.grad(y, (x, w), retain_graph=True, create_graph=create_graph)
    for leaf, expected in zip((x, w), both, strict=True):
        assert autograd.grad(y, leaf, retain_graph=True, create_graph=create_graph)[0].equal(expected)
