"""Fixtures of all rooms; the helpers of one room are in that room."""

import gc
import os

import pytest

import cygrad as cg
from cygrad._core.levels.batches import special_tensors
from cygrad._kernels.system.threads import thread_report
from cygrad._testing import program_checks, set_programs

pytest_plugins = ["cases", "selection"]


def pytest_collection_modifyitems(items):
    lacking = {"resident": "libasan" in os.environ.get("LD_PRELOAD", "") and "the sanitizer has memory of its own",
               "openmp": not thread_report()["openmp"] and "built without OpenMP"}
    for marker, reason in lacking.items():
        for item in items:
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_call(item):
    """Collect the garbage of earlier tests, before a test that counts memory."""
    if "live_bytes" in item.function.__code__.co_names:
        gc.collect()


@pytest.fixture(scope="module", autouse=True)
def frozen_heap():
    """Leave the objects of modules and of earlier tests out of collections of garbage, for which many tests ask: each took 0.1 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def x():
    return cg.tensor([1.0, 2.0], requires_grad=True)


@pytest.fixture(autouse=True)
def programs_equal_their_steps():
    """Fail a test in which a program has other bits than its steps, where CYGRAD_PROGRAMS says that they are compared."""
    before = program_checks()[1]
    yield
    assert program_checks()[1] == before


@pytest.fixture
def usual_sizes():
    """Defer results from the usual size on, also where CYGRAD_PROGRAMS takes all for large: for tests that count memory."""
    before = set_programs("")
    set_programs(before.partition(":")[0])
    yield
    set_programs(before)


@pytest.fixture
def nothing_left():
    """Fail a test that leaves levels or batched tensors alive."""
    yield
    if special_tensors():
        gc.unfreeze()
        gc.collect()        # of tracebacks
    assert not special_tensors()
