"""Fixtures of the core's tests."""

import pytest

from cygrad._testing import defer_from


@pytest.fixture
def small_results_are_pending():
    """Defer results from 2048 bytes on; operators compute smaller ones at once."""
    before = defer_from(2048)
    yield
    defer_from(before)
