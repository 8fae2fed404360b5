from typing import Any

from cygrad._core.capture.replay import Replay

class Frame: ...

class LoopedStep:
    differentiable: tuple[int, ...]
    nbytes: int
    recorded_results: list[tuple[bool, int]]
    stays: list[bool]
    constants: int
    fits: bool
    first_decision: int

    def __init__(
        self, replay: Replay, carry: list[int], slices: int, outputs: list[int], differentiable: tuple[int, ...]
    ) -> None: ...
    def takes(self, carried: list[Any]) -> bool: ...
    def gradients_with_sums(self, inputs: list[Any]) -> list[Any]: ...
    def reverse_by(self, reverse: Replay) -> None: ...
