"""Losses of scores for classes: the classes lie along dim 1, or along the only dim of one sample.

A target has the class of each sample, a number from 0 on. Each loss takes `reduction`: "none" for the losses of all samples, "mean" or
"sum" of them; `size_average` and `reduce` are torch's older arguments in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.compute.dispatch import ops as rows
from cygrad._core.compute.places import changed_at, elements_at, names_classes, spread_at
from cygrad.operators._language.arguments import all_examples, checked_operand
from cygrad.operators._language.batches import samples_together
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.loss_reduction import read_reduction, reduced
from cygrad.operators._language.narrow_floats import in_loops, rounded_once
from cygrad.operators._language.tangents import first_linear
from cygrad.operators._language.tiled import tiled
from cygrad.operators.exponentials import _softmax_gradient, log_softmax
from cygrad.ops.dtypes import DTYPES, NUMBER
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


# ----- Targets -----
def _title(tensor: Tensor) -> str:
    return DTYPES[NUMBER[tensor.dtype.name]].title


def _has_ignored(target: Tensor, count: int, ignore_index: int) -> bool:
    """Return True if a class is ignored; IndexError for one that does not exist."""
    classes = all_examples(target)
    ignored = classes == ignore_index
    _check_range(classes.masked_select(~ignored), 0, count, IndexError, "Target {} is out of bounds. There are {} classes")
    return bool(ignored.any())


def _check_range(classes: Tensor, lowest: int, count: int, error: type[Exception], words: str) -> None:
    """Refuse classes below the lowest or from the count on, with words that have places for the first of them and the count."""
    outside = classes[(classes < lowest) | (classes >= count)]
    if outside.numel():
        raise error(words.format(outside[0].item(), count))


def _check_target(operator: Any, input: Tensor, target: Tensor) -> None:
    if input.ndim == 0:
        raise ValueError(f"Expected 1 or more dimensions (got 0): {operator.name}() takes scores with a dim of classes")
    if input.ndim == 1:
        if target.ndim > 1 or target.numel() != 1:
            raise ValueError(f"Expected target of one class for the scores of one sample, got {list(target.shape)}")
    elif not target.ndim or target.shape[0] != input.shape[0]:
        raise ValueError(f"Expected input batch_size ({len(input)}) to match target batch_size ({len(target) if target.ndim else 1}).")
    elif target.shape[1:] != input.shape[2:]:
        if input.ndim == 2:
            raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported: the target has {list(target.shape)}")
        raise RuntimeError(f"Expected target size {[len(input), *input.shape[2:]]}, got {list(target.shape)}")
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {_title(target)}; convert it with .long()")


def _check_weight(input: Tensor, weight: Tensor) -> None:
    count = input.shape[min(1, input.ndim - 1)]
    if tuple(weight.shape) != (count,):
        raise RuntimeError(f"weight tensor should be defined either for all {count} classes or no classes but got weight tensor of shape: "
                           f"{list(weight.shape)}")
    if weight.dtype != input.dtype:
        raise RuntimeError(f"expected scalar type {_title(input)} but found {_title(weight)}: the weight has the dtype of the input")


@operator(dinput=lambda g, target, input_shape: g._to_classes(target, input_shape[1]), dtarget=None, tangent=first_linear,
          batch=samples_together)
def _at_classes(input: Tensor, target: Tensor) -> Tensor:
    """Return the score of each sample's class."""
    return recorded(_at_classes, (input, target), elements_at(input, 1, target))


@operator(dinput=lambda g, target: g._at_classes(target), dtarget=None, tangent=first_linear, batch=samples_together)
def _to_classes(input: Tensor, target: Tensor, count: int) -> Tensor:
    """Return scores that are 0 except for each sample's class: the transpose of `_at_classes`."""
    samples, *places = target.shape
    return recorded(_to_classes, (input, target), spread_at(input, 1, target, (samples, count, *places)))


# ----- Cross entropy -----
@tiled
def _beside_largest(x: Tensor, score: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return log(sum(exp(x))) - score, the largest number, and sum(exp(x - largest)), which is at least 1: no number overflows."""
    largest = x.amax(dim, keepdim=True)
    total = (x - largest).exp_().sum(dim, keepdim=True)
    return total.log() - (score - largest), largest, total


@tiled
def _times_softmax(g: Tensor, x: Tensor, largest: Tensor, total: Tensor, dim: int) -> Tensor:
    return (x - largest).exp_().mul_(g / total)


@operator(dlosses=lambda g, scores, target: (g * scores.softmax(1)).sum(1) - _at_classes(g, target),
          dscores=lambda g, losses, scores: _softmax_gradient(g * losses.unsqueeze(1), scores.softmax(1), 1),
          dtarget=None, dlargest=None, dtotal=None, batch=samples_together)
def _softmax_loss_gradient(losses: Tensor, scores: Tensor, target: Tensor, largest: Tensor, total: Tensor) -> Tensor:
    """Return the gradient of losses, times numbers: softmax(scores), less 1 at the class of each sample."""
    factors = losses.unsqueeze(1)
    result = _times_softmax.values(factors, scores, largest, total, 1)
    changed_at(result, 1, target, factors, "subtract")
    return recorded(_softmax_loss_gradient, (losses, scores, target, largest, total), result)


@operator(dinput=lambda g, input, target, largest, total: _softmax_loss_gradient(g, input, target, largest, total), dtarget=None,
          node="CrossEntropyBackward0", batch=samples_together)
def _softmax_loss(input: Tensor, target: Tensor) -> Tensor:
    """Return -log(softmax(input)) at the class of each sample, from two numbers of the sample: no tensor of all logarithms."""
    if not input.numel():
        return _at_classes(input, target)

    loss, largest, total = _beside_largest.values(input, elements_at(input, 1, target, True), 1)
    return recorded(_softmax_loss, (input, target), loss.squeeze(1), largest=largest, total=total)


def _of_classes(operator: Any, input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, logits: bool,
                exist: bool, smoothing: float = 0.0) -> Tensor:
    """Return the loss at the class of each sample, times the weight of the class; a mean is by the sum of the weights.

    A part of it, `smoothing`, is the mean of the losses at all classes. Scores that are no `logits` are logarithms of probabilities.
    `exist`: the target names a class for each sample.
    """
    if not exist:
        _check_target(operator, input, target)
    if weight is not None:
        _check_weight(input, weight)
    scores, weight = in_loops(input, weight)
    classes = target if exist else target.long()
    single = not exist and scores.ndim == 1
    if single:
        scores, classes = scores.unsqueeze(0), classes.reshape(1)
    ignored = None
    if (not exist or ignore_index >= 0) and _has_ignored(target, scores.shape[1], ignore_index):
        ignored = classes == ignore_index
        classes = classes.masked_fill(ignored, 0)
    if logits and smoothing:
        scores, logits = log_softmax(scores, 1), False
    loss = _softmax_loss(scores, classes) if logits else -_at_classes(scores, classes)
    weights = None if weight is None else weight.take(classes)
    if weights is not None:
        loss = loss * weights
    if smoothing:
        everywhere = scores if weight is None else scores * _along_classes(weight, scores.ndim)
        loss = loss * (1 - smoothing) - everywhere.sum(1) * (smoothing / scores.shape[1])
    if ignored is not None:
        loss = loss.masked_fill(ignored, 0)
        weights = (~ignored).to(scores.dtype) if weights is None else weights.masked_fill(ignored, 0)
    if reduction == "mean" and weights is not None:
        loss = loss.sum() / weights.sum()
    else:
        loss = reduced(loss.squeeze(0) if single else loss, reduction)
    return loss if scores.dtype is input.dtype else loss.to(input.dtype)


def _along_classes(weight: Tensor, ndim: int) -> Tensor:
    """Return a weight for each class with the dims of scores."""
    return weight.reshape((-1,) + (1,) * (ndim - 2))


@rounded_once
def _of_probabilities(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float) -> Tensor:
    dim = min(1, input.ndim - 1)
    if smoothing:
        target = target * (1 - smoothing) + smoothing / max(input.shape[dim], 1)
    products = log_softmax(input, dim) * target
    if weight is not None:
        products = products * _along_classes(weight, input.ndim)
    return reduced(-products.sum(dim), reduction)


@operator(refuses={"biuc": NO_LOOP}, loop="log_softmax_lastdim_kernel_impl")
def nn_functional_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                                ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                                label_smoothing: float = 0.0) -> Tensor:
    """-log(softmax(input)) at the class of each sample, without overflow for scores of any size.

    `input` is (classes), (samples, classes) or (samples, classes, d1, ...), and `target` holds classes, (), (samples) or
    (samples, d1, ...); or probabilities, in the input's shape: then the loss is -sum(target log(softmax(input))) over classes.
    `weight` has a factor for each class; a mean is by the sum of the factors of the targets. A target `ignore_index` counts as no
    sample: its loss and gradient are 0. `label_smoothing` mixes the target with equal probabilities. IndexError for a class that does
    not exist.

    >>> import cygrad
    >>> x = cygrad.tensor([[0., 0.], [0., 1e4]])
    >>> cygrad.nn.functional.cross_entropy(x, cygrad.tensor([1, 0]), reduction="none")
    tensor([6.9315e-01, 1.0000e+04])
    """
    reduction = read_reduction(nn_functional_cross_entropy, reduction, size_average, reduce)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    checked_operand(nn_functional_cross_entropy, input)
    exist = names_classes(input, target)
    if not exist and input.shape == target.shape:
        if not target.is_floating_point():
            raise RuntimeError(f"Expected floating point type for target with class probabilities, got {_title(target)}")
        if ignore_index >= 0:
            raise RuntimeError(f"ignore_index is not supported for floating point target. It is {ignore_index}")
        if weight is not None:
            _check_weight(input, weight)
        return _of_probabilities(input, target, weight, reduction, label_smoothing)
    return _of_classes(nn_functional_cross_entropy, input, target, weight, ignore_index, reduction, True, exist, label_smoothing)


@operator(refuses={"biuc": NO_LOOP}, loop="nll_loss_out_frame")
def nn_functional_nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                           ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Negative log-likelihood: -input at the class of each sample, where `input` holds logarithms of probabilities.

    Shapes, `weight`, `ignore_index` and errors are as in `cross_entropy`.

    >>> import cygrad
    >>> p = cygrad.tensor([[0.5, 0.5], [0.25, 0.75]])
    >>> cygrad.nn.functional.nll_loss(p.log(), cygrad.tensor([1, 0]), reduction="none")
    tensor([0.6931, 1.3863])
    """
    reduction = read_reduction(nn_functional_nll_loss, reduction, size_average, reduce)
    checked_operand(nn_functional_nll_loss, input)
    exist = names_classes(input, target)
    return _of_classes(nn_functional_nll_loss, input, target, weight, ignore_index, reduction, False, exist)


# ----- Margins -----
def _check_vector_or_matrix(input: Tensor) -> None:
    if input.ndim > 2 or 0 in input.shape[1:] or input.ndim == 1 and not input.numel():
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")


def _check_long(target: Tensor) -> None:
    if target.dtype.name != "int64":
        raise RuntimeError(f"expected scalar type Long but found {_title(target)}: convert the target with .long()")


def _beyond_margin(input: Tensor, target: Tensor, p: int, margin: float, weight: Tensor | None) -> Tensor:
    place = target.unsqueeze(1)
    excess = (input - input.gather(1, place) + margin).relu()
    if p == 2:
        excess = excess.square()
    loss = excess.scatter(1, place, 0.0).sum(1) / input.shape[1]
    return loss if weight is None else loss * weight.take(target)


@operator(refuses={"biuc": NO_LOOP}, loop="multi_margin_loss_cpu_kernel")
def nn_functional_multi_margin_loss(
        input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: bool | None = None,
        reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Sum of max(0, margin - input[y] + input[j])^p over the classes j other than the target y, divided by the number of classes.

    `input` is (samples, classes) with a target for each sample, or (classes); `p` is 1 or 2; `weight` has a factor for each class.
    RuntimeError for a class that does not exist.

    >>> import cygrad
    >>> cygrad.nn.functional.multi_margin_loss(cygrad.tensor([[1., 0.5]]), cygrad.tensor([0]))
    tensor(0.2500)
    """
    reduction = read_reduction(nn_functional_multi_margin_loss, reduction, size_average, reduce)
    if p != 1 and p != 2:
        raise ValueError(f"only p == 1 and p == 2 supported, not {p!r}")
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"weight must be one-dimensional, but it has {weight.ndim} dims")
    _check_vector_or_matrix(input)
    scores = input if input.ndim == 2 else input.reshape(1, -1)
    samples, count = scores.shape
    if target.ndim > 1 or target.numel() != samples:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
                           f"Expected target size [{samples}], but got {list(target.shape)}. Input has shape {list(input.shape)}.")
    if weight is not None and len(weight) != count:
        raise RuntimeError(f"inconsistent weight size, expected {count} but got {list(weight.shape)}")
    checked_operand(nn_functional_multi_margin_loss, input)
    _check_long(target)
    _check_range(all_examples(target), 0, count, RuntimeError, "target out of range: {}, of {} classes")
    loss = rounded_once(lambda x, w: _beyond_margin(x, target.reshape(-1), p, margin, w))(scores, weight)
    return reduced(loss.reshape(target.shape), reduction)


def _between_labels(input: Tensor, target: Tensor, valid: Tensor) -> Tensor:
    """Return the loss of each row of a matrix; `valid` says which labels count."""
    target = target.masked_fill(~valid, 0)
    is_label = target.new_zeros(input.shape).scatter_add(1, target, valid.long()) > 0
    excess = (1 - input.gather(1, target).unsqueeze(2) + input.unsqueeze(1)).relu()
    return excess.where(valid.unsqueeze(2) & ~is_label.unsqueeze(1), 0.0).sum((1, 2)) / input.shape[1]


@operator(refuses={"biuc": NO_LOOP}, loop="multilabel_margin_loss_forward_out_frame")
def nn_functional_multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                                         reduction: str = "mean") -> Tensor:
    """Sum of max(0, 1 - input[y] + input[j]) over the labels y of a sample and the classes j that are none, by the number of classes.

    `input` is (samples, classes) or (classes). `target` has its shape: a row begins with the labels of the sample; a -1 ends them.
    RuntimeError for a label that does not exist.

    >>> import cygrad
    >>> cygrad.nn.functional.multilabel_margin_loss(cygrad.tensor([[1., 0.5]]), cygrad.tensor([[0, -1]]))
    tensor(0.2500)
    """
    reduction = read_reduction(nn_functional_multilabel_margin_loss, reduction, size_average, reduce)
    _check_vector_or_matrix(input)
    if target.shape != input.shape and not (input.ndim < 2 and target.ndim < 2 and target.numel() == input.numel()):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    checked_operand(nn_functional_multilabel_margin_loss, input)
    _check_long(target)
    count = input.shape[-1] if input.ndim else 1
    _check_range(all_examples(target), -1, count, RuntimeError, "argument #2 'target' is out of range: {}, of {} classes")
    scores, rows_of_labels = (x if input.ndim == 2 else x.reshape(1, -1) for x in (input, target))
    valid = (rows_of_labels < 0).cumsum(1) == 0
    loss = rounded_once(lambda x: _between_labels(x, rows_of_labels, valid))(scores)
    return reduced(loss if input.ndim == 2 else loss.squeeze(0), reduction)


@rounded_once
def _of_labels(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    logsigmoid = rows["logsigmoid"]
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    return reduced((loss if weight is None else loss * weight).mean(-1), reduction)


@operator(refuses={"biuc": NO_LOOP}, loop="log_sigmoid_cpu")
def nn_functional_multilabel_soft_margin_loss(
        input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean") -> Tensor:
    """Mean over classes, the last dim, of -target log(sigmoid(input)) - (1 - target) log(sigmoid(-input)), times `weight`.

    >>> import cygrad
    >>> cygrad.nn.functional.multilabel_soft_margin_loss(cygrad.tensor([[0., -1e4]]), cygrad.tensor([[1., 0.]]))
    tensor(0.3466)
    """
    reduction = read_reduction(nn_functional_multilabel_soft_margin_loss, reduction, size_average, reduce)
    if not input.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions: the input needs a dim of classes")
    checked_operand(nn_functional_multilabel_soft_margin_loss, input)
    return _of_labels(input, target, weight, reduction)
