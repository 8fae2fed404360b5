"""Fixtures of several files."""

import pytest

import samples
from cygrad.config import available_isas


@pytest.fixture(scope="module", params=available_isas())
def level(request, tmp_path_factory):
    """The results of the module's `results()` at an instruction-set level, computed by another process."""
    name = request.module.__name__
    return samples.at_level(request.param, name, "results", tmp_path_factory.mktemp(name) / "results.npz")
