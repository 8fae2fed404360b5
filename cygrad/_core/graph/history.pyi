"""Types of the compiled module."""

from cygrad._core.graph.node import Node
from cygrad.tensor import Tensor

class AccumulateGrad(Node):
    @property
    def variable(self) -> Tensor: ...
