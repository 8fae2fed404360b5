"""Types of the compiled module."""

from collections.abc import Callable
from typing import Any, final

@final
class RuleOp:
    name: str
    node_name: str
    inputs: tuple[str, ...]
    params: tuple[str, ...]
    functions: tuple[Callable[..., Any] | None, ...]
    place: Callable[..., Any] | None
    shared: Callable[..., Any] | None
    declared: bool

rules: dict[str, RuleOp]

def rule_op(name: str, params: tuple[str, ...] | None = None) -> RuleOp: ...
def declare_rule(
    name: str, *, each: Callable[..., Any] | None = None, node: str = "", place: Callable[..., Any] | None = None,
    into: Callable[..., Any] | None = None, adjoints: bool = False, results: tuple[str, ...] = (),
    shared: Callable[..., Any] | None = None, **gradients: Callable[..., Any] | None
) -> RuleOp: ...
def rule_of(operator: Any) -> RuleOp: ...
