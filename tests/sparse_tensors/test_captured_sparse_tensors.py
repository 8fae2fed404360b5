"""Compiled functions of sparse tensors: a program holds for one pattern and any values, and has the bits of the function itself."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import func
from cygrad._core.levels.sparse import sparse_part
from sparse_samples import FORMS, MATRIX
from test_sparse_operators import CALLS, FLOATING, IN_PLACE

SQUARE = np.where(np.arange(36).reshape(6, 6) % 3, 0, np.linspace(-1, 2, 36).reshape(6, 6)) + 3 * np.eye(6)
V = cg.arange(6.0, dtype=cg.float64)


def with_values(matrix, number):
    """Return a sparse tensor with the pattern of another one, which requires gradients."""
    part = sparse_part(matrix)
    return part.around(part.inner.detach() * (1 + 0.37 * number) + 0.01 * number).requires_grad_()


def bits(*tensors):
    """Return the layouts, dtypes, sizes and bytes of tensors; of sparse ones the indices are among them."""
    plain = [tensor if tensor.layout is cg.strided else tensor.to_sparse_coo() for tensor in tensors]
    parts = [part for tensor in plain for part in ((tensor,) if tensor.layout is cg.strided else (tensor._indices(), tensor._values()))]
    return ([(tensor.layout, tensor.shape) for tensor in tensors],
            [(part.dtype, part.shape, part.detach().numpy().tobytes()) for part in parts])


def derived(function, *operands):
    """Return the result of a function, and the gradients of its square."""
    result = function(*operands)
    whole = result if result.layout is cg.strided else result.to_dense()
    return result, *cg.autograd.grad((whole * whole).sum(), operands)


# ----- Operators -----
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in CALLS | FLOATING if name not in ("any", "index_select")])
def test_operators_are_captured(name, form):
    """But for `any`, which has no gradient, and places that are values of a tensor: those are looked at."""
    matrix, call = FORMS[form](MATRIX), (CALLS | FLOATING)[name]
    compiled = cg.compile(lambda x: call(x, *MATRIX.shape), fullgraph=True)
    for number in range(3):
        x = with_values(matrix, number)
        assert bits(*derived(compiled, x)) == bits(*derived(lambda x: call(x, *MATRIX.shape), x))
    assert compiled.cache_info() == (2, 1, 0, 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_changes_of_a_new_tensor_in_place_are_captured(name, form):
    def function(x):
        y = x * 2
        IN_PLACE[name](y)
        return y * 3

    matrix, compiled = FORMS[form](SQUARE), cg.compile(function, fullgraph=True)
    for number in range(3):
        x = with_values(matrix, number)
        assert bits(*derived(compiled, x)) == bits(*derived(function, x))
    assert compiled.cache_info() == (2, 1, 0, 1)


@pytest.mark.parametrize("form", FORMS)
def test_derivatives_within_a_function(form):
    matrix = FORMS[form](SQUARE)
    functions = {
        "gradients of values": lambda x: cg.autograd.grad((x @ V).sin().sum(), x)[0],
        "gradients of a vector": lambda x: func.grad(lambda v: ((x @ v) ** 2).sum())(V),
        "examples": lambda x: func.vmap(lambda v: x @ v)(cg.eye(6, dtype=cg.float64)),
        "a tangent": lambda x: func.jvp(lambda v: (x @ v).sin(), (V,), (V * 2,))[1],
        "values of lines": lambda x: cg.sparse.softmax(x, 1),
        "a hessian": lambda x: func.hessian(lambda v: ((x @ v).sin() ** 2).sum())(V),
    }
    for name, function in functions.items():
        compiled = cg.compile(function, fullgraph=True)
        for number in range(3):
            x = with_values(matrix, number)
            assert bits(compiled(x)) == bits(function(x)), name
        assert compiled.cache_info().hits == 2


@pytest.mark.parametrize("form", FORMS)
def test_second_derivatives(form):
    def function(x, v):
        return (x @ v).sin()

    compiled = cg.compile(function, fullgraph=True)
    for number in range(3):
        x, v = with_values(FORMS[form](SQUARE), 1), (V + number).requires_grad_()
        seconds = []
        for each in compiled, function:
            of_x, of_v = cg.autograd.grad(each(x, v).square().sum(), (x, v), create_graph=True)
            seconds.append(bits(of_x, of_v, *cg.autograd.grad(of_x.to_dense().square().sum() + of_v.square().sum(), (x, v))))
        assert seconds[0] == seconds[1]


# ----- Tensors that code names -----
@pytest.mark.parametrize("form", FORMS)
def test_a_sparse_tensor_from_outside(form):
    """Other values are followed; another pattern is another capture."""
    matrix = FORMS[form](SQUARE)

    def function(v):
        return (matrix @ v).sin()

    compiled = cg.compile(function, fullgraph=True)
    for number in range(4):
        assert bits(compiled(V + number)) == bits(function(V + number))
        matrix = with_values(matrix, number).detach()
    assert compiled.cache_info() == (3, 1, 0, 1)
    matrix = FORMS[form](SQUARE.T * 2)
    assert bits(compiled(V), compiled(V + 1)) == bits(function(V), function(V + 1))
    assert compiled.cache_info() == (4, 2, 0, 2)


@pytest.mark.parametrize("form", FORMS)
def test_a_sparse_tensor_from_outside_within_transforms(form):
    matrix = FORMS[form](SQUARE)

    def loss(v):
        return ((matrix @ v).sin() ** 2).sum()

    functions = {
        "examples": lambda v: func.vmap(lambda v: matrix @ v)(cg.stack([v, v * 2])),
        "a tangent": lambda v: func.jvp(loss, (v,), (v * 2,))[1],
        "by columns": lambda v: func.jacfwd(lambda v: (matrix @ v).sin())(v),
        "a hessian": lambda v: func.hessian(loss)(v),
    }
    for name, function in functions.items():
        compiled = cg.compile(function, fullgraph=True)
        for number in range(3):
            assert bits(compiled(V + number)) == bits(function(V + number)), name
        assert compiled.cache_info() == (2, 1, 0, 1)


def test_gradients_of_a_sparse_tensor_from_outside():
    matrix = FORMS["sparse_csr"](SQUARE).requires_grad_()

    def function(v):
        return (matrix @ v).sin().sum()

    compiled = cg.compile(function, fullgraph=True)
    sums = []
    for each in compiled, function:
        matrix.grad = None
        for number in range(3):
            each(V + number).backward()
        sums.append(bits(matrix.grad))
    assert sums[0] == sums[1] and compiled.cache_info().hits == 2


def test_changed_indices_are_another_capture():
    matrix = cg.sparse_csr_tensor([0, 1, 2], [0, 1], [2.0, 3.0], (2, 2))
    compiled = cg.compile(lambda v: matrix.to_dense() @ v, fullgraph=True)
    compiled(cg.ones(2)), compiled(cg.ones(2))
    matrix.col_indices()[0] = 1
    compiled(cg.ones(2))
    assert compiled.cache_info() == (1, 2, 0, 2)


# ----- Patterns that a function makes -----
STARTS, PLACES, COORDINATES = cg.tensor([0, 2, 3, 4]), cg.tensor([0, 1, 1, 2]), cg.tensor([[0, 1, 2, 2], [1, 0, 2, 0]])
NAMED: dict = {}        # no sparse tensor lives between tests: some look whether one is left
MAKERS = {
    "csr": lambda v: cg.sparse_csr_tensor(STARTS, PLACES, v.sin(), (3, 3)),
    "csc": lambda v: cg.sparse_csc_tensor(STARTS, PLACES, v.sin(), (3, 3)),
    "coo": lambda v: cg.sparse_coo_tensor(COORDINATES, v.sin()),
    "coalesced": lambda v: cg.sparse_coo_tensor(COORDINATES, v.sin(), (3, 3)).coalesce(),
    "of a list": lambda v: cg.sparse_coo_tensor([[0, 1, 2, 2], [1, 0, 2, 0]], v.sin(), (3, 3)),
    "of another one's": lambda v: cg.sparse_csr_tensor(NAMED["matrix"].crow_indices(), NAMED["matrix"].col_indices(), v.sin(), (3, 3)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_patterns_of_index_tensors_from_outside(name, monkeypatch):
    monkeypatch.setitem(NAMED, "matrix", FORMS["sparse_csr"](np.array([[1.0, 1, 0], [0, 1, 0], [0, 0, 1]])))
    make, right = MAKERS[name], V[:3]
    for function in make, lambda v: make(v) @ right, lambda v: func.fori_loop(0, 30, lambda i, u: make(v) @ u.sin(), right):
        compiled = cg.compile(function, fullgraph=True)
        for number in range(3):
            v = (V[:4] + number).requires_grad_()
            assert bits(*derived(compiled, v)) == bits(*derived(function, v))
        assert compiled.cache_info() == (2, 1, 0, 1)


def test_other_index_tensors_are_other_captures():
    def function(coordinates, v):
        return cg.sparse_coo_tensor(coordinates, v, (3, 3)) @ V[:3]

    compiled, first, second = cg.compile(function, fullgraph=True), COORDINATES.clone(), COORDINATES.flip(0)
    for coordinates in first, second, first, second:
        assert bits(compiled(coordinates, V[:4])) == bits(function(coordinates, V[:4]))
    assert compiled.cache_info() == (2, 2, 0, 2)
    first[0, 0] = 2
    assert bits(compiled(first, V[:4])) == bits(function(first, V[:4]))
    assert compiled.cache_info() == (2, 3, 0, 3)
    first[0, 0] = 5
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        compiled(first, V[:4])


# ----- Loops -----
@pytest.mark.parametrize("form", FORMS)
def test_loops(form):
    matrix = with_values(FORMS[form](SQUARE * 0.1), 0)

    def in_python(v):
        for _ in range(80):
            v = (matrix @ v).tanh() + V
        return v

    def looped(v):
        return func.fori_loop(0, 80, lambda i, v: (matrix @ v).tanh() + V, v)

    v = V.clone().requires_grad_()
    expected = in_python(v)
    gradients = cg.autograd.grad(expected.sum(), (v, matrix))
    for function in looped, cg.compile(looped, fullgraph=True), cg.compile(in_python, fullgraph=True):
        for _ in range(3):
            result = function(v)
            assert bits(result, *cg.autograd.grad(result.sum(), (v, matrix))) == bits(expected, *gradients)


def test_a_loop_that_carries_a_sparse_tensor_runs_one_by_one():
    def in_python(matrix):
        v, sums = V, []
        for _ in range(80):
            matrix, v = matrix * 0.99, (matrix @ v).sin()
            sums.append(v.sum())
        return matrix, v, cg.stack(sums)

    def step(carry, _):
        matrix, v = carry
        v = (matrix @ v).sin()
        return (matrix * 0.99, v), v.sum()

    def scanned(matrix):
        (matrix, v), sums = func.scan(step, (matrix, V), length=80)
        return matrix, v, sums

    matrix = with_values(FORMS["sparse_csr"](SQUARE), 0)
    expected = in_python(matrix)
    gradients = cg.autograd.grad(expected[2].sum(), matrix)
    for function in scanned, cg.compile(scanned, fullgraph=True):
        for _ in range(3):
            results = function(matrix)
            assert bits(*results, *cg.autograd.grad(results[2].sum(), matrix)) == bits(*expected, *gradients)


def test_a_solver_runs_until_it_converges():
    """The method of conjugate gradients of Hestenes and Stiefel (1952)."""
    matrix = FORMS["sparse_csr"](SQUARE @ SQUARE.T)

    def step(state):
        x, r, p = state
        q = matrix @ p
        x, following = x + (r @ r) / (p @ q) * p, r - (r @ r) / (p @ q) * q
        return x, following, following + (following @ following) / (r @ r) * p

    def solve(b):
        return func.while_loop(lambda state: state[1] @ state[1] > 1e-20, step, (cg.zeros_like(b), b, b))[0]

    compiled = cg.compile(solve, fullgraph=True)
    for number in range(1, 4):
        b = V + number
        x = compiled(b)
        assert cg.allclose(matrix @ x, b) and bits(x) == bits(solve(b))


# ----- Functions that stay as they are -----
CHANGING = COORDINATES.clone()
CHOICE = cg.tensor([0, 2])


@pytest.mark.parametrize(("function", "reason"), [
    (lambda x: x, "a sparse tensor from outside, or twice"),
    (lambda x: NAMED["matrix"], "a sparse tensor from outside, or twice"),
    (lambda x: [x * 2] * 2, "a sparse tensor from outside, or twice"),
    (lambda x: x.mul_(2), "a sparse tensor from outside is changed in place"),
    (lambda x: x.index_select(0, CHOICE), "were given to Python or NumPy"),
    (lambda x: x.to_dense().to_sparse(), "were given to Python or NumPy"),
    (lambda x: x ** (x.sum() * 0 + 2), "a tensor is read outside of operators"),
    (lambda x: cg.sparse_coo_tensor(COORDINATES * 1, x.values()[:4], (6, 6)), "a tensor is read outside of operators"),
    (lambda x: cg.sparse_coo_tensor(COORDINATES[:, :4], x.values()[:4], (6, 6)), "neither an argument nor found by a name"),
    (lambda x: cg.sparse_coo_tensor(CHANGING.add_(0), x.values()[:4], (6, 6)), "indices that it has changed"),
])
def test_refusals(function, reason, monkeypatch):
    x = FORMS["sparse_csr"](SQUARE)
    monkeypatch.setitem(NAMED, "matrix", x)
    with pytest.warns(RuntimeWarning, match=reason):
        result = cg.compile(function)(x.clone())
    expected = function(x.clone())
    for ours, theirs in zip(*[each if isinstance(each, list) else [each] for each in (result, expected)], strict=True):
        assert bits(ours) == bits(theirs)


def test_a_sparse_tensor_within_a_transform_stays_as_it_is():
    matrix, compiled = FORMS["sparse_csr"](SQUARE), cg.compile(lambda x, v: x @ v)
    result = func.vmap(compiled, (None, 0))(matrix, cg.eye(6, dtype=cg.float64))
    assert cg.equal(result, matrix.to_dense().T) and compiled.cache_info().hits == 0
