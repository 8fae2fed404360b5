"""Types of the compiled module."""

from collections.abc import Callable
from typing import Any, final

from cygrad._core.graph.node import Node
from cygrad.ops import Rule
from cygrad.tensor import Tensor

@final
class RuleOp:
    name: str
    node_name: str
    rule: Rule
    params: tuple[str, ...]

class RuleNode(Node): ...

rules: dict[str, RuleOp]

def set_preparation(function: Callable[[tuple[Callable[..., Any] | None, ...]], None]) -> None: ...

def record_rule(
    name: str, inputs: tuple[Tensor | None, ...], result: Tensor, params: tuple[Any, ...], outputs: int = 1
) -> Tensor: ...
def record_several(
    name: str, inputs: tuple[Tensor | None, ...], results: tuple[Tensor, ...], params: tuple[Any, ...]
) -> tuple[Tensor, ...]: ...
