"""Floats, NumPy's scalars and arrays as arguments of the transforms: the same results as for tensors of the same elements."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import functional
from cygrad.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, value_and_grad, vjp, vmap
from cygrad.pytree import tree_flatten, tree_map
from func.trees import Model

pytestmark = pytest.mark.usefixtures("nothing_left")


def cube(x):
    return (x * x * x).sum()


def waves(x):
    return x.sin() * 2


def read_only(array):
    array.flags.writeable = False
    return array


VALUES = {
    "float": 0.5,
    "complex": 0.5 + 1j,
    "double": np.float64(0.5),
    "single": np.float32(0.5),
    "array of 0 dims": np.array(0.5),
    "vector": np.array([0.5, -1.0, 2.0]),
    "vector of singles": np.array([0.5, -1.0, 2.0], np.float32),
    "read-only": read_only(np.array([0.5, -1.0])),
    "broadcast": np.broadcast_to(0.5, (2, 2)),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "backwards": np.arange(6.0)[::-2],
    "unaligned": np.frombuffer(bytearray(17), np.float64, 2, 1),
    "empty": np.ones((0, 2)),
    "complex vector": np.array([0.5, 1j]),
}
TRANSFORMS = {
    "grad": lambda x: grad(cube)(x),
    "grad_and_value": lambda x: grad_and_value(cube)(x),
    "value_and_grad": lambda x: value_and_grad(cube)(x),
    "vjp": lambda x: vjp(waves, x)[0],
    "pulled back": lambda x: vjp(waves, x)[1](x),
    "jvp": lambda x: jvp(waves, (x,), (x,)),
    "linearize": lambda x: linearize(waves, x)[1](x),
    "jacrev": lambda x: jacrev(waves)(x),
    "jacfwd": lambda x: jacfwd(waves)(x),
    "hessian": lambda x: hessian(cube)(x),
    "functional.vjp": lambda x: functional.vjp(waves, x, x),
    "functional.jvp": lambda x: functional.jvp(waves, x, x),
    "functional.vhp": lambda x: functional.vhp(cube, x, x),
    "functional.hvp": lambda x: functional.hvp(cube, (x,), (x,)),
    "functional.jacobian": lambda x: functional.jacobian(waves, (x,)),
    "rows at once": lambda x: functional.jacobian(waves, x, vectorize=True),
    "columns": lambda x: functional.jacobian(waves, x, vectorize=True, strategy="forward-mode"),
    "functional.hessian": lambda x: functional.hessian(cube, x),
}

OF_COMPLEX = ("vjp", "pulled back", "jvp", "linearize", "functional.vjp", "functional.jvp")


def same(actual, expected):
    """Check that two trees are the same tensors."""
    (tensors, spec), (others, structure) = tree_flatten(actual), tree_flatten(expected)
    assert spec == structure
    for tensor, other in zip(tensors, others, strict=True):
        assert isinstance(tensor, cg.Tensor)
        assert tensor.dtype == other.dtype
        np.testing.assert_array_equal(tensor.numpy(), other.numpy())


@pytest.mark.cases("transform", TRANSFORMS)
@pytest.mark.cases("name", VALUES)
def test_numbers_and_arrays_are_taken_for_tensors(transform, name):
    value, tensor = VALUES[name], cg.tensor(VALUES[name])
    if tensor.is_complex() and transform not in OF_COMPLEX:
        pytest.skip("not of complex numbers")
    before = np.array(value)
    same(TRANSFORMS[transform](value), TRANSFORMS[transform](tensor))
    np.testing.assert_array_equal(np.array(value), before)


def test_a_gradient_of_complex_numbers():
    same(grad(lambda z: z.abs().square().sum())(np.array([1j, 2])), cg.tensor([2j, 4], dtype=cg.complex128))


TREES = {
    "list": [0.5, np.ones(2)],
    "dict": {"a": 0.5, "b": (np.float64(2), np.ones((2, 1)))},
    "dataclass": Model(np.eye(2), cg.ones(2)),
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_trees_of_arrays(tree):
    def total(tree):
        return sum(cube(leaf) for leaf in tree_flatten(tree)[0])

    tensors = tree_map(cg.tensor, tree)
    same(grad(total)(tree), grad(total)(tensors))
    same(vjp(total, tree)[1](1.0), vjp(total, tensors)[1](cg.tensor(1.0, dtype=total(tensors).dtype)))
    same(jvp(total, (tree,), (tree,)), jvp(total, (tensors,), (tensors,)))
    same(jacfwd(total)(tree), jacfwd(total)(tensors))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_examples_may_be_an_array(dtype):
    rows = np.array([[1, 0, 1], [1, 1, 0]], dtype)
    same(vmap(lambda x: x * 2)(rows), cg.tensor(rows) * 2)
    same(vmap(lambda x, y: x * 2 + y, (1, None))(rows, 0.5), (cg.tensor(rows) * 2 + 0.5).T)
    same(vmap(lambda tree: tree["a"] * tree["b"][0])({"a": rows, "b": (rows.sum(1),)}), cg.tensor(rows) * cg.tensor(rows.sum(1))[:, None])


def test_the_other_arguments_are_passed_unchanged():
    seen = []

    def f(x, *others):
        seen.extend(others)
        return x.sum()

    data = np.ones(2)
    grad(f)(np.ones(3), data, "mode")
    vmap(f, (0, None, None))(np.ones((3, 2)), data, 2.0)
    assert seen == [data, "mode", data, 2.0]
    assert seen[0] is data


def test_a_number_beside_a_tensor_has_its_dtype():
    x = np.float64(0.5)
    for product in (
        vjp(cg.sin, x)[1](0.1)[0],
        jvp(cg.sin, (x,), (0.1,))[1],
        linearize(cg.sin, x)[1](0.1),
        functional.vjp(cg.sin, x, 0.1)[1],
        functional.jvp(cg.sin, (x,), (0.1,))[1],
    ):
        assert product.item() == pytest.approx(0.1 * np.cos(0.5), rel=1e-15)
    assert grad(cg.sin)(0.5).dtype == cg.get_default_dtype()


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_nothing_writes_into_an_array(transform):
    """Neither the function nor a write to its results changes the user's array."""
    x = np.array([0.5, 2.0])
    for result in tree_flatten(transform(x))[0]:
        result.zero_()
    assert x.tolist() == [0.5, 2.0]


def test_a_function_may_write_into_its_argument():
    x = np.array([0.5, 2.0])
    jvp(lambda x: x.mul_(2), (x,), (x,))
    vmap(lambda x: x.mul_(2))(x)
    assert x.tolist() == [0.5, 2.0]


def test_a_graph_does_not_change_with_the_array():
    """SciPy writes its next point into the same array."""
    x = np.array([0.5, 2.0])
    pull, push = vjp(lambda x: x * x, x)[1], linearize(lambda x: x * x, x)[1]
    x[:] = 7
    assert pull(np.ones(2))[0].tolist() == push(np.ones(2)).tolist() == [1, 4]


INTEGERS = [1, True, np.int64(1), np.arange(3), np.ones(2, bool)]
NO_NUMBERS = {
    "objects": np.array([1.0, 2.0], object),
    "records": np.ones(2, [("a", "f8")]),
    "text": np.array(["1"]),
    "times": np.datetime64("2020"),
}


@pytest.mark.cases("transform", TRANSFORMS)
@pytest.mark.cases("integer", INTEGERS, ids=repr)
def test_integers_have_no_derivative(transform, integer):
    """As of tensors of integers, in torch too; the message names the conversion."""
    with pytest.raises((RuntimeError, ValueError, TypeError), match=r"(?i)(floating.point|no derivative).*convert it"):
        TRANSFORMS[transform](integer)


@pytest.mark.cases("transform", TRANSFORMS)
@pytest.mark.cases("name", NO_NUMBERS)
def test_arrays_of_no_numbers(transform, name):
    with pytest.raises(TypeError, match=r"can't convert np.ndarray of type numpy\."):
        TRANSFORMS[transform](NO_NUMBERS[name])


def test_arrays_of_another_byte_order():
    with pytest.raises(ValueError, match="byte order"):
        grad(cube)(np.ones(2, ">f8" if np.little_endian else "<f8"))
