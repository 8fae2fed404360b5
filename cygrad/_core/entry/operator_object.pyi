from collections.abc import Callable
from inspect import Signature
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

def name_in_messages(name: str) -> str: ...

class LazySignature(Signature):
    def __init__(self, read: Callable[[], Signature]) -> None: ...

def signature_without_out(function: Callable[..., Any]) -> Signature: ...
