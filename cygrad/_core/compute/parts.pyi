"""Types of the compiled module."""

from typing import final

from cygrad._core.graph.rule_nodes import RuleNode

@final
class PartNode(RuleNode): ...
