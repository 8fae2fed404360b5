"""Operators composed of others: what stands for them where an argument has a tangent or is one example of many.

Each function takes the operator's arguments and returns its result, or NotImplemented where it does not apply. Rows of `transforms`
name them. Standard library only; methods of tensors.
"""

from itertools import accumulate
from math import prod

from .batches import behind, integer, is_tensor, sizes_of


# ----- Shapes -----
def without_ones(x, dim=None):
    """Return the shape that squeeze gives."""
    dims = range(x.ndim) if dim is None else {behind(d, x.ndim) - 1 for d in (dim if isinstance(dim, tuple | list) else (dim,))}
    return x.reshape([size for d, size in enumerate(x.shape) if size != 1 or d not in dims])


def exchanged(x, dim0, dim1):
    """Transpose by permute."""
    if not x.ndim:
        return x
    order = list(range(x.ndim))
    dim0, dim1 = behind(dim0, x.ndim) - 1, behind(dim1, x.ndim) - 1
    order[dim0], order[dim1] = dim1, dim0
    return x.permute(order)


def flattened(x, start_dim=0, end_dim=-1):
    if not x.ndim:
        return x.reshape(1)
    start, end = behind(start_dim, x.ndim) - 1, behind(end_dim, x.ndim) - 1
    return NotImplemented if start > end else x.reshape(*x.shape[:start], prod(x.shape[start:end + 1]), *x.shape[end + 1:])


def sum_to_size_parts(x, *size, **keywords):
    size = sizes_of(size, keywords)
    leading = x.ndim - len(size)
    if leading < 0 or any(n not in (1, m) for n, m in zip(size, x.shape[leading:], strict=True)):
        return NotImplemented
    dims = (*range(leading), *(leading + d for d, n in enumerate(size) if n == 1 != x.shape[leading + d]))
    return (x.sum(dims, keepdim=True) if dims else x).reshape(size)


# ----- Parts -----
def narrow_parts(x, dim, start, length):
    if is_tensor(start) and (start.ndim or start.is_floating_point()):
        return NotImplemented
    d, start = behind(dim, x.ndim) - 1, integer(start)
    size = x.shape[d] if x.ndim else 0
    start = start + size if start < 0 else start
    if not x.ndim or length < 0 or not 0 <= start <= start + length <= size:
        return NotImplemented
    return x[(slice(None),) * d + (slice(start, start + length),)]


def select_parts(x, dim, index):
    return x[(slice(None),) * (behind(dim, x.ndim) - 1) + (integer(index),)] if x.ndim else NotImplemented


def unbound(x, dim=0):
    return tuple(x.select(dim, k) for k in range(x.shape[behind(dim, x.ndim) - 1])) if x.ndim else NotImplemented


def parts_along(x, sizes, dim):
    """Return parts of given sizes along a dim."""
    whole, starts = (slice(None),) * (behind(dim, x.ndim) - 1), accumulate(sizes, initial=0)
    return tuple(x[(*whole, slice(start, start + size))] for start, size in zip(starts, sizes, strict=False))


def split_parts(x, split_size_or_sections=None, dim=0, *, split_size=None):
    split_size_or_sections = split_size if split_size_or_sections is None else split_size_or_sections
    if isinstance(split_size_or_sections, tuple | list):
        return split_by_sizes(x, split_size_or_sections, dim)
    size, length = x.shape[behind(dim, x.ndim) - 1] if x.ndim else -1, integer(split_size_or_sections)
    if length < 0 or length == 0 != size:
        return NotImplemented
    return parts_along(x, [min(length, size - first) for first in range(0, size, length or 1)] or [0], dim)


def split_by_sizes(x, split_sizes, dim=0):
    fitting = x.ndim and sum(split_sizes) == x.shape[behind(dim, x.ndim) - 1] and min(split_sizes, default=0) >= 0
    return parts_along(x, split_sizes, dim) if fitting else NotImplemented


def chunked(x, chunks, dim=0):
    chunks = integer(chunks)
    if not x.ndim or chunks <= 0:
        return NotImplemented
    size = x.shape[behind(dim, x.ndim) - 1]
    return x.split(-(-size // chunks), dim) if size else x.split([0] * chunks, dim)


def stacked(tensors, dim=0):
    first = tensors[0]
    if any(x.shape != first.shape for x in tensors):
        return NotImplemented
    dim = behind(dim, first.ndim + 1) - 1
    return first._cat([x.unsqueeze(dim) for x in tensors], dim)


# ----- Writing -----
def apart(x, *others):
    """Return a copy of a tensor that differs among examples where one of the others does, so that they may be written into it."""
    for other in others:
        if is_tensor(other):
            x = x.where(other.new_ones(()) != 0, x)
    return x.clone()


def with_value_at(x, key, value):
    result = apart(x, value, *(key if isinstance(key, tuple) else (key,)))
    result[key] = value
    return result


def set_all(x, value, non_blocking=False):
    x[...] = value
    return x


def filled_with(x, value):
    return NotImplemented if is_tensor(value) and value.ndim else set_all(x, value)


# ----- Reductions -----
def extremum_parts(whole, elementwise):
    def parts(x, dim=None, keepdim=False, *, other=None):
        other = dim if is_tensor(dim) else other
        if other is not None:
            return getattr(x, elementwise)(other)
        return getattr(x, whole)() if dim is None and x.numel() and not keepdim else NotImplemented

    return parts


def place_parts(name):
    def parts(x, dim=None, keepdim=False):
        if dim is not None or not x.numel():
            return NotImplemented
        place = getattr(x.reshape(-1), name)(0)
        return place.reshape([1] * x.ndim) if keepdim else place

    return parts


def variance_parts(name):
    def parts(x, dim=None, unbiased=None, keepdim=False, **keywords):
        return getattr(x, name)(None, correction=int(dim), keepdim=keepdim, **keywords) if isinstance(dim, bool) else NotImplemented

    return parts
