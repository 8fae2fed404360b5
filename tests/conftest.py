"""Fixtures of all rooms; what a room's tests share lies beside them."""

import gc
import os

import pytest

from cygrad._core.levels.batches import special_tensors

pytest_plugins = ["cases"]


def pytest_collection_modifyitems(items):
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        for item in items:
            if item.get_closest_marker("resident"):
                item.add_marker(pytest.mark.skip(reason="the sanitizer has memory of its own"))


def pytest_runtest_call(item):
    """Collect what earlier tests left, before a test that counts memory."""
    if "live_bytes" in item.function.__code__.co_names:
        gc.collect()


@pytest.fixture
def nothing_left():
    """Fail a test after which there are still levels or batched tensors."""
    yield
    if special_tensors():
        gc.collect()        # of tracebacks
    assert not special_tensors()
