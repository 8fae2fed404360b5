from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

_Given = TypeVar("_Given")

class restoring(Generic[_Given]):
    def __init__(self, end: Callable[[type[BaseException] | None], object], begin: Callable[[], _Given] | None = None) -> None: ...
    def __enter__(self) -> _Given: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None = None,
                 traceback: TracebackType | None = None) -> None: ...
