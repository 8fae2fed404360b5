"""Fixtures of the core's tests."""

import pytest

from cygrad._testing import defer_from


@pytest.fixture
def small_results_wait():
    """Have results wait from 2048 bytes on; below, operators do not ask."""
    before = defer_from(2048)
    yield
    defer_from(before)
