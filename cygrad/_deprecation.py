"""Names that go: a warning at the caller's line, with the replacement and the release in which the name goes."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
RELEASES = 2            # of the second number, that a deprecated name stays for


def number(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version."""
    first, second, *_ = version.split(".")
    return int(first), int(second)


def deprecated(since: str, removal: str, instead: str) -> Callable[[F], F]:
    """Mark a function whose name goes in release `removal`: each call warns, and names its replacement.

    ValueError where `removal` comes sooner than two releases of the second number after `since`.

    >>> import warnings
    >>> from cygrad._deprecation import deprecated
    >>> @deprecated(since="1.1", removal="1.3", instead="cygrad.square")
    ... def squared(x):
    ...     return x * x
    >>> with warnings.catch_warnings(record=True) as shown:
    ...     warnings.simplefilter("always")
    ...     print(squared(3), shown[0].message)
    9 squared is deprecated since 1.1 and goes in 1.3: use cygrad.square
    """
    (first, second), (last, end) = number(since), number(removal)
    if first == last and end < second + RELEASES:
        raise ValueError(f"a name that is deprecated in {since} stays until {first}.{second + RELEASES} at the least, not {removal}")

    def decorate(function: F) -> F:
        message = f"{function.__name__} is deprecated since {since} and goes in {removal}: use {instead}"

        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return function(*arguments, **keywords)

        call.removal = removal  # type: ignore[attr-defined]  # read by the test that finds names past their time
        return call  # type: ignore[return-value]

    return decorate
