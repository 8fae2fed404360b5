from collections.abc import Callable
from typing import Any, NamedTuple

class Declaration(NamedTuple):
    rule: Any = None
    forward: Any = None
    batch: Any = None
    parts: Any = None
    flops: Any = None

COMPOSED: Declaration

def tensors_of(arguments: Any) -> list[Any]: ...
def over_tensors(function: Callable[[Any], Any], value: Any) -> Any: ...
def example_of(level: Any, number: int) -> Callable[[Any], Any]: ...
def zeros_of(tensor: Any) -> Any: ...
def make_operator(
    name: str, function: Callable[..., Any], declaration: Declaration | None = None, described: Callable[..., Any] | None = None
) -> Any: ...
