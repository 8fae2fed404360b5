"""Bars of progress, for the functions that take `progress=True`: by tqdm, in a terminal or a notebook."""

from collections.abc import Callable
from functools import wraps
from typing import Any


def bar(title: str, total: int | None = None) -> Any:
    """Return a bar of tqdm, which `update()` moves; ImportError where tqdm is missing."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True shows a bar of tqdm, which is not installed: pip install tqdm") from error
    return tqdm(desc=title, total=total)


def counted(function: Callable[..., Any], shown: Any) -> Callable[..., Any]:
    """Return a function that moves a bar at each call, and closes it after the last one, or where a call fails."""
    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            result = function(*arguments, **keywords)
        except BaseException:
            shown.close()
            raise
        shown.update()
        if shown.n == shown.total:
            shown.close()
        return result

    return call
