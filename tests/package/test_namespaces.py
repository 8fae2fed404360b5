"""Namespaces: an operator `linalg_xyz` is the function `linalg.xyz`, loaded at first use."""

import pickle
import subprocess
import sys
from operator import attrgetter

import numpy as np
import pytest

import cygrad as cg
from cygrad.operators import NAMESPACES, public_name
from cygrad.operators._written import catalogue
from cygrad.signatures import explained


def declared(space):
    names = [*(entry.name for entry in catalogue.entries()), *(name for name, _ in catalogue.names_of_rows())]
    return [name for name in names if catalogue.namespace_of(name) == space]


@pytest.mark.parametrize("space", NAMESPACES.values())
def test_operators_of_a_namespace_are_there_and_nowhere_else(space):
    place, names = attrgetter(space)(cg), declared(space)
    assert len(names) > 3
    for name in names:
        short_name = public_name(name).rpartition(".")[2]
        operator = getattr(place, short_name)
        assert short_name in dir(place)
        assert pickle.loads(pickle.dumps(operator)) is operator
        assert not hasattr(cg, name) and not hasattr(cg.Tensor, name)


def test_rectifiers_of_nn_take_inplace_as_torch_does():
    x = cg.tensor([-1.0, 2.0])
    assert cg.nn.functional.leaky_relu(x, 0.5, False).tolist() == [-0.5, 2.0] == cg.nn.functional.leaky_relu(x, 0.5).tolist()
    assert cg.nn.functional.leaky_relu(x, 0.5, True) is x and x.tolist() == [-0.5, 2.0]
    assert cg.nn.functional.relu_(x) is x and cg.nn.functional.elu(x, inplace=True) is x


def test_a_namespace_needs_no_import_and_loads_names_at_first_use():
    code = """
        import sys, cygrad
        assert "cygrad.linalg" not in sys.modules and "linalg" in dir(cygrad)
        cygrad.linalg.vecdot
        assert "cygrad.operators.vectors" in sys.modules and "cygrad.operators.diagonals" not in sys.modules
        from cygrad.linalg import diagonal
        assert "cygrad.operators.diagonals" in sys.modules
    """
    subprocess.run([sys.executable, "-c", "\n".join(map(str.strip, code.splitlines()))], check=True, timeout=60)


REFUSED = [
    (lambda: cg.linalg.no_such, AttributeError, "module 'cygrad.linalg' has no attribute 'no_such'"),
    (lambda: cg.linalg_vecdot, AttributeError, "module 'cygrad' has no attribute 'linalg_vecdot'"),
    (lambda: cg.linalg.diagonal(1), TypeError, r"linalg_diagonal\(\): argument 'A' \(position 1\) must be Tensor, not int"),
    (lambda: cg.linalg.vecdot(cg.ones(2), 3), TypeError, r"linalg_vecdot\(\): argument 'y' \(position 2\) must be Tensor, not int"),
    (lambda: cg.linalg.vecdot(cg.ones(2), cg.ones(2), dim="a"), TypeError, "argument 'dim' must be"),
    (lambda: cg.linalg.vecdot(cg.ones(2).int(), cg.ones(2)), RuntimeError,
     "linalg.vecdot: Expected a floating point or complex tensor as input. Got Int"),
    (lambda: cg.linalg.vecdot(cg.ones(2), cg.ones(2).cdouble()), RuntimeError,
     "linalg.vecdot: Expected x and y to have the same dtype, but found x of type Float and y of type ComplexDouble instead"),
    (lambda: cg.linalg.cross(cg.ones(2), cg.ones(2)), RuntimeError, "linalg.cross: inputs dimension -1 must have length 3. Got 2 and 2"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_an_argument_that_fails_is_compared_with_the_stub_of_the_namespace():
    error = explained("linalg_cross", TypeError("wrong"), (cg.ones(3), cg.ones(3)), {"dim": "a"})
    assert str(error) == "linalg_cross(): argument 'dim' must be int, not str"


def test_the_first_of_two_complex_vectors_is_conjugated():
    x, y = cg.tensor([[1 + 2j, 3j]]), cg.tensor([[1j, 2.0]])
    assert cg.linalg.vecdot(x, y).tolist() == [np.vdot(x.numpy(), y.numpy())]


def test_the_error_of_linear_algebra_is_caught_as_torch_and_numpy_name_it():
    assert issubclass(cg.linalg.LinAlgError, RuntimeError) and issubclass(cg.linalg.LinAlgError, np.linalg.LinAlgError)
    assert type(pickle.loads(pickle.dumps(cg.linalg.LinAlgError("singular")))) is cg.linalg.LinAlgError
