"""An expression of several operators, `sum(tanh(a * b + c) * d)`, forward and backward, 1e6 doubles, four gradients."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import cygrad
from benchmarks.timing import Row, compare, peers
from cygrad.bench.timing import Namespace

SIZE = 1_000_000


def run(tanh: Any, a: Any, b: Any, c: Any, d: Any) -> None:
    """Compute the expression and its four gradients, and drop them."""
    (tanh(a * b + c) * d).sum().backward()
    a.grad = b.grad = c.grad = d.grad = None


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    libraries = {"cygrad": cygrad, **peers("torch")}
    random = np.random.default_rng(0)
    arrays = {key: random.standard_normal(SIZE) for key in "abcd"}
    names: dict[str, Namespace] = {}
    for name, library in libraries.items():
        leaves = {key: library.tensor(array, requires_grad=True) for key, array in arrays.items()}
        names[name] = {"run": run, "tanh": library.tanh, **leaves}
    for threads in (1, 2):
        for library in libraries.values():
            library.set_num_threads(threads)
        work = f"sum(tanh(a*b+c)*d) and backward, 1e6 doubles, {threads} thread{'s' * (threads > 1)}"
        yield from compare(work, "run(tanh, a, b, c, d)", names, {"torch": 0.4}, threads=threads)
