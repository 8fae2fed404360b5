"""The reference documents' sentences on the functional API, where no other test asserts them."""

import inspect

import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import functional

OF_JACOBIANS = "func inputs create_graph=False strict=False vectorize=False"
OF_PRODUCTS = "func inputs v=None create_graph=False strict=False"
SIGNATURES = {
    "jacobian": OF_JACOBIANS + " strategy='reverse-mode'",
    "hessian": OF_JACOBIANS + " outer_jacobian_strategy='reverse-mode'",
    **dict.fromkeys(("vjp", "jvp", "vhp", "hvp"), OF_PRODUCTS),
}


@pytest.fixture
def x():
    return cg.tensor([1.0, 2.0])


def last_result(name, function, x, **keywords):
    """Call one of the functions, with x as the vector if it takes one of that shape, and return its last result."""
    vector = (x,) if name in ("jvp", "vhp", "hvp") else ()
    result = getattr(functional, name)(function, x, *vector, **keywords)
    return result[1] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_arguments_have_the_documented_order_and_defaults(name):
    parameters = inspect.signature(getattr(functional, name)).parameters.values()
    shown = " ".join(str(parameter.replace(annotation=inspect.Parameter.empty)) for parameter in parameters)
    assert shown == SIGNATURES[name]


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_name_is_in_autograd_too(name):
    assert getattr(autograd, name) is getattr(functional, name)
    assert name in dir(autograd)


# Results for the sum of x**3 * [3, 4] at [1, 2]; the vector is x.
RESULTS = {"jacobian": [9, 48], "vjp": [9, 48], "jvp": 105, "hessian": [[18, 0], [0, 48]], "vhp": [18, 96], "hvp": [18, 96]}


@pytest.mark.parametrize("name", SIGNATURES)
def test_captured_constants_and_other_objects_are_not_differentiated(name, x):
    def function(input, constant, flag):
        return (input**3 * constant).sum() if flag else input.sum()

    constant = cg.tensor([3.0, 4.0])
    assert last_result(name, lambda x: function(x, constant, flag=True), x).tolist() == RESULTS[name]
    assert (constant.requires_grad, constant.grad) == (False, None)


@pytest.mark.parametrize("name", SIGNATURES)
def test_without_strict_a_result_may_have_no_history(name, x):
    def function(x):
        return (x * x).sum() if name in ("hessian", "vhp", "hvp") else x.sum()

    def cube(x):
        return (x**3).sum()

    x.requires_grad_()
    assert last_result(name, cube, x, create_graph=True).requires_grad
    assert last_result(name, function, x).requires_grad is False
    assert last_result(name, function, x.detach(), create_graph=True).requires_grad is False
    assert last_result(name, lambda x: cg.ones(1), x, create_graph=True).requires_grad is False


@pytest.mark.parametrize("name", SIGNATURES)
def test_strict_is_off_by_default(name, x):
    """Without `strict` a result that is independent of the input is zeros of the usual shape; `strict` refuses it."""
    zeros = {"jacobian": [[0, 0]], "vjp": [0, 0], "jvp": [0], "hessian": [[0, 0], [0, 0]], "vhp": [0, 0], "hvp": [0, 0]}[name]
    shape = () if name in ("hessian", "vhp", "hvp") else (1,)
    vector = cg.ones(1) if name == "vjp" else x
    arguments = (lambda x: cg.full(shape, 3.0), x) + (() if name in ("jacobian", "hessian") else (vector,))
    for options in {}, {"strict": False}:
        result = getattr(functional, name)(*arguments, **options)
        result = result[1] if isinstance(result, tuple) else result
        assert (result.tolist(), result.requires_grad) == (zeros, False)
    with pytest.raises(RuntimeError, match="does not require gradients|independent of"):
        getattr(functional, name)(*arguments, strict=True)


def test_hvp_is_vhp_where_second_derivatives_are_symmetric():
    def function(x):
        return (x.prod() * x.exp()).sum()

    x, v = cg.tensor([1.0, 2.0], dtype=cg.float64), cg.tensor([0.5, -3.0], dtype=cg.float64)
    expected = functional.hessian(function, x) @ v
    for product in functional.hvp, functional.vhp:
        assert (product(function, x, v)[1] - expected).abs().max() < 1e-12
