"""Rows of a matrix looked up by numbers: one for each, or the sum, mean or maximum of several; and numbers as rows of 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.compute.places import is_outside, slices_at
from cygrad._core.levels.batches import batched_level
from cygrad._core.operands.arrays import computed, first_outside, to_array
from cygrad.operators._language.arguments import all_examples, integers
from cygrad.operators._language.batches import same
from cygrad.operators._language.declaration import operator, recorded, unrecorded
from cygrad.operators._language.tangents import first_linear
from cygrad.operators._sparse.pattern import pattern_of_coordinates
from cygrad.operators.norms import linalg_vector_norm
from cygrad.operators.sorting import searchsorted
from cygrad.ops.dtypes import DTYPES, NUMBER

if TYPE_CHECKING:
    from typing import Literal

    from cygrad.tensor import Tensor


def _title(tensor: Tensor) -> str:
    return DTYPES[NUMBER[tensor.dtype.name]].title


@operator
def nn_functional_one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Numbers as rows of zeros with a 1 at the place of the number: a new last dim of `num_classes`, or of the largest number plus 1.

    RuntimeError for numbers that are not int64, or outside of 0 to `num_classes` - 1.

    >>> import cygrad
    >>> cygrad.nn.functional.one_hot(cygrad.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if tensor.dtype.name != "int64":
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor. It is {_title(tensor)}")
    count, = integers(num_classes)
    values = to_array(all_examples(tensor))
    if not values.size:
        if count <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    else:
        lowest, highest = int(values.min()), int(values.max())
        if lowest < 0:
            raise RuntimeError(f"Class values must be non-negative. The least is {lowest}")
        if count == -1:
            count = highest + 1
        elif highest >= count:
            raise RuntimeError(f"Class values must be smaller than num_classes. The largest is {highest}, of {count} classes")
    return tensor.new_zeros((*tensor.shape, count)).scatter(-1, tensor.unsqueeze(-1), 1)


# ----- Arguments -----
def _check_indices(name: str, indices: Tensor, argument: str = "indices", position: int = 1) -> None:
    if indices.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"Expected tensor for argument #{position} '{argument}' to have one of the following scalar types: Long, Int; "
                           f"but got {_title(indices)} instead (while checking arguments for {name})")


def _renormalize(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are looked up down to a norm, in place and without recording."""
    def write() -> None:
        rows = indices.reshape(-1).unique().long()
        vectors = weight.detach().index_select(0, rows)
        norms = linalg_vector_norm(vectors, norm_type, -1, True)
        scaled = (vectors * (max_norm / (norms + 1e-7))).where(norms > max_norm, vectors)
        weight.detach().index_copy_(0, rows, scaled.to(weight.dtype))

    if indices.numel():
        unrecorded(write)


@operator(dinput=lambda g, factor: g * factor, dfactor=None, batch=same)
def _with_gradient_times(input: Tensor, factor: Tensor) -> Tensor:
    """Return rows whose gradient is multiplied by a factor."""
    return recorded(_with_gradient_times, (input, factor), computed(to_array(input).copy()))


def _sparse_rows(g: Tensor, indices: Tensor, weight_shape: tuple[int, ...]) -> Tensor:
    """Return a sparse tensor of rows at their places in a matrix; inside of vmap a dense one."""
    if batched_level(g) is not None or batched_level(indices) is not None:
        return g.new_zeros(weight_shape).index_add(0, indices, g)
    return pattern_of_coordinates(to_array(indices).reshape(1, -1), weight_shape, False).around(g)


@operator(dweight=lambda g, indices, weight_shape: _sparse_rows(g, indices, weight_shape), dindices=None, tangent=first_linear,
          batch=lambda level, operator, weight, indices: weight.index_select(0, indices), node="EmbeddingBackward0")
def _rows_with_sparse_gradient(weight: Tensor, indices: Tensor) -> Tensor:
    return recorded(_rows_with_sparse_gradient, (weight, indices), slices_at(weight, 0, indices))


def _rows(weight: Tensor, indices: Tensor, padding: int | None, by_frequency: bool, sparse: bool) -> Tensor:
    """Return rows of a matrix that a vector names; the one of the padding has no gradient, and others one by their frequency."""
    rows = _rows_with_sparse_gradient(weight, indices) if sparse else weight.index_select(0, indices)
    factor = None if padding is None else (indices != padding).to(weight.dtype)
    if by_frequency:
        ones = weight.new_ones(indices.shape)
        count = weight.new_zeros(len(weight)).index_add(0, indices, ones).index_select(0, indices)
        factor = (ones if factor is None else factor) / count
    return rows if factor is None else rows._with_gradient_times(factor.unsqueeze(1))


@operator
def nn_functional_embedding(
        input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of the matrix `weight` that integers name: a new last dim, as long as a row.

    The gradient is dense, or with `sparse` a sparse tensor of the rows that are named. The row `padding_idx` has the gradient 0;
    `scale_grad_by_freq` divides it by the number of times that a row is named. `max_norm`: rows that are named and have a larger norm
    are scaled down to it first, in place. IndexError for a row that does not exist.

    >>> import cygrad
    >>> cygrad.nn.functional.embedding(cygrad.tensor([1, 0]), cygrad.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    if weight.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D, but it has {weight.ndim} dims")
    _check_indices("embedding", input)
    padding = None
    if padding_idx is not None:
        padding, = integers(padding_idx)
        if not -len(weight) <= padding < len(weight):
            raise AssertionError(f"Padding_idx must be within num_embeddings: it is {padding}, of {len(weight)} rows")
        padding %= max(len(weight), 1)
    _check_rows(input, weight, lambda row, place: f"index out of range in self: {row}, of {len(weight)} rows")
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    rows = _rows(weight, input.reshape(-1), padding, scale_grad_by_freq, sparse)
    return rows if input.ndim == 1 else rows.reshape(*input.shape, weight.shape[1])


def _check_rows(indices: Tensor, weight: Tensor, words: Any, error: type[Exception] = IndexError) -> None:
    count, indices = weight.shape[0], all_examples(indices)
    if is_outside(indices, count):
        values = to_array(indices)
        raise error(words(first_outside(values, 0, count), ((values < 0) | (values >= count)).argmax()))


# ----- Bags -----
def _check_offsets(offsets: Tensor, count: int, include_last: bool) -> None:
    values = all_examples(offsets)
    if not values.numel():
        if include_last:
            raise RuntimeError("include_last_offset: number of offsets should be at least 1")
        return
    if values[..., 0].any():
        raise RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got "
                           f"{values.reshape(-1)[0].item()}")
    if (values[..., 1:] < values[..., :-1]).any():
        raise RuntimeError("offsets must not decrease: each bag starts where the one before it ends")
    if values[..., -1].amax().item() > count:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of "
                           f"{values[..., -1].amax().item()}")


def _of_bags(rows: Tensor, bags: Tensor, counted: Tensor, count: int, mode: str) -> Tensor:
    """Return the sum, mean or maximum of the rows of each bag that are counted; 0 for a bag without any."""
    zeros = rows.new_zeros((count, rows.shape[1]))
    if mode == "max":
        return _largest_of_bags(rows, bags, counted, zeros)
    total = zeros.index_add(0, bags, rows * counted.to(rows.dtype).unsqueeze(1))
    if mode == "sum":
        return total
    sizes = bags.new_zeros(count).index_add(0, bags, counted.long())
    return total / sizes.clamp_min(1).unsqueeze(1)


def _largest_of_bags(rows: Tensor, bags: Tensor, counted: Tensor, zeros: Tensor) -> Tensor:
    """Return the maxima of bags, each taken from the first row that has it, which alone gets the gradient."""
    if not len(rows):
        return zeros.index_add(0, bags, rows)
    places = bags.unsqueeze(1).expand(rows.shape)
    lowest = rows.detach().masked_fill(~counted.unsqueeze(1), -float("inf"))
    largest = zeros.scatter_reduce(0, places, lowest, "amax", include_self=False)
    attained = (lowest == largest.gather(0, places)) | lowest.isnan()
    attained = attained & counted.unsqueeze(1)
    number = bags.new_ones(len(rows)).cumsum(0).sub(1).unsqueeze(1).expand(rows.shape)
    none = len(rows)
    first = bags.new_full(zeros.shape, none).scatter_reduce(0, places, number.where(attained, none), "amin")
    result = rows.gather(0, first.clamp(max=none - 1))
    return result.masked_fill(first == none, 0)


@operator
def nn_functional_embedding_bag(
        input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
        scale_grad_by_freq: bool = False, mode: Literal["sum", "mean", "max"] = "mean", sparse: bool = False,
        per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """Sum, mean or maximum (`mode`) of the rows of `weight` that each bag of integers names.

    Each row of a matrix `input` is a bag; a vector has bags that begin at `offsets`, the last one up to its end, or, with
    `include_last_offset`, up to the last offset. `per_sample_weights` multiply the rows of sums. The number `padding_idx` does not
    count. An empty bag gives 0. Other arguments and errors are as in `embedding`.

    >>> import cygrad
    >>> weight = cygrad.tensor([[1., 2.], [3., 4.]])
    >>> cygrad.nn.functional.embedding_bag(cygrad.tensor([0, 1, 1]), weight, cygrad.tensor([0, 2]))
    tensor([[2., 3.],
            [3., 4.]])
    """
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must have the same "
                         f"shape as the input ({list(input.shape)})")
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    bags, count, used = _bags(input, offsets, include_last_offset)
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max, not {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
                                  f"(got mode='{mode}').")
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise RuntimeError("Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; "
                           f"but type {_title(weight)} does not equal {_title(per_sample_weights)}")
    padding = None
    if padding_idx is not None:
        padding, = integers(padding_idx)
        if not -len(weight) <= padding < len(weight):
            raise RuntimeError(f"padding_idx must be within the number of embeddings, {-len(weight)} through {len(weight) - 1}, but got "
                               f"{padding}")
        padding %= len(weight)
    _check_rows(input, weight, lambda row, place: f"Index {place} of input takes value {row} which is not in the valid range [0, "
                f"{len(weight)})", RuntimeError)
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    indices = input.reshape(-1)[:used]
    rows = _rows(weight, indices, None, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1)[:used].unsqueeze(1)
    counted = indices == indices if padding is None else indices != padding
    return _of_bags(rows, bags, counted, count, mode)


def _bags(input: Tensor, offsets: Tensor | None, include_last: bool) -> tuple[Tensor, int, int]:
    """Return the number of the bag of each integer, the number of bags, and the number of integers that are in one."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                             f"However, found offsets of type {type(offsets)}")
        _check_indices("embedding_bag", input)
        count, size = input.shape
        return input.new_ones(count).cumsum(0).sub(1).long().repeat_interleave(size), count, count * size
    if input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError(f"offsets has to be a 1D Tensor, but it has {offsets.ndim} dims")
    _check_indices("embedding_bag", input)
    _check_indices("embedding_bag", offsets, "offsets", 2)
    used = len(input)
    _check_offsets(offsets, used, include_last)
    starts = offsets.long()
    if include_last:
        used, starts = int(all_examples(starts)[-1].item()), starts[:-1]
    numbers = starts.new_ones(used).cumsum(0).sub(1)
    return searchsorted(starts, numbers, right=True) - 1, len(starts), used
