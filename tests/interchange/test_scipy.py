"""SciPy's solvers, called with functions of tensors and their derivatives."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import grad, hessian, jacrev


@pytest.fixture
def optimize():
    """Import SciPy when a test runs: it takes seconds."""
    return pytest.importorskip("scipy.optimize", reason="SciPy is not installed")


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def of_tensors(x):
    """Return Rosenbrock's function of a tensor, for arguments of any kind."""
    return rosenbrock(cg.tensor(x))


START = np.array([-1.2, 1.0, 0.5])
WITH_HESSIANS = ["Newton-CG", "trust-constr", "dogleg", "trust-ncg", "trust-exact", "trust-krylov"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f", [rosenbrock, of_tensors])
@pytest.mark.parametrize("method", ["CG", "BFGS", "L-BFGS-B", "SLSQP", *WITH_HESSIANS])
def test_minimize(optimize, method, f):
    curvature = {"hess": hessian(rosenbrock)} if method in WITH_HESSIANS else {}
    result = optimize.minimize(f, START, jac=grad(rosenbrock), method=method, **curvature)
    np.testing.assert_allclose(np.asarray(result.x), 1, atol=1e-2)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(optimize, method):
    def residuals(x):
        x = cg.as_tensor(x)
        return cg.cat([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])

    result = optimize.least_squares(residuals, START, jac=jacrev(residuals), method=method)
    np.testing.assert_allclose(np.asarray(result.x), 1, rtol=1e-6)


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "krylov"])
def test_roots(optimize, method):
    def f(x):
        return cg.as_tensor(x) ** 3 - cg.tensor([1.0, 8.0, 27.0])

    derivative = {"jac": jacrev(f)} if method in ("hybr", "lm") else {}
    np.testing.assert_allclose(np.asarray(optimize.root(f, np.array([1.5, 1.5, 2.5]), method=method, **derivative).x), [1, 2, 3], atol=1e-5)


def test_unknowns_that_are_numbers(optimize):
    """SciPy converts them to Python's numbers, so they are of the default dtype."""
    def f(x):
        return x**3 - 2

    assert optimize.newton(f, 1.0, fprime=grad(f)) == pytest.approx(2 ** (1 / 3), rel=1e-6)
    assert optimize.newton(f, np.float64(1), fprime=grad(f)) == pytest.approx(2 ** (1 / 3))
    assert optimize.root_scalar(f, x0=1.0, fprime=grad(f), method="newton").root == pytest.approx(2 ** (1 / 3), rel=1e-6)


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_stiff_equations(method):
    integrate = pytest.importorskip("scipy.integrate", reason="SciPy is not installed")
    matrix = cg.tensor([[-1.0, 0.5], [0.0, -50.0]], dtype=cg.float64)

    def slope(y):
        return matrix @ y

    def solved(slope, derivative):
        return integrate.solve_ivp(slope, (0, 1), [1.0, 2.0], method=method, jac=derivative).y[:, -1]

    result = solved(lambda t, y: slope(cg.as_tensor(y)), lambda t, y: jacrev(slope)(y))
    np.testing.assert_allclose(result, solved(lambda t, y: matrix.numpy() @ y, lambda t, y: matrix.numpy()), rtol=1e-6)
