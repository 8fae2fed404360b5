"""Types of the compiled module."""

from collections.abc import Sequence

from cygrad._core.node import Node
from cygrad.tensor import Tensor

class FunctionNode(Node):
    def _connect(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor | None, ...]) -> None: ...

def current_run() -> tuple[int, bool]: ...
def run_backward(
    tensors: tuple[Tensor, ...],
    grads: tuple[Tensor, ...],
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Tensor] | None,
    accumulate_grad: bool,
) -> list[Tensor | None]: ...
