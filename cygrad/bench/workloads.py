"""Whole programs, value and gradients, as a user of torch writes them: each once, for both libraries, with its twins in others.

The classes are those that other libraries for derivatives are measured by: many bodies, a mixture of Gaussians, a differential
equation in steps, a recurrent network, the Jacobian of a system, pricing, a layered network, a Gaussian process, a filter.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import cygrad
from cygrad.bench import by_hand, other_libraries
from cygrad.bench.by_hand import HEAT_STEPS, LEARNING, RATE
from cygrad.bench.libraries import COMPILED, LIKE_TORCH, Run, array, differentiated, entered
from cygrad.bench.work import BOTH, WORKLOAD, Prepared, Task, Work

Arrays = Sequence[np.ndarray]


class Workload(NamedTuple):
    """A program: `data(size)` are its arrays, of which `program(library, *data)` and its twins make a function to execute.

    `by_hand` is NumPy's. The full size and the one of a quick run count `units`.
    """

    name: str
    units: str
    size: int
    quick: int
    data: Callable[[int], Arrays]
    program: Callable[..., Run]
    by_hand: Callable[..., Run]
    others: Mapping[str, Callable[..., Run]] = {}
    dtype: str = "float64"

    def shape(self, size: int) -> str:
        """Say how large it is."""
        return f"{size:,} {self.units}"

    def make(self, library: Any, size: int) -> Run:
        """Return the function that cygrad or torch executes."""
        return self.program(library, *self.data(size))

    def work(self, size: int) -> Work:
        """Return it as work of a size."""
        return Work(self.name, "programs", WORKLOAD, self.dtype, size, self.shape(size), BOTH, partial(self.prepare, size))

    def prepare(self, size: int, libraries: Sequence[str]) -> Prepared:
        """Make its data, and its tasks; each library has arrays of its own, since a program may change them."""
        runs: dict[str, Run] = {}
        for name in libraries:
            if name in LIKE_TORCH:
                runs[name] = self.make(entered(name), size)
            elif name == COMPILED:
                runs[name] = cygrad.compile(self.make(cygrad, size))
            elif name == "numpy":
                runs[name] = self.by_hand(*self.data(size))
            elif name in self.others:
                runs[name] = self.others[name](*self.data(size))
        tasks = {name: Task("run()", {"run": run}, partial(results, run)) for name, run in runs.items()}
        return Prepared(tasks, sum(each.nbytes for each in self.data(size)), 0)


def results(run: Run) -> list[np.ndarray]:
    """Return the results of a program, in memory of their own."""
    return [array(result).copy() for result in run()]


def works(quick: bool) -> list[Work]:
    """Return the programs as work, of their full sizes or of quick ones."""
    return [workload.work(workload.quick if quick else workload.size) for workload in WORKLOADS]


# ----- Programs -----
def pairwise_data(bodies: int) -> Arrays:
    """Return masses and positions."""
    random = np.random.default_rng(0)
    return random.uniform(0.5, 2, bodies), random.standard_normal((bodies, 3))


def pairwise(library: Any, masses: np.ndarray, positions: np.ndarray) -> Run:
    """Sum the softened potential of all pairs of bodies, by broadcasting."""
    mass = library.tensor(masses)

    def potential(position: Any) -> Any:
        difference = position[:, None, :] - position[None, :, :]
        distance = ((difference ** 2).sum(-1) + 0.05).sqrt()
        return -(mass[:, None] * mass[None, :] / distance).sum() / 2

    return differentiated(library, potential, positions)


def mixture_data(points: int, dimension: int = 10, components: int = 25) -> Arrays:
    """Return points, and weights, means and roots of the precisions of the components."""
    random = np.random.default_rng(0)
    shapes = ((components,), (components, dimension), (components, dimension), (components, dimension, dimension))
    return random.standard_normal((points, dimension)), *(0.3 * random.standard_normal(shape) for shape in shapes)


def mixture(library: Any, points: np.ndarray, *parameters: np.ndarray) -> Run:
    """Return the log likelihood of a mixture of Gaussians."""
    x = library.tensor(points)

    def likelihood(logits: Any, means: Any, scales: Any, lower: Any) -> Any:
        root = library.tril(lower, -1) + library.diag_embed(library.exp(scales))
        centred = x[:, None, :] - means
        scaled = (root * centred[:, :, None, :]).sum(-1)
        density = logits + scales.sum(-1) - 0.5 * (scaled ** 2).sum(-1)
        return (library.logsumexp(density, 1) - library.logsumexp(logits, 0)).sum()

    return differentiated(library, likelihood, *parameters)


def heat_data(cells: int) -> Arrays:
    """Return an initial state."""
    return (np.random.default_rng(0).standard_normal(cells),)


def heat(library: Any, initial: np.ndarray) -> Run:
    """Step the heat equation explicitly, with fixed ends, from an initial state that is differentiated by."""
    def final(u: Any) -> Any:
        for _ in range(HEAT_STEPS):
            inner = u[1:-1] + 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
            u = library.cat([u[:1], inner, u[-1:]])
        return (u ** 2).sum()

    return differentiated(library, final, initial)


def lstm_data(steps: int, width: int = 14, layers: int = 2) -> Arrays:
    """Return a sequence of one-hot vectors, and the weights of layers, of input and output, and the first state."""
    random = np.random.default_rng(0)
    sequence = np.eye(width)[random.integers(width, size=steps + 1)]
    return sequence, *(random.standard_normal(shape) for shape in ((2 * layers, 4 * width), (3, width), (2 * layers, width)))


def lstm(library: Any, vectors: np.ndarray, *parameters: np.ndarray) -> Run:
    """Return the loss of an LSTM whose weights act element by element."""
    sequence, (count, width) = library.tensor(vectors), vectors.shape

    def cell_step(weight: Any, bias: Any, hidden: Any, cell: Any, x: Any) -> tuple[Any, Any]:
        gates = library.cat([x, hidden, x, hidden]) * weight + bias
        forget = library.sigmoid(gates[:width])
        enter = library.sigmoid(gates[width:2 * width])
        leave = library.sigmoid(gates[2 * width:3 * width])
        change = library.tanh(gates[3 * width:])
        cell = cell * forget + enter * change
        return leave * library.tanh(cell), cell

    def loss(main: Any, extra: Any, state: Any) -> Any:
        layers = len(state) // 2
        hidden = [state[2 * k] for k in range(layers)]
        cells = [state[2 * k + 1] for k in range(layers)]
        total = 0.0
        for t in range(count - 1):
            x = sequence[t] * extra[0]
            for k in range(layers):
                hidden[k], cells[k] = cell_step(main[2 * k], main[2 * k + 1], hidden[k], cells[k], x)
                x = hidden[k]
            predicted = x * extra[1] + extra[2]
            normalised = predicted - library.log(library.exp(predicted).sum() + 2)
            total = total + (sequence[t + 1] * normalised).sum()
        return -total / ((count - 1) * width)

    return differentiated(library, loss, *parameters)


def jacobian_data(equations: int) -> Arrays:
    """Return a point."""
    return (np.random.default_rng(0).standard_normal(equations),)


def jacobian(library: Any, at: np.ndarray) -> Run:
    """Return the Jacobian of a system in which each equation has three neighbours, Broyden's."""
    point = library.tensor(at)

    def system(v: Any) -> Any:
        inner = (3 - 2 * v[1:-1]) * v[1:-1] - v[:-2] - 2 * v[2:] + 1
        first = (3 - 2 * v[:1]) * v[:1] - 2 * v[1:2] + 1
        last = (3 - 2 * v[-1:]) * v[-1:] - v[-2:-1] + 1
        return library.cat([first, inner, last])

    return lambda: [library.autograd.functional.jacobian(system, point, vectorize=True)]


def pricing_data(options: int) -> Arrays:
    """Return strikes, years, spots and volatilities."""
    random = np.random.default_rng(0)
    return [random.uniform(low, high, options).astype(np.float32) for low, high in ((80, 120), (0.2, 2), (80, 120), (0.1, 0.5))]


def pricing(library: Any, strikes: np.ndarray, times: np.ndarray, *parameters: np.ndarray) -> Run:
    """Price European options by Black and Scholes, in floats, with their delta and vega."""
    strike, years = library.tensor(strikes), library.tensor(times)

    def normal(x: Any) -> Any:
        return 0.5 * (1 + library.erf(x / math.sqrt(2)))

    def value(spot: Any, volatility: Any) -> Any:
        deviation = volatility * library.sqrt(years)
        first = (library.log(spot / strike) + (RATE + 0.5 * volatility ** 2) * years) / deviation
        second = first - deviation
        return (spot * normal(first) - strike * library.exp(-RATE * years) * normal(second)).sum()

    return differentiated(library, value, *parameters)


def chain_data(size: int) -> Arrays:
    """Return numbers, and their scales."""
    random = np.random.default_rng(0)
    return random.standard_normal(size), random.standard_normal(size)


def chain(library: Any, *parameters: np.ndarray) -> Run:
    """Differentiate one expression of many elementwise operators."""
    def expression(x: Any, scale: Any) -> Any:
        wave = library.sin(3 * x) * library.exp(-x * x)
        return (wave + library.tanh(scale * x) / (1 + x * x)).sum()

    return differentiated(library, expression, *parameters)


def mlp_data(examples: int, widths: tuple[int, ...] = (64, 256, 256, 10)) -> Arrays:
    """Return examples, their classes, and weights and biases of layers."""
    random = np.random.default_rng(0)
    x = random.standard_normal((examples, widths[0]), dtype=np.float32)
    targets = random.integers(widths[-1], size=examples)
    pairs = list(zip(widths, widths[1:], strict=False))
    weights = [(random.standard_normal(pair) / 8).astype(np.float32) for pair in pairs]
    return x, targets, *weights, *(np.zeros(pair[1], np.float32) for pair in pairs)


def mlp(library: Any, inputs: np.ndarray, classes: np.ndarray, *parameters: np.ndarray) -> Run:
    """Train a network of layers for one step."""
    x, targets, examples, layers = library.tensor(inputs), library.tensor(classes), len(inputs), len(parameters) // 2
    leaves = [library.tensor(parameter, requires_grad=True) for parameter in parameters]
    weights, biases = leaves[:layers], leaves[layers:]

    def run() -> list[Any]:
        hidden = x
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            hidden = library.tanh(hidden @ weight + bias)
        scores = hidden @ weights[-1] + biases[-1]
        loss = -library.log_softmax(scores, 1)[library.arange(examples), targets].mean()
        loss.backward()
        with library.no_grad():
            for parameter in leaves:
                parameter -= LEARNING * parameter.grad
                parameter.grad = None
        return [loss.detach(), *(weight.detach() for weight in weights)]

    return run


def gaussian_process_data(points: int, features: int = 3) -> Arrays:
    """Return points, their values, and scales, amplitude and noise."""
    random = np.random.default_rng(0)
    x, y = random.standard_normal((points, features)), random.standard_normal((points, 1))
    return x, y, np.zeros(features), np.array(0.1), np.array(-1.0)


def gaussian_process(library: Any, points: np.ndarray, values: np.ndarray, *parameters: np.ndarray) -> Run:
    """Return the negative log likelihood of a Gaussian process, by its scales, amplitude and noise."""
    x, y = library.tensor(points), library.tensor(values)
    eye = library.eye(len(points), dtype=x.dtype)

    def likelihood(scales: Any, amplitude: Any, noise: Any) -> Any:
        scaled = x / scales.exp()
        squares = (scaled * scaled).sum(-1)
        distances = squares[:, None] + squares - 2 * scaled @ scaled.mT
        kernel = (2 * amplitude).exp() * (-0.5 * distances).exp() + (2 * noise).exp() * eye
        factor = library.linalg.cholesky(kernel)
        return (0.5 * (y * library.cholesky_solve(y, factor)).sum() + factor.diagonal().log().sum()
                + 0.5 * len(points) * math.log(2 * math.pi))

    return differentiated(library, likelihood, *parameters)


def kalman_filter_data(steps: int, states: int = 4, observed: int = 2) -> Arrays:
    """Return observations, and the matrices of a linear state-space model."""
    random = np.random.default_rng(0)
    observations = random.standard_normal((steps, observed, 1))
    transition = 0.9 * np.eye(states) + 0.05 * random.standard_normal((states, states))
    return observations, transition, random.standard_normal((observed, states)), np.full(states, -1.0), np.full(observed, -1.0)


def kalman_filter(library: Any, readings: np.ndarray, *parameters: np.ndarray) -> Run:
    """Return the log likelihood of observations under a linear state-space model, by its matrices."""
    observations, states = library.tensor(readings), len(parameters[0])
    eye = library.eye(states, dtype=observations.dtype)

    def likelihood(transition: Any, reading: Any, drift: Any, noise: Any) -> Any:
        process, measurement = drift.exp().diag(), noise.exp().diag()
        mean, covariance, total = library.zeros(states, 1, dtype=eye.dtype), eye, 0.0
        for k in range(len(readings)):
            mean, covariance = transition @ mean, transition @ covariance @ transition.mT + process
            residual = observations[k] - reading @ mean
            spread = reading @ covariance @ reading.mT + measurement
            gain = library.linalg.solve(spread, reading @ covariance).mT
            total = total - 0.5 * (residual * library.linalg.solve(spread, residual)).sum() - 0.5 * library.linalg.slogdet(spread)[1]
            mean, covariance = mean + gain @ residual, (eye - gain @ reading) @ covariance
        return total

    return differentiated(library, likelihood, *parameters)


def others(name: str) -> dict[str, Callable[..., Run]]:
    """Return the twins of a program in the libraries that have one."""
    return {library: partial(make, name) for library, (names, make) in other_libraries.TWINS.items() if name in names}


def workload(name: str, units: str, size: int, quick: int, program: Callable[..., Run], dtype: str = "float64") -> Workload:
    """Return a program with its data, and its twins, which have its name."""
    word = program.__name__
    return Workload(name, units, size, quick, globals()[f"{word}_data"], program, getattr(by_hand, word), others(word), dtype)


WORKLOADS = (
    workload("pairwise potential", "bodies", 600, 300, pairwise),
    workload("Gaussian mixture", "points", 1000, 300, mixture),
    workload("heat equation", "cells, 200 steps", 20_000, 2000, heat),
    workload("LSTM", "steps of 14 elements", 19, 19, lstm),
    workload("Jacobian of slices", "equations", 200, 200, jacobian),
    workload("option pricing", "options", 4_000_000, 400_000, pricing, "float32"),
    workload("elementwise chain", "numbers", 1_000_000, 100_000, chain),
    workload("MLP step", "examples, 64-256-256-10", 256, 256, mlp, "float32"),
    workload("Gaussian process", "points", 300, 100, gaussian_process),
    workload("Kalman filter", "steps, 4 states", 200, 50, kalman_filter),
)
