"""Fixtures of several files."""

import gc

import pytest

from cygrad._testing import live_bytes


@pytest.fixture
def no_leak():
    """No byte of tensors is left over; tensors of earlier tests must not die meanwhile."""
    gc.collect()
    before = live_bytes()
    yield
    gc.collect()
    assert live_bytes() == before
