"""Gradients whose elements share memory, as programs return for sums: nodes that write over a gradient must not write there."""

import numpy as np
import pytest

import cygrad as cg

# Operators whose gradient may be written over the one that arrives, and ways in which several gradients meet.
BEHIND = {
    "sin": lambda x: x.sin(),
    "multiply": lambda x: x * cg.tensor([0.5, -2.0, 3.0], dtype=cg.float64),
    "exponential": lambda x: x.exp(),
    "negate": lambda x: -x,
    "in place": lambda x: x.clone().sin_().mul_(cg.tensor([0.5, -2.0, 3.0], dtype=cg.float64)),
    "slice": lambda x: cg.cat([x[:1], x[1:]]) * x,
    "product": lambda x: x @ cg.ones(3, 3, dtype=cg.float64),
    "leaf": lambda x: x,
}


def repeated(x, weight):
    """Return a number, whose gradient has one element for all of x."""
    return weight * x.sum()


@pytest.mark.cases("name", BEHIND)
@pytest.mark.cases("calls", [1, 2, 3])
def test_no_gradient_is_written_over_itself(name, calls):
    def gradients(function):
        x = cg.tensor([0.3, 0.7, -0.2], dtype=cg.float64, requires_grad=True)
        y = BEHIND[name](x)
        total = sum(function(y, cg.tensor(1.5 + number, dtype=cg.float64, requires_grad=True)) for number in range(calls))
        total.backward()
        total = function(y.detach().requires_grad_() * 2, x[0])     # `.grad` exists
        total.backward()
        return x.grad.numpy()

    compiled = cg.compile(repeated, fullgraph=True)
    for _ in range(3):
        np.testing.assert_allclose(gradients(compiled), gradients(repeated), rtol=1e-14)
    assert compiled.cache_info().hits
