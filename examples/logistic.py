"""Multinomial logistic regression by scipy.optimize: the worth of Hessian products.

The 650 parameters of a linear classifier of scikit-learn's 8x8 digits are fitted by SciPy's trust-region Newton method, whose inner
conjugate gradients take one Hessian product each, and by two methods that have gradients only. All derivatives come from the six lines
of `negative_log_posterior`. The answer is compared with scikit-learn's own solver.

    python examples/logistic.py [--output build/logistic.svg]
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from pictures import output_argument, write
from scipy.optimize import OptimizeResult, minimize
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import cygrad as cg
from cygrad.optimize import Objective, value_and_grad

Array = NDArray[Any]
Parameters = dict[str, cg.Tensor]

INVERSE_PENALTY = 1.0  # C of scikit-learn
GRADIENT_TOLERANCE = 1e-5
METHODS = {"trust-ncg": "tab:blue", "L-BFGS-B": "tab:orange", "BFGS": "tab:green"}
TOLERANCE = 1e-4  # between the probabilities of trust-ncg and of scikit-learn


def negative_log_posterior(images: Array, labels: Array) -> Callable[[Parameters], cg.Tensor]:
    """Return the function to minimise: cross-entropy of the labels plus a quadratic penalty of the weights."""
    pixels, truth, picture = cg.from_numpy(images), cg.from_numpy(labels), cg.arange(len(labels))

    def f(parameters: Parameters) -> cg.Tensor:
        scores = pixels @ parameters["weights"] + parameters["biases"]
        log_likelihood = cg.log_softmax(scores, dim=1)[picture, truth].sum()
        return (parameters["weights"] ** 2).sum() / (2 * INVERSE_PENALTY) - log_likelihood

    return f


class Run:
    """One solver at work: the value after each step, and the work until then."""

    def __init__(self, objective: Objective, method: str) -> None:
        self.objective = objective
        self.gradients = self.products = 0
        self.values = [objective(objective.x0)[0]]
        self.work = [0]
        with_products = {"hessp": self.product} if method == "trust-ncg" else {}
        options = {"gtol": GRADIENT_TOLERANCE, "maxiter": 10_000} | ({"ftol": 0, "maxfun": 10_000} if method == "L-BFGS-B" else {})
        start = time.perf_counter()
        # NumPy and SciPy have a pool of BLAS threads each; on few cores they wait for each other at vectors as short as these.
        with threadpool_limits(1, "blas"):
            self.result = minimize(
                self.value_and_gradient, objective.x0, jac=True, method=method, callback=self.step, options=options, **with_products
            )
        self.seconds = time.perf_counter() - start

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        self.gradients += 1
        return self.objective(x)

    def product(self, x: Array, p: Array) -> Array:
        self.products += 1
        return self.objective.hessp(x, p)

    def step(self, intermediate_result: OptimizeResult) -> None:
        self.values.append(intermediate_result.fun)
        self.work.append(self.gradients + self.products)


def probabilities(images: Array, parameters: Parameters) -> Array:
    """Return the fitted model's probability of each digit, (images, 10)."""
    return cg.softmax(cg.from_numpy(images) @ parameters["weights"] + parameters["biases"], dim=1).numpy()


def draw(runs: dict[str, Run], least: float, output: Path) -> None:
    """Write the picture: how far the value is from the least one, after each step and after each derivative."""
    figure, (by_step, by_work) = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for method, run in runs.items():
        gap = np.maximum(np.array(run.values) - least, np.finfo(float).eps * least)
        style: dict[str, Any] = {"color": METHODS[method], "marker": "o" if run.products else "", "markersize": 3, "label": method}
        by_step.plot(gap, **style)
        by_work.plot(run.work, gap, **style)
    by_step.set(xlabel="steps", ylabel="value above the minimum", yscale="log", ylim=(1e-12, None))
    by_work.set(xlabel="gradients and Hessian products")
    for axes in (by_step, by_work):
        axes.set_xlim(0, None)
    by_step.legend()
    figure.suptitle("Logistic regression of handwritten digits, 650 parameters")
    write(figure, output)


def main() -> None:
    """Fit by each method, compare with scikit-learn, and write the picture."""
    output = output_argument("Fit a logistic regression with scipy.optimize.", "build/logistic.svg")

    digits = load_digits()
    images, test_images, labels, test_labels = train_test_split(
        digits.data / 16, digits.target, test_size=1 / 3, random_state=0, stratify=digits.target
    )
    f = negative_log_posterior(images, labels)
    start = {"weights": cg.zeros(64, 10), "biases": cg.zeros(10)}
    reference = LogisticRegression(C=INVERSE_PENALTY, solver="newton-cg", tol=1e-9).fit(images, labels)
    theirs = {"weights": cg.tensor(reference.coef_.T), "biases": cg.tensor(reference.intercept_)}

    runs = {method: Run(value_and_grad(f, start), method) for method in METHODS}
    least = min(f(theirs).item(), *(run.result.fun for run in runs.values()))
    draw(runs, least, output)

    print(f"fitted to {len(labels)} images; picture: {output}")
    print("method      steps  gradients  products  seconds   value above the minimum   largest gradient")
    for method, run in runs.items():
        result = run.result
        print(f"{method:<10} {result.nit:>6} {run.gradients:>10} {run.products:>9} {run.seconds:>8.2f} "
              f"{result.fun - least:>25.1e} {np.abs(result.jac).max():>18.1e}")
    ours = runs["trust-ncg"].objective.unflatten(runs["trust-ncg"].result.x)
    answers, expected = probabilities(test_images, ours), reference.predict_proba(test_images)
    apart = np.abs(answers - expected).max()
    print(f"least value: {least:.6f}, scikit-learn's above it: {f(theirs).item() - least:.1e}")
    print(f"test accuracy: {100 * (answers.argmax(axis=1) == test_labels).mean():.1f} %; "
          f"probabilities differ from scikit-learn's by {apart:.1e}")
    if not apart <= TOLERANCE:
        sys.exit(f"trust-ncg and scikit-learn differ by more than {TOLERANCE:.0e}: one of them is wrong")


if __name__ == "__main__":
    main()
