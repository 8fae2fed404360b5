"""Fixtures of the operators' tests."""

import mmap
import resource
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def little_memory():
    """Limit the memory, so that sizes of some GiB are memory errors too, rather than minutes of work."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**29, before[1]))
    try:
        mmap.mmap(-1, 2**31).close()
    except OSError:
        yield
    else:
        pytest.skip("memory has no limits here, as in an emulator of processors")
    resource.setrlimit(resource.RLIMIT_AS, before)
