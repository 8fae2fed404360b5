"""The programs in other libraries, where they are natural there.

JAX and HIPS autograd read one source, in NumPy's names: a function of the constants of a program returns one of its parameters. Their
loops are `scan`, which JAX compiles. numexpr has the program that is one expression, CasADi those whose vectors are small.
"""
from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy

from cygrad.bench.by_hand import HEAT_STEPS, LEARNING, RATE
from cygrad.bench.libraries import Run, entered


# ----- One source for JAX and autograd; `lib` is one of them -----
def pairwise(lib: Any, mass: Any) -> Callable[..., Any]:
    """Sum the potential of all pairs of bodies."""
    def potential(position: Any) -> Any:
        difference = position[:, None, :] - position[None, :, :]
        return -(mass[:, None] * mass / lib.np.sqrt((difference**2).sum(-1) + 0.05)).sum() / 2

    return potential


def logsumexp(lib: Any, x: Any, axis: int) -> Any:
    """Return the logarithm of the sum of exponentials."""
    highest = lib.np.max(x, axis, keepdims=True)
    return lib.np.log(lib.np.exp(x - highest).sum(axis)) + lib.np.squeeze(highest, axis)


def mixture(lib: Any, x: Any) -> Callable[..., Any]:
    """Return the likelihood of a mixture of Gaussians."""
    below = numpy.tril(numpy.ones((x.shape[1], x.shape[1])), -1)

    def likelihood(logits: Any, means: Any, scales: Any, lower: Any) -> Any:
        root = lower * below + lib.np.exp(scales)[:, :, None] * numpy.eye(x.shape[1])
        scaled = lib.np.einsum("kij,nkj->nki", root, x[:, None, :] - means)
        density = logits + scales.sum(-1) - 0.5 * (scaled**2).sum(-1)
        return (logsumexp(lib, density, 1) - logsumexp(lib, logits, 0)).sum()

    return likelihood


def heat(lib: Any) -> Callable[..., Any]:
    """Step the heat equation."""
    def step(u: Any, _: Any) -> tuple[Any, None]:
        inner = u[1:-1] + 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
        return lib.np.concatenate([u[:1], inner, u[-1:]]), None

    return lambda u: (lib.scan(step, u, numpy.zeros(HEAT_STEPS))[0] ** 2).sum()


def lstm(lib: Any, sequence: Any) -> Callable[..., Any]:
    """Return the loss of an LSTM."""
    width = sequence.shape[1]

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + lib.np.exp(-x))

    def loss(main: Any, extra: Any, state: Any) -> Any:
        def step(carried: tuple[Any, Any, Any], pair: Any) -> tuple[Any, None]:
            hidden, cells, total = carried
            above, cells_above, x = [], [], pair[0] * extra[0]
            for k in range(len(state) // 2):
                gates = lib.np.concatenate([x, hidden[k], x, hidden[k]]) * main[2 * k] + main[2 * k + 1]
                forget, enter, leave = (sigmoid(gates[i * width:(i + 1) * width]) for i in range(3))
                cells_above.append(cells[k] * forget + enter * lib.np.tanh(gates[3 * width:]))
                x = leave * lib.np.tanh(cells_above[-1])
                above.append(x)
            predicted = x * extra[1] + extra[2]
            normalised = predicted - lib.np.log(lib.np.exp(predicted).sum() + 2)
            return (lib.np.stack(above), lib.np.stack(cells_above), total + (pair[1] * normalised).sum()), None

        pairs = lib.np.stack([sequence[:-1], sequence[1:]], 1)
        return -lib.scan(step, (state[::2], state[1::2], 0.0), pairs)[0][2] / (len(pairs) * width)

    return loss


def pricing(lib: Any, strike: Any, years: Any) -> Callable[..., Any]:
    """Price European options."""
    def normal(x: Any) -> Any:
        return 0.5 * (1 + lib.special.erf(x / math.sqrt(2)))

    def value(spot: Any, volatility: Any) -> Any:
        deviation = volatility * lib.np.sqrt(years)
        first = (lib.np.log(spot / strike) + (RATE + 0.5 * volatility**2) * years) / deviation
        return (spot * normal(first) - strike * lib.np.exp(-RATE * years) * normal(first - deviation)).sum()

    return value


def chain(lib: Any) -> Callable[..., Any]:
    """Return an expression of many elementwise operators."""
    def expression(x: Any, scale: Any) -> Any:
        return (lib.np.sin(3 * x) * lib.np.exp(-x * x) + lib.np.tanh(scale * x) / (1 + x * x)).sum()

    return expression


def mlp(lib: Any, x: Any, targets: Any) -> Callable[..., Any]:
    """Return the loss of a network of layers."""
    rows = numpy.arange(len(x))

    def loss(*parameters: Any) -> Any:
        layers, hidden = len(parameters) // 2, x
        for weight, bias in zip(parameters[:layers - 1], parameters[layers:-1], strict=True):
            hidden = lib.np.tanh(lib.np.dot(hidden, weight) + bias)
        scores = lib.np.dot(hidden, parameters[layers - 1]) + parameters[-1]
        return (logsumexp(lib, scores, 1) - scores[rows, targets]).mean()

    return loss


def gaussian_process(lib: Any, x: Any, y: Any) -> Callable[..., Any]:
    """Return the negative log likelihood of a Gaussian process."""
    def likelihood(scales: Any, amplitude: Any, noise: Any) -> Any:
        scaled = x / lib.np.exp(scales)
        squares = (scaled * scaled).sum(-1)
        distances = squares[:, None] + squares - 2 * lib.np.dot(scaled, scaled.T)
        kernel = lib.np.exp(2 * amplitude - 0.5 * distances) + lib.np.exp(2 * noise) * numpy.eye(len(x))
        quadratic = (y * lib.np.linalg.solve(kernel, y)).sum()
        return 0.5 * (quadratic + lib.np.linalg.slogdet(kernel)[1] + len(x) * math.log(2 * math.pi))

    return likelihood


def kalman_filter(lib: Any, observations: Any) -> Callable[..., Any]:
    """Return the likelihood of observations under a linear state-space model."""
    dot = lib.np.dot

    def likelihood(transition: Any, reading: Any, drift: Any, noise: Any) -> Any:
        eye = numpy.eye(len(drift))
        process, measurement = lib.np.exp(drift) * eye, lib.np.exp(noise) * numpy.eye(len(noise))

        def step(carried: tuple[Any, Any, Any], observation: Any) -> tuple[Any, None]:
            mean, covariance, total = carried
            mean, covariance = dot(transition, mean), dot(dot(transition, covariance), transition.T) + process
            residual = observation - dot(reading, mean)
            spread = dot(dot(reading, covariance), reading.T) + measurement
            gain = lib.np.linalg.solve(spread, dot(reading, covariance)).T
            total = total - 0.5 * (residual * lib.np.linalg.solve(spread, residual)).sum() - 0.5 * lib.np.linalg.slogdet(spread)[1]
            return (mean + dot(gain, residual), dot(eye - dot(gain, reading), covariance), total), None

        return lib.scan(step, (numpy.zeros((len(drift), 1)), eye, 0.0), observations)[0][2]

    return likelihood


def system(lib: Any) -> Callable[..., Any]:
    """Return Broyden's system."""
    def equations(v: Any) -> Any:
        inner = (3 - 2 * v[1:-1]) * v[1:-1] - v[:-2] - 2 * v[2:] + 1
        first = (3 - 2 * v[:1]) * v[:1] - 2 * v[1:2] + 1
        last = (3 - 2 * v[-1:]) * v[-1:] - v[-2:-1] + 1
        return lib.np.concatenate([first, inner, last])

    return equations


PROGRAMS: dict[str, Callable[..., Callable[..., Any]]] = {
    function.__name__: function for function in (pairwise, mixture, heat, lstm, pricing, chain, mlp, gaussian_process, kalman_filter)
}


def halves(name: str, data: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the constants of a program, and its parameters."""
    count = len(inspect.signature(PROGRAMS[name]).parameters) - 1
    return data[:count], data[count:]


def training(step: Callable[..., tuple[Any, Any]], parameters: Iterable[Any]) -> Run:
    """Return a function that takes a step after the other, and returns the loss and the weights."""
    state = list(parameters)

    def run() -> list[Any]:
        loss, gradients = step(*state)
        state[:] = [parameter - LEARNING * gradient for parameter, gradient in zip(state, gradients, strict=True)]
        return [loss, *state[:len(state) // 2]]

    return run


def in_jax(name: str, *data: Any) -> Run:
    """Return a program compiled by JAX."""
    jax = entered("jax")
    lib = SimpleNamespace(np=jax.numpy, scan=jax.lax.scan, special=jax.scipy.special)
    if name == "jacobian":
        compiled, point = jax.jit(jax.jacfwd(system(lib))), jax.numpy.asarray(data[0])
        return lambda: [jax.block_until_ready(compiled(point))]
    constants, parameters = halves(name, tuple(map(jax.numpy.asarray, data)))
    both = jax.value_and_grad(PROGRAMS[name](lib, *constants), argnums=tuple(range(len(parameters))))
    compiled = jax.jit(both)
    if name == "mlp":
        step = training(compiled, parameters)
        return lambda: jax.block_until_ready(step())

    def run() -> list[Any]:
        value, gradients = jax.block_until_ready(compiled(*parameters))
        return [value, *gradients]

    return run


def in_autograd(name: str, *data: Any) -> Run:
    """Return a program differentiated by HIPS autograd, while NumPy executes it."""
    autograd = entered("autograd")

    def scan(step: Callable[..., Any], carried: Any, over: Any) -> tuple[Any, None]:
        for each in over:
            carried, _ = step(carried, each)
        return carried, None

    lib = SimpleNamespace(np=import_module("autograd.numpy"), scan=scan)
    if name == "pricing":
        lib.special = import_module("autograd.scipy.special")
    if name == "jacobian":
        derivative = autograd.jacobian(system(lib))
        return lambda: [derivative(data[0])]
    constants, parameters = halves(name, data)
    both = autograd.value_and_grad(PROGRAMS[name](lib, *constants), tuple(range(len(parameters))))
    if name == "mlp":
        return training(both, parameters)

    def run() -> list[Any]:
        value, gradients = both(*parameters)
        return [value, *gradients]

    return run


# ----- numexpr -----
def in_numexpr(name: str, *data: Any) -> Run:
    """Return the expression, and its gradients by hand, each in one pass."""
    evaluate = entered("numexpr").evaluate
    names = dict(zip(("x", "s"), data, strict=True))
    dx, ds = (numpy.empty_like(each) for each in data)

    def run() -> list[Any]:
        value = evaluate("sum(sin(3*x) * exp(-x*x) + tanh(s*x) / (1 + x*x))", names)
        evaluate("(3*cos(3*x) - 2*x*sin(3*x)) * exp(-x*x) + (s*(1 - tanh(s*x)**2) - 2*x*tanh(s*x) / (1 + x*x)) / (1 + x*x)", names, out=dx)
        evaluate("x * (1 - tanh(s*x)**2) / (1 + x*x)", names, out=ds)
        return [value, dx, ds]

    return run


# ----- CasADi -----
def casadi_lstm(ca: Any, sequence: Any, main: Any, extra: Any, state: Any) -> Any:
    """Return the loss of an LSTM; with the rows of the other libraries."""
    width, layers = sequence.shape[1], state.shape[0] // 2
    hidden, cells, total = [state[2 * k, :] for k in range(layers)], [state[2 * k + 1, :] for k in range(layers)], 0
    for t in range(len(sequence) - 1):
        x = ca.DM(sequence[t]).T * extra[0, :]
        for k in range(layers):
            gates = ca.horzcat(x, hidden[k], x, hidden[k]) * main[2 * k, :] + main[2 * k + 1, :]
            forget, enter, leave = (1 / (1 + ca.exp(-gates[i * width:(i + 1) * width])) for i in range(3))
            cells[k] = cells[k] * forget + enter * ca.tanh(gates[3 * width:])
            x = hidden[k] = leave * ca.tanh(cells[k])
        predicted = x * extra[1, :] + extra[2, :]
        total += ca.dot(ca.DM(sequence[t + 1]).T, predicted - ca.log(ca.sum2(ca.exp(predicted)) + 2))
    return -total / ((len(sequence) - 1) * width)


def casadi_kalman_filter(ca: Any, observations: Any, transition: Any, reading: Any, drift: Any, noise: Any) -> Any:
    """Return the likelihood of observations."""
    process, measurement, states = ca.diag(ca.exp(drift)), ca.diag(ca.exp(noise)), transition.shape[0]
    mean, covariance, total = ca.DM.zeros(states, 1), ca.DM.eye(states), 0
    for observation in observations:
        mean, covariance = transition @ mean, transition @ covariance @ transition.T + process
        residual, read = ca.DM(observation) - reading @ mean, reading @ covariance
        spread = read @ reading.T + measurement
        inverse = ca.inv(spread)
        total -= 0.5 * ca.dot(residual, inverse @ residual) + 0.5 * ca.log(ca.det(spread))
        mean, covariance = mean + read.T @ inverse.T @ residual, covariance - read.T @ inverse.T @ read
    return total


CASADI: dict[str, Callable[..., Any]] = {"lstm": casadi_lstm, "kalman_filter": casadi_kalman_filter}


def in_casadi(name: str, *data: Any) -> Run:
    """Return a program whose graph of scalars CasADi made once, with its gradient."""
    ca = entered("casadi")
    first, *parameters = data
    leaves = [ca.SX.sym(f"leaf{k}", *parameter.shape) for k, parameter in enumerate(parameters)]
    value = CASADI[name](ca, first, *leaves)
    compiled = ca.Function(name, leaves, [value, *(ca.gradient(value, leaf) for leaf in leaves)])

    def run() -> list[Any]:
        value, *gradients = compiled(*parameters)
        shaped = (gradient.full().reshape(leaf.shape) for gradient, leaf in zip(gradients, parameters, strict=True))
        return [float(value), *shaped]

    return run


TWINS: dict[str, tuple[Iterable[str], Callable[..., Run]]] = {
    "jax": ((*PROGRAMS, "jacobian"), in_jax), "autograd": ((*PROGRAMS, "jacobian"), in_autograd), "numexpr": (("chain",), in_numexpr),
    "casadi": (CASADI, in_casadi),
}
