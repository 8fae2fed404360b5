"""The programs in NumPy, as well as they can be written: gradients by hand, results in memory that is there, nothing computed twice.

Each has the name of its program among the workloads, takes its data, and returns a function that computes the value and the gradients.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from cygrad.bench.libraries import Run

HEAT_STEPS, RATE, LEARNING = 200, 0.03, 0.01


def pairwise(mass: np.ndarray, position: np.ndarray) -> Run:
    """Sum the potential of all pairs; distances by one product of matrices, forces by another."""
    n = len(mass)
    inverse, weight, force = np.empty((n, n)), np.empty((n, n)), np.empty((n, 3))

    def run() -> list[Any]:
        squares = np.einsum("ij,ij->i", position, position)
        np.matmul(position, position.T, out=inverse)
        np.multiply(inverse, -2, out=inverse)
        np.add(inverse, squares[:, None], out=inverse)
        np.add(inverse, squares + 0.05, out=inverse)
        np.sqrt(inverse, out=inverse)
        np.reciprocal(inverse, out=inverse)
        value = -0.5 * (mass @ (inverse @ mass))
        np.multiply(inverse, inverse, out=weight)
        np.multiply(weight, inverse, out=weight)
        np.matmul(weight, mass[:, None] * position, out=force)
        return [value, mass[:, None] * ((weight @ mass)[:, None] * position - force)]

    return run


def mixture(x: np.ndarray, logits: np.ndarray, means: np.ndarray, scales: np.ndarray, lower: np.ndarray) -> Run:
    """Return the likelihood: a product of matrices for each component, with points along the rows."""
    (n, d), k = x.shape, len(logits)
    scaled, density, weighted = np.empty((k, n, d)), np.empty((k, n)), np.empty((k, n, d))
    diagonal = np.arange(d)

    def run() -> list[Any]:
        root = np.tril(lower, -1)
        root[:, diagonal, diagonal] = exponentials = np.exp(scales)
        np.matmul(x, root.mT, out=scaled)
        np.subtract(scaled, np.matmul(root, means[:, :, None]).mT, out=scaled)
        np.einsum("kni,kni->kn", scaled, scaled, out=density)
        np.multiply(density, -0.5, out=density)
        np.add(density, (logits + scales.sum(1))[:, None], out=density)
        highest = density.max(0)
        np.subtract(density, highest, out=density)
        np.exp(density, out=density)
        sums = density.sum(0)
        shares = np.exp(logits - logits.max())
        total = shares.sum()
        value = (np.log(sums) + highest).sum() - n * (math.log(total) + logits.max())
        np.divide(density, sums, out=density)
        np.multiply(scaled, -density[:, :, None], out=weighted)
        members, along = density.sum(1), weighted.sum(1)
        droot = np.matmul(weighted.mT, x) - along[:, :, None] * means[:, None, :]
        dmeans = -np.matmul(along[:, None, :], root)[:, 0]
        dscales = members[:, None] + droot[:, diagonal, diagonal] * exponentials
        return [value, members - n / total * shares, dmeans, dscales, np.tril(droot, -1)]

    return run


def heat(initial: np.ndarray) -> Run:
    """Step forward, and the transposed steps backward, both in place."""
    u, flow = np.empty_like(initial), np.empty(len(initial) - 2)

    def run() -> list[Any]:
        np.copyto(u, initial)
        for _ in range(HEAT_STEPS):
            np.add(u[2:], u[:-2], out=flow)
            np.multiply(flow, 0.25, out=flow)
            np.multiply(u[1:-1], 0.5, out=u[1:-1])
            np.add(u[1:-1], flow, out=u[1:-1])
        value = u @ u
        np.multiply(u, 2, out=u)
        for _ in range(HEAT_STEPS):
            np.multiply(u[1:-1], 0.25, out=flow)
            np.multiply(u[1:-1], 0.5, out=u[1:-1])
            np.add(u[2:], flow, out=u[2:])
            np.add(u[:-2], flow, out=u[:-2])
        return [value, u]

    return run


def lstm(sequence: np.ndarray, main: np.ndarray, extra: np.ndarray, state: np.ndarray) -> Run:
    """Return the loss; gates of a step lie in one vector, and the operands of the backward are stored by step and layer."""
    steps, width = len(sequence) - 1, sequence.shape[1]
    layers = len(state) // 2
    inputs, gates = np.empty((steps, layers, 4 * width)), np.empty((steps, layers, 4 * width))
    cells, curves = np.empty((steps + 1, layers, width)), np.empty((steps, layers, width))
    hidden, dgates = np.empty((layers, width)), np.empty(4 * width)
    tops, shares = np.empty((steps, width)), np.empty((steps, width))
    change = slice(3 * width, None)

    def run() -> list[Any]:
        hidden[:], cells[0], total = state[::2], state[1::2], 0.0
        for t in range(steps):
            x = sequence[t] * extra[0]
            for k in range(layers):
                into, gate = inputs[t, k].reshape(4, width), gates[t, k]
                into[::2], into[1::2] = x, hidden[k]
                np.multiply(inputs[t, k], main[2 * k], out=gate)
                np.add(gate, main[2 * k + 1], out=gate)
                opened = gate[:3 * width]
                np.negative(opened, out=opened)
                np.exp(opened, out=opened)
                np.add(opened, 1, out=opened)
                np.reciprocal(opened, out=opened)
                np.tanh(gate[change], out=gate[change])
                forget, enter, leave, new = gate.reshape(4, width)
                np.multiply(cells[t, k], forget, out=cells[t + 1, k])
                np.add(cells[t + 1, k], enter * new, out=cells[t + 1, k])
                np.tanh(cells[t + 1, k], out=curves[t, k])
                np.multiply(leave, curves[t, k], out=hidden[k])
                x = hidden[k]
            tops[t] = x
            predicted = x * extra[1] + extra[2]
            np.exp(predicted, out=shares[t])
            normaliser = shares[t].sum() + 2
            np.divide(shares[t], normaliser, out=shares[t])
            total += sequence[t + 1] @ predicted - sequence[t + 1].sum() * math.log(normaliser)
        return [-total / (steps * width), *backward()]

    def backward() -> list[Any]:
        dmain, dextra, dstate = np.zeros_like(main), np.zeros_like(extra), np.zeros_like(state)
        dhidden, dcells = dstate[::2], dstate[1::2]
        for t in reversed(range(steps)):
            dpredicted = shares[t] * sequence[t + 1].sum() - sequence[t + 1]
            dpredicted /= steps * width
            dextra[1] += dpredicted * tops[t]
            dextra[2] += dpredicted
            dx = dpredicted * extra[1]
            for k in reversed(range(layers)):
                forget, enter, leave, new = gates[t, k].reshape(4, width)
                dforget, denter, dleave, dnew = dgates.reshape(4, width)
                dh = dx + dhidden[k]
                curve = curves[t, k]
                dcell = dcells[k] + dh * leave * (1 - curve * curve)
                np.multiply(dcell * cells[t, k], forget * (1 - forget), out=dforget)
                np.multiply(dcell * new, enter * (1 - enter), out=denter)
                np.multiply(dh * curve, leave * (1 - leave), out=dleave)
                np.multiply(dcell * enter, 1 - new * new, out=dnew)
                dmain[2 * k] += dgates * inputs[t, k]
                dmain[2 * k + 1] += dgates
                dinputs = (dgates * main[2 * k]).reshape(4, width)
                np.multiply(dcell, forget, out=dcells[k])
                np.add(dinputs[1], dinputs[3], out=dhidden[k])
                dx = dinputs[0] + dinputs[2]
            dextra[0] += dx * sequence[t]
        return [dmain, dextra, dstate]

    return run


def jacobian(v: np.ndarray) -> Run:
    """Return the Jacobian: three diagonals."""
    n = len(v)
    result = np.zeros((n, n))
    below, middle, above = result[1:].ravel()[::n + 1], result.reshape(-1)[::n + 1], result.reshape(-1)[1::n + 1]

    def run() -> list[Any]:
        below[:], above[:] = -1, -2
        np.multiply(v, -4, out=middle)
        np.add(middle, 3, out=middle)
        return [result]

    return run


def pricing(strike: np.ndarray, years: np.ndarray, spot: np.ndarray, volatility: np.ndarray) -> Run:
    """Price options: both normal densities follow from one exponential, the distributions from them (Abramowitz and Stegun, 26.2.17)."""
    root, deviation, first, second, density, other, discounted, delta, buffer = (np.empty_like(spot) for _ in range(9))
    constants = [np.float32(c) for c in (1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.319381530)]

    def normal(x: np.ndarray, density: np.ndarray, out: np.ndarray) -> None:
        """Write the normal distribution up to x, of its density there."""
        np.absolute(x, out=buffer)
        np.multiply(buffer, np.float32(0.2316419), out=buffer)
        np.add(buffer, 1, out=buffer)
        np.reciprocal(buffer, out=buffer)
        np.multiply(buffer, constants[0], out=out)
        for constant in constants[1:]:
            np.add(out, constant, out=out)
            np.multiply(out, buffer, out=out)
        np.multiply(out, density, out=out)
        np.subtract(1, out, out=buffer)
        np.copyto(out, buffer, where=x > 0)

    def run() -> list[Any]:
        np.sqrt(years, out=root)
        np.multiply(volatility, root, out=deviation)
        np.divide(spot, strike, out=first)
        np.log(first, out=first)
        np.multiply(years, np.float32(RATE), out=buffer)
        np.add(first, buffer, out=first)
        np.negative(buffer, out=discounted)
        np.exp(discounted, out=discounted)
        np.multiply(discounted, strike, out=discounted)
        np.divide(first, deviation, out=first)
        np.multiply(deviation, 0.5, out=buffer)
        np.add(first, buffer, out=first)
        np.subtract(first, deviation, out=second)
        np.multiply(first, first, out=density)
        np.multiply(density, -0.5, out=density)
        np.exp(density, out=density)
        np.multiply(density, np.float32(1 / math.sqrt(2 * math.pi)), out=density)
        normal(first, density, delta)
        np.multiply(spot, density, out=density)                 # which is the discounted strike times the other density
        np.divide(density, discounted, out=first)
        normal(second, first, other)
        value = spot @ delta - discounted @ other
        np.multiply(density, root, out=density)
        return [value, delta, density]

    return run


def chain(x: np.ndarray, scale: np.ndarray) -> Run:
    """Differentiate the expression: each function once, cos from nothing else."""
    n = len(x)
    square, wave, decay, cosine, curve, quotient, dx, dscale = np.empty((8, n))

    def run() -> list[Any]:
        np.multiply(x, 3, out=cosine)
        np.sin(cosine, out=wave)
        np.cos(cosine, out=cosine)
        np.multiply(x, x, out=square)
        np.negative(square, out=decay)
        np.exp(decay, out=decay)
        np.multiply(wave, decay, out=wave)
        np.add(square, 1, out=square)
        np.reciprocal(square, out=square)
        np.multiply(scale, x, out=curve)
        np.tanh(curve, out=curve)
        np.multiply(curve, square, out=quotient)
        value = wave.sum() + quotient.sum()
        np.multiply(quotient, square, out=quotient)
        np.add(quotient, wave, out=quotient)
        np.multiply(quotient, x, out=quotient)
        np.multiply(quotient, 2, out=quotient)
        np.multiply(curve, curve, out=curve)
        np.subtract(1, curve, out=curve)
        np.multiply(curve, square, out=curve)
        np.multiply(curve, x, out=dscale)
        np.multiply(curve, scale, out=curve)
        np.multiply(cosine, decay, out=dx)
        np.multiply(dx, 3, out=dx)
        np.add(dx, curve, out=dx)
        np.subtract(dx, quotient, out=dx)
        return [value, dx, dscale]

    return run


def mlp(x: np.ndarray, targets: np.ndarray, *parameters: np.ndarray) -> Run:
    """Train for one step, with the products of matrices in place."""
    layers, examples = len(parameters) // 2, len(x)
    weights, biases = parameters[:layers], parameters[layers:]
    outputs = [np.empty((examples, weight.shape[1]), np.float32) for weight in weights]
    gradients = [np.empty_like(output) for output in outputs]
    steps = [np.empty_like(weight) for weight in weights]
    rows = np.arange(examples)

    def run() -> list[Any]:
        hidden = x
        for weight, bias, output in zip(weights, biases, outputs, strict=True):
            np.matmul(hidden, weight, out=output)
            np.add(output, bias, out=output)
            if output is not outputs[-1]:
                np.tanh(output, out=output)
            hidden = output
        scores, g = outputs[-1], gradients[-1]
        np.subtract(scores, scores.max(1, keepdims=True), out=scores)
        chosen = scores[rows, targets]
        np.exp(scores, out=g)
        sums = g.sum(1, keepdims=True)
        loss = (np.log(sums[:, 0]) - chosen).mean()
        np.divide(g, sums, out=g)
        g[rows, targets] -= 1
        np.multiply(g, np.float32(LEARNING / examples), out=g)      # so that g is steps
        for k in reversed(range(layers)):
            g = gradients[k]
            np.matmul((outputs[k - 1] if k else x).T, g, out=steps[k])
            if k:
                before, above = outputs[k - 1], gradients[k - 1]
                np.matmul(g, weights[k].T, out=above)
                np.multiply(before, before, out=before)
                np.subtract(1, before, out=before)
                np.multiply(above, before, out=above)
            np.subtract(weights[k], steps[k], out=weights[k])
            np.subtract(biases[k], g.sum(0), out=biases[k])
        return [loss, *weights]

    return run


def gaussian_process(x: np.ndarray, y: np.ndarray, scales: np.ndarray, amplitude: np.ndarray, noise: np.ndarray) -> Run:
    """Return the likelihood; all gradients read the inverse of the kernel, weighted."""
    n = len(x)
    signal, kernel, diagonal = np.empty((n, n)), np.empty((n, n)), np.arange(n)

    def run() -> list[Any]:
        scaled = x / np.exp(scales)
        squares = np.einsum("ij,ij->i", scaled, scaled)
        np.matmul(scaled, scaled.T, out=signal)
        np.subtract(signal, squares[:, None] / 2, out=signal)
        np.subtract(signal, squares / 2 - 2 * amplitude, out=signal)
        np.exp(signal, out=signal)
        np.copyto(kernel, signal)
        variance = math.exp(2 * noise)
        kernel[diagonal, diagonal] += variance
        _, logarithm = np.linalg.slogdet(kernel)
        inverse = np.linalg.inv(kernel)
        solved = inverse @ y
        value = 0.5 * (y * solved).sum() + 0.5 * logarithm + 0.5 * n * math.log(2 * math.pi)
        np.subtract(inverse, solved * solved.T, out=inverse)
        dnoise = variance * np.trace(inverse)
        np.multiply(inverse, signal, out=inverse)
        sums = inverse.sum(1)
        dscales = sums @ (scaled * scaled) - np.einsum("if,if->f", scaled, inverse @ scaled)
        return [value, dscales, sums.sum(), dnoise]

    return run


def kalman_filter(observations: np.ndarray, transition: np.ndarray, reading: np.ndarray, drift: np.ndarray, noise: np.ndarray) -> Run:
    """Return the likelihood; a step stores the operands of its transposed one, and inverts one matrix."""
    F, H, states, eye = transition, reading, len(drift), np.eye(len(drift))

    def run() -> list[Any]:
        process, measurement = np.diag(np.exp(drift)), np.diag(np.exp(noise))
        mean, covariance, total, history = np.zeros((states, 1)), eye, 0.0, []
        for observation in observations:
            predicted, spread = F @ mean, F @ covariance @ F.T + process
            residual, read = observation - H @ predicted, H @ spread
            innovation = read @ H.T + measurement
            inverse = np.linalg.inv(innovation)
            solved, gain = inverse @ residual, inverse @ read
            total -= 0.5 * (residual * solved).sum() + 0.5 * math.log(np.linalg.det(innovation))
            history.append((mean, covariance, predicted, spread, residual, read, inverse, solved, gain))
            mean, covariance = predicted + gain.T @ residual, spread - gain.T @ read
        dF, dH, dprocess, dmeasurement = np.zeros_like(F), np.zeros_like(H), np.zeros(states), np.zeros(len(noise))
        dmean, dcovariance = np.zeros_like(mean), np.zeros_like(covariance)
        for mean, covariance, predicted, spread, residual, read, inverse, solved, gain in reversed(history):
            dgain = residual @ dmean.T - read @ dcovariance.T
            dresidual = gain @ dmean - solved
            weighted = inverse.T @ dgain
            dread = weighted - gain @ dcovariance
            dinnovation = 0.5 * (solved @ solved.T - inverse.T) - weighted @ gain.T
            dspread = dcovariance + H.T @ (dinnovation @ H + dread)
            dH += dinnovation @ H @ spread.T + dinnovation.T @ read + dread @ spread.T - dresidual @ predicted.T
            dpredicted = dmean - H.T @ dresidual
            dF += dpredicted @ mean.T + dspread @ F @ covariance.T + dspread.T @ F @ covariance
            dprocess += dspread.diagonal()
            dmeasurement += dinnovation.diagonal()
            dmean, dcovariance = F.T @ dpredicted, F.T @ dspread @ F
        return [total, dF, dH, dprocess * np.exp(drift), dmeasurement * np.exp(noise)]

    return run
