"""cygrad.func: transformations in each other, in any order, with backward() and grad() around them."""

import itertools
import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from trees import Model, same, tensor

X = cg.arange(6, dtype=cg.float64).reshape(2, 3)
Y = tensor(0.5, 1, 2)
ONE, TWO = (cg.tensor(number, dtype=cg.float64) for number in (1.0, 2.0))
ONES = tensor(1, 1, 1)


def cubes(x):
    return (x**3).sum()


# ----- Perturbation confusion (Siskind and Pearlmutter, 2005): d/dx [x d/dy (x + y)] = 1, not 2 -----
def forward(f):
    """Return the derivative of a function of a number, by forward mode."""
    return lambda x: jvp(f, (x,), (cg.ones_like(x),))[1]


def backward(f):
    return lambda x: vjp(f, x)[1](cg.ones_like(x))[0]


def by_linearize(f):
    return lambda x: linearize(f, x)[1](cg.ones_like(x))


def by_engine(f):
    """Return the derivative by autograd.grad on a leaf, which ends the history: for innermost derivatives only."""

    def derivative(x):
        x = x.detach().requires_grad_()
        return cg.autograd.grad(f(x), x, create_graph=True)[0]

    return derivative


DERIVATIVES = [grad, forward, backward, jacrev, jacfwd, by_linearize]
pairs = pytest.mark.parametrize(("outer", "inner"), list(itertools.product(DERIVATIVES, repeat=2)),
                                ids=lambda derivative: derivative.__name__)


@pairs
def test_an_inner_derivative_does_not_see_the_outer_variable(outer, inner):
    same(outer(lambda x: x * inner(lambda y: x + y)(ONE))(ONE), 1)
    same(outer(lambda x: x * inner(lambda y: x * y)(ONE))(TWO), 4)
    same(outer(lambda x: inner(lambda y: x * y**2)(x))(TWO), 8)         # 2 x^2


@pairs
def test_second_derivatives(outer, inner):
    same(outer(inner(lambda x: x**4))(TWO), 48)
    same(outer(inner(lambda x: x.sin() * x.exp()))(ONE), 2 * np.cos(1) * np.exp(1))
    same(outer(inner(lambda x: x * 3))(ONE), 0)


@pytest.mark.cases("chain", list(itertools.product([grad, forward, jacrev], repeat=4)),
                         ids=lambda chain: "-".join(derivative.__name__ for derivative in chain))
def test_fourth_derivatives(chain):
    f = lambda x: x**5  # noqa: E731  wrapped below
    for derivative in chain:
        f = derivative(f)
    same(f(TWO), 240)


def test_an_outer_function_of_two_variables():
    """d/dx d/dy and d/dy d/dx of x^2 y^3, at levels that are in use at once."""
    for first, second in itertools.product([grad, forward], repeat=2):
        mixed = first(lambda x: second(lambda y: x**2 * y**3)(TWO))  # noqa: B023  called at once
        same(mixed(ONE), 2 * 1 * 3 * 4)


# ----- vmap with derivatives -----
def test_vmap_of_derivatives():
    rows = 3 * np.arange(6.0).reshape(2, 3) ** 2
    same(vmap(grad(cubes))(X), rows)
    same(vmap(grad_and_value(cubes))(X), (rows, [9, 216]))
    same(vmap(lambda x: jvp(cubes, (x,), (ONES,))[1])(X), rows.sum(1))
    same(vmap(lambda x: vjp(cubes, x)[1](TWO)[0])(X), 2 * rows)
    same(vmap(jacrev(lambda x: x**2))(X), [np.diag(row) for row in 2 * X.numpy()])
    same(vmap(jacfwd(lambda x: x**2))(X), [np.diag(row) for row in 2 * X.numpy()])
    same(vmap(hessian(cubes))(X), [np.diag(row) for row in 6 * X.numpy()])


def test_derivatives_of_vmap():
    rows = 3 * np.arange(6.0).reshape(2, 3) ** 2
    same(grad(lambda x: vmap(cubes)(x).sum())(X), rows)
    same(vjp(vmap(cubes), X)[1](tensor(1, 2))[0], rows * [[1], [2]])
    same(jvp(vmap(cubes), (X,), (cg.ones_like(X),))[1], rows.sum(1))
    expected = np.zeros((2, 2, 3))
    expected[[0, 1], [0, 1]] = rows
    same(jacrev(vmap(cubes))(X), expected)
    same(jacfwd(vmap(cubes))(X), expected)


def test_gradients_for_each_example():
    """The use of vmap(grad): a loss of shared parameters, for each example by itself."""
    parameters = {"model": Model(tensor(1, -1, 2), ONE)}
    targets = tensor(1, 2)

    def loss(p, x, target):
        return (p["model"].weight @ x + p["model"].bias - target) ** 2

    x, weight = X.numpy(), np.array([1, -1, 2])
    errors = 2 * (x @ weight + 1 - [1, 2])
    same(vmap(grad(loss), in_dims=(None, 0, 0))(parameters, X, targets), {"model": Model(errors[:, None] * x, errors)})


def test_ensembles():
    """One example, many parameters."""
    parameters = {"w": tensor(1, 2, 3), "b": tensor(0, 1, 0)}
    f = vmap(grad(lambda p, x: p["w"] ** 2 * x + p["b"]), in_dims=(0, None))
    same(f(parameters, TWO), {"w": [4, 8, 12], "b": [1, 1, 1]})


def test_jacobians_by_hand():
    """By vmap over a basis, which defines jacrev and jacfwd."""
    _, pull = vjp(lambda x: x**2, Y)
    same(vmap(pull)(cg.eye(3, dtype=cg.float64)), (np.diag([1, 2, 4]),))
    push = linearize(lambda x: x**2, Y)[1]
    same(vmap(push)(cg.eye(3, dtype=cg.float64)), np.diag([1, 2, 4]))
    same(vmap(lambda v: jvp(lambda x: x**2, (Y,), (v,))[1])(cg.eye(3, dtype=cg.float64)), np.diag([1, 2, 4]))


def test_hessian_products():
    v = tensor(1, 2, 3)
    expected = [3, 12, 36]
    same(jvp(grad(cubes), (Y,), (v,))[1], expected)
    same(grad(lambda x: jvp(cubes, (x,), (v,))[1])(Y), expected)
    same(vjp(grad(cubes), Y)[1](v)[0], expected)
    same(grad(lambda x: vjp(cubes, x)[1](ONE)[0] @ v)(Y), expected)
    same(vmap(lambda v: jvp(grad(cubes), (Y,), (v,))[1])(cg.stack([v, 2 * v])), [expected, [6, 24, 72]])


def test_a_derivative_of_captured_batches():
    """The inner function reads one variable of each level."""
    result = vmap(lambda x: vmap(lambda y: grad(lambda z: x * y * z**2)(TWO))(Y))(tensor(1, 2))
    same(result, 4 * np.outer([1, 2], [0.5, 1, 2]))
    same(vmap(lambda x: jvp(lambda z: x * z, (ONE,), (x,))[1])(tensor(1, 2, 3)), [1, 4, 9])


def test_vmap_in_grad_in_vmap():
    matrix = cg.arange(12, dtype=cg.float64).reshape(2, 2, 3)
    f = vmap(grad(lambda m: vmap(cubes)(m).prod()))
    rows = matrix.numpy()
    sums = (rows**3).sum(2)
    same(f(matrix), 3 * rows**2 * sums[:, ::-1, None])


# ----- Beside the tape -----
def test_results_are_differentiable_by_backward():
    x = X.clone().requires_grad_()
    vmap(grad(cubes))(x).sum().backward()
    same(x.grad, 6 * X.numpy())
    y = Y.clone().requires_grad_()
    (gradient,) = cg.autograd.grad(jvp(cubes, (y,), (ONES,))[1], y)
    same(gradient, [3, 6, 12])
    y = Y.clone().requires_grad_()
    (gradient,) = cg.autograd.grad(hessian(cubes)(y).sum(), y)
    same(gradient, [6, 6, 6])


@pytest.mark.parametrize("outer", DERIVATIVES, ids=lambda derivative: derivative.__name__)
def test_the_tape_inside(outer):
    """autograd.grad of an inner leaf: its result is a constant to the outer derivative, while the factor x is not."""
    same(outer(lambda x: x * by_engine(lambda y: y**3)(x))(TWO).detach(), 12)


def test_leaves_hold_no_gradient_afterwards():
    x = X.clone().requires_grad_()
    vmap(grad(cubes))(x)
    grad(lambda y: (x * y).sum())(Y)
    assert x.grad is None


def test_levels_end_with_the_call():
    """A tensor that leaves the function is an ordinary tensor, or an error when it is used; never a wrong derivative."""
    escaped = []
    grad(lambda x: (escaped.append(x * 2), x)[1])(ONE)
    assert (escaped[0].detach() + 1).item() == 3
    same(grad(lambda x: x * escaped[0].detach())(ONE), 2)
    same(grad(lambda x: x * 3)(ONE), 3)


def test_threads_have_levels_of_their_own():
    barrier, results = threading.Barrier(2), {}

    def work(name, power):
        def f(x):
            barrier.wait(timeout=10)                # both are inside
            y = x**power
            barrier.wait(timeout=10)
            return y

        results[name] = grad(f)(TWO).item()

    threads = [threading.Thread(target=work, args=(f"power {power}", power)) for power in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert results == {"power 2": 4, "power 3": 12}


def test_deep_nesting():
    f = lambda x: x.exp()  # noqa: E731  wrapped below
    for _ in range(8):
        f = grad(f)
    same(f(ONE), np.e)
    f = lambda x: x * 2  # noqa: E731
    for _ in range(8):
        f = vmap(f)
    same(f(cg.ones(*[1] * 7, 2, dtype=cg.float64)), np.full([1] * 7 + [2], 2))


# ----- Views that were made in no_grad -----
def view_without_history(x):
    with cg.no_grad():
        return x.view(3)


@pytest.mark.parametrize("transform", [
    lambda x: grad(lambda v: (v * view_without_history(x) * 1).sum())(cg.ones(3)),
    lambda x: grad(lambda v: (v * (view_without_history(x) * 1)).sum())(cg.ones(3)),
    lambda x: grad(lambda v: (v * v * v).sum())(view_without_history(x)),
    lambda x: vjp(lambda v: v * 1, view_without_history(x))[0],
    lambda x: vjp(lambda v: v * v, view_without_history(x))[1](cg.ones(3))[0],
    lambda x: vmap(lambda v: v * 1)(view_without_history(x)),
    lambda x: view_without_history(x) * 1,
])
def test_results_of_views_without_history_require_a_gradient_and_reach_no_leaf(transform):
    """The view of a leaf requires a gradient, and so do functions of it; where it was made in no_grad they lead nowhere."""
    x = cg.ones(3, requires_grad=True)
    result = transform(x)
    assert result.requires_grad
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        cg.autograd.grad(result.sum(), x)
