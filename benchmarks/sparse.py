"""Sparse matrices, their solves and Jacobians, beside SciPy's and beside dense ones.

By one thread, but the row that says otherwise. A solve is a value and a gradient, beside two of SuperLU that share a factor.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import cygrad
from benchmarks.timing import Row, compare, peers
from cygrad.bench.timing import PROCESSORS, Namespace, interleave

ROWS, SIDE, CELLS, LENGTH = 1_000_000, 316, 100_000, 100_000
STEPS = (-1000, -1, 0, 1, 1000)


def stencil(u: Any) -> Any:
    """Return a value of three neighbours for each cell."""
    return u[2:] - 2 * u[1:-1] + u[:-2] + u[1:-1] ** 3


def products(sparse: Any) -> Iterator[Row]:
    """Yield the product of a csr matrix with five entries a row, by one thread and by two."""
    matrix = sparse.diags_array([np.full(ROWS, 1.5)] * len(STEPS), offsets=STEPS, shape=(ROWS, ROWS)).tocsr()
    x = np.linspace(0, 1, ROWS)
    names: dict[str, Namespace] = {"cygrad": {"A": cygrad.sparse.from_scipy(matrix), "x": cygrad.tensor(x)}, "scipy": {"A": matrix, "x": x}}
    for threads, limit in ((1, 0.7), (2, 0.4)):
        if threads <= PROCESSORS:
            cygrad.set_num_threads(threads)
            yield from compare(f"csr of 1e6 rows with 5 entries times a vector, threads: {threads}", "A @ x", names, {"scipy": limit},
                               threads=threads)
    cygrad.set_num_threads(1)


def solves(sparse: Any, linalg: Any, dense: Any) -> Iterator[Row]:
    """Yield solves with a Laplacian on a square grid, and with matrices of few diagonals."""
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(SIDE, SIDE))
    matrix = (sparse.kron(line, sparse.eye_array(SIDE)) + sparse.kron(sparse.eye_array(SIDE), line)).tocsc()
    b = np.linspace(0, 1, SIDE**2)
    A, side = cygrad.sparse.from_scipy(matrix).requires_grad_(), cygrad.tensor(b, requires_grad=True)

    def ours() -> None:
        cygrad.autograd.grad(cygrad.sparse.spsolve(A, side).sum(), (A, side))

    def theirs() -> None:
        factors = linalg.splu(matrix)
        factors.solve(b)
        factors.solve(np.ones_like(b), "T")

    yield from compare("spsolve of 1e5 unknowns, value and gradient", "solve()", {"cygrad": {"solve": ours}, "scipy": {"solve": theirs}},
                       {"scipy": 1.25})
    for count, limit in ((1, 1.6), (5, 0.6), (50, 1.4)):     # SciPy's routine for three keeps no factors
        ab, right = np.full((2 * count + 1, LENGTH // count), -1.0), np.linspace(0, 1, LENGTH // count)
        ab[count] = 2 * count + 1
        names: dict[str, Namespace] = {
            "cygrad": {"solve": lambda a, b, u=count: cygrad.linalg.solve_banded((u, u), a, b), "ab": cygrad.tensor(ab),
                       "b": cygrad.tensor(right)},
            "scipy": {"solve": lambda a, b, u=count: dense.solve_banded((u, u), a, b, check_finite=False), "ab": ab, "b": right}}
        yield from compare(f"solve_banded of {2 * count + 1} diagonals", "solve(ab, b)", names, {"scipy": limit})


def jacobians() -> Iterator[Row]:
    """Yield the Jacobian of a stencil of three, in evaluations and in dense Jacobians."""
    func = cygrad.func
    for cells, work, peer, other, limit in (
            (CELLS, "sparse_jacobian of a stencil of 3, 1e5 cells", "evaluation", lambda x: stencil(x), 12.0),
            (1000, "sparse_jacobian of a stencil of 3, 1e3 cells", "jacfwd", lambda x: func.jacfwd(stencil)(x), 0.1)):
        x = cygrad.linspace(0, 1, cells, dtype=cygrad.float64)
        pattern = func.coloured(func.sparsity(stencil, x))
        names: dict[str, Namespace] = {
            "cygrad": {"f": lambda x, pattern=pattern: func.sparse_jacobian(stencil, x, pattern), "x": x}, peer: {"f": other, "x": x}}
        yield from compare(work, "f(x)", names, {peer: limit})


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    cygrad.set_num_threads(1)
    scipy = peers("scipy.sparse", "scipy.sparse.linalg", "scipy.linalg")
    if len(scipy) < 3:
        return
    names: Namespace = {"make": cygrad.sparse_coo_tensor, "places": cygrad.tensor([[0, 1, 1], [2, 0, 2]]), "v": cygrad.ones(3)}
    rounds = interleave({"coo": ("make(places, v, (2, 3)) * 2", names)}, seconds=2)
    yield Row("a coo tensor of 3 entries is made, and multiplied by a number, median", rounds.median(lambda own: own, "coo"), 3e-6)
    yield from products(scipy["scipy.sparse"])
    yield from solves(*scipy.values())
    yield from jacobians()
