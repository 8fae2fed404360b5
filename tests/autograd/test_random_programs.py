"""Random programs of operators that share operands: fused, recorded, forward-mode and batched derivatives are all the same.

Operators alone are tested elsewhere; here gradients meet, pass on, are written over and summed in place, in sizes on both sides of the
limits at which the engine does so.
"""

import random

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import grad, jvp, vmap

SIZES = (10, 2048, 3000, 40000)


def changed_in_place(a):
    b = a.cos()
    b.mul_(a)
    b[:5] = a[5:10]
    return b


def parts_changed_in_place(a):
    b = a * 1j
    b.real.mul_(a.imag)
    b.imag[:5] = a.real[5:10]
    b.mul_(0.5)
    return b


UNARY = [
    cg.tanh,
    lambda a: -a,
    lambda a: 3 - a,
    lambda a: a * 2,
    lambda a: a.flip(0),
    lambda a: a.reshape(-1, 2).T.reshape(-1),
    lambda a: cg.cat([a[1:], a[:1]]),
    lambda a: a.clone(),
    lambda a: a - a.mean(),
    lambda a: a.reshape(2, -1).sum(0).repeat(2) / 2,
    lambda a: a.cumsum(0) / 50,
    lambda a: a.softmax(0) * 100,
    changed_in_place,
]
BINARY = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: b - a,
    lambda a, b: a * b,
    lambda a, b: a.sub(b, alpha=2),
    lambda a, b: a.addcmul(a, b, value=0.5),
    lambda a, b: cg.maximum(a, b),
    lambda a, b: cg.where(a > b, a, b),
    lambda a, b: cg.fmod(a, b.abs() + 1),
    lambda a, b: cg.cat([a[: len(a) // 2], b[len(a) // 2 :]]),
]

# Of complex numbers, where parts are views and gradients are conjugates.
COMPLEX_UNARY = [
    lambda a: -a,
    lambda a: 3j - a,
    lambda a: a * (0.6 + 0.8j),
    lambda a: a.conj(),
    lambda a: a.flip(0),
    lambda a: a.reshape(-1, 2).T.reshape(-1),
    lambda a: a - a.mean(),
    lambda a: a.reshape(2, -1).sum(0).repeat(2) / 2j,
    lambda a: a.cumsum(0) / 50,
    lambda a: a / (1 + a.abs()),
    lambda a: (a / (1 + a.abs())).exp(),
    lambda a: a.view_as_real().flip(-1).view_as_complex(),
    lambda a: cg.complex(a.imag, a.real * 0.5),
    parts_changed_in_place,
]
COMPLEX_BINARY = [
    lambda a, b: a + b,
    lambda a, b: b - a,
    lambda a, b: a * b,
    lambda a, b: a * b.conj(),
    lambda a, b: a * b.real,
    lambda a, b: a.sub(b, alpha=2j),
    lambda a, b: a.addcmul(a, b, value=0.5j),
    lambda a, b: cg.where(a.real > b.imag, a, b),
    lambda a, b: a / (b.abs() + 1),
    lambda a, b: cg.cat([a[: len(a) // 2], b[len(b) // 2 :]]),
]
OPERATORS = {"float64": (UNARY, BINARY), "complex128": (COMPLEX_UNARY, COMPLEX_BINARY)}


def program(seed, dtype):
    """Return a function of three vectors: each step takes any of the previous values, the last three make the result."""
    stream, (unary, binary) = random.Random(seed), OPERATORS[dtype]
    steps = []
    for count in range(3, 3 + stream.randint(3, 14)):
        operator, arity = (stream.choice(binary), 2) if stream.random() < 0.6 else (stream.choice(unary), 1)
        steps.append((operator, [stream.randrange(count) for _ in range(arity)]))

    def f(*vectors):
        values = list(vectors)
        for operator, places in steps:
            values.append(operator(*(values[place] for place in places)))
        return sum((value * value.conj()).real.sum() * (k + 0.1) for k, value in enumerate(values[-3:]))

    return f


def close(actual, expected):
    limit = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9 * limit)


@pytest.mark.cases("size", SIZES)
@pytest.mark.parametrize("dtype", OPERATORS)
@pytest.mark.parametrize("seed", range(40))
def test_all_derivatives_are_the_same(seed, dtype, size):
    f, stream = program(seed, dtype), np.random.default_rng([seed, size])
    arrays, directions = stream.standard_normal((2, 3, size))
    if dtype == "complex128":
        arrays, directions = arrays + 1j * directions, directions - 1j * arrays[::-1]
    leaves = [cg.tensor(array).requires_grad_() for array in arrays]
    options = {"allow_unused": True, "materialize_grads": True}
    fused = [gradient.numpy() for gradient in cg.autograd.grad(f(*leaves), leaves, **options)]

    recorded = cg.autograd.grad(f(*leaves), leaves, create_graph=True, **options)
    f(*leaves).backward()
    for gradient, other, leaf in zip(fused, recorded, leaves, strict=True):
        close(gradient, other.detach().numpy())
        np.testing.assert_array_equal(gradient, 0 if leaf.grad is None else leaf.grad.numpy())

    _, slope = jvp(f, tuple(map(cg.tensor, arrays)), tuple(map(cg.tensor, directions)))
    products = [(gradient.conj() * direction).real.ravel() for gradient, direction in zip(fused, directions, strict=True)]
    assert slope.item() == pytest.approx(np.sum(products), abs=1e-9 * np.abs(products).sum())

    if size <= 3000:
        batches = [cg.tensor(np.stack([array / 2, array])) for array in arrays]
        for gradient, expected in zip(vmap(grad(f, (0, 1, 2)))(*batches), fused, strict=True):
            close(gradient[1].numpy(), expected)
