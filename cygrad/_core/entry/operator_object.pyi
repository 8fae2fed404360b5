from collections.abc import Callable
from typing import Any, NamedTuple

class Declaration(NamedTuple):
    rule: Any = None
    forward: Any = None
    batch: Any = None
    parts: Any = None
    flops: Any = None

COMPOSED: Declaration

def make_operator(
    name: str, function: Callable[..., Any], declaration: Declaration | None = None, described: Callable[..., Any] | None = None
) -> Any: ...
