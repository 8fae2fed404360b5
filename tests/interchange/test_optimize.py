"""cygrad.optimize: values, gradients and Hessian products against closed forms, how often f runs, bad input, SciPy's solvers."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import live_bytes
from cygrad.func import grad, jvp
from cygrad.optimize import hessp, value_and_grad

ROOT = Path(__file__).resolve().parents[2]


class Counted:
    """A function that counts its calls."""

    def __init__(self, f):
        self.f, self.calls = f, 0

    def __call__(self, parameters):
        self.calls += 1
        return self.f(parameters)


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def rosenbrock_gradient(x):
    gradient = np.zeros_like(x)
    gradient[1:] += 200 * (x[1:] - x[:-1] ** 2)
    gradient[:-1] += -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    return gradient


def rosenbrock_hessian(x):
    diagonal = np.zeros_like(x)
    diagonal[1:] += 200
    diagonal[:-1] += 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    return np.diag(diagonal) + np.diag(-400 * x[:-1], 1) + np.diag(-400 * x[:-1], -1)


@dataclass(frozen=True)
class Model:
    weight: object
    scale: object
    bias: object = ()


START = Model(weight=np.array([[1.0, -2.0], [0.5, 3.0]], dtype=np.float32), scale=2.0, bias=[cg.tensor([0.25]), cg.ones(0)])
MATRIX = np.array([[2.0, 1.0], [1.0, 3.0]])


def quadratic(model):
    """scale * trace(W' M W) + bias^2, with M = MATRIX."""
    (bias, _) = model.bias
    return model.scale * (model.weight * (cg.from_numpy(MATRIX) @ model.weight)).sum() + (bias**2).sum()


def test_rosenbrock():
    x, p = np.array([0.3, -1.2, 2.0, 0.7]), np.array([1.0, -0.5, 0.25, 3.0])
    objective = value_and_grad(rosenbrock, x)
    value, gradient = objective(x)
    assert type(value) is float
    assert value == pytest.approx(sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(3)), rel=1e-14)
    np.testing.assert_allclose(gradient, rosenbrock_gradient(x), rtol=1e-13)
    np.testing.assert_allclose(objective.hessp(x, p), rosenbrock_hessian(x) @ p, rtol=1e-13)
    np.testing.assert_array_equal(hessp(rosenbrock, x)(x, p), objective.hessp(x, p))


GIVEN = [[1.0, 2.0], np.array([1, 2]), np.array([1, 2], np.float32), np.arange(1.0, 5.0, 0.5)[:4:2], np.array([2.0, 1.0])[::-1],
         np.frombuffer(np.array([1.0, 2.0]).tobytes()), cg.tensor([1.0, 2.0])]


@pytest.mark.parametrize("x", GIVEN, ids=lambda x: type(x).__name__)
def test_vectors_of_any_kind(x):
    objective = value_and_grad(rosenbrock, (np.ones(2)))
    value, gradient = objective(x)
    assert value == 100
    np.testing.assert_allclose(gradient, rosenbrock_gradient(np.array([1.0, 2.0])))
    np.testing.assert_allclose(objective.hessp(x, x), rosenbrock_hessian(np.array([1.0, 2.0])) @ [1, 2])


@pytest.mark.parametrize("x0", [1.0, np.float64(1), np.float32(1), np.array(1.0), cg.tensor(1.0), np.ones(1)], ids=repr)
@pytest.mark.parametrize("x", [0.5, np.float64(0.5), np.array(0.5), np.array([0.5]), [0.5]], ids=repr)
def test_a_number_is_a_vector_of_one(x0, x):
    """Solvers of one unknown pass numbers of any shape; the gradient has the shape of that argument."""
    objective = value_and_grad(lambda x: (x**3).sum(), x0)
    value, gradient = objective(x)
    assert (type(value), value, gradient.shape, gradient.sum()) == (float, 0.125, np.shape(x), 0.75)
    assert objective.hessp(x, x).shape == np.shape(x)
    assert objective.hessp(x, x).sum() == 1.5


def test_trees_of_parameters():
    objective = value_and_grad(quadratic, START)
    assert objective.x0.dtype == np.float64
    assert objective.x0.tolist() == [1, -2, 0.5, 3, 2, 0.25]
    value, gradient = objective(objective.x0)
    weight = objective.x0[:4].reshape(2, 2)
    products = MATRIX @ weight
    assert value == pytest.approx(2 * np.trace(weight.T @ products) + 0.0625)
    np.testing.assert_allclose(gradient, [*(4 * products).ravel(), np.trace(weight.T @ products), 0.5])

    p = np.array([1.0, 0.0, 2.0, 0.0, 3.0, 4.0])
    direction = p[:4].reshape(2, 2)
    expected = [*(4 * MATRIX @ direction + 2 * products * 3).ravel(), 2 * np.sum(products * direction), 8]
    np.testing.assert_allclose(objective.hessp(objective.x0, p), expected)


def test_products_equal_forward_mode_over_reverse_mode():
    def f(model):
        return cg.tanh(model.weight @ model.weight).sum() * model.scale.exp() + (model.bias[0] * model.weight[0]).sin().prod()

    objective = value_and_grad(f, START)
    p = np.random.default_rng(0).standard_normal(6)
    _, expected = jvp(grad(f), (objective.unflatten(objective.x0),), (objective.unflatten(p),))
    np.testing.assert_allclose(objective.hessp(objective.x0, p), objective.flatten(expected), rtol=1e-12)


def test_trees_and_vectors():
    objective = value_and_grad(quadratic, START)
    model = objective.unflatten(np.arange(6))
    assert type(model) is Model
    assert model.weight.tolist() == [[0, 1], [2, 3]]
    assert model.scale.tolist() == 4
    assert [bias.tolist() for bias in model.bias] == [[5], []]
    assert {tensor.dtype for tensor in (model.weight, model.scale, *model.bias)} == {cg.float64}
    assert not model.weight.requires_grad
    assert objective.flatten(model).tolist() == list(range(6))
    objective.unflatten(objective.x0).weight.zero_()
    assert objective.x0[0] == 1


def test_a_float32_start_is_computed_in_float64():
    seen = []
    start = cg.tensor([0.1, 0.2], requires_grad=True)
    objective = value_and_grad(lambda x: seen.append((x.dtype, x.is_leaf)) or x.exp().sum(), start)
    value, gradient = objective(objective.x0)
    assert seen == [(cg.float64, True)]
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, np.exp(np.array([0.1, 0.2], dtype=np.float32).astype(float)), rtol=1e-15)
    assert start.grad is None


LINEAR = [
    ("linear", lambda p: (cg.tensor([2.0, 3.0]) * p["a"]).sum(), [2, 3, 0], [0, 0, 0]),
    ("one leaf", lambda p: p["b"], [0, 0, 1], [0, 0, 0]),
    ("one element of shape (1, 1)", lambda p: (p["b"] ** 3).reshape(1, 1), [0, 0, 3], [0, 0, 18]),
    ("linear in one", lambda p: p["a"][0] ** 2 + p["b"], [2, 0, 1], [2, 0, 0]),
    ("product", lambda p: p["a"][1] * p["b"], [0, 1, 1], [0, 3, 2]),
]


@pytest.mark.parametrize(("f", "gradient", "product"), [entry[1:] for entry in LINEAR], ids=[entry[0] for entry in LINEAR])
def test_parameters_without_use_or_without_curvature(f, gradient, product):
    objective = value_and_grad(f, {"a": cg.ones(2), "b": 1.0})
    assert objective(objective.x0)[1].tolist() == gradient
    assert objective.hessp(objective.x0, [1.0, 2.0, 3.0]).tolist() == product


def test_grad_mode_of_the_caller_does_not_matter():
    x = np.array([1.0, 2.0])
    with cg.no_grad():
        objective = value_and_grad(rosenbrock, x)
        np.testing.assert_allclose(objective(x)[1], rosenbrock_gradient(x))
        np.testing.assert_allclose(objective.hessp(x, x), rosenbrock_hessian(x) @ x)
        assert not cg.is_grad_enabled()


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_values_that_are_not_finite_pass(special):
    objective = value_and_grad(lambda x: (x**2).sum(), np.ones(2))
    value, gradient = objective([special, 1.0])
    np.testing.assert_array_equal([value, *gradient], [special**2, 2 * special, 2])
    np.testing.assert_array_equal(objective.hessp([special, 1.0], [1.0, 2.0]), [2, 4])


# ----- How often f runs -----
def test_products_at_one_point_run_f_once():
    f = Counted(rosenbrock)
    objective = value_and_grad(f, np.ones(3))
    x = np.array([0.5, 1.5, -1.0])
    for p in np.eye(3):
        np.testing.assert_allclose(objective.hessp(x, p), rosenbrock_hessian(x) @ p)
    assert f.calls == 1


def test_value_and_products_at_one_point_run_f_once():
    """Only the first product runs it again, since until then no graph is kept."""
    f = Counted(rosenbrock)
    objective = value_and_grad(f, np.ones(3))
    objective.hessp(objective.x0, objective.x0)
    for number in range(2, 5):
        x = np.array([0.5, 1.5, number])
        np.testing.assert_allclose(objective(x)[1], rosenbrock_gradient(x))
        for p in np.eye(3):
            np.testing.assert_allclose(objective.hessp(x, p), rosenbrock_hessian(x) @ p)
        assert f.calls == number


def test_a_value_elsewhere_does_not_lose_the_gradient():
    """A trust-region method that refuses a step computes products at the previous point."""
    f = Counted(rosenbrock)
    objective = value_and_grad(f, np.ones(2))
    here, there = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    first = objective.hessp(here, here)
    objective(there)
    np.testing.assert_array_equal(objective.hessp(here, here), first)
    assert f.calls == 2
    np.testing.assert_allclose(objective.hessp(there, here), rosenbrock_hessian(there) @ here)
    assert f.calls == 2


def test_a_vector_changed_in_place_is_another_point():
    objective = value_and_grad(rosenbrock, np.ones(2))
    x, p = np.array([1.0, 2.0]), np.array([1.0, 1.0])
    objective.hessp(x, p)
    objective(x)
    x[0] = 5
    np.testing.assert_allclose(objective.hessp(x, p), rosenbrock_hessian(x) @ p)


def test_no_graph_is_kept_before_the_first_product():
    objective = value_and_grad(lambda x: x.exp().exp().sum(), np.ones(1000))
    before = live_bytes()
    objective(objective.x0)
    assert live_bytes() == before


# ----- Bad input -----
NO_PARAMETERS = [
    ({"a": [1]}, TypeError, r"x0\['a'\]\[0\] is no parameter: .* this is int"),
    ({"a": True}, TypeError, r"this is bool"),
    ({"a": None}, TypeError, r"x0\['a'\] is no parameter: .* this is NoneType"),
    ("text", TypeError, r"x0 is no parameter: .* this is str"),
    ([np.arange(3)], TypeError, r"x0\[0\] is no parameter: .* this is ndarray of dtype int64"),
    ([np.ones(1, dtype=int)], TypeError, r"this is ndarray of dtype int64"),
    ([1.0, cg.arange(3)], TypeError, r"x0\[1\] is no parameter: .* this is Tensor of dtype int64"),
    ({}, ValueError, r"x0 holds no parameters: TreeSpec\(\{\}\)"),
    ([cg.ones(0)], ValueError, r"x0 holds no parameters"),
]


@pytest.mark.parametrize(("x0", "error", "message"), NO_PARAMETERS)
def test_starts_that_are_no_parameters(x0, error, message):
    with pytest.raises(error, match=message):
        value_and_grad(rosenbrock, x0)


BAD_RESULTS = [
    (lambda x: x * 2, RuntimeError, r"grad can be implicitly created only for scalar outputs; f returned shape \[2\]"),
    (lambda x: x.sum().item(), TypeError, "f must return a scalar Tensor, but returned float"),
    (lambda x: (x.sum(),), TypeError, "f must return a scalar Tensor, but returned tuple"),
    (lambda x: None, TypeError, "f must return a scalar Tensor, but returned NoneType"),
    (lambda x: x.detach().sum(), RuntimeError, "does not require grad and does not have a grad_fn"),
    (lambda x: cg.ones(()), RuntimeError, "does not require grad and does not have a grad_fn"),
    (lambda x: x.argmax(), RuntimeError, "does not require grad and does not have a grad_fn"),
]


@pytest.mark.parametrize(("f", "error", "message"), BAD_RESULTS)
def test_results_that_f_may_not_return(f, error, message):
    objective = value_and_grad(f, cg.ones(2))
    with pytest.raises(error, match=message):
        objective(objective.x0)
    with pytest.raises(error, match=message):
        objective.hessp(objective.x0, objective.x0)


BAD_VECTORS = [
    (np.ones(3), ValueError, r"has shape \(3,\), but there are 2 parameters"),
    (np.ones((2, 1)), ValueError, r"has shape \(2, 1\), but there are 2 parameters"),
    (1.0, ValueError, r"has shape \(\), but"),
    (np.ones(2, dtype=complex), TypeError, "must hold real numbers, but its dtype is complex128"),
    (["a", "b"], TypeError, "must hold real numbers"),
]


@pytest.mark.parametrize(("vector", "error", "message"), BAD_VECTORS)
def test_vectors_that_do_not_fit(vector, error, message):
    objective = value_and_grad(rosenbrock, cg.ones(2))
    for name, call in (("x", objective), ("x", objective.unflatten), ("x", lambda x: objective.hessp(x, [1.0, 1.0])),
                       ("p", lambda p: objective.hessp([1.0, 1.0], p))):
        with pytest.raises(error, match=f"^{name} {message}"):
            call(vector)


@pytest.mark.parametrize(("tree", "error", "message"), [
    ({"a": 1.0}, ValueError, r"Node keys mismatch; missing key\(s\): \['b'\] at tree"),
    ({"a": cg.ones(3), "b": 1.0}, ValueError, r"tree\['a'\] has shape \(3,\), but the parameter has \(2,\)"),
    ({"a": cg.ones(2), "b": "c"}, TypeError, r"tree\['b'\] is no parameter"),
])
def test_trees_that_do_not_fit(tree, error, message):
    objective = value_and_grad(lambda p: p["b"], {"a": cg.ones(2), "b": 1.0})
    with pytest.raises(error, match=message):
        objective.flatten(tree)


def test_an_exception_of_f_propagates_and_nothing_is_kept():
    refused = []

    def f(x):
        if refused:
            raise ZeroDivisionError("mine")
        return rosenbrock(x)

    objective = value_and_grad(f, np.ones(2))
    x = np.array([2.0, 3.0])
    objective.hessp(x, x)
    refused.append(True)
    with pytest.raises(ZeroDivisionError, match="mine"):
        objective(x + 1)
    with pytest.raises(ZeroDivisionError, match="mine"):
        objective.hessp(x + 1, x)
    refused.clear()
    np.testing.assert_allclose(objective.hessp(x + 1, x), rosenbrock_hessian(x + 1) @ x)


# ----- SciPy -----
def test_scipy_is_not_imported():
    code = "import sys, cygrad.optimize as o; o.value_and_grad(lambda x: x, 1.)([2.]); sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.fixture
def minimize():
    return pytest.importorskip("scipy.optimize", reason="SciPy is not installed").minimize


@pytest.mark.parametrize("method", ["trust-ncg", "trust-krylov", "Newton-CG", "trust-constr", "BFGS", "L-BFGS-B"])
def test_scipy_minimizes(minimize, method):
    objective = value_and_grad(lambda p: rosenbrock(p["x"]) + (p["x"][0] - p["y"]) ** 2, {"x": np.array([-1.2, 1.0, 0.5]), "y": 3.0})
    products = {} if "BFGS" in method else {"hessp": objective.hessp}
    result = minimize(objective, objective.x0, jac=True, method=method, **products)
    assert result.success, result.message
    fitted = objective.unflatten(result.x)
    np.testing.assert_allclose([*fitted["x"].tolist(), fitted["y"].item()], 1, atol=1e-4)


def test_a_trust_region_method_runs_f_once_for_each_step_it_tries(minimize):
    f = Counted(rosenbrock)
    objective = value_and_grad(f, np.full(10, -1.0))
    result = minimize(objective, objective.x0, jac=True, hessp=objective.hessp, method="trust-ncg")
    assert result.success
    assert result.nhev > 2 * result.nfev
    assert f.calls == result.nfev + 1


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="looks at the sources, and runs beside none")
def test_the_page_shows_the_code_of_the_example():
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "scipy.md").read_text(), re.MULTILINE | re.DOTALL)
    shown = [block for block in blocks if ">>>" not in block]
    assert len(shown) == 1
    assert shown[0] in (ROOT / "examples" / "logistic.py").read_text()


def test_a_complex_parameter_is_two_real_ones():
    start = {"z": np.array([1 + 2j, -1j]), "r": 3.0}
    objective = cg.optimize.value_and_grad(lambda p: (p["z"] - 1j).abs().square().sum() * p["r"], start)
    assert objective.x0.tolist() == [1, 2, 0, -1, 3]
    value, gradient = objective(objective.x0)
    assert value == 18 and gradient.tolist() == [6, 6, 0, -12, 6]
    assert objective.hessp(objective.x0, [1, 0, 0, 1, 0]).tolist() == [6, 0, 0, 6, -2]
    fitted = objective.unflatten(objective.x0)
    assert fitted["z"].dtype == cg.complex128 and fitted["z"].numpy().tolist() == [1 + 2j, -1j]
    assert objective.flatten(fitted).tolist() == objective.x0.tolist()
