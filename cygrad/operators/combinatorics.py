"""Combinations of the elements of vectors."""

from __future__ import annotations

import itertools
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from cygrad.data import creation
from cygrad.operators._language.arguments import given_tensors
from cygrad.operators._language.declaration import operator
from cygrad.operators.joining import meshgrid, stack

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def _check_vector(x: Tensor) -> None:
    if x.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")


def _count(count: int, size: int) -> int:
    """Return the number of ways to choose some of so many elements, or 2**63, where there are more."""
    result = int(size <= count)
    for k in range(min(size, count - size)):
        result = result * (count - k) // (k + 1)
        if result >= 2**63:
            return 2**63
    return result


@operator(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Combinations of `r` elements of a vector, one in a row, in the order of `itertools.combinations`.

    `with_replacement`: an element may be in one several times.

    >>> import cygrad
    >>> cygrad.combinations(cygrad.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    _check_vector(input)
    size, choose = index(r), itertools.combinations_with_replacement if with_replacement else itertools.combinations
    if size < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {size}")
    if not size:
        return input.new_empty(0)
    count = _count(len(input) + (size - 1 if with_replacement and len(input) else 0), size)
    creation.check_room(size, count)
    places = np.fromiter(itertools.chain.from_iterable(choose(range(len(input)), size) if count else ()), np.int64)
    return input.index_select(0, creation.constant_tensor(places)).reshape(-1, size)


@operator(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples of one element of each vector, one in a row; of one vector its elements.

    >>> import cygrad
    >>> cygrad.cartesian_prod(cygrad.tensor([1, 2]), cygrad.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    vectors = given_tensors(cartesian_prod, tensors)
    for vector in vectors:
        _check_vector(vector)
    if len(vectors) == 1:
        return vectors[0]
    return stack([grid.reshape(-1) for grid in meshgrid(*vectors, indexing="ij")], -1)
