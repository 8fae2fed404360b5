"""Types of the compiled module."""

from collections.abc import Callable
from typing import final

from cygrad.ops import Reduction
from cygrad.tensor import Tensor

@final
class ReductionOp:
    name: str
    row: Reduction

ops: dict[str, ReductionOp]

def make_reduction(op: ReductionOp) -> Callable[..., Tensor]: ...
def lie_between(x: Tensor, least: float, most: float) -> bool: ...
def cumulate(name: str, input: Tensor, dim: int, reverse: bool = False) -> Tensor: ...
def extremum(
    name: str, input: Tensor, dim: int, keepdim: bool = False, caller: str | None = None
) -> tuple[Tensor, Tensor]: ...
