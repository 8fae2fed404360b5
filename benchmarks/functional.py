"""autograd.functional: the Jacobian of a map of 200 doubles, batched, and a Hessian-vector product of 1e5 doubles.

Both functions are Rosenbrock's, as a system of equations that a solver would need the Jacobian of, and as a sum. Its Hessian is
far too large to be stored. The Jacobian is dense: 200 x 200 numbers, of which 399 are not zero.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import cygrad
from benchmarks.timing import Row, compare, peers
from cygrad.bench.timing import Namespace

EQUATIONS, SIZE = 200, 100_000


def namespace(library: Any) -> Namespace:
    """Return the names in the statements, of one library."""
    random = np.random.default_rng(0)

    def system(v: Any) -> Any:
        return library.cat([10 * (v[1:] - v[:-1] ** 2), 1 - v[:-1]])[:EQUATIONS]

    def rosenbrock(x: Any) -> Any:
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    return {
        "jacobian": library.autograd.functional.jacobian, "system": system, "v": library.tensor(random.standard_normal(EQUATIONS)),
        "hvp": library.autograd.functional.hvp, "rosenbrock": rosenbrock,
        "x": library.tensor(random.standard_normal(SIZE)), "vector": library.tensor(random.standard_normal(SIZE)),
    }


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    libraries = {"cygrad": cygrad, **peers("torch")}
    for library in libraries.values():
        library.set_num_threads(1)
    names = {name: namespace(library) for name, library in libraries.items()}
    yield from compare(f"jacobian of {EQUATIONS} equations, vectorize=True", "jacobian(system, v, vectorize=True)", names, {"torch": 0.35})
    yield from compare("hvp of Rosenbrock's function, 1e5 doubles", "hvp(rosenbrock, x, vector)", names, {"torch": 0.5})
