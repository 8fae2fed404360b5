"""Types of the compiled module."""

from collections.abc import Callable
from types import CodeType
from typing import Any, final

from cygrad._core.levels.observers import Observer

_Sizes = tuple[int, ...]
_Shapes = tuple[_Sizes | list[_Sizes] | None, ...]
_Row = tuple[int, str, str, int, int, int, bool, int, int, tuple[_Shapes, tuple[Any, ...]] | None,
             list[tuple[CodeType, int]] | None, int]

@final
class Recorder(Observer):
    with_stack: bool
    def __init__(self, with_shapes: bool = False, with_memory: bool = False, with_stack: bool = False) -> None: ...
    def rows(self) -> list[_Row]: ...

@final
class Announcer(Observer):
    def __init__(self, entered: Callable[[str, str, int, _Shapes | None], object], left: Callable[[], object],
                 with_shapes: bool = False) -> None: ...
