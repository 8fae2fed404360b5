"""Large values that captured functions compute again in place of reading them: bits are eager's, and the steps are those that pay."""

import numpy as np
import pytest

import cygrad as cg
from capturing import captured, same

POINTS = 300        # so that an array over all pairs is large


def gradient(loss, x):
    return loss, *cg.autograd.grad(loss, [x])


def potential(x):
    x = x.detach().requires_grad_()
    difference = x[:, None] - x[None]
    return gradient(((difference ** 2).sum(-1) + 0.1).sqrt().sum(), x)


def gram_matrix(x):
    x = x.detach().requires_grad_()
    kernel = cg.exp(-((x[:, None] - x[None]) ** 2).sum(-1))
    return gradient((kernel @ x).square().sum(), x)


def two_values(x):
    difference = x[:, None] - x[None]
    square = difference * difference + 1
    norm = square.sum(-1)
    return (square * norm[:, :, None]).sum(1), (difference / norm[:, :, None]).amax(1)


def changed_operand(x):
    x = x.clone()
    difference = x[:, None] - x[None]
    norm = (difference ** 2).sum(-1)
    x += 1
    return (difference * norm[:, :, None]).sum(1), x


def changed_value(x):
    difference = x[:, None] - x[None]
    norm = (difference ** 2).sum(-1)
    difference += 1
    return (difference * norm[:, :, None]).sum(1)


def returned_value(x):
    difference = x[:, None] - x[None]
    norm = (difference ** 2).sum(-1)
    return (difference * norm[:, :, None]).sum(1), difference


def other_order(x):
    difference = x[:, None] - x[None]
    norm = (difference ** 2).sum(-1)
    return (difference.transpose(0, 1) + norm[:, :, None]).sum(1)


def read_in_two_orders(x):
    """The value has to stay for the last step: two of it would need more memory."""
    difference = x[:, None] - x[None]
    norm = (difference ** 2).sum(-1)
    return (difference * norm[:, :, None]).sum(1), (difference.transpose(0, 1) + norm[:, :, None]).sum(1)


def sum_of_rows(x):
    difference = x[:, None] - x[None]
    return (difference ** 2).sum(-1), difference.sum(0)


def exponential(x):
    value = (x[:, None] + x[None]).exp()
    norm = value.sum(-1)
    return (value * norm[:, :, None]).sum(1)


def large_operand(x):
    wide = (x[:, None] + x[None]).exp()
    value = wide - 1
    norm = value.sum(-1)
    return (value * norm[:, :, None]).sum(1)


def across_a_message(x):
    difference = x[:, None] - x[None]
    norm = (difference ** 2).sum(-1)
    print("between", end="")
    return (difference * norm[:, :, None]).sum(1)


# Function: how many steps of some kernels its program has. Gradients of differences are subtracted as well.
REPEATED = {potential: {"square": 1, "sub": 3}, gram_matrix: {"square": 2, "sub": 3}, two_values: {"sub": 3, "add": 2, "mul": 3},
            across_a_message: {"sub": 2}}
# Functions where that may not be, or would not pay.
SINGLE = {changed_operand: {"sub": 1}, changed_value: {"sub": 1}, returned_value: {"sub": 1}, other_order: {"sub": 1},
          read_in_two_orders: {"sub": 1},
          sum_of_rows: {"sub": 1}, exponential: {"exp": 1, "add": 1}, large_operand: {"exp": 1, "add": 1, "sub": 1}}


def values(dtype, scale=1.0):
    return cg.tensor(scale * np.random.default_rng(0).standard_normal((POINTS, 3)), dtype=dtype)


def counts(function, *args):
    """Return how many steps of each kernel the program of a function has."""
    line = captured(function).explain(*args).splitlines()[0].split(": ")[1]
    words = [each.split(" ") for each in line.split(", ")]
    return {each[-1]: int(each[0]) if len(each) == 2 else 1 for each in words}


@pytest.mark.parametrize(("function", "dtype"), [
    pytest.param(function, dtype, id=f"{function.__name__}-{dtype}")
    for function in (*REPEATED, *SINGLE) for dtype in (cg.float64, cg.float32, cg.float16, cg.complex128)
    if not dtype.is_complex or function not in (potential, gram_matrix, two_values)])     # these need an order of numbers
def test_values_that_are_made_again_have_eager_bits(function, dtype):
    replayed = captured(function)
    for scale in (1.0, 1.0, 0.5, -0.25):
        x = values(dtype, scale)
        results, expected = replayed(x), function(x)
        for ours, theirs in zip(*([each] if cg.is_tensor(each) else each for each in (results, expected)), strict=True):
            same(ours, theirs)


@pytest.mark.parametrize("function", [*REPEATED, *SINGLE], ids=lambda function: function.__name__)
def test_a_value_of_little_memory_is_made_again_after_steps_of_another_space(function):
    expected = (REPEATED | SINGLE)[function]
    steps = counts(function, values(cg.float64))
    assert {name: steps[name] for name in expected} == expected


def test_a_forward_value_is_not_made_again_by_a_backward_of_the_caller():
    """Its operands may have changed by then, which eager permits."""
    def norms(x):
        return ((x[:, None] - x[None]) ** 2).sum(-1).sqrt()

    replayed = captured(norms)
    for _ in range(3):
        gradients = []
        for function in (norms, replayed):
            x = values(cg.float64).requires_grad_()
            y = x * 1
            loss = (function(y) * 2).sum()
            with cg.no_grad():
                y += 1
            loss.backward()
            gradients.append(x.grad)
        same(*gradients)


def test_sums_of_a_product_that_is_made_again_go_by_elements():
    """A sum of the product is no contraction in eager, where another step has read the product before."""
    def centred(a, b):
        a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
        product = a[:, :, None] * b[None]
        loss = (product - product.mean(0)).square().sum() + product.sum(1).square().sum()
        return loss.detach(), *cg.autograd.grad(loss, [a, b])

    replayed, (a, b) = captured(centred), (values(cg.float64)[:40, :1] + cg.arange(60.0), values(cg.float64)[:60, :1] - cg.arange(70.0))
    assert counts(centred, a, b)["mul"] == 3
    for scale in (1.0, 0.7, 0.3):
        for ours, theirs in zip(replayed(a * scale, b), centred(a * scale, b), strict=True):
            same(ours, theirs)
