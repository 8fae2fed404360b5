from collections.abc import Callable
from typing import Any, NamedTuple

class Declaration(NamedTuple):
    rule: Any
    forward: Any
    batch: Any
    parts: Any

COMPOSED: Declaration
forward_rules: dict[str, Callable[..., Any]]

def tensors_of(arguments: Any) -> list[Any]: ...
def over_tensors(function: Callable[[Any], Any], value: Any) -> Any: ...
def example_of(level: Any, number: int) -> Callable[[Any], Any]: ...
def zeros_of(tensor: Any) -> Any: ...
def make_operator(
    name: str, function: Callable[..., Any], declaration: Declaration | None = None, described: Callable[..., Any] | None = None
) -> Any: ...
def set_explanation(function: Callable[[str, BaseException, tuple[Any, ...], dict[str, Any]], Exception | None]) -> None: ...
