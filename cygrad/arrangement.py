"""Elements in another arrangement: views by other names, copies that repeat, turn and cut, and parts written into copies.

Loaded at first use.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad import creation, limits
from cygrad._core.compute.windows import broadcast_shape
from cygrad._core.graph.rules import record_rule
from cygrad._core.graph.tensor import Size, TensorImpl
from cygrad._core.memory.sizes import index_argument, normalized_dim
from cygrad._core.operands.arrays import from_array, to_array
from cygrad.operators import checked_tensor, delivered, functions, overwriting, publish, unrecorded


def _integers(value: Any) -> tuple[int, ...]:
    """Return one integer or several as a tuple."""
    return tuple(map(operator.index, value if isinstance(value, tuple | list) else (value,)))


def _spread(sizes: tuple[Any, ...], by_name: Any = None) -> tuple[int, ...]:
    """Return integers that were given one by one, as one sequence, or by the parameter's name."""
    if by_name is not None:
        if sizes:
            raise TypeError(f"the integers were given twice: as {sizes} and by keyword as {by_name}")
        return _integers(by_name)
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes


def _tensors(name: str, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return tensors that were given one by one or as one sequence."""
    tensors = _spread(tensors)
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, TensorImpl):
            raise TypeError(f"{name}(): expected Tensor as element {number} in argument 0, but got {type(tensor).__name__}")
    return tensors


def _distinct_dims(dims: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    normalized = tuple(normalized_dim(dim, ndim) for dim in dims)
    for dim in normalized:
        if normalized.count(dim) > 1:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return normalized


# ----- Views by other names -----
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """View with the dims at `source` moved to `destination`; the others keep their order.

    >>> import cygrad
    >>> cygrad.movedim(cygrad.zeros(2, 3, 4), 0, -1).shape
    cygrad.Size([3, 4, 2])
    """
    checked_tensor("movedim", input)
    if isinstance(source, int) != isinstance(destination, int):
        raise TypeError("movedim() received an invalid combination of arguments: source and destination must both be int, or both tuples")
    origins, targets = list(_integers(source)), list(_integers(destination))
    if len(origins) != len(targets):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({origins} dims) should contain the same number of dims "
                           f"as destination ({targets} dims)")
    froms, tos = ([normalized_dim(dim, input.ndim) for dim in dims] for dims in (origins, targets))
    for name, dims, given in (("source", froms, origins), ("destination", tos, targets)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({given})")
    order = [dim for dim in range(input.ndim) if dim not in froms]
    for target, origin in sorted(zip(tos, froms, strict=True)):
        order.insert(target, origin)
    return input.permute(order) if input.ndim else input.permute(())


moveaxis = movedim


def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """View with two dims exchanged: NumPy's name of `transpose`.

    >>> import cygrad
    >>> cygrad.swapaxes(cygrad.zeros(2, 3), 0, 1).shape
    cygrad.Size([3, 2])
    """
    return checked_tensor("swapaxes", input).transpose(axis0, axis1)


def swapdims(input: Any, dim0: int, dim1: int) -> Any:
    """View with two dims exchanged: another name of `transpose`.

    >>> import cygrad
    >>> cygrad.swapdims(cygrad.zeros(2, 3), 0, 1).shape
    cygrad.Size([3, 2])
    """
    return checked_tensor("swapdims", input).transpose(dim0, dim1)


def adjoint(input: Any) -> Any:
    """View with the last two dims exchanged (of real numbers; there are no complex ones).

    >>> import cygrad
    >>> cygrad.adjoint(cygrad.zeros(5, 2, 3)).shape
    cygrad.Size([5, 3, 2])
    """
    if checked_tensor("adjoint", input).ndim < 2:
        raise RuntimeError(f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor.")
    return input.transpose(-2, -1)


def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """View in which one dim is cut into several; one of `sizes` may be -1.

    >>> import cygrad
    >>> cygrad.unflatten(cygrad.zeros(2, 6), 1, (3, -1)).shape
    cygrad.Size([2, 3, 2])
    """
    checked_tensor("unflatten", input)
    d, parts = normalized_dim(dim, input.ndim), list(sizes)
    if not parts:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if input.ndim == 0:
        raise RuntimeError("unflatten got an unexpected error: a 0-d tensor has no dim to cut")
    size, known = input.shape[d], int(np.prod([part for part in parts if part != -1]))
    if parts.count(-1) == 1 and known and size % known == 0:
        parts[parts.index(-1)] = size // known
    if -1 in parts or int(np.prod(parts)) != size:
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({size}) in the input tensor")
    return input.view(*input.shape[:d], *parts, *input.shape[d + 1:])


def ravel(input: Any) -> Any:
    """Elements in one dim: a view where possible, else a copy.

    >>> import cygrad
    >>> cygrad.ravel(cygrad.zeros(2, 3)).shape
    cygrad.Size([6])
    """
    return checked_tensor("ravel", input).reshape(-1)


def broadcast_to(input: Any, size: Any) -> Any:
    """View repeated without a copy to a shape: another name of `expand`.

    >>> import cygrad
    >>> cygrad.broadcast_to(cygrad.zeros(3), (2, 3)).shape
    cygrad.Size([2, 3])
    """
    return checked_tensor("broadcast_to", input).expand(size)


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Views of tensors, repeated without a copy to the shape that they broadcast to.

    >>> import cygrad
    >>> [x.shape for x in cygrad.broadcast_tensors(cygrad.zeros(3), cygrad.zeros(2, 1))]
    [cygrad.Size([2, 3]), cygrad.Size([2, 3])]
    """
    given = _tensors("broadcast_tensors", tensors)
    shape = broadcast_shape(*given)
    return tuple(tensor if tensor.shape == shape else tensor.expand(shape) for tensor in given)


def _at_least(name: str, ndim: int, reshape: Callable[[Any], Any]) -> Callable[..., Any]:
    def function(*tensors: Any) -> Any:
        results = tuple(reshape(tensor) for tensor in _tensors(name, tensors))
        return results[0] if len(tensors) == 1 and isinstance(tensors[0], TensorImpl) else results

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"View of each tensor with at least {ndim} dim(s), as NumPy adds them; several give a tuple.\n\n"
                        f">>> import cygrad\n>>> cygrad.{name}(cygrad.tensor(1.)).ndim\n{ndim}\n")
    return function


atleast_1d = _at_least("atleast_1d", 1, lambda x: x if x.ndim else x.reshape(1))
atleast_2d = _at_least("atleast_2d", 2, lambda x: x if x.ndim > 1 else x.unsqueeze(0) if x.ndim else x.reshape(1, 1))
atleast_3d = _at_least("atleast_3d", 3, lambda x: x if x.ndim > 2 else x.unsqueeze(-1) if x.ndim == 2 else
                       x.unsqueeze(0).unsqueeze(-1) if x.ndim else x.reshape(1, 1, 1))



# ----- Joining -----
def _stacking(name: str, sentence: str, prepare: Callable[..., Any], dim: Callable[[Any], int]) -> Callable[..., Any]:
    def function(tensors: Any, *, out: Any = None) -> Any:
        parts = _tensors(name, (tuple(tensors),))
        if not parts:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        parts = tuple(prepare(part) for part in parts)
        return functions["cat"](parts, dim(parts[0]), out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{sentence}\n\n>>> import cygrad\n>>> cygrad.{name}([cygrad.zeros(2), cygrad.ones(2)]).numel()\n4\n"
    return function


hstack = _stacking("hstack", "Tensors joined along dim 1, vectors along dim 0.", atleast_1d, lambda x: 0 if x.ndim == 1 else 1)
vstack = _stacking("vstack", "Tensors joined along dim 0, vectors as rows.", atleast_2d, lambda x: 0)
dstack = _stacking("dstack", "Tensors joined along dim 2.", atleast_3d, lambda x: 2)
column_stack = _stacking("column_stack", "Tensors joined along dim 1, vectors as columns.",
                         lambda x: x if x.ndim > 1 else x.reshape(x.numel(), 1), lambda x: 1)
row_stack = vstack


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Views of vectors, repeated without a copy over the grid they span; `indexing` "xy" exchanges the first two dims.

    >>> import cygrad
    >>> cygrad.meshgrid(cygrad.arange(2), cygrad.arange(3))[0]
    tensor([[0, 0, 0],
            [1, 1, 1]])
    """
    given = _tensors("meshgrid", tensors)
    if not given:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for tensor in given:
        if tensor.dtype != given[0].dtype:
            raise RuntimeError(f"meshgrid expects all tensors to have the same dtype: {given[0].dtype} and {tensor.dtype}")
        if tensor.ndim > 1:
            raise RuntimeError(f"Expected 0D or 1D tensor in the tensor list but got: {list(tensor.shape)}")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    places = list(range(len(given)))
    if indexing == "xy":
        places[:2] = places[1::-1]
    shape = [given[place].numel() for place in places]
    return tuple(tensor.reshape([size if place == d else 1 for d, size in enumerate(shape)]).expand(shape)
                 for tensor, place in zip(given, places, strict=True))


def block_diag(*tensors: Any) -> Any:
    """Matrix with matrices along its diagonal and zeros elsewhere; vectors and numbers count as rows.

    >>> import cygrad
    >>> cygrad.block_diag(cygrad.ones(1, 2), cygrad.tensor(3.))
    tensor([[1., 1., 0.],
            [0., 0., 3.]])
    """
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, TensorImpl):
            raise TypeError(f"block_diag(): expected Tensor as element {number} in argument 0, but got {type(tensor).__name__}")
        if tensor.ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {number} has {tensor.ndim} "
                               "dimensions")
    ranks = [[tensor.dtype for tensor in tensors if bool(tensor.ndim) == dims] for dims in (True, False)]
    samples = [creation.empty([0] * dims, dtype=functools.reduce(limits.promote_types, dtypes))
               for dims, dtypes in zip((1, 0), ranks, strict=True) if dtypes]
    dtype = limits.result_type(samples[0], samples[-1]) if samples else None
    blocks = [atleast_2d(tensor).to(dtype) for tensor in tensors] or [creation.empty(1, 0)]
    widths = [block.shape[1] for block in blocks]
    rows = [functions["cat"]([block.new_zeros(block.shape[0], sum(widths[:k])), block,
                              block.new_zeros(block.shape[0], sum(widths[k + 1:]))], 1) for k, block in enumerate(blocks)]
    return functions["cat"](rows)


def broadcast_shapes(*shapes: Any) -> Any:
    """Shape that tensors of the shapes given broadcast to; an int stands for a shape of one dim.

    >>> import cygrad
    >>> cygrad.broadcast_shapes((2,), (3, 1))
    cygrad.Size([3, 2])
    """
    sizes = [_integers(shape) for shape in shapes]
    if any(size < 0 for shape in sizes for size in shape):
        raise ValueError(f"Attempting to broadcast a dimension with negative length! The shapes are {', '.join(map(str, sizes))}")
    try:
        return Size(np.broadcast_shapes(*sizes))
    except ValueError:
        raise RuntimeError(f"Attempting to broadcast a dimension of one length to another: {', '.join(map(str, sizes))}. Sizes are equal, "
                           "or one of them is 1") from None


# ----- Repetition -----
def repeat(input: Any, *counts: Any, repeats: Any = None) -> Any:
    """Copy with the elements repeated along each dim; more numbers than dims add dims in front.

    >>> import cygrad
    >>> cygrad.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    checked_tensor("repeat", input)
    if not counts and repeats is None:
        raise TypeError('repeat() missing 1 required positional arguments: "repeats"')
    counts = _spread(counts, repeats)
    if len(counts) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
                           f"{len(counts)} and {input.ndim}")
    shape = (1,) * (len(counts) - input.ndim) + tuple(input.shape)
    size = [count * length for count, length in zip(counts, shape, strict=True)]
    if any(count < 0 for count in counts):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {size}")

    def compute() -> Any:
        apart = input.detach().reshape([part for length in shape for part in (1, length)])
        return apart.expand([part for pair in zip(counts, shape, strict=True) for part in pair]).clone().reshape(size)

    return record_rule("repeat", (input,), unrecorded(compute), (tuple(input.shape), tuple(counts)))


def tile(input: Any, *counts: Any, dims: Any = None) -> Any:
    """Copy with the elements repeated along the last dims, as NumPy's tile.

    >>> import cygrad
    >>> cygrad.tile(cygrad.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    counts = _spread(counts, dims)
    return repeat(input, repeats=(1,) * (checked_tensor("tile", input).ndim - len(counts)) + tuple(counts))


def repeat_interleave(input: Any = None, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Any:
    """Copy with each slice along `dim` (default: each element) repeated in place, `repeats` times or as often as a vector says.

    With `repeats` alone, a vector: the index that does so.

    >>> import cygrad
    >>> cygrad.repeat_interleave(cygrad.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if input is None:
        input, repeats = repeats, None
    checked_tensor("repeat_interleave", input)
    if repeats is None:
        return from_array(np.repeat(np.arange(input.numel(), dtype="int32" if input.dtype.name == "int32" else "int64"), _counts(input)))
    if dim is None:
        input, dim = input.reshape(-1), 0
    d = normalized_dim(dim, input.ndim)
    size = input.shape[d] if input.ndim else 1
    if isinstance(repeats, TensorImpl):
        counts = np.broadcast_to(_counts(repeats), size) if repeats.numel() == 1 else _counts(repeats)
        if len(counts) != size:
            raise RuntimeError("repeats must have the same size as input along dim, but got "
                               f"repeats.size(0) = {len(counts)} and input.size({d}) = {size}")
    elif repeats < 0:
        raise RuntimeError(f"Repeats must be non-negative, got {repeats}")
    else:
        counts = np.full(size, repeats)
    index = np.repeat(np.arange(size), counts)
    if output_size is not None and output_size != len(index):
        raise RuntimeError(f"allocated size does not match required size: output_size is {output_size}, the repeats sum to {len(index)}")
    return input.index_select(d, from_array(index))


def _counts(repeats: Any) -> np.ndarray:
    """Return a tensor of repeats as a vector; refuse what is none."""
    if repeats.ndim > 1:
        raise RuntimeError(f"repeats must be 0-dim or 1-dim tensor, got {repeats.ndim} dims")
    if repeats.dtype.name not in ("int64", "int32"):
        raise NotImplementedError(f"\"repeat_interleave\" not implemented for '{repeats.dtype.name}': repeats are int64 or int32")
    counts = to_array(repeats).reshape(-1)
    if (counts < 0).any():
        raise RuntimeError(f"repeats can not be negative: {counts.min()}")
    return counts


# ----- Turning -----
def flip(input: Any, *places: Any, dims: Any = None) -> Any:
    """Copy with the order of elements reversed along dims.

    >>> import cygrad
    >>> cygrad.arange(3).flip(0)
    tensor([2, 1, 0])
    """
    checked_tensor("flip", input)
    chosen = _distinct_dims(_spread(places, dims), input.ndim)
    turned = np.flip(to_array(input), chosen) if input.ndim else to_array(input)
    return record_rule("flip", (input,), from_array(turned.copy()), (chosen,))


def fliplr(input: Any) -> Any:
    """Copy with the order of columns (dim 1) reversed.

    >>> import cygrad
    >>> cygrad.fliplr(cygrad.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    if checked_tensor("fliplr", input).ndim < 2:
        raise RuntimeError(f"Input must be >= 2-d. It has {input.ndim} dims")
    return flip(input, 1)


def flipud(input: Any) -> Any:
    """Copy with the order of rows (dim 0) reversed.

    >>> import cygrad
    >>> cygrad.flipud(cygrad.tensor([1, 2]))
    tensor([2, 1])
    """
    if checked_tensor("flipud", input).ndim < 1:
        raise RuntimeError("Input must be >= 1-d. It has 0 dims")
    return flip(input, 0)


def roll(input: Any, shifts: Any, dims: Any = ()) -> Any:
    """Copy with the elements shifted along dims, those beyond the end coming in at the start; without dims, of the flattened input.

    >>> import cygrad
    >>> cygrad.roll(cygrad.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    checked_tensor("roll", input)
    steps, along = _integers(shifts), _integers(dims)
    if not steps:
        raise RuntimeError("`shifts` required")
    if len(steps) != len(along) and (along or len(steps) > 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(along)}")
    if along and input.ndim == 0:
        raise IndexError(f"Dimension specified as {along[0]} but tensor has no dimensions")
    along = tuple(normalized_dim(dim, input.ndim) for dim in along)
    return record_rule("roll", (input,), from_array(np.roll(to_array(input), steps if along else steps[0], along or None)), (steps, along))


# ----- Diagonals and triangles -----
def _triangle(name: str, side: str, cut: Callable[..., np.ndarray]) -> Callable[..., Any]:
    def function(input: Any, diagonal: int = 0, *, out: Any = None) -> Any:
        if checked_tensor(name, input).ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions, it has {input.ndim}")
        corner = sum(input.shape[-2:])      # further out nothing changes
        diagonal = max(-corner, min(index_argument(diagonal, "diagonal"), corner))
        return delivered(record_rule(name, (input,), from_array(cut(to_array(input), diagonal)), (diagonal,)), out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"Copy of (a batch of) matrices with zeros {side} the diagonal; `diagonal` counts above the main one.\n\n"
                        f">>> import cygrad\n>>> cygrad.{name}(cygrad.ones(2, 2)).sum()\ntensor(3.)\n")
    return function


tril = _triangle("tril", "above", np.tril)
triu = _triangle("triu", "below", np.triu)
tril_, triu_ = overwriting(tril), overwriting(triu)


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Zeros with the last dim of `input` as the diagonal of two new dims.

    >>> import cygrad
    >>> cygrad.diag_embed(cygrad.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    checked_tensor("diag_embed", input)
    first, second = (normalized_dim(dim, input.ndim + 1) for dim in (dim1, dim2))
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    length = input.shape[-1] + abs(offset)
    sizes = list(input.shape[:-1])
    for place in sorted((first, second)):
        sizes.insert(place, length)

    def compute() -> Any:
        result = creation.zeros(sizes, dtype=input.dtype)
        result.diagonal(offset, first, second).copy_(input.detach())
        return result

    return record_rule("diag_embed", (input,), unrecorded(compute), (offset, first, second))


def diag(input: Any, diagonal: int = 0, *, out: Any = None) -> Any:
    """Matrix with a vector as its diagonal, or a copy of the diagonal of a matrix.

    >>> import cygrad
    >>> cygrad.diag(cygrad.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    if checked_tensor("diag", input).ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    result = diag_embed(input, diagonal) if input.ndim == 1 else input.diagonal(diagonal).clone()
    return delivered(result, out)


def diagflat(input: Any, offset: int = 0) -> Any:
    """Matrix with all elements of `input` as its diagonal.

    >>> import cygrad
    >>> cygrad.diagflat(cygrad.ones(2, 2)).shape
    cygrad.Size([4, 4])
    """
    return diag_embed(checked_tensor("diagflat", input).reshape(-1), offset)


# ----- Parts written into copies -----
def _part_written(input: Any, src: Any, part: Callable[[Any], Any], rule: str, params: tuple[Any, ...]) -> Any:
    """Return a copy of which `part`, a function that gives a view, holds the source."""
    if not isinstance(src, TensorImpl):
        raise TypeError(f"{rule}(): argument 'src' (position 2) must be Tensor, not {type(src).__name__}")
    result = input.detach().clone()
    place = part(result)
    if place.shape != src.shape:
        raise RuntimeError("expected src to have a size equal to the slice of self. "
                           f"src size = {list(src.shape)}, slice size = {list(place.shape)}")
    unrecorded(lambda: place.copy_(src.detach()))
    return record_rule(rule, (input, src.to(input.dtype)), result, params)


def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Copy of `input` with `src` in the place of its diagonal; see `diagonal`.

    >>> import cygrad
    >>> cygrad.diagonal_scatter(cygrad.zeros(2, 2), cygrad.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    dims = tuple(normalized_dim(dim, checked_tensor("diagonal_scatter", input).ndim) for dim in (dim1, dim2))
    return _part_written(input, src, lambda x: x.diagonal(offset, *dims), "diagonal_scatter", (getattr(src, "shape", ()), offset, *dims))


def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """Copy of `input` with `src` at one index of `dim`.

    >>> import cygrad
    >>> cygrad.select_scatter(cygrad.zeros(2, 2), cygrad.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    key = (slice(None),) * normalized_dim(dim, checked_tensor("select_scatter", input).ndim) + (index,)
    return _part_written(input, src, lambda x: x.select(dim, index), "select_scatter", (key,))


def slice_scatter(input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *,
                  out: Any = None) -> Any:
    """Copy of `input` with `src` in a slice of `dim`.

    >>> import cygrad
    >>> cygrad.slice_scatter(cygrad.zeros(4), cygrad.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    key = (slice(None),) * normalized_dim(dim, checked_tensor("slice_scatter", input).ndim) + (slice(start, end, step),)
    return delivered(_part_written(input, src, lambda x: x[key], "slice_scatter", (key,)), out)


def _fold(windows: Any, shape: tuple[int, ...], dim: int, size: int, step: int) -> Any:
    """Return the sum of windows where they lie in a tensor of a shape: the transpose of `unfold`."""
    def compute() -> Any:
        result, parts = creation.zeros(shape, dtype=windows.dtype), windows.detach()
        for place in range(size):
            if not shape:
                result += parts[place]
                continue
            result[(slice(None),) * dim + (slice(place, place + (parts.shape[dim] - 1) * step + 1, step),)] += parts.select(-1, place)
        return result

    return record_rule("fold", (windows,), unrecorded(compute), (dim, size, step))


publish(__name__, globals())
