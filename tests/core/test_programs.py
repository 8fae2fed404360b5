"""Programs by the settings of CYGRAD_PROGRAMS: fused, eager, checked."""

import os
import subprocess
import sys

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import pending_results, program_checks, set_programs

SIZE = 1 << 17


@pytest.fixture
def setting():
    """Return a function that sets how programs run, until the test ends."""
    before = set_programs("")
    set_programs(before)
    yield set_programs
    set_programs(before)


def loss(x):
    """Pending results, a reduction of one, gradients of a backward, and formulas by rows, tiles and passes."""
    y = ((x * 2 + 1).tanh() * x).exp()
    y.sum().backward()
    rows = x.detach().view(64, -1)
    return y, x.grad, rows.softmax(1), rows.var(0), x.detach().std(), rows.logsumexp(1)


def values(setting_text, setting, dtype):
    setting(setting_text)
    x = cg.from_numpy(np.random.default_rng(3).normal(size=SIZE)).to(dtype).requires_grad_()
    return [result.detach().numpy().tobytes() for result in loss(x)]


@pytest.mark.parametrize("dtype", [cg.float32, cg.float64], ids=str)
def test_each_setting_has_the_same_bits(setting, dtype):
    fused, eager, checked = (values(text, setting, dtype) for text in ("", "eager", "check:1"))
    assert fused == eager == checked


def test_programs_are_checked(setting):
    checks, faults = program_checks()
    values("check", setting, cg.float32)
    more, same = program_checks()
    assert more >= checks + 5 and same == faults


def test_nothing_is_pending_in_eager_mode(setting):
    x = cg.ones(SIZE, requires_grad=True)
    setting("eager")
    y = x * 2 + 1
    assert pending_results() == 0
    setting("")
    z = x * 2 + 1
    assert pending_results() == 1 and z.equal(y)        # the product is dead


@pytest.mark.parametrize("text", ["fast", "check:", "check:x", "eager:5", "check:-1"])
def test_other_settings_are_refused(setting, text):
    if text == "check:":
        setting(text)       # no number is the default
        return
    with pytest.raises(ValueError, match="programs run as 'eager', 'check' or 'check:N'"):
        setting(text)


@pytest.mark.slow
def test_the_environment_variable():
    def run(text):
        script = "import cygrad; from cygrad._testing import set_programs; print(repr(set_programs('')))"
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False,
                              env={**os.environ, "CYGRAD_PROGRAMS": text})

    assert run("check:7").stdout == "'check:7'\n"
    refused = run("fast").stderr.splitlines()[-1]
    assert refused.startswith("ImportError: CYGRAD_PROGRAMS: programs run as 'eager'") and "'fast'" in refused


@pytest.mark.parametrize("call", [lambda x: x.softmax(-1), lambda x: x.log_softmax(-1), lambda x: x.logsumexp(-1), lambda x: x.var(-1)])
def test_results_of_formulas_have_not_changed(setting, call):
    """The version of a result does not depend on how it was computed."""
    x = cg.rand(7, 61)
    fused = call(x)._version
    setting("eager")
    assert call(x)._version == fused == 0
