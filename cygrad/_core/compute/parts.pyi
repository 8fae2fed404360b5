"""Types of the compiled module."""

from typing import final

from cygrad._core.graph.rules import RuleNode

@final
class PartNode(RuleNode): ...
