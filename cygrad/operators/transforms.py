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

from .batches import (
    batched_new,
    in_any_order,
    is_tensor,
    same,
)
from .decompositions import (
    filled_with,
    set_all,
)
from .tangents import constant, linear

TRANSFORMS: dict[str, Declaration] = {}
# What is composed of other operators anyway, and passes special tensors on to them.
COMPOSITES: frozenset[str] = frozenset()


def transform(names: str, *, forward: Callable | str | None = None, batch: Callable | None = None, parts: Callable | None = None) -> None:
    """Add rows."""
    TRANSFORMS.update(dict.fromkeys(names.split(), Declaration(None, forward, batch, parts)))


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
