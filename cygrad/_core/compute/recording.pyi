"""Types of the compiled module."""

from cygrad._core.graph.node import Node

class ElementwiseNode(Node): ...
