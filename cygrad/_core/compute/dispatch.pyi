"""Types of the compiled module."""

from collections.abc import Callable
from typing import Any, final

from cygrad._core.graph.node import Node
from cygrad.ops import Elementwise
from cygrad.tensor import Tensor

@final
class Op:
    name: str
    node_name: str
    row: Elementwise
    arguments: tuple[str, ...]
    def __call__(self, *arguments: Any, out: Tensor | None = None, **keywords: Any) -> Tensor: ...
    def in_place(self, *arguments: Any, **keywords: Any) -> Tensor: ...

class ElementwiseNode(Node): ...

ops: dict[str, Op]
functions: dict[str, Callable[..., Any]]

def operand_error(name: str, argument: str, position: int, value: object) -> TypeError: ...
