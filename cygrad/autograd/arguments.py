"""How the transforms read their arguments: tensors, and values of other programs in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad.data.creation import tensor
from cygrad.pytree import TreeSpec, tree_flatten


def given_tensor(value: Any, like: Any = None) -> Any:
    """Return a number, or an array of NumPy's, as a new tensor; other values as they are.

    The elements are copied, so nothing writes into the caller's array, and values saved by a graph do not change with it. Arrays and
    NumPy's scalars keep their dtype. A Python number gets the dtype of the tensor it goes with, `like`, or the default.
    """
    if isinstance(value, TensorImpl):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return tensor(value)
    if isinstance(value, (int, float, complex)):
        return tensor(value, dtype=like.dtype if isinstance(like, TensorImpl) else None)
    return value


def given_tensors(tree: Any, like: Sequence[Any] = ()) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree, each as `given_tensor` reads it, and its structure; `like` has a tensor for each leaf, or none."""
    leaves, spec = tree_flatten(tree)
    if len(like) != len(leaves):
        like = [None] * len(leaves)
    return [given_tensor(leaf, other) for leaf, other in zip(leaves, like, strict=True)], spec
