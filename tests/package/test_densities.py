"""The log densities of their page: values are SciPy's, and they differentiate by each argument, twice."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import gradcheck, gradgradcheck
from samples import array_of

PAGE = Path(__file__).parents[2] / "docs" / "densities.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs the sources")

RNG = np.random.default_rng(6)
POSITIVE, BETWEEN, ANY = RNG.uniform(0.2, 5, (3, 4)), RNG.uniform(0.05, 0.95, (3, 4)), RNG.standard_normal((3, 4)) * 3
COVARIANCE = np.array([[2.0, 0.3, -0.5], [0.3, 1.0, 0.2], [-0.5, 0.2, 0.8]])
# Arguments of each function, inside of the support.
CASES = {
    "norm_logpdf": (ANY, ANY[0], POSITIVE[1]),
    "t_logpdf": (ANY, POSITIVE[0] * 3, ANY[1], POSITIVE[2]),
    "gamma_logpdf": (POSITIVE, POSITIVE[0], POSITIVE[1]),
    "chi2_logpdf": (POSITIVE, POSITIVE[0] * 2),
    "beta_logpdf": (BETWEEN, POSITIVE[0], POSITIVE[1]),
    "poisson_logpmf": (np.arange(12.0).reshape(3, 4), POSITIVE[0]),
    "dirichlet_logpdf": (np.array([0.2, 0.5, 0.3]), np.array([0.7, 2.0, 5.0])),
    "multivariate_normal_logpdf": (ANY[:, :3], ANY[1, :3], COVARIANCE),
}


@pytest.fixture(scope="module")
def page():
    """Return the functions that the blocks of the page define."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names = {}
    for example in doctest.DocTestParser().get_examples("\n".join(blocks)):
        if example.source.startswith(("import", "def ")):
            exec(example.source, names)
    return names


def test_every_density_is_tested(page):
    assert {name for name in page if name.endswith(("_logpdf", "_logpmf"))} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_values_are_scipys(page, name):
    stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    arguments = CASES[name]
    distribution, _, function = name.rpartition("_")
    options = {}
    if name == "gamma_logpdf":
        *arguments, options["scale"] = arguments
    expected = getattr(getattr(stats, distribution), function)(*arguments, **options)
    result = page[name](*map(cg.tensor, CASES[name]))
    np.testing.assert_allclose(array_of(result), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_they_differentiate_by_each_argument(page, name):
    """But for Poisson's counts; a covariance stays symmetric."""
    def call(*tensors):
        *others, last = tensors
        if name == "multivariate_normal_logpdf":
            last = (last + last.mT) / 2
        return page[name](*others, last)

    tensors = [cg.tensor(array, requires_grad=(name, k) != ("poisson_logpmf", 0)) for k, array in enumerate(CASES[name])]
    assert gradcheck(call, tensors) and gradgradcheck(call, tensors)
