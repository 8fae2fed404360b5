"""Colourings of sparse matrices: columns of one colour have no row in common, so that one product with their sum shows all of them.

The order is by degree, the largest first (Welsh and Powell 1967); each column takes the lowest colour that none of its neighbours has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cygrad.operators._sparse.scipy_matrices import scipy_module


def column_colours(pattern: Any) -> np.ndarray:
    """Return the colour of each column of a sparse array of bools, from 0."""
    counts = pattern.astype(np.int32)
    return _greedy((counts.T @ counts).tocsr())


def _greedy(graph: Any) -> np.ndarray:
    """Return colours of the vertices of a graph, given as a symmetric matrix, in which neighbours differ."""
    starts, neighbours = graph.indptr.tolist(), graph.indices.tolist()
    colours = [-1] * graph.shape[0]
    for vertex in np.argsort(-np.diff(graph.indptr), kind="stable").tolist():
        near = {colours[other] for other in neighbours[starts[vertex]:starts[vertex + 1]]}
        colour = 0
        while colour in near:
            colour += 1
        colours[vertex] = colour
    return np.array(colours, np.int64)


def star_colours(pattern: Any) -> np.ndarray:
    """Return colours of a symmetric pattern in which neighbours differ, and each path of four vertices has three colours.

    So every entry of a symmetric matrix is alone in its row among columns of its colour, or its mirror image is (Coleman and More 1984,
    Gebremedhin, Manne and Pothen 2005). There are at most as many colours as `column_colours` takes.
    """
    graph = (pattern + pattern.T).tocsr()
    starts, indices = graph.indptr.tolist(), graph.indices.tolist()
    near = [[other for other in indices[starts[vertex]:starts[vertex + 1]] if other != vertex] for vertex in range(graph.shape[0])]
    colours = [-1] * len(near)
    for vertex in np.argsort([-len(others) for others in near], kind="stable").tolist():
        refused = set()
        for other in near[vertex]:
            refused.add(colours[other])
            for second in near[other]:
                if second == vertex or colours[second] < 0:
                    continue
                if colours[other] < 0 or any(colours[third] == colours[other] for third in near[second] if third != other):
                    refused.add(colours[second])
        colour = 0
        while colour in refused:
            colour += 1
        colours[vertex] = colour
    return np.array(colours, np.int64)


def alone_in_rows(pattern: Any, colours: np.ndarray) -> np.ndarray:
    """Return whether each entry of a coo pattern is the only one of its row among columns of its colour."""
    rows, columns = pattern.coords
    number = int(colours.max(initial=0)) + 1
    keys = rows.astype(np.int64) * number + colours[columns]
    distinct, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[inverse.reshape(-1)] == 1


def scipy_sparse(function: str) -> Any:
    """Return scipy.sparse for a function that needs it."""
    return scipy_module(function, "scipy.sparse")
