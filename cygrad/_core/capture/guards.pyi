from typing import Any

class Guard:
    source: int
    role: int
    holder: Any
    name: Any
    value: Any

    def __init__(self, source: int, holder: Any, name: Any, value: Any = ...) -> None: ...
    def value_now(self) -> Any: ...

def first_broken(guards: list[Guard], tensors: list[Any]) -> Guard | None: ...
