"""Losses that are 0 beyond a margin: of two classes, of ranks, of angles and of distances.

Each takes `reduction`: "none" for the losses of all samples, "mean" or "sum" of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad.operators._language.declaration import operator
from cygrad.operators._language.loss_reduction import read_reduction, reduced
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.similarity import cosine_similarity, pairwise_distance

if TYPE_CHECKING:
    from collections.abc import Callable

    from cygrad.tensor import Tensor


# ----- Of a target that is 1 or -1 -----
@rounded_once
def _ranking(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    return reduced((target * (input2 - input1) + margin).clamp_min(0), reduction)


@operator
def nn_functional_margin_ranking_loss(
        input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean") -> Tensor:
    """max(0, margin - target (input1 - input2)): the first is to be larger where the target is 1, smaller where it is -1.

    >>> import cygrad
    >>> a, b = cygrad.tensor([1., 2.]), cygrad.tensor([3., 1.])
    >>> cygrad.nn.functional.margin_ranking_loss(a, b, cygrad.ones(2), reduction="none")
    tensor([2., 0.])
    """
    reduction = read_reduction(nn_functional_margin_ranking_loss, reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
                           f"{list(input1.shape)}, input2: {list(input2.shape)}, target: {list(target.shape)}")
    return _ranking(input1, input2, target, margin, reduction)


@rounded_once
def _hinge(input: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    beyond = (margin - input).clamp_min(0)
    return reduced(beyond.where(target != 1, 0.0) + input.where(target != -1, 0.0), reduction)


@operator
def nn_functional_hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
                                       reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The distance `input` itself where the target is 1, max(0, margin - input) where it is -1, their sum for another target.

    >>> import cygrad
    >>> x = cygrad.tensor([0.25, 0.25])
    >>> cygrad.nn.functional.hinge_embedding_loss(x, cygrad.tensor([1, -1]), reduction="none")
    tensor([0.2500, 0.7500])
    """
    reduction = read_reduction(nn_functional_hinge_embedding_loss, reduction, size_average, reduce)
    return _hinge(input, target, margin, reduction)


def _check_cosine_target(input1: Tensor, input2: Tensor, target: Tensor) -> None:
    if target.ndim > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported: the target has {target.ndim} dims")
    expected = target.ndim + 1
    if input1.ndim != expected or input2.ndim != expected:
        raise RuntimeError(f"{target.ndim}D target tensor expects {expected}D input tensors, but found inputs with sizes "
                           f"{list(input1.shape)} and {list(input2.shape)}.")


@rounded_once
def _angle(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    cosine = cosine_similarity(input1, input2, target.ndim)
    loss = (1 - cosine).where(target == 1, 0.0) + (cosine - margin).clamp_min(0).where(target == -1, 0.0)
    return reduced(loss, reduction)


@operator
def nn_functional_cosine_embedding_loss(
        input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean") -> Tensor:
    """Of vectors whose angle has the cosine c: 1 - c where the target is 1, max(0, c - margin) where it is -1, 0 for another target.

    The vectors are the rows of two matrices and the target a vector, or two vectors and a 0-d target.

    >>> import cygrad
    >>> a, b = cygrad.tensor([[1., 0.], [1., 0.]]), cygrad.tensor([[0., 1.], [1., 0.]])
    >>> cygrad.nn.functional.cosine_embedding_loss(a, b, cygrad.tensor([1, -1]), reduction="none")
    tensor([1., 1.])
    """
    reduction = read_reduction(nn_functional_cosine_embedding_loss, reduction, size_average, reduce)
    _check_cosine_target(input1, input2, target)
    if not (input1.is_floating_point() or input2.is_floating_point()):
        input1, input2 = input1.float(), input2.float()
    return _angle(input1, input2, target, margin, reduction)


# ----- Of three vectors -----
def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float) -> None:
    if not margin > 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
                           f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")


@rounded_once
def _triplet(anchor: Tensor, positive: Tensor, negative: Tensor, distance: Callable[..., Tensor], margin: float, swap: bool, reduction: str
             ) -> Tensor:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((near - far + margin).clamp_min(0), reduction)


@operator
def nn_functional_triplet_margin_loss(
        anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with distances of vectors along the last dim, `pairwise_distance`.

    `swap`: with the distance of the positive and the negative vector, where that is smaller (Balntas et al. 2016).

    >>> import cygrad
    >>> x = cygrad.tensor([[0., 0.]])
    >>> cygrad.nn.functional.triplet_margin_loss(x, x + 3, x + 3)
    tensor(1.)
    """
    reduction = read_reduction(nn_functional_triplet_margin_loss, reduction, size_average, reduce)
    _check_triplet(anchor, positive, negative, margin)
    return _triplet(anchor, positive, negative, lambda a, b: pairwise_distance(a, b, p, eps), margin, swap, reduction)


@operator
def nn_functional_triplet_margin_with_distance_loss(
        anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Tensor:
    """`triplet_margin_loss` with a distance of one's own, a function of two tensors; None is `pairwise_distance`.

    >>> import cygrad
    >>> x = cygrad.tensor([[0., 0.]])
    >>> def taxicab(a, b):
    ...     return (a - b).abs().sum(-1)
    >>> cygrad.nn.functional.triplet_margin_with_distance_loss(x, x + 3, x + 2, distance_function=taxicab)
    tensor(3.)
    """
    reduction = read_reduction(nn_functional_triplet_margin_with_distance_loss, reduction)
    _check_triplet(anchor, positive, negative, margin)
    distance: Any = pairwise_distance if distance_function is None else distance_function
    if not callable(distance):
        function = nn_functional_triplet_margin_with_distance_loss
        raise TypeError(f"{function.__name__}(): argument 'distance_function' must be a function of two "
                        f"tensors, not {type(distance).__name__}")
    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)
