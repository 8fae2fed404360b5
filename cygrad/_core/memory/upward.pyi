"""Types of the compiled module."""

from typing import Any

class Upward:
    prepare: Any
    functions: Any
    explain: Any
    declaration_of: Any
    override: Any
    forward_rules: Any

def fill(**calls: Any) -> None: ...
