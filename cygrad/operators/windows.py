"""Views that step through memory in other ways than shapes and slices do: windows, and whatever strides are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cygrad import creation
from cygrad._core.compute import windows
from cygrad.operators.batches import batched_fold, shifted
from cygrad.operators.declaration import operator, recorded, unrecorded
from cygrad.operators.tangents import linear

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


@operator(windows.unfold, dinput=lambda g, shape, dim, size, step: g._fold(shape, dim, size, step), tangent=linear,
          batch=shifted("dimension"), function=False)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """View of all windows of `size` along a dim, `step` apart; the windows are the last dim.

    >>> import cygrad
    >>> cygrad.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """


@operator(dwindows=lambda g, dim, size, step: g.unfold(dim, size, step), tangent=linear, batch=batched_fold)
def _fold(windows: Tensor, shape: tuple[int, ...], dim: int, size: int, step: int) -> Tensor:
    """Return the sum of windows where they lie in a tensor of a shape: the transpose of `unfold`."""
    def compute() -> Tensor:
        result, parts = creation.zeros(shape, dtype=windows.dtype), windows.detach()
        for place in range(size):
            if not shape:
                result += parts[place]
                continue
            result[(slice(None),) * dim + (slice(place, place + (parts.shape[dim] - 1) * step + 1, step),)] += parts.select(-1, place)
        return result

    return recorded(_fold, (windows,), unrecorded(compute), dim=dim, size=size, step=step)
