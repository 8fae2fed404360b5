from collections.abc import Callable
from typing import Any

from cygrad._core.capture.replay import Replay
from cygrad._core.graph.node import Node

class CompiledNode(Node): ...

def may_replay() -> bool: ...
def replayed(replay: Replay, inputs: list[Any], differentiable: tuple[int, ...], rerun: Callable[..., list[Any]]) -> list[Any]: ...
