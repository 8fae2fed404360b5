"""Types of the compiled module."""

from typing import Any, final

from cygrad._core.compute.rows import Row
from cygrad.tensor import Tensor

@final
class Op(Row):
    def __call__(self, *arguments: Any, out: Tensor | None = None, **keywords: Any) -> Tensor: ...
    def in_place(self, *arguments: Any, **keywords: Any) -> Tensor: ...

ops: dict[str, Op]

def operand_error(op: Row, operands: tuple[object, ...], position: int) -> TypeError: ...
