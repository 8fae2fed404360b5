"""Floating-point operations of operators, from the shapes of their operands; a multiplication with an addition counts as two.

As in torch: matrix products, and rows that say so, in place or not. Composed operators are counted by their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from cygrad.operators import find
from cygrad.ops import ELEMENTWISE

Sizes = tuple[int, ...]
Shapes = Sequence[Sizes | list[Sizes] | None]


def _broadcast(a: Sizes, b: Sizes) -> Sizes:
    """Return the sizes that two shapes broadcast to; only their leading 1s differ, or an operator would have refused them."""
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    padded = (1,) * (len(longer) - len(shorter)) + shorter
    return tuple(right if left == 1 else left for left, right in zip(longer, padded, strict=True))


def _product(a: Sizes, b: Sizes) -> int:
    """Count the operations of a product of vectors, matrices or batches of matrices."""
    if not a or not b:
        return 0
    rows, columns = a[-2] if len(a) > 1 else 1, b[-1] if len(b) > 1 else 1
    return 2 * prod(_broadcast(a[:-2], b[:-2])) * rows * a[-1] * columns


def of_product(first: int = 0, second: int = 1) -> Callable[[Shapes], int]:
    """Count the operations of a product of vectors, matrices or batches of matrices; which operands they are."""
    return lambda shapes: _product(*_operands(shapes, first, second))


def flops(name: str, shapes: Shapes) -> int:
    """Return the floating-point operations of an operator on operands of these shapes (None: no tensor), 0 where none are known."""
    name = name.removesuffix("_")
    row = ELEMENTWISE.get(name)
    if row is not None and row.flops:
        return row.flops * prod(_broadcast(*_operands(shapes, 0, 1)))
    operator = find(name)
    return 0 if operator is None or operator.declaration.flops is None else operator.declaration.flops(shapes)


def _operands(shapes: Shapes, *places: int) -> list[Sizes]:
    """Return the sizes of operands: of no dims where there is no tensor."""
    result = (shapes[place] if place < len(shapes) else None for place in places)
    return [sizes if isinstance(sizes, tuple) else () for sizes in result]
