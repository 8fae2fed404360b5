"""Floating-point operations of operators, from the shapes of their operands; a multiplication with an addition counts as two.

As in torch: matrix products, `mul` and `add`, in place or not. What is composed of these is counted by its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

Sizes = tuple[int, ...]


def _broadcast(a: Sizes, b: Sizes) -> Sizes:
    """Return the sizes that two shapes broadcast to; only their leading 1s differ, or an operator would have refused them."""
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    padded = (1,) * (len(longer) - len(shorter)) + shorter
    return tuple(right if left == 1 else left for left, right in zip(longer, padded, strict=True))


def _elements(a: Sizes, b: Sizes = ()) -> int:
    return prod(_broadcast(a, b))


def _product(a: Sizes, b: Sizes) -> int:
    """Count those of a product of vectors, matrices or batches of matrices."""
    if not a or not b:
        return 0
    rows, columns = a[-2] if len(a) > 1 else 1, b[-1] if len(b) > 1 else 1
    return 2 * prod(_broadcast(a[:-2], b[:-2])) * rows * a[-1] * columns


# By the operator's name: the formula, and which operands it reads.
FLOPS: dict[str, tuple[Callable[..., int], Sequence[int]]] = {
    **dict.fromkeys("matmul mm bmm mv dot vdot".split(), (_product, (0, 1))),
    **dict.fromkeys("addmm addmv addbmm baddbmm".split(), (_product, (1, 2))),
    **dict.fromkeys("mul add".split(), (_elements, (0, 1))),
}


def flops(name: str, shapes: Sequence[Sizes | list[Sizes] | None]) -> int:
    """Return the floating-point operations of an operator on operands of these shapes (None: no tensor), 0 where none are known."""
    formula, places = FLOPS.get(name.removesuffix("_"), (None, ()))
    if formula is None or max(places) >= len(shapes):
        return 0
    operands = (shapes[place] for place in places)
    return formula(*(sizes if isinstance(sizes, tuple) else () for sizes in operands))
