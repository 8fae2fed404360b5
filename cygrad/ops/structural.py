"""The rules of structural operators: one function per differentiable argument, written as tensor algebra.

A rule's function names what it needs: `g` the incoming gradient, the operator's inputs, `y` its result, its parameters.
What it names is what the node saves. Rules use methods of tensors only, so that they differentiate again.
`linear` means linear in each single input, `bilinear` in each of two.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Rule(NamedTuple):
    """One structural operator: its inputs and the gradient of each (None: not differentiable).

    ``each`` serves an operator of any number of inputs: it returns the gradients of all of them.
    ``names`` are the arguments of each function, ``params`` the parameters that any of them reads.
    """

    name: str
    inputs: tuple[str, ...]
    gradients: Mapping[str, Callable]
    each: Callable | None
    names: Mapping[str, tuple[str, ...]]
    params: tuple[str, ...]
    linear: bool
    bilinear: bool
    node: str


RULES: dict[str, Rule] = {}


def rule(name: str, *, each: Callable | None = None, linear=False, bilinear=False, node: str = "", **gradients: Callable) -> None:
    """Add a rule; `dx=`, `da=`, ... are the gradients by the input's name, in the order of the inputs."""
    inputs = tuple(argument[1:] for argument in gradients)
    functions = {argument[1:]: function for argument, function in gradients.items()} | ({"each": each} if each else {})
    names = {key: function.__code__.co_varnames[:function.__code__.co_argcount] for key, function in functions.items()}
    given = {"g", "gs", "y", *inputs}
    params = tuple(dict.fromkeys(word for words in names.values() for word in words if word not in given))
    camel_case = "".join(word.capitalize() for word in name.split("_"))
    functions.pop("each", None)
    RULES[name] = Rule(name, inputs, functions, each, names, params, linear, bilinear, node or camel_case + "Backward0")


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


def shared_among(g, x, y, dim):
    """Share the gradient of an extremum evenly among the elements that attain it."""
    mask = (x == keep_dims(y, x.shape, dim)).to(g.dtype)
    return mask * (keep_dims(g, x.shape, dim) / mask.sum(dim, keepdim=True))


def product_of_others(g, x, dim):
    """Gradient of a product: each element meets the product of the others, right also where elements are zero.

    The zeros are taken out of the product and multiplied back in, so that second derivatives through them are kept.
    """
    zero = x == 0
    nonzero = x.masked_fill(zero, 1)
    product = keep_dims(nonzero.prod(dim), x.shape, dim)
    zeros = zero.to(x.dtype)
    other_zeros = zeros.sum(dim, keepdim=True) - zeros
    zero_values = x * zeros
    other_value = zero_values.sum(dim, keepdim=True) - zero_values
    factor = (other_zeros == 0).where(1.0, (other_zeros == 1).where(other_value, 0.0))
    return keep_dims(g, x.shape, dim) * (product / nonzero) * factor


# ----- Views: the gradient has the shape of the input -----
for _view in ("view", "squeeze", "unsqueeze"):
    rule(_view, dx=lambda g, shape: g.reshape(shape), linear=True)
rule("permute", dx=lambda g, inverse: g.permute(inverse), linear=True)
rule("transpose", dx=lambda g, dim0, dim1: g.transpose(dim0, dim1), linear=True)
rule("t", dx=lambda g: g.mT, linear=True)
rule("alias", dx=lambda g: g, linear=True)
rule("expand", dx=lambda g, shape: g.sum_to_size(shape), linear=True)
for _view in ("slice", "select"):
    rule(_view, dx=lambda g, shape, key: g._scatter_key(shape, key, False), linear=True)
rule("index", dx=lambda g, shape, key: g._scatter_key(shape, key, True), linear=True)
rule("scatter_key", dx=lambda g, key: g[key], linear=True)
for _view in ("split", "split_with_sizes"):
    rule(_view, dx=lambda gs, shapes, dim: joined(gs, shapes, dim), linear=True)
rule("unbind", dx=lambda gs, shape, dim: joined([None if g is None else g.unsqueeze(dim) for g in gs], [shape] * len(gs), dim), linear=True)
rule("as_strided", dx=lambda g, geometry: g._scatter_view(geometry), linear=True)
rule("scatter_view", dx=lambda g, geometry: g._gather_view(geometry), linear=True)
rule("gather_view", dx=lambda g, geometry: g._scatter_view(geometry), linear=True)

# ----- In-place changes: the gradient of what was there before, then of what was written -----
for _constant in ("fill", "zero"):
    rule(_constant, dx=lambda g: g.new_zeros(g.shape), linear=True)
rule("copy", dx=lambda g: g.new_zeros(g.shape), dsrc=lambda g, shape, dtype: g.sum_to_size(shape).to(dtype), linear=True,
     node="CopyBackwards")
rule("index_put", dx=lambda g, key: g._with_zeros_at(key), dvalue=lambda g, key, shape, dtype: g[key].sum_to_size(shape).to(dtype))
rule("as_strided_scatter", dx=lambda g, geometry: g._put_view(g.new_zeros(geometry[2]), geometry),
     dsrc=lambda g, geometry: g._gather_view(geometry))

# ----- Copies -----
rule("clone", dx=lambda g: g, linear=True)
rule("to_copy", dx=lambda g, dtype: g.to(dtype), linear=True)
rule("cat", each=parts_of, linear=True)
rule("stack", each=lambda g, dim: g.unbind(dim), linear=True)

# ----- Reductions that are more than a fold -----
for _extremum in ("max", "min"):
    rule(_extremum, dx=lambda g, indices, shape, dim: one_hot_mask(indices, shape, dim).where(keep_dims(g, shape, (dim,)), 0.0))
rule("logsumexp", dx=lambda g, x, y, dim: keep_dims(g, x.shape, dim) * (x - keep_dims(y, x.shape, dim)).exp())
rule("softmax", dx=lambda g, y, dim: y * (g - (g * y).sum(dim, keepdim=True)))
rule("log_softmax", dx=lambda g, y, dim: g - y.exp() * g.sum(dim, keepdim=True))
rule("var", dx=lambda g, x, dim, scale: keep_dims(g, x.shape, dim) * (2 * scale) * (x - x.mean(dim, keepdim=True)))
rule("std", dx=lambda g, x, y, dim, scale: keep_dims((g / y).masked_fill(y == 0, 0) * scale, x.shape, dim)
     * (x - x.mean(dim, keepdim=True)))
rule("cumsum", dx=lambda g, dim, reverse: g._cumsum(dim, not reverse), linear=True)

# ----- Products -----
rule("matmul", da=lambda g, b, a_shape: (g @ b.mT).sum_to_size(a_shape), db=lambda g, a, b_shape: (a.mT @ g).sum_to_size(b_shape),
     bilinear=True, node="MmBackward0")
rule("dot", da=lambda g, b: g * b, db=lambda g, a: g * a, bilinear=True)
