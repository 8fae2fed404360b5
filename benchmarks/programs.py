"""Whole programs, value and gradients, as a user of torch writes them: each once, for both libraries.

The classes are those that other libraries for derivatives are measured by: many bodies, a mixture of Gaussians, a differential
equation in steps, a recurrent network, the Jacobian of a system, pricing, a layered network, many selects of one leaf.
"""

import math
import statistics
import time
import timeit
from collections.abc import Iterator
from typing import Any

import numpy as np

import cygrad
from benchmarks.agreement import Program, Run, differentiated, measured
from benchmarks.timing import Row, selected

SELECT_LIMIT = 2e-6
SELECT_SIZES, SELECT_ROUNDS = (1000, 10_000, 100_000), 5


def pairwise(library: Any, bodies: int) -> Run:
    """Sum the softened potential of all pairs of bodies, by broadcasting."""
    random = np.random.default_rng(0)
    mass = library.tensor(random.uniform(0.5, 2, bodies))

    def potential(position: Any) -> Any:
        difference = position[:, None, :] - position[None, :, :]
        distance = ((difference ** 2).sum(-1) + 0.05).sqrt()
        return -(mass[:, None] * mass[None, :] / distance).sum() / 2

    return differentiated(library, potential, random.standard_normal((bodies, 3)))


def mixture(library: Any, points: int, dimension: int = 10, components: int = 25) -> Run:
    """Return the log likelihood of a mixture of Gaussians; its parameters are weights, means and roots of the precisions."""
    random = np.random.default_rng(0)
    x = library.tensor(random.standard_normal((points, dimension)))

    def likelihood(logits: Any, means: Any, scales: Any, lower: Any) -> Any:
        root = library.tril(lower, -1) + library.diag_embed(library.exp(scales))
        centred = x[:, None, :] - means
        scaled = (root * centred[:, :, None, :]).sum(-1)
        density = logits + scales.sum(-1) - 0.5 * (scaled ** 2).sum(-1)
        return (library.logsumexp(density, 1) - library.logsumexp(logits, 0)).sum()

    shapes = ((components,), (components, dimension), (components, dimension), (components, dimension, dimension))
    return differentiated(library, likelihood, *(0.3 * random.standard_normal(shape) for shape in shapes))


def heat(library: Any, cells: int, steps: int = 200) -> Run:
    """Step the heat equation explicitly, with fixed ends, from an initial state that is differentiated by."""
    def final(u: Any) -> Any:
        for _ in range(steps):
            inner = u[1:-1] + 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
            u = library.cat([u[:1], inner, u[-1:]])
        return (u ** 2).sum()

    return differentiated(library, final, np.random.default_rng(0).standard_normal(cells))


def lstm(library: Any, steps: int, width: int = 14, layers: int = 2) -> Run:
    """Return the loss of an LSTM whose weights act element by element, over a sequence of one-hot vectors."""
    random = np.random.default_rng(0)
    sequence = library.tensor(np.eye(width)[random.integers(width, size=steps + 1)])

    def cell_step(weight: Any, bias: Any, hidden: Any, cell: Any, x: Any) -> tuple[Any, Any]:
        gates = library.cat([x, hidden, x, hidden]) * weight + bias
        forget = library.sigmoid(gates[:width])
        enter = library.sigmoid(gates[width:2 * width])
        leave = library.sigmoid(gates[2 * width:3 * width])
        change = library.tanh(gates[3 * width:])
        cell = cell * forget + enter * change
        return leave * library.tanh(cell), cell

    def loss(main: Any, extra: Any, state: Any) -> Any:
        hidden = [state[2 * k] for k in range(layers)]
        cells = [state[2 * k + 1] for k in range(layers)]
        total = 0.0
        for t in range(steps):
            x = sequence[t] * extra[0]
            for k in range(layers):
                hidden[k], cells[k] = cell_step(main[2 * k], main[2 * k + 1], hidden[k], cells[k], x)
                x = hidden[k]
            predicted = x * extra[1] + extra[2]
            normalised = predicted - library.log(library.exp(predicted).sum() + 2)
            total = total + (sequence[t + 1] * normalised).sum()
        return -total / (steps * width)

    shapes = ((2 * layers, 4 * width), (3, width), (2 * layers, width))
    return differentiated(library, loss, *(random.standard_normal(shape) for shape in shapes))


def jacobian(library: Any, equations: int) -> Run:
    """Return the Jacobian of a system in which each equation has three neighbours, Broyden's."""
    point = library.tensor(np.random.default_rng(0).standard_normal(equations))

    def system(v: Any) -> Any:
        inner = (3 - 2 * v[1:-1]) * v[1:-1] - v[:-2] - 2 * v[2:] + 1
        first = (3 - 2 * v[:1]) * v[:1] - 2 * v[1:2] + 1
        last = (3 - 2 * v[-1:]) * v[-1:] - v[-2:-1] + 1
        return library.cat([first, inner, last])

    return lambda: [library.autograd.functional.jacobian(system, point, vectorize=True)]


def pricing(library: Any, options: int) -> Run:
    """Price European options by Black and Scholes, in floats, with their delta and vega."""
    random = np.random.default_rng(0)
    def uniform(low: float, high: float) -> np.ndarray:
        return random.uniform(low, high, options).astype(np.float32)

    strike, years, rate = library.tensor(uniform(80, 120)), library.tensor(uniform(0.2, 2)), 0.03

    def normal(x: Any) -> Any:
        return 0.5 * (1 + library.erf(x / math.sqrt(2)))

    def value(spot: Any, volatility: Any) -> Any:
        deviation = volatility * library.sqrt(years)
        first = (library.log(spot / strike) + (rate + 0.5 * volatility ** 2) * years) / deviation
        second = first - deviation
        return (spot * normal(first) - strike * library.exp(-rate * years) * normal(second)).sum()

    return differentiated(library, value, uniform(80, 120), uniform(0.1, 0.5))


def chain(library: Any, size: int) -> Run:
    """Differentiate one expression of many elementwise operators."""
    def expression(x: Any, scale: Any) -> Any:
        wave = library.sin(3 * x) * library.exp(-x * x)
        return (wave + library.tanh(scale * x) / (1 + x * x)).sum()

    random = np.random.default_rng(0)
    return differentiated(library, expression, random.standard_normal(size), random.standard_normal(size))


def mlp(library: Any, examples: int, widths: tuple[int, ...] = (64, 256, 256, 10)) -> Run:
    """Train a network of layers for one step."""
    random = np.random.default_rng(0)
    x = library.tensor(random.standard_normal((examples, widths[0]), dtype=np.float32))
    targets = library.tensor(random.integers(widths[-1], size=examples))
    pairs = list(zip(widths, widths[1:], strict=False))
    weights = [library.tensor((random.standard_normal(pair) / 8).astype(np.float32), requires_grad=True) for pair in pairs]
    biases = [library.zeros(pair[1], requires_grad=True) for pair in pairs]

    def run() -> list[Any]:
        hidden = x
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            hidden = library.tanh(hidden @ weight + bias)
        scores = hidden @ weights[-1] + biases[-1]
        loss = -library.log_softmax(scores, 1)[library.arange(examples), targets].mean()
        loss.backward()
        with library.no_grad():
            for parameter in weights + biases:
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
        return [loss.detach(), *(weight.detach() for weight in weights)]

    return run


def added_selects(library: Any, size: int) -> Run:
    """Add the elements of a leaf, one by one."""
    def total(x: Any) -> Any:
        result = x[0]
        for i in range(1, size):
            result = result + x[i]
        return result

    return differentiated(library, total, np.random.default_rng(0).standard_normal(size))


def stacked_selects(library: Any, size: int) -> Run:
    """Take a leaf apart, and put it together again."""
    def total(x: Any) -> Any:
        return library.stack([x[i] for i in range(size)]).sum()

    return differentiated(library, total, np.random.default_rng(0).standard_normal(size))


PROGRAMS = (
    Program("pairwise potential of 600 bodies", pairwise, 600, 0.6),
    Program("Gaussian mixture, d 10, k 25, n 1000", mixture, 1000, 0.9),
    Program("200 steps of heat by slices and cat, 20,000 cells", heat, 20_000, 0.33),
    Program("LSTM of 14-element vectors, 19 steps", lstm, 19, 0.1),
    Program("jacobian of 200 equations of slices, vectorize=True", jacobian, 200, 0.35),
    Program("pricing of 4e6 floats", pricing, 4_000_000, 0.4),
    Program("chain of 1e6 doubles", chain, 1_000_000, 0.4),
    Program("MLP step, 256 examples, 64-256-256-10 floats", mlp, 256, 0.65),
)
SELECTS = {"added": added_selects, "stacked": stacked_selects}


def selects() -> Iterator[Row]:
    """Yield the processor time of a select of one leaf, forward and backward: the same for every number of them."""
    for how, make in SELECTS.items():
        for size in SELECT_SIZES:
            work = f"{size:,} selects of one leaf, {how}, forward + backward, each, mean"
            if selected(work):
                timer = timeit.Timer("run()", "import gc; gc.enable()", time.process_time, {"run": make(cygrad, size)})
                timer.timeit(1)     # loads what loads at first use
                count = max(SELECT_SIZES) // size
                yield Row(work, statistics.mean(timer.repeat(SELECT_ROUNDS, count)) / count / size, SELECT_LIMIT)


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    yield from measured(PROGRAMS)
    cygrad.set_num_threads(1)
    yield from selects()
