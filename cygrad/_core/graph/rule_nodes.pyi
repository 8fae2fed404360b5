"""Types of the compiled module."""

from typing import Any

from cygrad._core.graph.node import Node
from cygrad._core.graph.rules import RuleOp
from cygrad.tensor import Tensor

class RuleNode(Node): ...

def record_rule(op: RuleOp, inputs: tuple[Tensor | None, ...], result: Tensor, **params: Any) -> Tensor: ...
def recorded(
    operator: Any, inputs: tuple[Tensor | None, ...], result: Any, outputs: int = 1, /, **params: Any
) -> Any: ...
def record_several(
    op: RuleOp, inputs: tuple[Tensor | None, ...], results: tuple[Tensor, ...], **params: Any
) -> tuple[Tensor, ...]: ...
