"""SciPy is optional: no operator imports it unless it needs it, and then its absence is an ImportError that names the way to get it."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

TESTS = Path(__file__).parents[1]

PROGRAM = """
    import importlib.abc
    import sys
    import warnings


    class Refusal(importlib.abc.MetaPathFinder):
        attempts = []

        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "scipy":
                self.attempts.append(name)
                raise ModuleNotFoundError(f"No module named {name!r}")


    sys.meta_path.insert(0, Refusal())
    warnings.simplefilter("ignore")
    import numpy as np

    import cygrad as cg

    # One of each, forwards and backwards.
    x = cg.linspace(0.5, 3, 8, dtype=cg.float64, requires_grad=True)
    results = [
        cg.fft.rfft(x).abs(), cg.fft.ifft(x).abs(), x.stft(4, return_complex=True).abs(), cg.nn.functional.mse_loss(x, x.detach() + 1),
        cg.nn.functional.poisson_nll_loss(x, x.detach()), cg.nn.functional.gaussian_nll_loss(x, x.detach() + 1, x), x.quantile(0.3),
        x.median(), x.sort().values, x.lgamma(), x.digamma(), cg.special.i0(x), x.erfinv(),
        np.quantile(x, 0.3), np.interp(x, [0.0, 4.0], [1.0, 2.0]), cg.linalg.solve(cg.outer(x, x) + cg.eye(8, dtype=cg.float64), x),
    ]
    assert all(isinstance(result, cg.Tensor) for result in results)
    sum(result.sum() for result in results if result.requires_grad).backward()
    assert x.grad.isfinite().any()
    cg.random.standard_gamma(x.detach()), cg.poisson(x.detach()), cg.random.beta(x.detach(), x.detach())
    cg.optimize.value_and_grad(lambda p: p.square().sum(), np.ones(3))(np.ones(3))
    assert not Refusal.attempts, Refusal.attempts

    # All samples of the suite: each gives its result without a look at SciPy, or raises the error.
    import samples

    def outcome(call):
        Refusal.attempts.clear()
        try:
            call()
        except ImportError as error:
            assert Refusal.attempts and 'pip install "cygrad[' in str(error), error
            return "needs SciPy"
        assert not Refusal.attempts, Refusal.attempts
        return "computed"

    outcomes = {}
    for name, calls in (samples.SAMPLES | samples.PLAIN).items():
        for sample in calls:
            operands = [cg.tensor(array) for array in samples.rule_operands(sample.shapes)]
            outcomes.setdefault(name, set()).add(outcome(lambda: sample.call(*operands)))
    assert "computed" in outcomes["stft"] & outcomes["lu"] and len(outcomes) > 200, len(outcomes)
    assert outcome(lambda: cg.config.set_fft_library("scipy")) == "needs SciPy"
    cg.fft.rfft(x)      # by NumPy, as before
    assert "scipy" not in sys.modules
    print(*sorted(name for name, kinds in outcomes.items() if kinds == {"needs SciPy"}))
"""


def test_operators_do_without_scipy():
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
