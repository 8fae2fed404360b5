"""A plugin of pytest, active where cygrad is installed: `gradcheck` and `gradgradcheck` as fixtures.

It imports cygrad when a test asks for one of them. A check that fails is reported at the line of the test.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest


def _reported(check: Callable[..., bool]) -> Callable[..., bool]:
    from cygrad.autograd.gradcheck.errors import GradcheckError

    @wraps(check)
    def reported(*arguments: Any, **options: Any) -> bool:
        __tracebackhide__ = True
        try:
            return check(*arguments, **options)
        except GradcheckError as error:
            message = "\n".join([str(error), *getattr(error, "__notes__", ())])
        raise pytest.fail.Exception(message)

    return reported


@pytest.fixture(scope="session")
def gradcheck() -> Callable[..., bool]:
    """`cygrad.autograd.gradcheck`; where gradients are wrong, the test fails with its message."""
    from cygrad.autograd import gradcheck

    return _reported(gradcheck)


@pytest.fixture(scope="session")
def gradgradcheck() -> Callable[..., bool]:
    """`cygrad.autograd.gradgradcheck`; where second derivatives are wrong, the test fails with its message."""
    from cygrad.autograd import gradgradcheck

    return _reported(gradgradcheck)
