"""Patterns of derivatives, which never miss an entry; colourings; Jacobians and Hessians from products."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import coloured, hessian, hessian_sparsity, jacrev, sparse_hessian, sparse_jacobian, sparsity

scipy_sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")

F = cg.nn.functional
MATRIX = scipy_sparse.csr_array(np.random.default_rng(1).standard_normal((6, 6)) * (np.random.default_rng(2).random((6, 6)) < 0.3))
WEIGHT = cg.randn(6, 4, dtype=cg.float64)
DOUBLE = {"dtype": cg.float64}


def written(x):
    y = cg.zeros(6, **DOUBLE)
    y[1:3] = x[:2] * 2
    return y


class Square(cg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g


# By name: a function of six numbers, and the number of entries where the pattern is exact; None: it may be larger than the Jacobian's.
FUNCTIONS = {
    "differences": (lambda x: x[1:] - x[:-1], 10),
    "roll": (lambda x: x * x.roll(1), 12),
    "both branches": (lambda x: cg.where(x > 0, x, x.flip(0)), 12),
    "times zero": (lambda x: x * 0, 6),
    "sum": (lambda x: x.sum(), 6),
    "sums of rows": (lambda x: x.reshape(2, 3).sum(1), 6),
    "mean": (lambda x: x.reshape(3, 2).mean(0), 6),
    "cumsum": (lambda x: x.cumsum(0), None),
    "sort": (lambda x: x.sort().values, None),
    "matrix times": (lambda x: WEIGHT.t() @ x, 24),
    "product of matrices": (lambda x: (x.reshape(2, 3) @ x.reshape(3, 2)).reshape(-1), None),
    "cat": (lambda x: cg.cat([x[:2].sin(), x[4:]]), 4),
    "stack": (lambda x: cg.stack([x[0], x[1] * x[2]]), 3),
    "pad": (lambda x: F.pad(x, (1, 1)), 6),
    "written": (written, 2),
    "SciPy's matrix": (lambda x: MATRIX @ x, MATRIX.nnz),
    "a sparse tensor": (lambda x: cg.sparse.from_scipy(MATRIX) @ x, MATRIX.nnz),
    "values": (lambda x: cg.sparse_coo_tensor(cg.tensor([[0, 0, 1, 2, 2, 2], [0, 1, 1, 0, 1, 2]]), x, (3, 3)) @ cg.ones(3, **DOUBLE), 6),
    "index_add": (lambda x: cg.zeros(3, **DOUBLE).index_add(0, cg.tensor([0, 0, 1, 1, 2, 2]), x.exp()), 6),
    "gather": (lambda x: x[cg.tensor([3, 3, 0])], 3),
    "softmax": (lambda x: x.reshape(2, 3).softmax(1), 18),
    "largest": (lambda x: x.reshape(2, 3).amax(0), None),
    "norm": (lambda x: x.reshape(3, 2).norm(dim=1), 6),
    "masked": (lambda x: x.masked_fill(x > 0, 0), 6),
    "clamp": (lambda x: x.clamp(0, 1), 6),
    "convolution": (lambda x: F.conv1d(x[None, None], cg.ones(1, 1, 3, **DOUBLE))[0, 0], None),
    "outer": (lambda x: cg.outer(x, x[:2]).reshape(-1), None),
    "in place": (lambda x: (x * 1).add_(x.flip(0)), 12),
    "filled": (lambda x: (x * 1).fill_(3.0), 0),
    "constant": (lambda x: cg.ones(3, **DOUBLE), 0),
    "detached": (lambda x: x.detach() * x[0], 6),
    "converted": (lambda x: x.float().double(), 6),
    "a user's Function": (lambda x: Square.apply(x), None),
    "solve": (lambda x: cg.linalg.solve(WEIGHT.T @ WEIGHT, x[:4]), None),
    "transform": (lambda x: cg.fft.rfft(x).abs(), None),
    "quantile": (lambda x: x.quantile(0.3), None),
}


def jacobian_pattern(f, shape, seed=0):
    """Return where the Jacobian differs from 0 at some of several points."""
    total = 0
    for number in range(4):
        x = cg.randn(6, generator=None, rng=seed + number, **DOUBLE)
        total = total + (cg.autograd.functional.jacobian(f, x).numpy().reshape(shape) != 0)
    return total > 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_patterns(name):
    f, count = FUNCTIONS[name]
    pattern = sparsity(f, cg.randn(6, rng=5, **DOUBLE)).toarray()
    assert pattern.dtype == bool and pattern.shape == (f(cg.ones(6, **DOUBLE)).numel(), 6)
    assert not (jacobian_pattern(f, pattern.shape) & ~pattern).any()
    assert count is None or pattern.sum() == count


STEPS = [
    lambda x, k: x.roll(k), lambda x, k: x * x.flip(0), lambda x, k: x.sin() + x.roll(k + 1), lambda x, k: cg.cat([x[k:], x[:k]]),
    lambda x, k: x + x[k], lambda x, k: F.pad(x, (1, 1))[1:-1] * 2, lambda x, k: cg.where(x > 0, x, -x.roll(k)),
    lambda x, k: x.reshape(2, 3).t().reshape(-1), lambda x, k: x * (cg.arange(6) % 2), lambda x, k: MATRIX @ x,
    lambda x, k: x.reshape(3, 2).cumsum(k % 2).reshape(-1), lambda x, k: x.reshape(2, 3).amax(0).repeat(2), lambda x, k: x.tanh(),
    lambda x, k: x - x.mean(), lambda x, k: x.index_add(0, cg.tensor([k, 0]), x[:2]), lambda x, k: x.sort().values,
    lambda x, k: x.reshape(2, 3).softmax(k % 2).reshape(-1), lambda x, k: x.masked_fill(x > k, 0.5), lambda x, k: x.detach() + x,
]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_miss_no_entry(seed):
    rng = np.random.default_rng(seed)
    steps = [(STEPS[rng.integers(len(STEPS))], int(rng.integers(1, 5))) for _ in range(rng.integers(1, 6))]

    def program(x):
        for step, k in steps:
            x = step(x, k)
        return x

    pattern = sparsity(program, cg.randn(6, rng=seed, **DOUBLE)).toarray()
    assert not (jacobian_pattern(program, pattern.shape, seed) & ~pattern).any()


@pytest.mark.parametrize("seed", range(40))
def test_hessians_of_random_programs_miss_no_entry(seed):
    rng = np.random.default_rng(seed)
    steps = [(STEPS[rng.integers(len(STEPS))], int(rng.integers(1, 5))) for _ in range(rng.integers(1, 4))]

    def energy(x):
        for step, k in steps:
            x = step(x, k)
        return x.square().sum()

    pattern = hessian_sparsity(energy, cg.randn(6, rng=seed, **DOUBLE)).toarray()
    for number in range(3):
        assert not ((hessian(energy)(cg.randn(6, rng=number, **DOUBLE)).numpy() != 0) & ~pattern).any()


# ----- Colourings -----
@pytest.mark.parametrize("seed", range(10))
def test_colours(seed):
    rng = np.random.default_rng(seed)
    pattern = scipy_sparse.csr_array(rng.random((9, 7)) < 0.25)
    colouring = coloured(pattern)
    lines = pattern.T if colouring.by_rows else pattern
    for colour in range(colouring.colours):
        assert (lines.toarray()[:, colouring.colour_of == colour].sum(1) <= 1).all()
    values = cg.randn(9, 7, rng=seed, **DOUBLE) * cg.tensor(pattern.toarray())
    assert cg.allclose(sparse_jacobian(lambda x: values @ x, cg.ones(7, **DOUBLE), colouring).to_dense(), values)


@pytest.mark.parametrize("seed", range(10))
def test_colours_of_symmetric_patterns(seed):
    half = np.triu(np.random.default_rng(seed).random((8, 8)) < 0.25)
    pattern = scipy_sparse.csr_array(half | half.T | np.eye(8, dtype=bool))
    colouring = coloured(pattern, symmetric=True)
    assert colouring.colours <= coloured(pattern).colours or colouring.colours <= 8
    values = cg.randn(8, 8, rng=seed, **DOUBLE) * cg.tensor(half)
    matrix = values + values.t()
    assert cg.allclose(sparse_hessian(lambda x: x @ matrix @ x / 2, cg.ones(8, **DOUBLE), colouring).to_dense(), matrix)


# ----- Derivatives -----
def stencil(u):
    wide = F.pad(u, (1, 1))
    return wide[2:] - 2 * wide[1:-1] + wide[:-2] + u ** 3


def laplacian(u):
    wide = F.pad(u, (1, 1, 1, 1))
    return wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2] - 4 * u + u ** 3


JACOBIANS = {
    "stencil": (stencil, (9,), 3),
    "in two dims": (laplacian, (6, 5), 8),
    "a dense row": (lambda x: cg.stack([x.sum() * x[0], x[1] * x[2]]), (6,), 2),
    "a dense column": (lambda x: x * x[0], (6,), 2),
    "linear": (lambda x: MATRIX @ x, (6,), 6),
    "nothing": (lambda x: cg.zeros(3, **DOUBLE), (4,), 0),
    "a scalar": (lambda x: x.square().sum(), (5,), 1),
}


@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians(name):
    f, shape, most = JACOBIANS[name]
    x = cg.randn(*shape, **DOUBLE)
    colouring = coloured(sparsity(f, x))
    size = f(x).numel()
    assert colouring.colours <= most
    for pattern in (None, colouring, colouring.pattern):
        result = sparse_jacobian(f, x, pattern)
        assert result.is_sparse_csr and cg.allclose(result.to_dense(), jacrev(f)(x).reshape(size, x.numel()))
    assert cg.allclose(sparse_jacobian(f, x + 1, colouring).to_dense(), jacrev(f)(x + 1).reshape(size, x.numel()))


HESSIANS = {
    "chain": (lambda x: (x[1:] * x[:-1]).square().sum(), (7,), 3),
    "arrow": (lambda x: (x[0] * x[1:].square()).sum(), (7,), 2),
    "grid": (lambda u: (u[1:] - u[:-1]).pow(4).sum() + (u[:, 1:] * u[:, :-1]).sum(), (5, 4), 7),
    "separable": (lambda x: x.exp().sum() + 3 * x.sum(), (6,), 1),
    "linear": (lambda x: (WEIGHT[:, 0] * x).sum(), (6,), 0),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians(name):
    f, shape, most = HESSIANS[name]
    x = cg.randn(*shape, **DOUBLE)
    colouring = coloured(hessian_sparsity(f, x), symmetric=True)
    assert colouring.colours <= most
    for pattern in (None, colouring):
        result = sparse_hessian(f, x, pattern)
        assert cg.allclose(result.to_dense(), hessian(f)(x).reshape(x.numel(), x.numel()))


def test_a_jacobian_is_on_the_tape():
    x = cg.randn(5, requires_grad=True, **DOUBLE)
    pattern = coloured(sparsity(stencil, x))
    first, = cg.autograd.grad(sparse_jacobian(stencil, x, pattern).values().square().sum(), x)
    second, = cg.autograd.grad(jacrev(stencil)(x).square().sum(), x)
    assert cg.allclose(first, second)


def test_scipy_takes_them():
    integrate = pytest.importorskip("scipy.integrate")
    pattern = coloured(sparsity(stencil, np.ones(20)))

    def right(t, u):
        return (10 * stencil(cg.tensor(u)) - 20 * cg.tensor(u) ** 3).numpy()

    def jacobian(t, u):
        return sparse_jacobian(lambda u: 10 * stencil(u) - 20 * u ** 3, u, pattern).to_scipy()

    start = np.sin(np.linspace(0, 3, 20))
    with_it = integrate.solve_ivp(right, (0, 1), start, "BDF", jac=jacobian, rtol=1e-8, atol=1e-10)
    without = integrate.solve_ivp(right, (0, 1), start, "BDF", rtol=1e-8, atol=1e-10)
    assert np.allclose(with_it.y[:, -1], without.y[:, -1], atol=1e-6) and with_it.nfev < without.nfev


REFUSED = {
    "a list": (lambda: sparsity(lambda x: [x], cg.ones(2)), TypeError, "must return a dense tensor, but returned list"),
    "a sparse result": (lambda: sparsity(lambda x: x.diag().to_sparse(), cg.ones(2)), TypeError, "must return a dense tensor"),
    "a view written to": (lambda: sparsity(_through_a_view, cg.ones(3)), NotImplementedError, "changed in place by way of another tensor"),
    "too large": (lambda: sparsity(lambda x: x.sort().values, cg.ones(20000)), RuntimeError, "taken to depend on all elements"),
    "pattern of another shape": (lambda: sparse_jacobian(stencil, cg.ones(4), sparsity(stencil, cg.ones(5))), RuntimeError,
                                 "the pattern has"),
    "rows of another number": (lambda: sparse_jacobian(lambda x: x[1:], cg.ones(4), sparsity(stencil, cg.ones(4))), RuntimeError,
                               "the pattern has"),
    "a vector for a Hessian": (lambda: sparse_hessian(stencil, cg.ones(4)), RuntimeError, "must return a scalar tensor"),
}


def _through_a_view(x):
    y = x * 1
    y[1:].mul_(x[0])
    return y + 1


@pytest.mark.cases("name", list(REFUSED))
def test_refusals(name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
