"""One fit in five libraries: `python -m benchmarks.ported` prints the time of a value with its gradient in each that is installed.

`--picture docs/ported.svg` draws the times, too.
60 days of an epidemic, two parameters, the misfit to counts. The pages `docs/coming_from` quote these functions; a test compares them.
"""

import argparse
import timeit
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import cygrad as cg

DAYS, START = 60, np.array([0.5, 0.2])
Evaluation = Callable[[], Any]


def epidemic(p: Any) -> Any:
    spread, recovery = p[0], p[1]
    healthy, ill = 0.999, 0.001
    shares = []
    for _ in range(DAYS):
        infections, recoveries = spread * healthy * ill, recovery * ill
        healthy, ill = healthy - infections, ill + infections - recoveries
        shares.append(ill)
    return np.stack(shares)


COUNTS = epidemic([0.35, 0.1]) + 0.005 * np.sin(7 * np.arange(DAYS))


def with_cygrad(compiled: bool) -> Evaluation:
    counts, start = cg.from_numpy(COUNTS), cg.tensor(START)

    def misfit(p: cg.Tensor) -> cg.Tensor:
        return ((epidemic(p) - counts) ** 2).sum()

    evaluate = cg.func.value_and_grad(misfit)
    if compiled:
        evaluate = cg.compile(evaluate)
    return lambda: evaluate(start)


def with_differences() -> Evaluation:
    from scipy.optimize import approx_fprime

    def misfit(p: Any) -> Any:
        return ((epidemic(p) - COUNTS) ** 2).sum()

    return lambda: (misfit(START), approx_fprime(START, misfit))


def with_torch() -> Evaluation:
    import torch

    torch.set_num_threads(1)
    counts = torch.from_numpy(COUNTS)

    def epidemic(p):
        spread, recovery = p[0], p[1]
        healthy, ill = 0.999, 0.001
        shares = []
        for _ in range(DAYS):
            infections, recoveries = spread * healthy * ill, recovery * ill
            healthy, ill = healthy - infections, ill + infections - recoveries
            shares.append(ill)
        return torch.stack(shares)

    def evaluate(start):
        p = torch.tensor(start, requires_grad=True)
        misfit = ((epidemic(p) - counts) ** 2).sum()
        misfit.backward()
        return misfit.item(), p.grad.numpy()

    return lambda: evaluate(START)


def with_jax() -> Evaluation:
    import jax

    jax.config.update("jax_enable_x64", True)

    def epidemic(p):
        def step(state, _):
            healthy, ill = state
            infections, recoveries = p[0] * healthy * ill, p[1] * ill
            healthy, ill = healthy - infections, ill + infections - recoveries
            return (healthy, ill), ill

        _, shares = jax.lax.scan(step, (0.999, 0.001), None, length=DAYS)
        return shares

    def misfit(p):
        return ((epidemic(p) - COUNTS) ** 2).sum()

    evaluate = jax.jit(jax.value_and_grad(misfit))
    return lambda: jax.block_until_ready(evaluate(START))


def with_autograd() -> Evaluation:
    import autograd.numpy as np

    from autograd import value_and_grad

    def epidemic(p):
        spread, recovery = p[0], p[1]
        healthy, ill = 0.999, 0.001
        shares = []
        for _ in range(DAYS):
            infections, recoveries = spread * healthy * ill, recovery * ill
            healthy, ill = healthy - infections, ill + infections - recoveries
            shares.append(ill)
        return np.array(shares)

    evaluate = value_and_grad(lambda p: np.sum((epidemic(p) - COUNTS) ** 2))
    return lambda: evaluate(START)


def with_casadi() -> Evaluation:
    import casadi as ca

    p = ca.SX.sym("p", 2)
    healthy, ill = 0.999, 0.001
    shares = []
    for _ in range(DAYS):
        infections, recoveries = p[0] * healthy * ill, p[1] * ill
        healthy, ill = healthy - infections, ill + infections - recoveries
        shares.append(ill)
    misfit = ca.sumsqr(ca.vertcat(*shares) - COUNTS)
    evaluate = ca.Function("evaluate", [p], [misfit, ca.gradient(misfit, p)])
    return lambda: evaluate(START)


LIBRARIES: dict[str, tuple[str, Callable[[], Evaluation]]] = {
    "cygrad, compiled": ("cygrad", lambda: with_cygrad(True)),
    "JAX, jit": ("jax", with_jax),
    "CasADi": ("casadi", with_casadi),
    "SciPy's differences": ("scipy", with_differences),
    "cygrad": ("cygrad", lambda: with_cygrad(False)),
    "PyTorch": ("torch", with_torch),
    "HIPS autograd": ("autograd", with_autograd),
}


def draw(times: dict[str, float], picture: Path) -> None:
    """Write a picture with a bar for each time, in microseconds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "cygrad", "svg.fonttype": "none", "font.size": 9})
    names = sorted(times, key=lambda name: -times[name])
    figure, axes = plt.subplots(figsize=(8, 2.6), layout="constrained")
    bars = axes.barh(names, [times[name] for name in names], color=["tab:blue" if "cygrad" in name else "silver" for name in names])
    axes.bar_label(bars, [f"{times[name]:,.0f} us" for name in names], padding=3)
    axes.set(xscale="log", xlim=(3, 30_000), xlabel="value and gradient (us)", title="60 days of an epidemic, fitted by two rates")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ported", description="Time one fit in several libraries.")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="also draw the times there")
    picture = parser.parse_args().picture
    times = {}
    for name, (package, build) in LIBRARIES.items():
        if find_spec(package) is None:
            continue
        evaluate = build()
        first = timeit.timeit(evaluate, number=1)
        times[name] = 1e6 * min(timeit.repeat(evaluate, number=20, repeat=9)) / 20
        print(f"| {name} | {1000 * first:.1f} ms | {times[name]:.0f} us |")
    if picture:
        draw(times, picture)


if __name__ == "__main__":
    main()
