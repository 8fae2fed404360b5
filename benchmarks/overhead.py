"""The cost of one small operator: 4 doubles or a 4x4 matrix, so that the kernel is next to nothing.

The chain is `x = x * b`, forward and backward, per operator, with `b` once without and once with a gradient of its own.
The overhead of a method is the time of the call less the time of the operator form `-t`. For `t.tanh()` the difference of
the two kernels is taken off, measured between `t.tanh_()` and `t.neg_()`, which are called alike. `t.sum(dim=0)` has no
in-place form to do so: its figure includes the whole reduction against a negation, and is an upper bound.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import cygrad
from benchmarks.timing import Row, compare, peers
from cygrad.bench.timing import Namespace, interleave

VALUES = (0.5, 1.5, 0.25, 0.75)


def chain(start: Any, factor: Any, length: int, seed: Any) -> None:
    """Multiply `length` times by `factor`, and differentiate."""
    x = start
    for _ in range(length):
        x = x * factor
    x.backward(seed)
    start.grad = factor.grad = None


def methods(library: Any) -> Iterator[Row]:
    """Yield the overhead of a method without and with a keyword above the operator form."""
    names: Namespace = {"t": library.tensor(VALUES, dtype=library.float64)}
    statements = ("-t", "t.tanh()", "t.sum(dim=0)", "t.tanh_()", "t.neg_()")
    with library.no_grad():
        rounds = interleave({statement: (statement, names) for statement in statements}, seconds=3)
    tanh = rounds.median(lambda call, form, f, g: call - form - (f - g), "t.tanh()", "-t", "t.tanh_()", "t.neg_()")
    total = rounds.median(lambda call, form: call - form, "t.sum(dim=0)", "-t")
    yield Row("t.tanh(), overhead above -t, median", tanh, 40e-9)
    yield Row("t.sum(dim=0), overhead above -t with its kernel, median", total, 40e-9)


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    libraries = {"cygrad": cygrad, **peers("torch")}
    try:
        import scipy.optimize  # noqa: F401  a full garbage collection has to walk its many objects
        import scipy.stats  # noqa: F401
    except ModuleNotFoundError:
        print("scipy is not installed: the long chains are measured without it, where garbage collection is cheaper")
    for library in libraries.values():
        library.set_num_threads(1)
    array = np.array(VALUES)
    plain: dict[str, Namespace] = {"numpy": {"a": array, "b": array.copy(), "m": np.eye(4), "n": np.eye(4)}}
    recorded: dict[str, Namespace] = {}
    for name, library in libraries.items():
        f64 = library.float64
        plain[name] = {"a": library.tensor(VALUES, dtype=f64), "b": library.tensor(VALUES, dtype=f64)}
        plain[name] |= {"m": library.eye(4, dtype=f64), "n": library.eye(4, dtype=f64)}
        leaves = {key: library.tensor(VALUES, dtype=f64, requires_grad=True) for key in ("a", "b")}
        ones = library.ones(4, dtype=f64)
        recorded[name] = {**leaves, "one": ones, "seed": ones, "chain": chain}

    yield from compare("a + b, 4 doubles, no grad, median", "a + b", plain, {"numpy": 0.45})
    yield from compare("a * b, recorded, 4 doubles, median", "a * b", recorded, {"torch": 0.08})
    yield from compare("a * 2.0, recorded, 4 doubles, median", "a * 2.0", recorded, {"torch": 0.08})
    yield from methods(cygrad)
    yield from compare("a[1:-1], recorded, 4 doubles, median", "a[1:-1]", recorded, {"torch": 0.15})
    for factor, which in (("one", "b without grad"), ("b", "b with grad")):
        work = f"chain of 100, forward + backward per op, {which}, median"
        statement = f"chain(a, {factor}, 100, seed)"
        yield from compare(work, statement, recorded, {"torch": 0.07}, per=100)
    for factor, which in (("one", "b without grad"), ("b", "b with grad")):
        work = f"chain of 10,000, forward + backward per op, {which}, mean"
        statement = f"chain(a, {factor}, 10_000, seed)"
        yield from compare(work, statement, recorded, {"torch": 0.08}, per=10_000, mean=True)
    yield from compare("4x4 matmul, doubles, no grad, median", "m @ n", plain, {"numpy": 0.25})
