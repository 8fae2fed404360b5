"""Between layouts, and between sparse and dense: rules of conversions, copies, and the parts of a sparse tensor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.levels.sparse import replace_sparse, sparse_part
from cygrad._core.memory.formats import sparse_coo, sparse_csc, sparse_csr, strided
from cygrad._core.memory.storage import resolve_dtype
from cygrad._core.operands.arrays import to_array
from cygrad.data import creation
from cygrad.data.creation import finished
from cygrad.operators import new_tensors
from cygrad.operators._language.batches import sizes_of
from cygrad.operators._sparse.pattern import COMPRESSED, Pattern, in_order, pattern_of_coordinates, summed
from cygrad.operators._sparse.rules import RULES, replaced, rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad._core.memory.formats import Layout
    from cygrad.tensor import Tensor
    from cygrad.typing import DTypeLike

SPARSE_LAYOUTS = (sparse_coo, sparse_csr, sparse_csc)


# ----- Between layouts -----
def coalesced(input: Tensor) -> Tensor:
    """Return a sparse tensor as a coo tensor of distinct places in their order."""
    if input.layout is not sparse_coo:
        return in_layout(input, sparse_coo)
    part = sparse_part(input)
    pattern, inverse = part.pattern.coalescence
    return input if pattern is part.pattern else pattern.around(summed(part.inner, pattern, inverse))


def in_layout(input: Tensor, layout: Layout) -> Tensor:
    """Return a sparse tensor in a sparse layout: itself where it has that."""
    if input.layout is layout:
        return input
    if layout is not sparse_coo and input.ndim != 2:
        raise RuntimeError(f"a tensor of the layout {layout!r} is a matrix, but this one has {input.ndim} dims")
    part = sparse_part(coalesced(input) if input.layout is sparse_coo else input)
    pattern, order = part.pattern.in_layout(layout)
    return pattern.around(in_order(part.inner, order))


def checked_layout(function: Any, input: Tensor, sparse_dim: int | None, layout: Layout | None, dense_dim: int | None) -> Layout:
    """Return the layout that `to_sparse` is asked for."""
    if layout is strided:
        return strided
    if layout is not None and layout not in SPARSE_LAYOUTS:
        raise TypeError(f"{function.__name__}(): argument 'layout' must be one of {', '.join(map(repr, SPARSE_LAYOUTS))}, not {layout!r}")
    if dense_dim:
        raise NotImplementedError(f"{function.__name__}(): dense_dim= is 0, or follows from the number of sparse dims")
    if sparse_dim is not None and layout not in (None, sparse_coo):
        raise RuntimeError(f"{function.__name__}(): sparse_dim has a meaning for the layout {sparse_coo!r} only, not {layout!r}")
    return sparse_coo if layout is None else layout


def sparse_of_dense(input: Tensor, sparse_dim: int | None, layout: Layout) -> Tensor:
    """Return the elements of a dense tensor that are not 0, in a sparse layout."""
    dims = input.ndim if sparse_dim is None else sparse_dim
    if not 0 <= dims <= input.ndim:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{input.ndim}] range, but {dims} is given")
    if not dims and input.ndim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    array = to_array(input.detach())
    coordinates = np.stack(np.nonzero((array != 0).any(tuple(range(dims, input.ndim))))) if dims else np.zeros((0, 1), np.int64)
    pattern = pattern_of_coordinates(coordinates, input.shape)
    return in_layout(pattern.around(pattern.values_at(input)), layout)


@rule
def to_sparse(input: Tensor, sparse_dim: int | None = None, *, layout: Layout | None = None, blocksize: Any = None,
              dense_dim: int | None = None) -> Tensor:
    target = checked_layout(to_sparse, input, sparse_dim, layout, dense_dim)
    if target is strided:
        return to_dense(input)
    if sparse_dim is not None and sparse_dim != sparse_part(input).pattern.sparse_dim:
        raise RuntimeError("to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported")
    return in_layout(input, target)


@rule
def to_sparse_csr(input: Tensor, dense_dim: int | None = None) -> Tensor:
    return in_layout(input, checked_layout(to_sparse_csr, input, None, sparse_csr, dense_dim))


@rule
def to_sparse_csc(input: Tensor, dense_dim: int | None = None) -> Tensor:
    return in_layout(input, checked_layout(to_sparse_csc, input, None, sparse_csc, dense_dim))


@rule
def to_dense(input: Tensor, dtype: DTypeLike | None = None, *, masked_grad: bool | None = None) -> Tensor:
    part = sparse_part(input)
    pattern, values = part.pattern, part.inner if dtype is None else part.inner.to(dtype)
    zeros = values.new_zeros((math.prod(pattern.sparse_shape), *pattern.dense_shape))
    whole = zeros.index_copy(0, pattern.places, values) if pattern.is_coalesced else zeros.index_add(0, pattern.places, values)
    return whole.reshape(pattern.shape)


# ----- Copies -----
def on_values(name: str) -> Any:
    """Have an operator of elements, for which 0 stays 0, compute on the values alone."""
    def function(input: Tensor, *arguments: Any, **keywords: Any) -> Any:
        part = sparse_part(input)
        return part.around(getattr(part.inner, name)(*arguments, **keywords))

    function.__name__ = name
    return rule(function)


for _name in ("clone", "detach", "conj", "resolve_conj", "resolve_neg"):
    on_values(_name)


@rule
def _convert(input: Tensor, dtype: Any, copy: bool = False) -> Tensor:
    is_linear = resolve_dtype(dtype).is_differentiable or input.layout is not sparse_coo
    part = sparse_part(input if is_linear else coalesced(input))
    return part.around(part.inner._convert(dtype, copy))


@rule
def contiguous(input: Tensor, *, memory_format: Any = None) -> Tensor:
    return input


@rule
def copy_(self: Tensor, other: Tensor, non_blocking: bool = False) -> Tensor:
    if sparse_part(self) is None:
        return self.copy_(other.to_dense())
    return replaced(self, other.to(self.dtype).to_sparse(layout=self.layout).clone())


@rule
def detach_(self: Tensor) -> Tensor:
    return replace_sparse(self, self.detach())


@rule
def zero_(self: Tensor) -> Tensor:
    part = sparse_part(self)
    part.inner.zero_()
    return self


# ----- New tensors -----
def _zeros(layout: Layout, shape: Sequence[int], sparse_dim: int, dtype: DTypeLike, requires_grad: bool) -> Tensor:
    """Return zeros: a sparse tensor without values, or a dense one."""
    if layout is strided:
        return creation.zeros(shape, dtype=dtype, requires_grad=requires_grad)
    pattern = pattern_of_coordinates(np.zeros((sparse_dim, 0), np.int64), shape)
    return finished(in_layout(pattern.around(creation.zeros(0, *shape[sparse_dim:], dtype=dtype)), layout), requires_grad)


@rule
def zeros_like(input: Tensor, *, dtype: DTypeLike | None = None, layout: Layout | None = None, requires_grad: bool = False,
               **options: Any) -> Tensor:
    return _zeros(layout or input.layout, input.shape, sparse_part(input).pattern.sparse_dim, dtype or input.dtype, requires_grad)


@rule
def new_zeros(self: Tensor, *size: Any, dtype: DTypeLike | None = None, requires_grad: bool = False, **options: Any) -> Tensor:
    shape = sizes_of(size, options)
    return _zeros(self.layout, shape, len(shape), dtype or self.dtype, requires_grad)


RULES["new_empty"] = new_zeros


def _maker(name: str, plain: Any, of_coo: Any) -> None:
    """Have a maker of tensors like another make compressed ones at the same places; coo tensors may have several values at a place."""
    def function(input: Tensor, *arguments: Any, layout: Layout | None = None, requires_grad: bool = False, **options: Any) -> Tensor:
        part = sparse_part(input)
        if layout is strided:
            return plain(input.shape, *arguments, requires_grad=requires_grad, **{"dtype": input.dtype, **options})
        if layout in (None, input.layout) and input.layout is not sparse_coo:
            return finished(part.around(getattr(new_tensors, name)(part.inner.detach(), *arguments, **options)), requires_grad)
        if of_coo is None:
            raise NotImplementedError(f"{name}() has no meaning for {layout or input.layout!r}: use to_dense(), or values()")
        return of_coo(input, *arguments, layout=layout, requires_grad=requires_grad, **options)

    RULES[name] = function


_maker("empty_like", creation.empty, zeros_like)
_maker("ones_like", creation.ones, None)
_maker("full_like", creation.full, None)


# ----- Parts -----
def _pattern(input: Tensor, name: str, *layouts: Layout) -> Pattern:
    pattern = sparse_part(input).pattern
    if pattern.layout not in layouts:
        raise RuntimeError(f"{name} expected a tensor of the layout {' or '.join(map(repr, layouts))} but got {pattern.layout!r}")
    return pattern


@rule
def indices(input: Tensor) -> Tensor:
    pattern = _pattern(input, "indices", sparse_coo)
    if not pattern.is_coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return pattern.indices[0]


@rule
def values(input: Tensor) -> Tensor:
    part = sparse_part(input)
    if not part.pattern.is_coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return part.inner.view_as(part.inner)


@rule
def _indices(input: Tensor) -> Tensor:
    return _pattern(input, "_indices", sparse_coo).indices[0]


@rule
def _values(input: Tensor) -> Tensor:
    return sparse_part(input).inner.detach()


@rule
def _nnz(input: Tensor) -> int:
    return sparse_part(input).pattern.entries


@rule
def sparse_dim(input: Tensor) -> int:
    return sparse_part(input).pattern.sparse_dim


@rule
def dense_dim(input: Tensor) -> int:
    return len(sparse_part(input).pattern.dense_shape)


@rule
def is_coalesced(input: Tensor) -> bool:
    return _pattern(input, "is_coalesced", sparse_coo).is_coalesced


@rule
def coalesce(input: Tensor) -> Tensor:
    _pattern(input, "coalesce", sparse_coo)
    return coalesced(input)


def _index_of_layout(layout: Layout, place: int, name: str) -> None:
    def function(input: Tensor) -> Tensor:
        return _pattern(input, name, layout).indices[place]

    RULES[name] = function


for _layout, _names in COMPRESSED.items():
    _index_of_layout(_layout, 0, _names.compressed)
    _index_of_layout(_layout, 1, _names.plain)


# ----- Masks, sizes -----
@rule
def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    part = sparse_part(mask)
    if tuple(input.shape) != tuple(mask.shape):
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; self has size {list(input.shape)} but mask has size "
                           f"{list(mask.shape)}")
    if part is None:
        raise RuntimeError("sparse_mask(): the mask has to be a sparse tensor")
    return part.around(part.pattern.values_at(input))


@rule
def sparse_resize_(self: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    part = sparse_part(self)
    pattern, shape = _pattern(self, "sparse_resize_", sparse_coo), tuple(size)
    if pattern.entries and (sparse_dim != pattern.sparse_dim or dense_dim != len(pattern.dense_shape)):
        raise RuntimeError(f"changing the number of sparse dimensions (from {pattern.sparse_dim} to {sparse_dim}), or of dense ones, on a "
                           "non-empty sparse tensor is not supported")
    if pattern.entries and any(new < old for new, old in zip(shape, pattern.shape, strict=False)):
        raise RuntimeError(f"shrinking the size of sparse dimensions (from {list(pattern.shape)} to {list(shape)}) on a non-empty sparse "
                           "tensor is not supported")
    if sparse_dim + dense_dim != len(shape):
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = {sparse_dim}, "
                           f"dense_dim = {dense_dim}")
    values, coordinates = part.inner, pattern.coordinates
    if not pattern.entries:
        values, coordinates = values.new_zeros((0, *shape[sparse_dim:])), np.zeros((sparse_dim, 0), np.int64)
    return replace_sparse(self, pattern_of_coordinates(coordinates, shape, pattern.is_coalesced).around(values))
