"""The table of transforms: what operators other than elementwise ones do with tangents (forward mode) and batches (vmap).

A row names operators and gives
``forward``: the tangent of the result from (tangent_of, operator, result, *arguments); a name: that function of
    `autograd/tangents`;
``batch``: the result from (level, operator, *arguments), computed over all examples, which `level.enter` puts along dim 0;
``parts``: the operator composed of others, which stands for it where an argument is special; NotImplemented where it does not apply.
What these functions call are operators, so that they nest. Methods of tensors only.
"""

from collections.abc import Callable
from typing import Any

from cygrad._core.entry.special import Declaration
from cygrad.ops.gradients import product_of_others, times

from .batches import (
    batched_new,
    in_any_order,
    is_tensor,
    named_arguments,
    same,
    shifted,
)
from .decompositions import (
    extremum_parts,
    filled_with,
    place_parts,
    set_all,
    variance_parts,
)
from .tangents import constant, first_linear, linear, selecting, self_adjoint

TRANSFORMS: dict[str, Declaration] = {}
# What is composed of other operators anyway, and passes special tensors on to them.
COMPOSITES = frozenset("count_nonzero nanmean aminmax var_mean std_mean".split())


def transform(names: str, *, forward: Callable | str | None = None, batch: Callable | None = None, parts: Callable | None = None) -> None:
    """Add rows."""
    TRANSFORMS.update(dict.fromkeys(names.split(), Declaration(None, forward, batch, parts)))


# ----- Tangents -----
def product_forward(tangent_of, operator, result, x, *arguments, **keywords):
    """Sum the tangents times the other elements; a tangent 0 is 0 also beside an overflow."""
    t, given = tangent_of(x), named_arguments(operator, (x, *arguments), keywords).arguments
    dim = given["dim"]
    dims = dim or None if dim is None or isinstance(dim, tuple | list) else (dim,)
    x = x.to(result.dtype)
    return None if t is None else times(t.to(x.dtype), product_of_others(x, dims)).sum(*arguments, **keywords)


# ----- The table -----
# Views and copies
transform("clone contiguous", forward=linear, batch=in_any_order)
transform("convert", forward=linear, batch=same)
transform("detach", forward=constant, batch=same)
_parts: Any
for _name, _parts in {
    "copy_": set_all,
    "fill_": filled_with,
    "zero_": lambda x: set_all(x, 0),
}.items():
    transform(_name, parts=_parts)

# New tensors of the kind of another
transform("empty_like zeros_like ones_like", forward=constant, batch=in_any_order)
transform("new_empty new_zeros new_ones", forward=constant, batch=batched_new)
transform("new_full", forward=constant, batch=batched_new, parts=lambda x, size, fill_value, **keywords:
          x.new_empty(size, **keywords).fill_(fill_value) if is_tensor(fill_value) else NotImplemented)

# Reductions and running folds
transform("sum mean", forward=first_linear, batch=shifted("dim"))
transform("prod", forward=product_forward, batch=shifted("dim"))
transform("nansum amax amin logsumexp", forward="transposed", batch=shifted("dim"))
transform("any all", forward=constant, batch=shifted("dim"))
for _name in ("var", "std"):
    transform(_name, forward="transposed", batch=shifted("dim"), parts=variance_parts(_name))
for _name, _elementwise in (("max", "maximum"), ("min", "minimum")):
    transform(_name, forward=selecting, batch=shifted("dim"), parts=extremum_parts("a" + _name, _elementwise))
    transform("arg" + _name, forward=constant, batch=shifted("dim"), parts=place_parts("arg" + _name))
transform("softmax", forward=self_adjoint(lambda t, y, dim: y * (t - (t * y).sum(dim, keepdim=True))), batch=shifted("dim"))
transform("log_softmax", forward=self_adjoint(lambda t, y, dim: t - (y.exp() * t).sum(dim, keepdim=True)), batch=shifted("dim"))
transform("sort topk kthvalue", forward=selecting, batch=shifted("dim"))
