from collections.abc import Callable
from typing import Any

from cygrad._core.capture.looped import LoopedStep
from cygrad._core.graph.node import Node
from cygrad.tensor import Tensor

class Loop: ...
class LoopNode(Node): ...

def run_looped(
    looped: LoopedStep, inputs: list[Any], count: int, row: int, step: int, states: int, rerun: Callable[..., list[Tensor | None]]
) -> tuple[list[Tensor], list[Tensor]] | None: ...
def run_looped_while(
    looped: LoopedStep, inputs: list[Any], rerun: Callable[..., list[Tensor | None]]
) -> tuple[list[Tensor], list[Tensor]] | None: ...
