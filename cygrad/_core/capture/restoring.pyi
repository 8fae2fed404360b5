from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

_Result = TypeVar("_Result")

class restoring(Generic[_Result]):
    def __init__(self, end: Callable[[type[BaseException] | None], object], begin: Callable[[], _Result] | None = None) -> None: ...
    def __enter__(self) -> _Result: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None = None,
                 traceback: TracebackType | None = None) -> None: ...
