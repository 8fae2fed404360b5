"""Jacobians and Hessians that are sparse: their pattern is coloured, and one batch of products shows all entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad._core.memory.formats import sparse_csr
from cygrad._core.operands.arrays import from_array
from cygrad.autograd.arguments import given_tensor
from cygrad.func.colouring import alone_in_rows, column_colours, scipy_sparse, star_colours
from cygrad.func.forward import jvp
from cygrad.func.reverse import grad, vjp
from cygrad.func.sparsity import hessian_sparsity, sparsity
from cygrad.func.vmapping import vmap
from cygrad.operators._sparse.pattern import Pattern, starts_of
from cygrad.tensor import Tensor


class Coloured:
    """A pattern with a colouring, to be used for any number of Jacobians: made by `coloured`, taken as `pattern=`.

    `pattern` is the sparse array of bools; `colours` the number of colours, and of products that a Jacobian takes; `colour_of` the colour
    of each column, or of each row if `by_rows`.
    """

    def __init__(self, pattern: Any, symmetric: bool = False) -> None:
        coo = pattern.tocoo()
        coo.sum_duplicates()
        rows, columns = (np.asarray(each, np.int64) for each in coo.coords)
        self.shape, self.pattern, self.symmetric = tuple(pattern.shape), pattern, symmetric
        of_columns = star_colours(pattern) if symmetric else column_colours(pattern)
        of_rows = of_columns if symmetric else column_colours(pattern.T)
        self.by_rows = bool(of_rows.max(initial=-1) < of_columns.max(initial=-1))
        colours = of_rows if self.by_rows else of_columns
        self.colours = int(colours.max(initial=-1)) + 1 if len(rows) else 0
        self.colour_of = colours
        self._seeds: dict[Any, Tensor] = {}
        order = np.lexsort((columns, rows))
        rows, columns = rows[order], columns[order]
        self._places = Pattern(sparse_csr, self.shape, (from_array(starts_of(rows, self.shape[0])), from_array(columns)), True)
        if symmetric:       # an entry that is not alone in its row is read from its mirror image
            swapped = ~alone_in_rows(coo, colours)[order]
            rows, columns = np.where(swapped, columns, rows), np.where(swapped, rows, columns)
        long = self.shape[1] if self.by_rows else self.shape[0]
        self._keys = from_array(colours[rows] * long + columns if self.by_rows else colours[columns] * long + rows)

    def seeds(self, like: Tensor) -> Tensor:
        """Return the sum of unit vectors of each colour, (colours, size): made once for a dtype."""
        seeds = self._seeds.get(like.dtype)
        if seeds is None:
            array = np.zeros((self.colours, len(self.colour_of)), like.dtype.loops.name)
            array[self.colour_of, np.arange(len(self.colour_of))] = 1
            seeds = self._seeds[like.dtype] = from_array(array).to(like.dtype)
        return seeds

    def entries(self, products: Tensor) -> Tensor:
        """Return the sparse tensor whose entries are in products with all seeds, (colours, size)."""
        return self._places.around(products.reshape(-1).index_select(0, self._keys))


def coloured(pattern: Any, symmetric: bool = False) -> Coloured:
    """Return a pattern with a colouring, of columns or rows, whichever are fewer; of a `symmetric` one a star colouring.

    `pattern` is a sparse array or matrix of SciPy's, as `sparsity` returns it; a coloured one is returned as it is. ImportError without
    SciPy.

    >>> import cygrad
    >>> pattern = cygrad.func.sparsity(lambda x: x[1:] - x[:-1], cygrad.ones(100))
    >>> cygrad.func.coloured(pattern).colours
    2
    """
    return pattern if isinstance(pattern, Coloured) else Coloured(scipy_sparse("coloured").csr_array(pattern, dtype=bool), symmetric)


def _check(name: str, colouring: Coloured, rows: int, columns: int) -> None:
    if colouring.shape != (rows, columns):
        raise RuntimeError(f"{name}(): the pattern has the shape {list(colouring.shape)}, but the derivative has {[rows, columns]}")


def sparse_jacobian(f: Callable[[Tensor], Tensor], x: Any, pattern: Any = None) -> Tensor:
    """Return the Jacobian of f at x as a sparse tensor in csr, (elements of f(x), elements of x).

    Its `pattern` is found by `sparsity`, or is an array of SciPy's, or a `coloured` one, which saves finding and colouring. All colours are
    products in one batch of forward mode, or of reverse mode where rows need fewer: the stencil's width of them for a stencil. The
    result is on the tape. RuntimeError for a pattern of another shape, ImportError without SciPy.

    >>> import cygrad
    >>> cygrad.func.sparse_jacobian(lambda x: x[1:] * x[:-1], cygrad.tensor([1., 2., 3.])).to_dense()
    tensor([[2., 1., 0.],
            [0., 3., 2.]])
    """
    start = given_tensor(x)
    colouring = coloured(sparsity(f, start) if pattern is None else pattern)

    def flat(x: Tensor) -> Tensor:
        return f(x.reshape(start.shape)).reshape(-1)

    point = start.reshape(-1)
    if not colouring.colours:
        return colouring.entries(point.new_zeros(0))
    if colouring.by_rows:
        value, pull = vjp(flat, point)
        _check("sparse_jacobian", colouring, value.numel(), point.numel())
        products = vmap(lambda seed: pull(seed)[0])(colouring.seeds(value))
    else:
        _check("sparse_jacobian", colouring, colouring.shape[0], point.numel())
        products = vmap(lambda seed: jvp(flat, (point,), (seed,))[1])(colouring.seeds(point))
        _check("sparse_jacobian", colouring, products.shape[1], point.numel())
    return colouring.entries(products)


def sparse_hessian(f: Callable[[Tensor], Tensor], x: Any, pattern: Any = None) -> Tensor:
    """Return the Hessian of a scalar function f at x as a sparse tensor in csr, (elements of x, elements of x).

    Its `pattern` is found by `hessian_sparsity`, or is an array of SciPy's, or one `coloured` with `symmetric=True`. Products of the
    Hessian with all colours of a star colouring are computed in one batch, forward mode over reverse mode.

    >>> import cygrad
    >>> cygrad.func.sparse_hessian(lambda x: (x[1:] * x[:-1]).sum(), cygrad.ones(3)).to_dense()
    tensor([[0., 1., 0.],
            [1., 0., 1.],
            [0., 1., 0.]])
    """
    start = given_tensor(x)
    gradient = grad(f)
    colouring = coloured(hessian_sparsity(f, start) if pattern is None else pattern, True)
    _check("sparse_hessian", colouring, start.numel(), start.numel())
    if not colouring.colours:
        return colouring.entries(start.new_zeros(0))

    def product(seed: Tensor) -> Tensor:
        return jvp(gradient, (start,), (seed.reshape(start.shape),))[1].reshape(-1)

    return colouring.entries(vmap(product)(colouring.seeds(start.reshape(-1))))

