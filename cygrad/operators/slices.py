"""Parts of a dim from one index to another, at steps: as `x[start:end:step]`, along a dim that is an argument."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from cygrad._core.memory.sizes import normalized_dim
from cygrad.operators._language.declaration import operator

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


@operator(method=False, copy=True)
def slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """View of the elements along a dim from `start` to before `end`, each `step`-th; ends are as in Python's slices.

    Raises:
        RuntimeError: a step that is not positive.
        IndexError: a tensor without dims, or a dim that it does not have.

    >>> import cygrad
    >>> cygrad.slice(cygrad.arange(6), 0, 1, 5, 2)
    tensor([1, 3])
    """
    if not input.ndim:
        raise IndexError(f"{slice.__name__}() cannot be applied to a 0-dim tensor.")
    place = normalized_dim(dim, input.ndim)
    if step <= 0:
        raise RuntimeError(f"slice step must be positive, got {step}")
    return input[(builtins.slice(None),) * place + (builtins.slice(start, end, step),)]
