"""Fixtures of several files."""

import pytest

import samples
from cygrad._kernels.drivers.elementwise import available_isas, isa


@pytest.fixture(scope="module", params=available_isas())
def level(request):
    """The results of the module's `results(names)` of the tested operators; the results of another level come from another process."""
    name = request.module.__name__
    params = (item.callspec.params for item in request.session.items if item.path == request.path and hasattr(item, "callspec"))
    names = sorted({value for each in params for value in each.values() if isinstance(value, str)})
    if request.param == isa():
        return request.module.results(names)
    return samples.at_level(request.param, name, "results", names)
