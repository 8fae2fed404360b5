"""Bars of progress, for the functions that take `progress=True`: by tqdm, in a terminal or a notebook."""

from typing import Any


def bar(title: str, total: int | None = None) -> Any:
    """Return a bar of tqdm, which `update()` moves; ImportError where tqdm is missing."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True shows a bar of tqdm, which is not installed: pip install tqdm") from error
    return tqdm(desc=title, total=total)
