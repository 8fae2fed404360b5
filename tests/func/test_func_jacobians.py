"""cygrad.func: jacrev, jacfwd and hessian against closed forms."""

from collections import OrderedDict

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import hessian, jacfwd, jacrev
from trees import Model, same, tensor

X, Y, S = tensor(1, 2), tensor(4, 5), cg.tensor(2.0, dtype=cg.float64)
diag, zeros = np.diag, np.zeros
both = pytest.mark.parametrize("jacobian", [jacrev, jacfwd])


# ----- Shapes -----
SHAPES = [((), ()), ((), (3,)), ((3,), ()), ((2,), (3,)), ((2, 3), (4,)), ((3,), (2, 2)), ((1, 2), (3, 1)), ((2, 0), (3,)), ((2,), (0,))]


@both
@pytest.mark.parametrize(("inputs", "outputs"), SHAPES)
def test_a_linear_map_is_its_own_jacobian(jacobian, inputs, outputs):
    """A Jacobian has the dims of the output, then the dims of the input."""
    stream = np.random.default_rng(0)
    matrix = stream.standard_normal((int(np.prod(outputs)), int(np.prod(inputs))))
    x = cg.tensor(stream.standard_normal(inputs), dtype=cg.float64)
    result = jacobian(lambda x: (cg.tensor(matrix) @ x.reshape(-1)).reshape(outputs))(x)
    same(result, matrix.reshape((*outputs, *inputs)))
    assert not result.requires_grad


@both
def test_a_nonlinear_map(jacobian):
    """Polar coordinates."""
    r, phi = 2.0, 0.5
    expected = [[np.cos(phi), -r * np.sin(phi)], [np.sin(phi), r * np.cos(phi)]]
    same(jacobian(lambda p: cg.stack([p[0] * cg.cos(p[1]), p[0] * cg.sin(p[1])]))(tensor(r, phi)), expected)


@both
def test_constants_and_arguments_without_use(jacobian):
    same(jacobian(lambda x: tensor(1, 2, 3))(X), zeros((3, 2)))
    same(jacobian(lambda x, y: x * 1, argnums=1)(X, tensor(1, 2, 3)), zeros((2, 3)))
    same(jacobian(lambda x: x)(X), np.eye(2))


# ----- Arguments and trees -----
BY_X, BY_Y = diag([4, 5]), diag([1, 2])


@both
@pytest.mark.parametrize(("argnums", "expected"), [
    (0, BY_X), (1, BY_Y), ((0,), (BY_X,)), ((0, 1), (BY_X, BY_Y)), ((1, 0), (BY_Y, BY_X)),
], ids=["0", "1", "(0,)", "(0, 1)", "(1, 0)"])
def test_argnums(jacobian, argnums, expected):
    same(jacobian(lambda x, y: x * y, argnums=argnums)(X, Y), expected)
    same(jacobian(lambda x, y: x * y, argnums)(X, Y), expected)


@both
def test_arguments_counted_from_the_last(jacobian):
    """torch.func.jacfwd gives zeros here."""
    same(jacobian(lambda x, y: x * y, argnums=-1)(X, Y), BY_Y)
    same(jacobian(lambda x, y: x * y, argnums=(-1, -2))(X, Y), (BY_Y, BY_X))


@both
@pytest.mark.parametrize(("argnums", "message"), [
    (2, "Got argnum=2, but only 2 positional inputs"),
    ((), "argnums must be non-empty"),
    ((1, 1), r"argnums elements must be unique, got \(1, 1\)"),
    ("x", r"argnums must be int or Tuple\[int, ...\], got: <class 'str'>"),
])
def test_argnums_that_are_refused(jacobian, argnums, message):
    with pytest.raises(RuntimeError, match=message):
        jacobian(lambda x, y: x * y, argnums=argnums)(X, Y)


@both
def test_a_tree_of_results_holds_trees_of_arguments(jacobian):
    def f(p):
        return {"product": p["a"] * p["b"][0], "sums": [p["a"].sum(), (p["b"][0] ** 2).sum()]}

    expected = {"product": {"a": BY_X, "b": [BY_Y]},
                "sums": [{"a": [1, 1], "b": [zeros(2)]}, {"a": zeros(2), "b": [[8, 10]]}]}
    same(jacobian(f)({"a": X, "b": [Y]}), expected)


@both
def test_tuples_of_results_and_of_arguments(jacobian):
    same(jacobian(lambda x, y: (x * y, x * 2), argnums=(0, 1))(X, Y), ((BY_X, BY_Y), (diag([2, 2]), zeros((2, 2)))))
    same(jacobian(lambda x: (x * 2,))(X), (diag([2, 2]),))


@both
def test_dataclasses(jacobian):
    result = jacobian(lambda p: OrderedDict(z=p.weight * p.bias))(Model(X, Y))
    same(result, OrderedDict(z=Model(BY_X, BY_Y)))
    same(jacobian(lambda x: Model(x * 2, x.sum()))(X), Model(diag([2, 2]), [1, 1]))


@both
def test_aux(jacobian):
    same(jacobian(lambda x: (x**2, {"z": x + 1}), has_aux=True)(X), (diag([2, 4]), {"z": [2, 3]}))
    with pytest.raises(RuntimeError, match=r"output of function f should be a tuple: \(output, aux\) if has_aux is True"):
        jacobian(lambda x: x**2, has_aux=True)(X)


@both
def test_results_that_are_no_tensors(jacobian):
    for f in (lambda x: 2.0, lambda x: (x, 2.0), lambda x: [x, None]):
        with pytest.raises(RuntimeError, match=r"expected f\(\*primals\) to return only tensors, got unsupported type"):
            jacobian(f)(X)


@pytest.mark.parametrize("f", [lambda x: x.long(), lambda x: (x, x.argmax())])
def test_integers_have_no_jacobian_in_reverse_mode(f):
    with pytest.raises(RuntimeError, match="All outputs of f must be floating-point or complex Tensors, got Tensor with dtype"):
        jacrev(f)(X)


@both
def test_a_jacobian_keeps_the_history_from_outside(jacobian):
    x = X.clone().requires_grad_()
    result = jacobian(lambda x: x**3)(x)
    same(cg.autograd.grad(result.sum(), x)[0], [6, 12])
    y = Y.clone().requires_grad_()
    result = jacobian(lambda x: x**2 * y)(X)
    same(cg.autograd.grad(result.sum(), y)[0], [2, 4])


# ----- Chunks of rows -----
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4, 100, None])
def test_chunks(chunk_size):
    result = jacrev(lambda x, y: (x * y, (x * y).sum()), argnums=(0, 1), chunk_size=chunk_size)(X, Y)
    same(result, ((BY_X, BY_Y), ([4, 5], [1, 2])))


@pytest.mark.parametrize("chunk_size", [0, -1])
def test_chunks_that_are_refused(chunk_size):
    with pytest.raises(ValueError, match="jacrev: `chunk_size` should be greater than 0"):
        jacrev(lambda x: x, chunk_size=chunk_size)(X)


# ----- hessian -----
def test_hessian_of_numbers_and_vectors():
    same(hessian(lambda x: (x**3).sum())(X), diag([6, 12]))
    same(hessian(lambda s: s**3)(S), 12)
    same(hessian(lambda x: x.sum())(X), zeros((2, 2)))
    same(hessian(lambda x: S * 1)(X), zeros((2, 2)))
    expected = zeros((2, 2, 2))
    expected[0, 0, 0], expected[1, 1, 1] = 6, 12
    same(hessian(lambda x: x**3)(X), expected)


def test_hessian_of_a_quadratic_form():
    matrix = np.random.default_rng(1).standard_normal((3, 3))
    same(hessian(lambda x: x @ (cg.tensor(matrix) @ x))(tensor(1, 2, 3)), matrix + matrix.T)


def test_hessian_of_several_arguments():
    def f(x, y):
        return (x * y**2).sum()

    mixed, last = diag([8, 10]), diag([2, 4])
    same(hessian(f, argnums=(0, 1))(X, Y), ((zeros((2, 2)), mixed), (mixed, last)))
    same(hessian(f, argnums=1)(X, Y), last)
    same(hessian(f, argnums=(1,))(X, Y), ((last,),))
    same(hessian(lambda p: f(p["a"], p["b"]))({"a": X, "b": Y}), {"a": {"a": zeros((2, 2)), "b": mixed}, "b": {"a": mixed, "b": last}})
    same(hessian(lambda p: f(p.weight, p.bias))(Model(X, Y)), Model(Model(zeros((2, 2)), mixed), Model(mixed, last)))


def test_hessian_of_logsumexp():
    """diag(p) - p p', with p = softmax(x)."""
    x = np.array([0.5, -1.0, 2.0])
    p = np.exp(x) / np.exp(x).sum()
    same(hessian(lambda x: x.logsumexp(0))(cg.tensor(x)), np.diag(p) - np.outer(p, p))


@pytest.mark.parametrize("inner", [jacrev, jacfwd])
@pytest.mark.parametrize("outer", [jacrev, jacfwd])
def test_second_derivatives_by_any_two_modes(outer, inner):
    x = np.array([0.5, -1.0, 2.0])
    result = outer(inner(lambda x: (x.sin() * x.exp()).sum() + x[0] * x[1] * x[2]))(cg.tensor(x))
    expected = np.diag(2 * np.cos(x) * np.exp(x))
    expected += [[0, x[2], x[1]], [x[2], 0, x[0]], [x[1], x[0], 0]]
    same(result, expected)


@pytest.mark.parametrize("modes", [(jacrev, jacfwd, jacrev), (jacfwd, jacrev, jacfwd), (jacfwd, jacfwd, jacfwd), (jacrev, jacrev, jacrev)])
def test_third_derivatives(modes):
    f = lambda x: x**4  # noqa: E731  wrapped below
    for mode in modes:
        f = mode(f)
    expected = zeros((2, 2, 2, 2))
    expected[0, 0, 0, 0], expected[1, 1, 1, 1] = 24, 48
    same(f(X), expected)
