"""Tensors in other shapes: reshaped, with dims in another order, added, dropped or repeated without a copy."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cygrad._core.compute import dtype_views, shapes
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import Size, normalized_dim
from cygrad._core.operands.operands import broadcast_shape
from cygrad.operators._language.arguments import given_tensors, integers, normalized_dims
from cygrad.operators._language.batches import behind, matrices, same, shifted, sizes_of
from cygrad.operators._language.declaration import operator, rearranging
from cygrad.operators._language.tangents import constant, linear

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Dims, DTypeLike, Ints


# ----- Sizes -----
def _reshape_examples(level: Any, operator: Any, x: Tensor, *shape: Any, **keywords: Any) -> Tensor:
    inner, sizes = level.enter(x), list(sizes_of(shape, keywords))
    if sizes.count(-1) == 1 and 0 not in sizes:
        sizes[sizes.index(-1)] = prod(inner.shape[1:]) // prod(size for size in sizes if size != -1)
    return level.leave(operator(inner, level.size, *sizes))


def _view_special(x: Any, *shape: Any, **keywords: Any) -> Any:
    dtype = dtype_views._dtype_given(shape, keywords)
    return NotImplemented if dtype is None else x._as_dtype(dtype)


@overload
def view(input: Tensor, *size: int) -> Tensor: ...
@overload
def view(input: Tensor, size: Sequence[int]) -> Tensor: ...
@overload
def view(input: Tensor, dtype: DTypeLike) -> Tensor: ...
@operator(shapes.view, dinput=lambda g, shape: g.reshape(shape), tangent=linear, batch=_reshape_examples, parts=_view_special,
          function=False, copy=True)
def view(input: Tensor, *shape: Any, **keywords: Any) -> Tensor:
    """View of another shape, or the same bytes read as another dtype; RuntimeError where the strides do not allow it.

    Through another dtype no gradient flows; `view_as_real` and `view_as_complex` are for that.

    >>> import cygrad
    >>> cygrad.arange(6).view(3, 2).shape
    cygrad.Size([3, 2])
    >>> cygrad.ones(2).view(cygrad.int32)
    tensor([1065353216, 1065353216], dtype=cygrad.int32)
    """


@operator(dtype_views.view_as_dtype, tangent=constant, batch=same, function=False)
def _as_dtype(input: Tensor, dtype: DTypeLike) -> Tensor:
    """The same memory, read as another dtype."""


@overload
def reshape(input: Tensor, *shape: int) -> Tensor: ...
@overload
def reshape(input: Tensor, shape: Sequence[int]) -> Tensor: ...
@operator(shapes.reshape, tangent=linear, batch=_reshape_examples)
def reshape(input: Tensor, *shape: Any, **keywords: Any) -> Tensor:
    """Elements in another shape; one size may be -1. A view where possible, else a copy.

    >>> import cygrad
    >>> cygrad.arange(6).reshape(2, -1).shape
    cygrad.Size([2, 3])
    """


@operator(function=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """View of the shape of another tensor."""
    return self.view(other.shape)


@operator(function=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Elements in the shape of another tensor."""
    return self.reshape(other.shape)


def _flatten_examples(level: Any, operator: Any, x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    return shifted("start_dim", "end_dim")(level, operator, x if x.ndim else x.reshape(1), start_dim, end_dim)


@operator(shapes.flatten, tangent=linear, batch=_flatten_examples)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Elements with the dims from `start_dim` to `end_dim` joined into one.

    >>> import cygrad
    >>> cygrad.zeros(2, 3, 4).flatten(1).shape
    cygrad.Size([2, 12])
    """


@operator
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """View in which one dim is cut into several; one of `sizes` may be -1.

    >>> import cygrad
    >>> cygrad.unflatten(cygrad.zeros(2, 6), 1, (3, -1)).shape
    cygrad.Size([2, 3, 2])
    """
    d, parts = normalized_dim(dim, input.ndim), list(sizes)
    if not parts:
        raise RuntimeError(f"{unflatten.__name__}: sizes must be non-empty")
    if input.ndim == 0:
        raise RuntimeError("unflatten got an unexpected error: a 0-d tensor has no dim to cut")
    size, known = input.shape[d], int(np.prod([part for part in parts if part != -1]))
    if parts.count(-1) == 1 and known and size % known == 0:
        parts[parts.index(-1)] = size // known
    if -1 in parts or int(np.prod(parts)) != size:
        raise RuntimeError(f"{unflatten.__name__}: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({size}) "
                           "in the input tensor")
    return input.view(*input.shape[:d], *parts, *input.shape[d + 1:])


@operator
def ravel(input: Tensor) -> Tensor:
    """Elements in one dim: a view of a row-major tensor, else a copy.

    >>> import cygrad
    >>> cygrad.ravel(cygrad.zeros(2, 3)).shape
    cygrad.Size([6])
    """
    return input.contiguous().reshape(-1)


# ----- Dims of size 1 -----
def _squeeze_examples(level: Any, operator: Any, x: Tensor, dim: Dims = None) -> Tensor:
    return x if isinstance(dim, (tuple, list)) and not dim else shifted("dim")(level, operator, x, dim)


@operator(shapes.squeeze, dinput=lambda g, shape: g.reshape(shape),
          tangent=linear, batch=_squeeze_examples, in_place=rearranging, copy=True)
def squeeze(input: Tensor, dim: Dims = None) -> Tensor:
    """View without the dims of size 1: all of them, or those named.

    >>> import cygrad
    >>> cygrad.zeros(1, 3, 1).squeeze(0).shape
    cygrad.Size([3, 1])
    """


@operator(shapes.unsqueeze, dinput=lambda g, shape: g.reshape(shape),
          tangent=linear, batch=shifted("dim", extra=1), in_place=rearranging, copy=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """View with a dim of size 1 put in at `dim`.

    >>> import cygrad
    >>> cygrad.zeros(3).unsqueeze(-1).shape
    cygrad.Size([3, 1])
    """


def _each(operator: Any, reshape: Callable[[Tensor], Tensor], tensors: tuple[Any, ...]) -> Tensor | tuple[Tensor, ...]:
    """Apply a function to tensors given one by one or as a sequence; of one alone return the result itself."""
    results = tuple(reshape(tensor) for tensor in given_tensors(operator, tensors))
    return results[0] if len(tensors) == 1 and isinstance(tensors[0], TensorImpl) else results


@overload
def atleast_1d(input: Tensor, /) -> Tensor: ...
@overload
def atleast_1d(input: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_1d(input: Tensor, other: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]: ...
@operator(method=False)
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """View of each tensor with at least 1 dim; several give a tuple.

    >>> import cygrad
    >>> cygrad.atleast_1d(cygrad.tensor(1.)).ndim
    1
    """
    return _each(atleast_1d, lambda x: x if x.ndim else x.reshape(1), tensors)


@overload
def atleast_2d(input: Tensor, /) -> Tensor: ...
@overload
def atleast_2d(input: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(input: Tensor, other: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]: ...
@operator(method=False)
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """View of each tensor with at least 2 dims, a vector as a row; several give a tuple.

    >>> import cygrad
    >>> cygrad.atleast_2d(cygrad.zeros(3)).shape
    cygrad.Size([1, 3])
    """
    return _each(atleast_2d, lambda x: x if x.ndim > 1 else x.unsqueeze(0) if x.ndim else x.reshape(1, 1), tensors)


@overload
def atleast_3d(input: Tensor, /) -> Tensor: ...
@overload
def atleast_3d(input: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(input: Tensor, other: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]: ...
@operator(method=False)
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """View of each tensor with at least 3 dims, as NumPy adds them: a vector lies along dim 1; several give a tuple.

    >>> import cygrad
    >>> cygrad.atleast_3d(cygrad.zeros(3)).shape
    cygrad.Size([1, 3, 1])
    """
    return _each(atleast_3d, lambda x: x if x.ndim > 2 else x.unsqueeze(-1) if x.ndim == 2 else
                 x.unsqueeze(0).unsqueeze(-1) if x.ndim else x.reshape(1, 1, 1), tensors)


# ----- The order of dims -----
def _permute_examples(level: Any, operator: Any, x: Tensor, *dims: Any, **keywords: Any) -> Tensor:
    return level.leave(operator(level.enter(x), 0, *(behind(dim, x.ndim) for dim in sizes_of(dims, keywords))))


@overload
def permute(input: Tensor, *dims: int) -> Tensor: ...
@overload
def permute(input: Tensor, dims: Sequence[int]) -> Tensor: ...
@operator(shapes.permute, dinput=lambda g, inverse: g.permute(inverse), tangent=linear, batch=_permute_examples, copy=True)
def permute(input: Tensor, *dims: Any, **keywords: Any) -> Tensor:
    """View with the dims in another order.

    >>> import cygrad
    >>> cygrad.zeros(2, 3, 4).permute(2, 0, 1).shape
    cygrad.Size([4, 2, 3])
    """


_exchange_examples = shifted("dim0", "dim1")


def _transpose_examples(level: Any, operator: Any, x: Tensor, dim0: Any = None, dim1: Any = None, *dims: Any, axes: Any = None) -> Tensor:
    if dim1 is not None and not dims and axes is None:
        return _exchange_examples(level, operator, x, dim0, dim1)
    if dims:
        return x.permute(dim0, dim1, *dims)
    order = dim0 if axes is None else axes
    return x.permute(tuple(range(x.ndim))[::-1] if order is None else order)


@overload
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor: ...
@overload
def transpose(input: Tensor, dim0: int, dim1: int, *dims: int) -> Tensor: ...
@overload
def transpose(input: Tensor, dim0: Sequence[int] | None = None, *, axes: Sequence[int] | None = None) -> Tensor: ...
@operator(shapes.transpose, dinput=lambda g, dim0, dim1: g.transpose(dim0, dim1), tangent=linear, batch=_transpose_examples,
          in_place=rearranging, aliases=("swapdims",), copy=True)
def transpose(input: Tensor, dim0: Any = None, dim1: Any = None, *dims: Any, axes: Any = None) -> Tensor:
    """View with two dims exchanged; or, as NumPy's `transpose`, with all dims in the order that is given, by default reversed.

    Two dims alone are exchanged, also where NumPy would read them as the order.

    >>> import cygrad
    >>> cygrad.zeros(2, 3).transpose(0, 1).shape
    cygrad.Size([3, 2])
    >>> cygrad.transpose(cygrad.zeros(2, 3, 4), (1, 0, 2)).shape
    cygrad.Size([3, 2, 4])
    """


@operator(in_place=rearranging)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """View with two dims exchanged: NumPy's name of `transpose`.

    >>> import cygrad
    >>> cygrad.swapaxes(cygrad.zeros(2, 3), 0, 1).shape
    cygrad.Size([3, 2])
    """
    return input.transpose(axis0, axis1)


def _reverse_dims_of_examples(level: Any, operator: Any, x: Tensor) -> Tensor:
    return x.permute(*range(x.ndim - 1, -1, -1))


@operator(shapes.t, dinput=lambda g: g.mT, tangent=linear, in_place=rearranging,
          batch=lambda level, operator, x: _reverse_dims_of_examples(level, operator, x) if x.ndim < 3 else operator(level.enter(x)),
          copy=True)
def t(input: Tensor) -> Tensor:
    """Transpose of a matrix; a vector or scalar as it is. RuntimeError for a batch of matrices: use `mT`.

    >>> import cygrad
    >>> cygrad.zeros(2, 3).t().shape
    cygrad.Size([3, 2])
    """


@operator(shapes.reverse_dims, tangent=linear, batch=_reverse_dims_of_examples, property=True)
def T(input: Tensor) -> Tensor:
    """View with the dims in reverse order.

    >>> import cygrad
    >>> cygrad.zeros(2, 3).T.shape
    cygrad.Size([3, 2])
    """


@operator(shapes.matrix_transpose, tangent=linear, property=True,
          batch=lambda level, operator, x: matrices(level, operator, x) if x.ndim else x)
def mT(input: Tensor) -> Tensor:
    """View with the last two dims exchanged.

    >>> import cygrad
    >>> cygrad.zeros(5, 2, 3).mT.shape
    cygrad.Size([5, 3, 2])
    """


def _conjugate(view: Tensor) -> Tensor:
    return view.conj() if view.is_complex() else view


@operator(property=True)
def H(input: Tensor) -> Tensor:
    """Adjoint of a matrix: the conjugate of its transpose, which of real numbers is a view.

    >>> import cygrad
    >>> cygrad.zeros(2, 3).H.shape
    cygrad.Size([3, 2])
    """
    if input.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {input.ndim}-D tensor."
                           + (" For batches of matrices, consider using tensor.mH" if input.ndim > 2 else ""))
    return _conjugate(input.mT)


@operator(property=True)
def mH(input: Tensor) -> Tensor:
    """Adjoint of matrices: the conjugate with the last two dims exchanged, which of real numbers is a view.

    >>> import cygrad
    >>> cygrad.zeros(5, 2, 3).mH.shape
    cygrad.Size([5, 3, 2])
    """
    if input.ndim == 1:
        raise RuntimeError("tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return _conjugate(input.mT)


@operator
def adjoint(input: Tensor) -> Tensor:
    """Conjugate with the last two dims exchanged, which of real numbers is a view.

    >>> import cygrad
    >>> cygrad.adjoint(cygrad.zeros(5, 2, 3)).shape
    cygrad.Size([5, 3, 2])
    """
    if input.ndim < 2:
        raise RuntimeError(f"tensor.{adjoint.__name__}() is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor.")
    return _conjugate(input.transpose(-2, -1))


@operator(aliases=("moveaxis",))
def movedim(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """View with the dims at `source` moved to `destination`; the others keep their order.

    >>> import cygrad
    >>> cygrad.movedim(cygrad.zeros(2, 3, 4), 0, -1).shape
    cygrad.Size([3, 4, 2])
    """
    if isinstance(source, int) != isinstance(destination, int):
        raise TypeError(f"{movedim.__name__}() received an invalid combination of arguments: source and destination must both be int, "
                        "or both tuples")
    origins, targets = integers(source), integers(destination)
    if len(origins) != len(targets):
        raise RuntimeError(f"{movedim.__name__}: Invalid source or destination dims: source ({list(origins)} dims) should contain the same "
                           f"number of dims as destination ({list(targets)} dims)")
    if not origins:
        return input.permute(tuple(range(input.ndim)))
    froms, tos = normalized_dims(origins, input.ndim), normalized_dims(targets, input.ndim)
    for name, dims, operands in (("source", froms, origins), ("destination", tos, targets)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"{movedim.__name__}: repeated dim in `{name}` ({list(operands)})")
    order = [dim for dim in range(input.ndim) if dim not in froms]
    for target, origin in sorted(zip(tos, froms, strict=True)):
        order.insert(target, origin)
    return input.permute(order) if input.ndim else input.permute(())


# ----- Repetition without a copy -----
def _expand_examples(level: Any, operator: Any, x: Tensor, *size: Any, **keywords: Any) -> Tensor:
    sizes = sizes_of(size, keywords)
    added = len(sizes) - x.ndim
    if added < 0 or -1 in sizes[:added]:
        raise RuntimeError(f"expand: the sizes {list(sizes)} do not fit a tensor of {x.ndim} dims")
    return level.leave(operator(level.enter(x)[(slice(None),) + (None,) * added], level.size, *sizes))


@overload
def expand(input: Tensor, *size: int) -> Tensor: ...
@overload
def expand(input: Tensor, size: Sequence[int]) -> Tensor: ...
@operator(shapes.expand, dinput=lambda g, shape: g.sum_to_size(shape), tangent=linear, batch=_expand_examples, function=False, copy=True)
def expand(input: Tensor, *sizes: Any, **keywords: Any) -> Tensor:
    """View in which dims of size 1 are repeated without a copy; -1 keeps a size.

    >>> import cygrad
    >>> cygrad.zeros(3, 1).expand(-1, 4).shape
    cygrad.Size([3, 4])
    """


@operator(function=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """View repeated to the shape of another tensor."""
    return self.expand(other.shape)


@operator
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """View repeated without a copy to a shape: another name of `expand`.

    >>> import cygrad
    >>> cygrad.broadcast_to(cygrad.zeros(3), (2, 3)).shape
    cygrad.Size([2, 3])
    """
    return input.expand(size)


@operator(method=False)
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of tensors, repeated without a copy to the shape that they broadcast to.

    >>> import cygrad
    >>> [x.shape for x in cygrad.broadcast_tensors(cygrad.zeros(3), cygrad.zeros(2, 1))]
    [cygrad.Size([2, 3]), cygrad.Size([2, 3])]
    """
    operands = given_tensors(broadcast_tensors, tensors)
    shape = broadcast_shape(*operands)
    return tuple(tensor if tensor.shape == shape else tensor.expand(shape) for tensor in operands)


@operator(method=False)
def broadcast_shapes(*shapes: Ints) -> Size:
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


def _sum_examples_to_size(level: Any, operator: Any, x: Tensor, *size: Any, **keywords: Any) -> Tensor:
    sizes = sizes_of(size, keywords)
    leading = tuple(range(x.ndim - len(sizes)))
    return level.leave(operator(level.enter(x.sum(leading) if leading else x), level.size, *sizes))


@overload
def sum_to_size(input: Tensor, *size: int) -> Tensor: ...
@overload
def sum_to_size(input: Tensor, size: Sequence[int]) -> Tensor: ...
@operator(shapes.sum_to_size, tangent=linear, batch=_sum_examples_to_size, function=False)
def sum_to_size(input: Tensor, *size: Any, **keywords: Any) -> Tensor:
    """Sum over the dims that broadcasting from `size` has made.

    >>> import cygrad
    >>> cygrad.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
