"""The reduction of losses: `reduction=`, and `size_average=` and `reduce=` that torch had before it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

REDUCTIONS = ("none", "mean", "sum")


def read_reduction(operator: Any, reduction: Any, size_average: bool | None = None, reduce: bool | None = None,
                   others: tuple[str, ...] = (), refused: str = "is not a valid value for reduction") -> str:
    """Return the reduction that the arguments of a loss name: "none", "mean", "sum" or one of the `others`.

    The older arguments win where one of them is given, and warn, as in torch; so does torch's older name of the mean. `refused`
    are torch's words for another one.
    """
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=3)
        return reduction
    if isinstance(reduction, str):
        if reduction in REDUCTIONS or reduction in others:
            return reduction
        if reduction == "elementwise_mean":
            warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3)
            return "mean"
    raise ValueError(f"{reduction} {refused}; {operator.name}() takes {', '.join(map(repr, REDUCTIONS + others))}")


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """Return the losses of elements or samples, their mean or their sum."""
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss
