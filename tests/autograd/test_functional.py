"""autograd.functional: Jacobians, Hessians and products against closed forms, in every mode and along every path."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import Function, gradcheck
from cygrad.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

MODES = {
    "a backward for each row": {},
    "one batched backward": {"vectorize": True},
    "forward mode": {"vectorize": True, "strategy": "forward-mode"},
}
DOUBLE = cg.float64


def outer_strategy(mode):
    return {"outer_jacobian_strategy" if name == "strategy" else name: value for name, value in mode.items()}


@pytest.fixture(params=MODES)
def mode(request):
    return MODES[request.param]


class WithoutForwardMode(Function):
    """x cubed, without jvp and vmap."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


CUBES = {"an operator": lambda x: x**3, "a user Function": WithoutForwardMode.apply}


@pytest.fixture(params=CUBES)
def cube(request):
    return CUBES[request.param]


@pytest.fixture
def x():
    return cg.tensor([1.0, 2.0, -0.5], dtype=DOUBLE)


@pytest.fixture
def y():
    return cg.tensor([[0.5], [3.0]], dtype=DOUBLE)


def draw(*shape, dtype=np.float64, seed=0):
    return cg.from_numpy(np.asarray(np.random.default_rng(seed).uniform(-1, 1, shape), dtype))


def assert_close(result, expected, tolerance=1e-12):
    """Compare nested tuples of tensors, their shapes and dtypes too."""
    assert isinstance(result, tuple) == isinstance(expected, tuple)
    if isinstance(result, tuple):
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            assert_close(one, other, tolerance)
    else:
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        assert np.allclose(result.detach().numpy(), expected.detach().numpy(), tolerance, tolerance)


def two_by_two(x, y):
    return y * x, (x**2).sum()      # of shapes (2, 3) and ()


def jacobian_of_two_by_two(x, y):
    by_y = cg.einsum("ik,j->ijk", cg.eye(2, dtype=DOUBLE), x).view(2, 3, 2, 1)
    return (y.view(2, 1, 1) * cg.eye(3, dtype=DOUBLE), by_y), (2 * x, cg.zeros(2, 1, dtype=DOUBLE))


# ----- Jacobians -----
def test_the_jacobian_is_the_matrix_of_partial_derivatives(x, mode, cube):
    def function(x):
        return cube(x) * x.sum()

    expected = cg.diag(3 * x**2 * x.sum()) + (x**3).unsqueeze(1)
    assert_close(jacobian(function, x, **mode), expected)


def test_tuples_in_and_out_give_tuples(x, y, mode):
    expected = jacobian_of_two_by_two(x, y)
    assert_close(jacobian(two_by_two, (x, y), **mode), expected)
    assert_close(jacobian(lambda x, y: two_by_two(x, y)[0], (x, y), **mode), expected[0])
    assert_close(jacobian(lambda x: two_by_two(x, y), x, **mode), (expected[0][0], expected[1][0]))
    assert_close(jacobian(lambda x: two_by_two(x, y), (x,), **mode), ((expected[0][0],), (expected[1][0],)))
    assert_close(jacobian(lambda x, y: two_by_two(x, y)[:1], (x, y), **mode), expected[:1])


def test_independent_outputs_have_zero_jacobians(x, y, mode):
    def function(x, y):
        return x * 2, cg.ones(2, dtype=DOUBLE), x

    zeros = cg.zeros
    expected = ((2 * cg.eye(3, dtype=DOUBLE), zeros(3, 2, 1, dtype=DOUBLE)), (zeros(2, 3, dtype=DOUBLE), zeros(2, 2, 1, dtype=DOUBLE)),
                (cg.eye(3, dtype=DOUBLE), zeros(3, 2, 1, dtype=DOUBLE)))
    assert_close(jacobian(function, (x, y), **mode), expected)


def test_scalars_and_empty_tensors(mode):
    number, nothing = cg.tensor(3.0), cg.ones(0)
    assert_close(jacobian(lambda x: x**2, number, **mode), cg.tensor(6.0))
    assert_close(jacobian(lambda x: x.reshape(1, 1), number, **mode), cg.ones(1, 1))
    assert_close(jacobian(lambda x: x * cg.tensor([1.0, 2.0]), number, **mode), cg.tensor([1.0, 2.0]))
    assert_close(jacobian(lambda x: x * 2, nothing, **mode), cg.ones(0, 0))
    assert_close(jacobian(lambda x: x.sum(), nothing, **mode), cg.ones(0))
    assert_close(jacobian(lambda x, y: x * y, (number, nothing), **mode), (cg.ones(0), cg.ones(0, 0)))
    assert jacobian(lambda x: (), number, **mode) == ()
    assert jacobian(lambda: number, (), **mode) == ()
    assert jacobian(lambda: (number, number), (), **mode) == ((), ())


def test_the_dtype_is_the_inputs_and_in_forward_mode_the_outputs(mode):
    narrow, wide = cg.tensor([1.0, 2.0]), cg.tensor([3.0, 4.0], dtype=DOUBLE)
    by_narrow, by_wide = jacobian(lambda x, y: x * y, (narrow, wide), **mode)
    assert (by_narrow.tolist(), by_wide.tolist()) == ([[3, 0], [0, 4]], [[1, 0], [0, 2]])
    assert (by_narrow.dtype, by_wide.dtype) == (DOUBLE if "strategy" in mode else cg.float32, DOUBLE)
    whole = jacobian(lambda x: (x, x.argmax()), narrow, **mode)[1]
    assert whole.tolist() == [0, 0]
    assert whole.dtype == (cg.int64 if "strategy" in mode else cg.float32)


def test_a_view_of_the_input_and_the_input_itself(x, mode):
    identity = cg.eye(3, dtype=DOUBLE)
    assert_close(jacobian(lambda x: x, x, **mode), identity)
    assert_close(jacobian(lambda x: (x[1:], x.view(1, 3).T), x, **mode), (identity[1:], identity.view(3, 1, 3)))


def test_strided_inputs_and_outputs(mode):
    x = draw(3, 4).T
    assert_close(jacobian(lambda x: x.T[::2], x, **mode), cg.eye(12, dtype=DOUBLE).view(4, 3, 4, 3).transpose(0, 1)[::2])


def test_the_same_tensor_twice_and_captured(x, mode):
    x.requires_grad_()
    product = cg.diag(x.detach())
    by_first, by_second = jacobian(lambda first, second: first * second, (x, x), **mode)
    assert_close((by_first, by_second), (product, product))
    assert_close(jacobian(lambda argument: argument * x, x, **mode), product)


def test_modes_agree_on_in_place_changes(x, mode):
    def function(x):
        y = x.clone()
        y[1:] *= x[:-1]
        return y.exp_()

    assert_close(jacobian(function, x, **mode), jacobian(lambda x: cg.cat([x[:1], x[1:] * x[:-1]]).exp(), x))


OPERATORS = {
    "matmul": lambda x: x.view(2, 3) @ x.view(3, 2),
    "sum": lambda x: x.view(2, 3).tanh().sum(0),
    "softmax": lambda x: x.view(2, 3).softmax(1),
    "index": lambda x: x[cg.tensor([0, 2, 2])] * x[1],
    "cat": lambda x: cg.cat([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]]),
    "where": lambda x: cg.where(x > 0, x.exp(), x.sin()),
    "cumsum": lambda x: x.cumsum(0) / (2 + x[0]),
    "amax": lambda x: x.view(2, 3).amax(1),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_modes_agree(name, mode):
    x = draw(6)
    assert_close(jacobian(OPERATORS[name], x, **mode), jacobian(OPERATORS[name], x), 1e-10)


# ----- Hessians -----
def test_the_hessian_is_the_jacobian_of_the_gradient(x, y, mode, cube):
    def function(x, y):
        return cube(x).sum() * y.sum()

    mixed = (3 * x**2).view(3, 1, 1).expand(3, 2, 1)
    expected = (cg.diag(6 * x) * y.sum(), mixed), (mixed.permute(1, 2, 0), cg.zeros(2, 1, 2, 1, dtype=DOUBLE))
    mode = outer_strategy(mode)
    assert_close(hessian(function, (x, y), **mode), expected)
    assert_close(hessian(lambda x: function(x, y), x, **mode), expected[0][0])
    assert_close(hessian(lambda x: function(x, y), (x,), **mode), ((expected[0][0],),))


def test_the_hessian_of_one_element_in_any_shape(mode):
    mode = outer_strategy(mode)
    assert_close(hessian(lambda x: (x**3).view(1, 1), cg.tensor(2.0), **mode), cg.tensor(12.0))
    assert_close(hessian(lambda x: x**3, cg.tensor([2.0]), **mode), cg.tensor([[12.0]]))


def test_the_hessian_of_a_linear_or_constant_function_is_zero(x, mode):
    mode = outer_strategy(mode)
    zeros = cg.zeros(3, 3, dtype=DOUBLE)
    assert_close(hessian(lambda x: x.sum(), x, **mode), zeros)
    assert_close(hessian(lambda x: cg.ones(1), x, **mode), zeros)
    assert_close(hessian(lambda x, y: (x**2).sum(), (x, x), **mode), ((2 * cg.eye(3, dtype=DOUBLE), zeros), (zeros, zeros)))


# ----- Products -----
def vectors_like(*tensors):
    return tuple(draw(*tensor.shape, seed=number + 1) for number, tensor in enumerate(tensors))


def contracted(jacobians, vectors):
    """Return the products of Jacobians, by output and input, with vectors of the inputs."""
    return tuple(sum(cg.tensordot(block, vector, vector.ndim) for block, vector in zip(row, vectors, strict=True)) for row in jacobians)


def transposed(jacobians, outputs):
    return tuple(tuple(block.permute(*range(output.ndim, block.ndim), *range(output.ndim)) for block, output in
                       zip(column, outputs, strict=True)) for column in zip(*jacobians, strict=True))


def test_vjp_and_jvp_are_products_with_the_jacobian(x, y):
    jacobians, outputs = jacobian_of_two_by_two(x, y), two_by_two(x, y)
    vectors = vectors_like(*outputs)
    assert_close(vjp(two_by_two, (x, y), vectors), (outputs, contracted(transposed(jacobians, outputs), vectors)))
    vectors = vectors_like(x, y)
    assert_close(jvp(two_by_two, (x, y), vectors), (outputs, contracted(jacobians, vectors)))


def test_vhp_and_hvp_are_products_with_the_hessian(x, y, cube):
    def function(x, y):
        return (cube(x).sum() * y**2).sum()

    vectors = vectors_like(x, y)
    expected = (function(x, y), contracted(hessian(function, (x, y)), vectors))
    assert_close(vhp(function, (x, y), vectors), expected)
    assert_close(hvp(function, (x, y), vectors), expected)


def test_jvp_of_each_cube(x, cube):
    assert_close(jvp(cube, x, x), (x**3, 3 * x**3))


def test_products_have_the_structure_of_the_inputs_or_outputs(x, y):
    one = cg.ones(3, dtype=DOUBLE)
    assert_close(jvp(lambda x: (x, 2 * x), x, one), ((x, 2 * x), (one, 2 * one)))
    assert_close(jvp(lambda x: (x,), (x,), (one,)), ((x,), (one,)))
    assert_close(jvp(lambda x: x, (x,), one), (x, one))
    assert_close(vjp(lambda x: (x,), x, one), ((x,), one))
    assert_close(vjp(lambda x: x, (x,), (one,)), (x, (one,)))
    for product in vhp, hvp:
        assert_close(product(lambda x: (x**2).sum().view(1), (x,), one), ((x**2).sum().view(1), (2 * one,)))


def test_the_vector_of_one_element_is_one():
    three = cg.tensor(3.0)
    assert_close(vjp(lambda x: x**2, three), (cg.tensor(9.0), cg.tensor(6.0)))
    assert_close(vjp(lambda x: x.sum(), cg.ones(2)), (cg.tensor(2.0), cg.ones(2)))
    assert_close(vjp(lambda x: (x**2,), (three,)), ((cg.tensor(9.0),), (cg.tensor(6.0),)))
    assert_close(jvp(lambda x: (x**2, x * cg.ones(2)), three), ((cg.tensor(9.0), cg.full((2,), 3.0)), (cg.tensor(6.0), cg.ones(2))))
    for product in vhp, hvp:
        assert_close(product(lambda x: x**3, cg.tensor([[2.0]])), (cg.tensor([[8.0]]), cg.tensor([[12.0]])))


def test_products_of_independent_functions_are_zero(x, y):
    def constant(x, y):
        return cg.ones(())

    v, zeros = (x, y), (cg.zeros_like(x), cg.zeros_like(y))
    assert_close(vjp(constant, (x, y)), (cg.ones(()), zeros))
    assert_close(jvp(constant, (x, y), v), (cg.ones(()), cg.zeros(())))
    assert_close(jvp(lambda x, y: (cg.ones(2), x), (x, y), v), ((cg.ones(2), x), (cg.zeros(2), x)))
    for product in vhp, hvp:
        assert_close(product(constant, (x, y), v), (cg.ones(()), zeros))
        assert_close(product(lambda x, y: x.sum(), (x, y), v), (x.sum(), zeros))
        assert_close(product(lambda x, y: (x**2).sum(), (x, y), v), ((x**2).sum(), (2 * x, zeros[1])))


def test_an_integer_output_is_ignored_by_vjp():
    x = cg.tensor([1.0, 3.0])
    outputs, product = vjp(lambda x: (2 * x, x.argmax()), x, (cg.ones(2), cg.tensor(5)))
    assert (outputs[1].item(), product.tolist()) == (1, [2, 2])


def test_empty_products():
    nothing = cg.ones(0)
    assert_close(jvp(lambda x: x.sum(), nothing, nothing), (cg.tensor(0.0), cg.tensor(0.0)))
    assert_close(vjp(lambda x: x.sum(), nothing), (cg.tensor(0.0), nothing))
    assert_close(vjp(lambda x: (), nothing, ()), ((), nothing))
    assert_close(vjp(lambda: nothing, (), nothing), (nothing, ()))
    assert_close(jvp(lambda: nothing, (), ()), (nothing, nothing))
    for product in vhp, hvp:
        assert_close(product(lambda x: (x**2).sum(), nothing, nothing), (cg.tensor(0.0), nothing))


def test_the_vector_may_be_of_another_dtype(x):
    v = cg.tensor([1, 2, 3])
    expected = v.double()
    assert_close(vjp(lambda x: 2 * x, x, v)[1], 2 * expected)
    assert_close(jvp(lambda x: 2 * x, x, v.float())[1], 2 * expected)
    for product in vhp, hvp:
        assert_close(product(lambda x: (x**2).sum(), x, v)[1], 2 * expected)
    assert_close(vjp(lambda x: x, x, v)[1], expected)
    assert_close(jvp(lambda x: x, x, v)[1], expected)
    narrow, wide = cg.ones(2), cg.full((2,), 3.0, dtype=DOUBLE)
    assert_close(jvp(lambda x, y: (x * y, x), (narrow, wide), (narrow, narrow))[1], (cg.full((2,), 4.0, dtype=DOUBLE), narrow))
    assert_close(vjp(lambda x, y: x * y, (narrow, wide), narrow)[1], (cg.full((2,), 3.0), cg.ones(2, dtype=DOUBLE)))


# ----- Differentiating again -----
SMOOTH = {"an operator": lambda x: (x**3 * x.sum()).sum(), "a user Function": lambda x: (WithoutForwardMode.apply(x) * x.sum()).sum()}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("vectorize", [False, True])
def test_with_create_graph_all_results_are_differentiable(name, vectorize, x, y):
    function, v = SMOOTH[name], vectors_like(x)[0].requires_grad_()
    x.requires_grad_()
    assert gradcheck(lambda x: jacobian(lambda x: x * function(x), x, create_graph=True, vectorize=vectorize), x)
    assert gradcheck(lambda x: hessian(function, x, create_graph=True, vectorize=vectorize), x)
    for product in jvp, vjp:
        assert gradcheck(lambda x, v, product=product: product(lambda x: x * function(x), x, v, create_graph=True), (x, v))
    for product in hvp, vhp:
        assert gradcheck(lambda x, v, product=product: product(function, x, v, create_graph=True), (x, v))


def test_a_jacobian_in_forward_mode_keeps_the_history_of_its_inputs(x):
    forward_mode = MODES["forward mode"]
    assert not jacobian(CUBES["an operator"], x, **forward_mode).requires_grad
    x.requires_grad_()
    assert gradcheck(lambda x: jacobian(CUBES["an operator"], x, **forward_mode), x)
    assert gradcheck(lambda x: jacobian(CUBES["a user Function"], x, **forward_mode), x)
    with cg.no_grad():
        assert not jacobian(CUBES["an operator"], x, **forward_mode).requires_grad


@pytest.mark.parametrize("name", CUBES)
def test_forward_mode_keeps_the_history_of_captured_tensors_and_adds_none(name, x):
    cube, weight = CUBES[name], cg.tensor([2.0, 3.0, 4.0], dtype=DOUBLE, requires_grad=True)
    forward_mode = MODES["forward mode"]

    def weighted(x):
        return cube(x) * weight**2

    def total(x):
        return weighted(x).sum()

    assert gradcheck(lambda _: jacobian(weighted, x, **forward_mode), weight)
    assert gradcheck(lambda _: hessian(total, x, **outer_strategy(forward_mode)), weight)
    with cg.no_grad():
        assert not jacobian(weighted, x, **forward_mode).requires_grad
        assert not hessian(total, x, **outer_strategy(forward_mode)).requires_grad
    weight.requires_grad_(False)
    assert not jacobian(weighted, x, **forward_mode).requires_grad
    assert not hessian(total, x, **outer_strategy(forward_mode)).requires_grad


RESULTS = {
    "jacobian": lambda x, **keywords: (jacobian(lambda x: x**3, x, **keywords),),
    "jacobian, batched": lambda x, **keywords: (jacobian(lambda x: x**3, x, vectorize=True, **keywords),),
    "hessian": lambda x, **keywords: (hessian(lambda x: (x**3).sum(), x, **keywords),),
    "hessian, batched": lambda x, **keywords: (hessian(lambda x: (x**3).sum(), x, vectorize=True, **keywords),),
    "vjp": lambda x, **keywords: vjp(lambda x: x**3, x, x, **keywords),
    "jvp": lambda x, **keywords: jvp(lambda x: x**3, x, x, **keywords),
    "vhp": lambda x, **keywords: vhp(lambda x: (x**3).sum(), x, x, **keywords),
    "hvp": lambda x, **keywords: hvp(lambda x: (x**3).sum(), x, x, **keywords),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_results_have_a_history_with_create_graph_only(name, requires_grad, x):
    """Also where the input needs no gradient, as in torch: the function's argument requires one."""
    x.requires_grad_(requires_grad)
    assert [result.requires_grad for result in RESULTS[name](x)] == [False] * len(RESULTS[name](x))
    with cg.no_grad():
        assert [result.requires_grad for result in RESULTS[name](x, create_graph=True)] == [True] * len(RESULTS[name](x))


def test_without_create_graph_no_graph_is_kept(x):
    """The results are detached, so the tensors that the function saved are freed; a captured parameter gets no gradient either."""
    weight = cg.ones(3, dtype=DOUBLE, requires_grad=True)
    output, product = vjp(lambda x: x * weight, x, x)
    assert (output.grad_fn, product.grad_fn, weight.grad) == (None, None, None)


def test_gradients_reach_captured_tensors(x):
    weight = cg.tensor([2.0, 3.0, 4.0], dtype=DOUBLE, requires_grad=True)
    jacobian(lambda x: weight**2 * x, x, create_graph=True).sum().backward()
    assert weight.grad.tolist() == [4, 6, 8]


def test_jacobians_and_products_nest(x, mode):
    """A Jacobian of a Jacobian, of a product with one, and in the function of one."""
    cubes = cg.zeros(3, 3, 3, dtype=DOUBLE)
    for number, value in enumerate(6 * x):
        cubes[number, number, number] = value
    assert_close(jacobian(lambda x: jacobian(lambda x: x**3, x, create_graph=True), x, **mode), cubes)
    assert_close(jacobian(lambda x: jvp(lambda x: x**3, x, cg.ones_like(x), create_graph=True)[1], x, **mode), cg.diag(6 * x))
    assert_close(jacobian(lambda x: hvp(lambda x: (x**3).sum(), x, x, create_graph=True)[1], x, **mode), cg.diag(12 * x))
    assert_close(jvp(lambda x: jvp(lambda x: x**3, x, x.detach(), create_graph=True)[1], x, x)[1], 6 * x**3)


def test_the_function_may_differentiate_itself(x, mode):
    """Its argument requires a gradient, as in torch."""
    def slope(x):
        (gradient,) = autograd.grad((x**3).sum(), x, create_graph=True)
        return gradient

    assert_close(jacobian(slope, x.requires_grad_(), **mode).detach(), cg.diag(6 * x.detach()))
    assert_close(jvp(slope, x, x)[1], 6 * x.detach() ** 2)
    assert_close(hvp(lambda x: (slope(x) * x).sum(), x, x)[1], 18 * x.detach() ** 2)


def test_all_under_no_grad(x, mode, cube):
    with cg.no_grad():
        assert_close(jacobian(cube, x, **mode), cg.diag(3 * x**2))
        assert_close(hessian(lambda x: cube(x).sum(), x, **outer_strategy(mode)), cg.diag(6 * x))
        assert_close(jvp(cube, x, x)[1], 3 * x**3)
        assert_close(vjp(cube, x, x)[1], 3 * x**3)
        for product in vhp, hvp:
            assert_close(product(lambda x: cube(x).sum(), x, x)[1], 6 * x**2)
