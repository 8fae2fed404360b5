"""The rules of structural operators: one function per differentiable argument, written as tensor algebra.

A rule's function names what it needs: `g` the incoming gradient, the operator's inputs, `y` its result, its parameters.
What it names is what the node saves. Rules use methods of tensors only, so that they differentiate again.
What an operator does with tangents and batches is in `transforms`.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple


class Rule(NamedTuple):
    """One structural operator: its inputs and the gradient of each (None: only read by others, and behind those that have one).

    ``each`` serves an operator of any number of inputs: it returns the gradients of all of them.
    ``names`` are the arguments of each function, ``params`` the parameters that any of them reads.
    """

    name: str
    inputs: tuple[str, ...]
    gradients: Mapping[str, Callable | None]
    each: Callable | None
    names: Mapping[str, tuple[str, ...]]
    params: tuple[str, ...]
    node: str


RULES: dict[str, Rule] = {}
DATA = frozenset({"key", "count"})     # parameters that may hold arrays; a backward frees these as it does saved tensors


def rule(name: str, *, each: Callable | None = None, node: str = "", **gradients: Callable | None) -> None:
    """Add a rule; `dx=`, `da=`, ... are the gradients by the input's name, in the order of the inputs."""
    functions = {argument[1:]: function for argument, function in gradients.items()}
    inputs = tuple(sorted(functions, key=lambda word: functions[word] is None))
    names = {key: function.__code__.co_varnames[:function.__code__.co_argcount]
             for key, function in {**functions, "each": each}.items() if function}
    given = {"g", "gs", "y", *inputs}
    params = tuple(dict.fromkeys(word for words in names.values() for word in words if word not in given))
    camel_case = "".join(word.capitalize() for word in name.split("_"))
    RULES[name] = Rule(name, inputs, functions, each, names, params, node or camel_case + "Backward0")


def keep_dims(g, shape, dim):
    """Give `g` the reduced dims of `shape` back, with size 1 (`dim` None means all of them)."""
    reduced = range(len(shape)) if dim is None else {d % len(shape) for d in dim} if shape else ()
    return g.reshape([1 if d in reduced else size for d, size in enumerate(shape)])


def parts_of(g, sizes, dim):
    """Cut the gradient of joined tensors; size None stands for an empty vector that was left out."""
    parts = iter(g.split([size for size in sizes if size is not None], dim))
    return [g.new_zeros(0) if size is None else next(parts) for size in sizes]


def joined(gs, shapes, dim):
    """Join the gradients of the parts of a tensor; those that are undefined are zero."""
    some = next(g for g in gs if g is not None)
    return some._cat([some.new_zeros(shape) if g is None else g for g, shape in zip(gs, shapes, strict=True)], dim)


def one_hot_mask(indices, shape, dim):
    """Say which elements along `dim` the kept-dim `indices` name."""
    if not shape:
        return indices == indices
    return indices.new_arange(shape[dim]).reshape([shape[dim] if d == dim else 1 for d in range(len(shape))]) == indices


def attained(x, y):
    """Say which elements are the result of an order: those that equal it, NaNs where it is NaN."""
    return (x == y) | (x != x) & (y != y)


def shared_among(g, x, y, dim):
    """Share the gradient of an extremum evenly among the elements that attain it."""
    mask = attained(x, keep_dims(y, x.shape, dim)).to(g.dtype)
    return mask * (keep_dims(g, x.shape, dim) / mask.sum(dim, keepdim=True))


def norm_gradient(g, x, y, dim, p):
    """Gradient of a norm in terms of x / y, which neither overflows nor vanishes; 0 where the norm is 0."""
    g, y = keep_dims(g, x.shape, dim), keep_dims(y, x.shape, dim)
    if p == 0:
        return g.new_zeros(x.shape)
    if p == 1:
        return x.sign() * g
    if abs(p) == float("inf"):
        return x.sign() * shared_among(g, x.abs(), y, dim)
    ratio = x / y.masked_fill(y == 0, 1)
    if p == 2:
        return g * ratio
    zero = ratio == 0
    return g * ratio.sign() * ratio.abs().masked_fill(zero, 1).pow(p - 1).masked_fill(zero, 0)


def variance_gradient(g, x, dim, scale):
    """Gradient of the sum of squared differences from the mean, times `scale`."""
    return keep_dims(g, x.shape, dim) * (2 * scale) * (x - x.mean(dim, keepdim=True))


def per_deviation(g, y):
    """Return the gradient of a variance from that of its root y; 0 where that is 0."""
    return (g / (2 * y.masked_fill(y == 0, 1))).masked_fill(y == 0, 0)


def with_mean(g, g_mean, x, dim, scale):
    """Return the gradient of a variance and a mean, either of which may have none."""
    parts = [] if g is None else [variance_gradient(g, x, dim, scale)]
    if g_mean is not None:
        g_mean = keep_dims(g_mean, x.shape, dim)
        parts.append(g_mean.expand(x.shape) / (prod(x.shape) / max(g_mean.numel(), 1)))
    return sum(parts[1:], parts[0])


def log_cumulative_gradient(g, x, y, dim):
    """Gradient of logcumsumexp: the positive and the negative parts of g are summed by their logarithms."""
    parts = [(part > 0).where(part.masked_fill(part <= 0, 1).log(), -1e300 if g.dtype.itemsize == 8 else -1e38) for part in (g, -g)]
    y = y.masked_fill(y == float("-inf"), 0)
    positive, negative = (((part - y).flip(dim).logcumsumexp(dim).flip(dim) + x).exp() for part in parts)
    return positive - negative


def times(factor, product):
    """Multiply; a factor 0 gives 0 also where the product has overflowed, which is its derivative all the same."""
    meeting = (factor == 0) & product.isinf()
    huge = 1e300 if product.dtype.itemsize == 8 else 1e38
    zero = factor.masked_fill(~meeting, 0) * huge * huge * product.sign()
    return meeting.where(zero, factor * product.masked_fill(meeting, 1))


def product_without(value, product, zeros, zero_value):
    """Product of a group's elements without `value`, from that of the nonzero ones, the number of zeros and their (vanishing) sum.

    The zeros are taken out of the product and multiplied back in, so that second derivatives through them are kept.
    """
    zero = value == 0
    others = zeros - zero.to(zeros.dtype)
    factor = (others == 0).where(1.0, (others == 1).where(zero_value - zero.where(value, 0.0), 0.0))
    return times(factor, product) / value.masked_fill(zero, 1)


def product_beside_overflow(x, y, dim, keepdim):
    """Say that a product with a zero is 0 where it came out as NaN because the other factors overflowed."""
    zero = (x == 0).any(dim, keepdim) & x.isfinite().all(dim, keepdim)
    return zero.where(0.0, y)


def product_of_others(x, dim):
    """Return the product of the other elements for each, right also where elements are zero."""
    zero = x == 0
    product = keep_dims(x.masked_fill(zero, 1).prod(dim), x.shape, dim)
    zeros, zero_value = zero.to(x.dtype).sum(dim, keepdim=True), zero.where(x, 0.0).sum(dim, keepdim=True)
    return product_without(x, product, zeros, zero_value)


def padded(part, shape):
    """Return the gradient of an operand of which only the leading part in each dim was read; a 0-d one was read as a vector."""
    if not shape:
        return part.reshape(shape)
    return part if tuple(part.shape) == shape else part._scatter_key(shape, tuple(slice(size) for size in part.shape), False)


def leading_part(x, shape):
    """Return what `padded` is the gradient of."""
    if not x.shape:
        return x.reshape(shape)
    return x if tuple(x.shape) == tuple(shape) else x[tuple(slice(size) for size in shape)]


def scattered_product(g, x, src, index, dim):
    """Return the gradients of `x.scatter_reduce(dim, index, src, "prod")` for x and what was read of src."""
    part = leading_part(src, index.shape)
    zero, zero_part = x == 0, part == 0
    groups = (x.masked_fill(zero, 1).scatter_reduce(dim, index, part.masked_fill(zero_part, 1), "prod"),
              zero.to(g.dtype).scatter_add(dim, index, zero_part.to(g.dtype)),
              zero.where(x, 0.0).scatter_add(dim, index, zero_part.where(part, 0.0)))
    return (times(g, product_without(x, *groups)),
            times(g.gather(dim, index), product_without(part, *(group.gather(dim, index) for group in groups))))


def scattered_extremum(g, x, src, index, y, dim):
    """Return the gradients of "amax" or "amin", shared evenly among the elements that attain it, for x and what was read of src."""
    mask = attained(x, y).to(g.dtype)
    mask_part = attained(leading_part(src, index.shape), y.gather(dim, index)).to(g.dtype)
    share = g / mask.scatter_add(dim, index, mask_part)
    return mask * share, mask_part * share.gather(dim, index)


def sum_of_repeats(g, shape, repeats):
    """Sum the gradient over the copies that `repeat` made."""
    shape = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    split = g.reshape([size for pair in zip(repeats, shape, strict=True) for size in pair])
    return split.sum(tuple(range(0, split.ndim, 2))) if repeats else g


# ----- Views: the gradient has the shape of the input -----
for _view in ("view", "squeeze", "unsqueeze"):
    rule(_view, dx=lambda g, shape: g.reshape(shape))
rule("permute", dx=lambda g, inverse: g.permute(inverse))
rule("transpose", dx=lambda g, dim0, dim1: g.transpose(dim0, dim1))
rule("t", dx=lambda g: g.mT)
rule("alias", dx=lambda g: g)
rule("enter", dx=lambda g, level: g._leave_or_sum(level), node="ExpandBackward0")
rule("expand", dx=lambda g, shape: g.sum_to_size(shape))
for _view in ("slice", "select"):
    rule(_view, dx=lambda g, shape, key: g._scatter_key(shape, key, False))
rule("index", dx=lambda g, shape, key: g._scatter_key(shape, key, True))
rule("scatter_key", dx=lambda g, key: g[key])
for _view in ("split", "split_with_sizes"):
    rule(_view, dx=lambda gs, shapes, dim: joined(gs, shapes, dim))
rule("unbind", dx=lambda gs, shape, dim: joined([None if g is None else g.unsqueeze(dim) for g in gs], [shape] * len(gs), dim))
rule("as_strided", dx=lambda g, geometry: g._scatter_view(geometry))
rule("scatter_view", dx=lambda g, geometry: g._gather_view(geometry))
rule("gather_view", dx=lambda g, geometry: g._scatter_view(geometry))
rule("diagonal", dx=lambda g, shape, offset, dim1, dim2: g.new_zeros(shape).diagonal_scatter(g, offset, dim1, dim2))
rule("unfold", dx=lambda g, shape, dim, size, step: g._fold(shape, dim, size, step))
rule("fold", dx=lambda g, dim, size, step: g.unfold(dim, size, step))

# ----- In-place changes: the gradient of what was there before, then of what was written -----
for _constant in ("fill", "zero"):
    rule(_constant, dx=lambda g: g.new_zeros(g.shape))
rule("copy", dx=lambda g: g.new_zeros(g.shape), dsrc=lambda g, shape, dtype: g.sum_to_size(shape).to(dtype),
     node="CopyBackwards")
rule("as_strided_scatter", dx=lambda g, geometry: g._put_view(g.new_zeros(geometry[2]), geometry),
     dsrc=lambda g, geometry: g._gather_view(geometry))

# ----- Copies -----
rule("clone", dx=lambda g: g)
rule("to_copy", dx=lambda g, dtype: g.to(dtype))
rule("cat", each=parts_of)
rule("stack", each=lambda g, dim: g.unbind(dim))
rule("repeat", dx=lambda g, shape, repeats: sum_of_repeats(g, shape, repeats).reshape(shape))
rule("flip", dx=lambda g, dims: g.flip(dims))
rule("roll", dx=lambda g, shifts, dims: g.roll([-shift for shift in shifts], dims))
rule("tril", dx=lambda g, diagonal: g.tril(diagonal))
rule("triu", dx=lambda g, diagonal: g.triu(diagonal))
rule("diag_embed", dx=lambda g, offset, dim1, dim2: g.diagonal(offset, dim1, dim2))
rule("diagonal_scatter", dx=lambda g, shape, offset, dim1, dim2: g.diagonal_scatter(g.new_zeros(shape), offset, dim1, dim2),
     dsrc=lambda g, offset, dim1, dim2: g.diagonal(offset, dim1, dim2))
for _part in ("select", "slice"):
    rule(_part + "_scatter", dx=lambda g, key: g._with_zeros_at(key), dsrc=lambda g, key: g[key])

# ----- Look-up and scatter: `index` and `mask` are only read -----
rule("gather", dx=lambda g, shape, dim, index: g.new_zeros(shape).scatter_add(dim, index, g), dindex=None)
rule("scatter", dx=lambda g, dim, index: g.scatter(dim, index, 0),
     dsrc=lambda g, dim, index, shape: padded(g.gather(dim, index), shape), dindex=None)
for _sum, _node in (("scatter_add", ""), ("scatter_sum", "ScatterReduceBackward0")):
    rule(_sum, dx=lambda g: g, dsrc=lambda g, dim, index, shape: padded(g.gather(dim, index), shape), dindex=None, node=_node)
rule("scatter_mean", dx=lambda g, count: g / count, node="ScatterReduceBackward0",
     dsrc=lambda g, count, dim, index, shape: padded((g / count).gather(dim, index), shape), dindex=None)
rule("scatter_prod", dx=lambda g, x, src, index, dim: scattered_product(g, x, src, index, dim)[0], node="ScatterReduceBackward0",
     dsrc=lambda g, x, src, index, dim, shape: padded(scattered_product(g, x, src, index, dim)[1], shape), dindex=None)
rule("scatter_extremum", dx=lambda g, x, src, index, y, dim: scattered_extremum(g, x, src, index, y, dim)[0], node="ScatterReduceBackward0",
     dsrc=lambda g, x, src, index, y, dim, shape: padded(scattered_extremum(g, x, src, index, y, dim)[1], shape), dindex=None)
rule("index_select", dx=lambda g, shape, dim, index: g.new_zeros(shape).index_add(dim, index, g), dindex=None)
rule("index_add", dx=lambda g: g, dindex=None,
     dsource=lambda g, dim, index, shape, alpha: g.index_select(dim, index).reshape(shape) * alpha)
rule("index_copy", dx=lambda g, dim, index: g.index_fill(dim, index, 0),
     dsource=lambda g, dim, index, shape: g.index_select(dim, index).reshape(shape), dindex=None)
rule("index_fill", dx=lambda g, dim, index: g.index_fill(dim, index, 0), dindex=None,
     dvalue=lambda g, dim, index: (g - g.index_fill(dim, index, 0)).sum())
rule("index_put", dx=lambda g, key, accumulate: g if accumulate else g._with_zeros_at(key),
     dvalues=lambda g, key, shape, dtype: g[key].sum_to_size(shape).to(dtype))
rule("masked_fill", dx=lambda g, mask: g.masked_fill(mask, 0), dvalue=lambda g, mask: mask.where(g, 0.0).sum(), dmask=None)
rule("masked_select", dx=lambda g, shape, mask: g.new_zeros(shape).masked_scatter(mask, g), dmask=None)
rule("masked_scatter", dx=lambda g, mask: g.masked_fill(mask, 0), dmask=None,
     dsource=lambda g, mask, shape: padded(g.masked_select(mask), (prod(shape),)).reshape(shape))
rule("take", dx=lambda g, shape, index: g.new_zeros(shape).put(index, g, True), dindex=None)
rule("put", dx=lambda g, index, accumulate: g if accumulate else g.put(index, g.new_zeros(index.shape)),
     dsource=lambda g, index, shape: g.take(index).reshape(shape), dindex=None)

# ----- Reductions that are more than a fold -----
for _extremum in ("max", "min"):
    rule(_extremum, dx=lambda g, indices, shape, dim: one_hot_mask(indices, shape, dim).where(keep_dims(g, shape, (dim,)), 0.0),
         dindices=None)
rule("logsumexp", dx=lambda g, x, y, dim: keep_dims(g, x.shape, dim) * (x - keep_dims(y, x.shape, dim)).exp())
rule("softmax", dx=lambda g, y, dim: y * (g - (g * y).sum(dim, keepdim=True)))
rule("log_softmax", dx=lambda g, y, dim: g - y.exp() * g.sum(dim, keepdim=True))
rule("var", dx=variance_gradient)
rule("std", dx=lambda g, x, y, dim, scale: variance_gradient(per_deviation(g, y), x, dim, scale))
rule("var_mean", dx=lambda gs, x, dim, scale: with_mean(gs[0], gs[1], x, dim, scale))
rule("std_mean", dx=lambda gs, x, y, dim, scale: with_mean(None if gs[0] is None else per_deviation(gs[0], y), gs[1], x, dim, scale))
for _order in ("sort", "topk", "kthvalue", "median", "nanmedian"):
    rule(_order, dx=lambda g, shape, dim, indices: g.new_zeros(shape).scatter(dim, indices, g.reshape(indices.shape)), dindices=None)
for _median in ("median", "nanmedian"):
    rule(_median + "_of_all", dx=lambda g, x, y: shared_among(g, x, y, None), node=_median.capitalize() + "Backward0")
for _extremum in ("cummax", "cummin"):
    rule(_extremum, dx=lambda g, shape, dim, indices: g.new_zeros(shape).scatter_add(dim, indices, g), dindices=None)
rule("cumprod", dx=lambda g, x, y, dim: x._cumprod_gradient(g, y, dim))
rule("logcumsumexp", dx=log_cumulative_gradient)
rule("norm", dx=norm_gradient, node="LinalgVectorNormBackward0")
rule("cumsum", dx=lambda g, dim, reverse: g._cumsum(dim, not reverse))

# ----- Products -----
rule("matmul", da=lambda g, b, a_shape: (g @ b.mT).sum_to_size(a_shape), db=lambda g, a, b_shape: (a.mT @ g).sum_to_size(b_shape),
     node="MmBackward0")
for _product in ("addmm", "baddbmm"):
    rule(_product, dx=lambda g, beta, shape: (g * beta).sum_to_size(shape), da=lambda g, b, alpha: g @ b.mT * alpha,
         db=lambda g, a, alpha: a.mT @ g * alpha)
rule("cross", da=lambda g, b, dim: b.cross(g, dim), db=lambda g, a, dim: g.cross(a, dim), node="LinalgCrossBackward0")
rule("dot", da=lambda g, b: g * b, db=lambda g, a: g * a)
