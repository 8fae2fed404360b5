"""Elements in another arrangement: views by other names, copies that repeat, turn and cut, and parts written into copies.

Loaded at first use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad import creation, limits
from cygrad._core.compute.windows import broadcast_shape
from cygrad._core.graph.tensor import Size, TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad.operators.arguments import checked_tensor, given_tensors, integers
from cygrad.operators.elementwise import functions, publish


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
    origins, targets = list(integers(source)), list(integers(destination))
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
    given = given_tensors("broadcast_tensors", tensors)
    shape = broadcast_shape(*given)
    return tuple(tensor if tensor.shape == shape else tensor.expand(shape) for tensor in given)


def _at_least(name: str, ndim: int, reshape: Callable[[Any], Any]) -> Callable[..., Any]:
    def function(*tensors: Any) -> Any:
        results = tuple(reshape(tensor) for tensor in given_tensors(name, tensors))
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
        parts = given_tensors(name, (tuple(tensors),))
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
    given = given_tensors("meshgrid", tensors)
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
    sizes = [integers(shape) for shape in shapes]
    if any(size < 0 for shape in sizes for size in shape):
        raise ValueError(f"Attempting to broadcast a dimension with negative length! The shapes are {', '.join(map(str, sizes))}")
    try:
        return Size(np.broadcast_shapes(*sizes))
    except ValueError:
        raise RuntimeError(f"Attempting to broadcast a dimension of one length to another: {', '.join(map(str, sizes))}. Sizes are equal, "
                           "or one of them is 1") from None


publish(__name__, globals())
