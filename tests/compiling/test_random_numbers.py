"""Random numbers in captured functions: each replay draws anew, from eager's stream."""

import numpy as np
import pytest

import cygrad as cg
from capturing import captured, same
from cygrad.func import grad, scan
from cygrad.nn import functional as F

X = cg.tensor(np.random.default_rng(2).random((3, 4)))
CHANCES, OTHER = cg.tensor([0.1, 0.5, 0.9, 0.2]), cg.Generator()
WEIGHTS, BUFFER = cg.tensor(CHANCES.double(), requires_grad=True), cg.zeros(3, 4)


def empty():
    return cg.empty(3, 4, dtype=cg.float64)


def langevin(x):
    """Return the state after steps of Langevin dynamics in a quadratic potential."""
    def step(state, _):
        slope = grad(lambda state: (state * state).sum())(state)
        return state - 0.1 * slope + 0.3 * cg.empty_like(state).normal_(), state.sum()

    return scan(step, x, length=20)[0]


def metropolis(x):
    proposal = x + cg.normal(x * 0, 0.3)
    return cg.where(empty().uniform_() < cg.exp(x.square() - proposal.square()), proposal, x)


def parts(x):
    y = x.clone()
    y[1].uniform_()
    y[:, 2].normal_(1, 2)
    return y * 2


def part_of_a_recorded_tensor(x):
    y = (x * WEIGHTS).clone()
    y[0].normal_()
    return y * WEIGHTS


PROGRAMS = {
    "rand": lambda x: x + cg.rand(3, 4, dtype=cg.float64) * cg.randn(4),
    "integers": lambda x: cg.randint(0, 9, (3,)).sum() + cg.randint_like(x, 5) + x[cg.randperm(3)],
    "normal_": lambda x: x.normal_(),
    "normal_ of new memory": lambda x: empty().normal_() + x,
    "normal_ of another generator": lambda x: x.normal_(generator=OTHER),
    "normal_ of a seed": lambda x: x.normal_(rng=3),
    "normal_ of 16 bits": lambda x: x.half().normal_() * 2,
    "normal_ of complex numbers": lambda x: x.to(cg.complex128).normal_(),
    "normal_ of a tensor from outside": lambda x: BUFFER.normal_() * x,
    "normal_ of a recorded tensor": lambda x: (x * WEIGHTS).normal_() * WEIGHTS,
    "uniform_": lambda x: x.uniform_(-1, 1).sort().values,
    "random_": lambda x: x.int().random_(0, 50),
    "exponential_": lambda x: x.exponential_(2) + x.clone().cauchy_() + x.clone().geometric_(0.4) + x.clone().log_normal_(),
    "bernoulli_": lambda x: x.bernoulli_(0.3) + x.clone().bernoulli_(CHANCES),
    "parts": parts,
    "part of a recorded tensor": part_of_a_recorded_tensor,
    "normal": lambda x: cg.normal(x, 1.0) + cg.normal(2.0, x) + cg.normal(x, x[0]),
    "normal of another layout": lambda x: cg.normal(x.T, 1.0),
    "normal of 16 bits": lambda x: cg.normal(x.half(), 2.0),
    "normal into a tensor": lambda x: cg.normal(x, x + 1, out=empty()),
    "bernoulli": lambda x: cg.bernoulli(x) * x + x.bernoulli(0.3),
    "bernoulli of another layout": lambda x: cg.bernoulli(x.T),
    "bernoulli into a tensor": lambda x: cg.bernoulli(x, out=cg.empty(3, 4)),
    "draws": lambda x: x.multinomial(2) + cg.poisson(x[:, :2]) + cg.binomial(x[:, :2] * 0 + 4, x[:, 2:]),
    "draws of another generator": lambda x: x.multinomial(2, generator=OTHER) + cg.poisson(x[:, :2], generator=OTHER),
    "dropout": lambda x: F.dropout(x) * F.alpha_dropout(x) + F.rrelu(x - 0.5, training=True) + F.gumbel_softmax(x),
    "Langevin": langevin,
    "Metropolis": metropolis,
}


def run(function):
    """Return results, gradients and changed memory of calls of a function, and numbers that are drawn after them."""
    cg.manual_seed(5)
    OTHER.manual_seed(6)
    BUFFER.zero_()
    numbers = []
    for k in range(5):
        x = X * (1 - 0.1 * k)
        result = function(x)
        gradients = cg.autograd.grad(result.sum(), WEIGHTS) if result.requires_grad else ()
        numbers += [result.detach(), x, BUFFER.clone(), *gradients]
    return [*numbers, cg.rand(2), cg.rand(2, generator=OTHER)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_replays_draw_from_eagers_stream(name):
    compiled = captured(PROGRAMS[name])
    for ours, theirs in zip(run(compiled), run(PROGRAMS[name]), strict=True):
        same(ours, theirs)
    assert compiled.cache_info().misses == 1


@pytest.mark.parametrize("generator", [None, cg.Generator()], ids=["the default generator", "another one"])
def test_a_replay_that_gives_up_has_drawn_nothing(generator):
    def drawn(x):
        noise = cg.rand(3, generator=generator)
        return noise + 1 if x.sum() > 0 else noise - 1

    compiled = captured(drawn)
    signs = [1, -1, 1, 1, -1, -1, 1]
    drawn_from = generator or cg.random.default_generator
    drawn_from.manual_seed(5)
    ours = [compiled(X * sign) for sign in signs]
    drawn_from.manual_seed(5)
    for result, sign in zip(ours, signs, strict=True):
        same(result, drawn(X * sign))
