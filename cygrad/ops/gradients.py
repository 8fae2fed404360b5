"""Tensor algebra that the gradients of several operators share.

Methods of tensors only, so that gradients differentiate again. `g` is the incoming gradient, `y` the result.
"""

from functools import lru_cache

from .dtypes import DTYPES


@lru_cache(256)
def _kept_sizes(shape, dim):
    reduced = range(len(shape)) if dim is None else {d % len(shape) for d in dim} if shape else ()
    return tuple([1 if d in reduced else size for d, size in enumerate(shape)])


def keep_dims(g, shape, dim):
    """Give `g` the reduced dims of `shape` back, with size 1 (`dim` None means all of them)."""
    sizes = _kept_sizes(shape, dim)
    return g if g.shape == sizes else g.reshape(sizes)


def spread(g, shape, dim):
    """Give each element the gradient of the sum that it is in."""
    return g.expand(shape) if dim is None else keep_dims(g, shape, dim).expand(shape)


def attained(x, y):
    """Say which elements are the result of an order: those that equal it, NaNs where it is NaN."""
    return (x == y) | (x != x) & (y != y)


def shared_among(g, input, y, dim):
    """Share the gradient of an extremum evenly among the elements that attain it."""
    return input._share_among(keep_dims(g, input.shape, dim), keep_dims(y, input.shape, dim), dim)


def times(factor, product):
    """Multiply; a factor 0 gives 0 also where a real product has overflowed, which is its derivative all the same."""
    if product.is_complex():
        return factor * product
    meeting = (factor == 0) & product.isinf()
    huge = DTYPES[product.dtype.number].highest
    zero = factor.masked_fill(~meeting, 0) * huge * huge * product.sign()
    return zero.where(meeting, factor * product.masked_fill(meeting, 1))


def product_without(value, product, zeros, zero_value):
    """Product of a group's elements without `value`, from the product of the nonzero ones, the number of zeros and their (vanishing) sum.

    The zeros are taken out of the product and multiplied back in, so that second derivatives through them are kept.
    """
    zero = value == 0
    others = zeros - zero.to(zeros.dtype)
    factor = (zero_value - value.where(zero, 0.0)).where(others == 1, 0.0).where(others != 0, 1.0)
    return times(factor, product) / value.masked_fill(zero, 1)


def product_beside_overflow(x, y, dim, keepdim):
    """Say that a product with a zero is 0 where it came out as NaN because the other factors overflowed."""
    zero = (x == 0).any(dim, keepdim) & x.isfinite().all(dim, keepdim)
    return y.where(~zero, 0.0)


def in_double(x):
    return x.cdouble() if x.is_complex() else x.double()


def product_of_others(x, dim):
    """Return the product of the other elements for each, right also where elements are zero. Products in double neither overflow nor
    vanish as soon."""
    x = in_double(x)
    zero = x == 0
    product = keep_dims(x.masked_fill(zero, 1).prod(dim), x.shape, dim)
    zeros, zero_value = zero.to(x.dtype).sum(dim, keepdim=True), x.where(zero, 0.0).sum(dim, keepdim=True)
    return product_without(x, product, zeros, zero_value)


def padded(part, shape):
    """Return the gradient of an operand of which only the leading part in each dim was read; a 0-d one was read as a vector."""
    if not shape:
        return part.reshape(shape)
    return part if tuple(part.shape) == shape else part._scatter_key(shape, tuple(slice(size) for size in part.shape), False)
