"""Helpers for the tests of deferred results."""

import contextlib
import itertools

import numpy as np

import cygrad as cg
from cygrad._testing import defer_from, fail_alloc

SIZE = 5003         # no whole number of blocks, nor of vectors, nor of a reduction's blocks


@contextlib.contextmanager
def at_once():
    """Compute without deferring any result."""
    before = defer_from(1 << 62)
    try:
        yield
    finally:
        defer_from(before)


def arrays(count, dtype="float64", size=SIZE):
    stream = np.random.default_rng(count)
    return [stream.uniform(0.3, 0.9, size).astype(dtype) for _ in range(count)]


def leaves(count, dtype="float64", size=SIZE):
    return [cg.tensor(array, requires_grad=True) for array in arrays(count, dtype, size)]


def results_with_failing_allocations(function):
    """Yield a function's results while its first allocation fails, its second one, and so on, or None where it raises; last, while none
    fails."""
    for n in itertools.count(1):
        results = None
        with fail_alloc(n) as failure, contextlib.suppress(MemoryError):
            results = function()
        yield results
        if not failure.fired:
            return
