"""cygrad.func.vmap: dims of arguments and results, trees, chunks, random numbers, functions that cannot be batched."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import vmap
from trees import Model, same, tensor

X = cg.arange(6, dtype=cg.float64).reshape(2, 3)
Y = cg.arange(3, dtype=cg.float64)
S = cg.tensor(2.0, dtype=cg.float64)
ROWS = [[0, 1, 2], [3, 4, 5]]


def total(x):
    assert tuple(x.shape) in {(2,), (3,)}
    return x.sum()


def product(x, y):
    return x * y


# ----- Dims of arguments -----
@pytest.mark.parametrize(("in_dims", "expected"), [(0, [3, 12]), (1, [3, 5, 7]), (-1, [3, 5, 7]), (-2, [3, 12]), ((1,), [3, 5, 7])])
def test_the_dim_of_one_argument(in_dims, expected):
    same(vmap(total, in_dims)(X), expected)
    same(vmap(total, in_dims=in_dims)(X), expected)


PAIRS = [
    (0, (X, X), [[0, 1, 4], [9, 16, 25]]),
    ((0, None), (X, Y), [[0, 1, 4], [0, 4, 10]]),
    ((None, 0), (S, Y), [0, 2, 4]),
    ((None, 0), (Y, X), [[0, 1, 4], [0, 4, 10]]),
    ((1, 0), (X, Y), [[0, 0], [1, 4], [4, 10]]),
    ((-1, None), (X, tensor(1, 2)), [[0, 6], [1, 8], [2, 10]]),
]


@pytest.mark.parametrize(("in_dims", "arguments", "expected"), PAIRS)
def test_dims_of_two_arguments(in_dims, arguments, expected):
    same(vmap(product, in_dims=in_dims)(*arguments), expected)


TREES = [
    ("dict", 0, ({"a": X, "b": tensor(1, 2)},), lambda p: p["a"] * p["b"], [[0, 1, 2], [6, 8, 10]]),
    ("dims in a dict", ({"a": 0, "b": None},), ({"a": X, "b": Y},), lambda p: p["a"] * p["b"], [[0, 1, 4], [0, 4, 10]]),
    ("dims in another order", ({"b": None, "a": 0},), ({"a": X, "b": Y},), lambda p: p["a"] - p["b"], [[0, 0, 0], [3, 3, 3]]),
    ("tuple", ((0, None),), ((X, Y),), lambda p: p[0] * p[1], [[0, 1, 4], [0, 4, 10]]),
    ("list", ([0, None],), ([X, Y],), lambda p: p[0] * p[1], [[0, 1, 4], [0, 4, 10]]),
    ("prefix", (0, None), (X, [Y, {"k": Y}]), lambda x, p: x + p[0] * p[1]["k"], [[0, 2, 6], [3, 5, 9]]),
    ("dataclass", (Model(0, None),), (Model(X, Y),), lambda p: p.weight * p.bias, [[0, 1, 4], [0, 4, 10]]),
    ("dataclass, one dim", 1, (Model(X, X),), lambda p: p.weight * p.bias, [[0, 9], [1, 16], [4, 25]]),
    ("no tensor", (0, None), (X, "k"), lambda x, k: x if k == "k" else -x, ROWS),
    ("None", (0, None), (X, None), lambda x, k: x if k is None else -x, ROWS),
]


@pytest.mark.parametrize(("in_dims", "arguments", "f", "expected"), [entry[1:] for entry in TREES], ids=[entry[0] for entry in TREES])
def test_trees_of_arguments(in_dims, arguments, f, expected):
    same(vmap(f, in_dims=in_dims)(*arguments), expected)


def test_tensors_in_keywords_are_not_mapped():
    same(vmap(lambda x, k: x * k)(X, k=2.0), [[0, 2, 4], [6, 8, 10]])
    same(vmap(lambda x, k: x * k)(X, k=Y), [[0, 1, 4], [0, 4, 10]])


BAD_DIMS = [
    ([0, None], (X, Y), r"expected `in_dims` to be int or a \(potentially nested\) tuple .*, got: <class 'list'>"),
    (None, (X, Y), r"expected `in_dims` to be int or a \(potentially nested\) tuple .*, got: <class 'NoneType'>"),
    ("0", (X, X), r"expected `in_dims` to be int or a \(potentially nested\) tuple .*, got: <class 'str'>"),
    ((None, None), (X, Y), "vmap: Expected at least one Tensor to vmap over"),
    ((0, 0, 0), (X, Y), "in_dims is not compatible with the structure of `inputs`"),
    ((0, (0, 0)), (X, Y), "in_dims is not compatible with the structure of `inputs`"),
    (((0, None), 0), ([X, Y], X), "in_dims is not compatible with the structure of `inputs`"),
    ((0, 2), (X, X), "Got in_dim=2 for some input, but that input is a Tensor of dimensionality 2"),
    ((-3, 0), (X, X), "Got in_dim=-3 for some input, but that input is a Tensor of dimensionality 2"),
    (0, (X, S), "Got in_dim=0 for some input, but that input is a Tensor of dimensionality 0"),
    ((0, 1.0), (X, X), "Got in_dim=1.0 for an input but in_dim must be either an integer dimension or None"),
    (0, (X, 2.0), "Got in_dim=0 for an input but the input is of type <class 'float'>. We cannot vmap over non-Tensor arguments"),
    (0, (X, Y), r"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes \[2, 3\]"),
    (0, (), r"got no inputs. Maybe you forgot to add inputs"),
]


@pytest.mark.cases(("in_dims", "arguments", "message"), BAD_DIMS)
def test_dims_that_do_not_fit_the_arguments(in_dims, arguments, message):
    with pytest.raises(ValueError, match=message):
        vmap(lambda *arguments: arguments[0], in_dims=in_dims)(*arguments)


# ----- Dims of results -----
@pytest.mark.parametrize(("out_dims", "expected"), [(0, ROWS), (1, [[0, 3], [1, 4], [2, 5]]), (-1, [[0, 3], [1, 4], [2, 5]]), (-2, ROWS)])
def test_the_dim_of_one_result(out_dims, expected):
    same(vmap(lambda x: x * 1, out_dims=out_dims)(X), expected)
    same(vmap(lambda x: x * 1, 0, out_dims)(X), expected)
    same(vmap(lambda x: x * 1, out_dims=(out_dims,))(X), expected)


RESULTS = [
    ("tuple", lambda x: (x * 1, x.sum()), 0, (ROWS, [3, 12])),
    ("tuple of dims", lambda x: (x * 1, x.sum()), (1, 0), ([[0, 3], [1, 4], [2, 5]], [3, 12])),
    ("tuple of one", lambda x: (x * 1,), 0, (ROWS,)),
    ("list", lambda x: [x * 1, x.sum()], 0, [ROWS, [3, 12]]),
    ("dict", lambda x: {"p": x * 1, "q": x.sum()}, {"p": 1, "q": 0}, {"p": [[0, 3], [1, 4], [2, 5]], "q": [3, 12]}),
    ("prefix", lambda x: (x * 1, {"k": x * 2}), 1, ([[0, 3], [1, 4], [2, 5]], {"k": [[0, 6], [2, 8], [4, 10]]})),
    ("dataclass", lambda x: Model(x * 1, x.sum()), 0, Model(ROWS, [3, 12])),
    ("the argument", lambda x: x, 0, ROWS),
    ("not batched", lambda x: Y, 0, [[0, 1, 2], [0, 1, 2]]),
    ("not batched, None", lambda x: (x, S), (0, None), (ROWS, 2)),
    ("nothing", lambda x: (), 0, ()),
    ("named pair", lambda x: tuple(x.max(dim=0)), 0, ([2, 5], [2, 2])),
    ("bool", lambda x: (x > 3).any(), 0, [False, True]),
]


@pytest.mark.cases(("f", "out_dims", "expected"), [entry[1:] for entry in RESULTS], ids=[entry[0] for entry in RESULTS])
def test_trees_of_results(f, out_dims, expected):
    same(vmap(f, out_dims=out_dims)(X), expected)


def test_pairs_of_results_keep_their_names():
    result = vmap(lambda x: x.max(dim=0))(X)
    assert (result.values.tolist(), result.indices.tolist()) == ([2, 5], [2, 2])


BAD_RESULTS = [
    (lambda x: x, None, ValueError, "can not return a BatchedTensor when out_dim is None"),
    (lambda x: (x, x), (0, 0, 0), ValueError, "out_dims is not compatible with the structure of `outputs`"),
    (lambda x: (x, x), {"a": 0}, ValueError, "out_dims is not compatible with the structure of `outputs`"),
    (lambda x: x, "k", ValueError, "`out_dims` must be an int, None or a python collection of ints"),
    (lambda x: x, 1.0, ValueError, "`out_dims` must be an int, None or a python collection of ints"),
    (lambda x: x, 2, IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"),
    (lambda x: x, -3, IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got -3\)"),
    (lambda x: 2.0, 0, ValueError, "must only return Tensors, got type <class 'float'>"),
    (lambda x: None, 0, ValueError, "must only return Tensors, got type <class 'NoneType'>"),
    (lambda x: (x, "k"), 0, ValueError, "must only return Tensors, got type <class 'str'>"),
]


@pytest.mark.parametrize(("f", "out_dims", "error", "message"), BAD_RESULTS)
def test_results_that_do_not_fit(f, out_dims, error, message):
    with pytest.raises(error, match=message):
        vmap(f, out_dims=out_dims)(X)


# ----- Chunks -----
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 100, None])
def test_chunks(chunk_size):
    options = {"in_dims": (1, None), "out_dims": (1, 0), "chunk_size": chunk_size}
    same(vmap(lambda x, y: (x * y, x.sum()), **options)(X, tensor(1, 2)), ([[0, 1, 2], [6, 8, 10]], [3, 5, 7]))


def test_a_chunk_is_one_call():
    calls = []

    def f(x):
        calls.append(1)
        return x * 2

    same(vmap(f)(X), [[0, 2, 4], [6, 8, 10]])
    assert len(calls) == 1
    same(vmap(f, in_dims=1, out_dims=1, chunk_size=2)(X), [[0, 2, 4], [6, 8, 10]])
    assert len(calls) == 3


@pytest.mark.parametrize("chunk_size", [0, -1])
def test_chunks_that_are_refused(chunk_size):
    with pytest.raises(ValueError, match=rf"vmap: chunk_size should be None or greater than 0. \(got {chunk_size}\)"):
        vmap(total, chunk_size=chunk_size)(X)


def test_nothing_to_map_over():
    assert vmap(total)(X[:0]).tolist() == []
    assert tuple(vmap(lambda x: x * 2)(X[:0]).shape) == (0, 3)


# ----- Inside -----
def test_a_function_sees_one_example():
    def f(x):
        assert tuple(x.shape) == tuple(x.size()) == (3, 4)
        assert (x.ndim, x.dim(), x.numel(), len(x), x.size(-1)) == (2, 2, 12, 3, 4)
        assert x.dtype == cg.float32
        assert isinstance(x, cg.Tensor)
        assert tuple(x[0].shape) == (4,)
        return x.T

    assert tuple(vmap(f, in_dims=1)(cg.ones(3, 2, 4)).shape) == (2, 4, 3)


INSIDE = [
    ("sum over all", lambda x: x.sum(), np.sum),
    ("last dim", lambda x: x.sum(-1), lambda x: x.sum(-1)),
    ("first dim", lambda x: x.sum(0), lambda x: x.sum(0)),
    ("transpose", lambda x: x.T, np.transpose),
    ("reshape", lambda x: x.reshape(-1), np.ravel),
    ("flatten", lambda x: x.flatten(), np.ravel),
    ("broadcast lower rank", lambda x: x * x[0], lambda x: x * x[0]),
    ("broadcast higher rank", lambda x: x.sum() * x, lambda x: x.sum() * x),
    ("unbatched on the left", lambda x: cg.ones(5, 1, 1, dtype=cg.float64) + x, lambda x: np.ones((5, 1, 1)) + x),
    ("matrix product", lambda x: x @ x.T, lambda x: x @ x.T),
    ("matrix and constant vector", lambda x: x @ Y, lambda x: x @ Y.numpy()),
    ("constant matrix and vector", lambda x: X @ x[0], lambda x: X.numpy() @ x[0]),
    ("vectors", lambda x: x[0] @ x[1], lambda x: x[0] @ x[1]),
    ("dot", lambda x: cg.dot(x[0], Y), lambda x: x[0] @ Y.numpy()),
    ("outer", lambda x: cg.outer(x[:, 0], Y), lambda x: np.outer(x[:, 0], Y.numpy())),
    ("einsum", lambda x: cg.einsum("ij,kj->ik", x, X), lambda x: x @ X.numpy().T),
    ("where", lambda x: cg.where(x > 0, x, -x), np.abs),
    ("cat", lambda x: cg.cat([x, X]), lambda x: np.concatenate([x, X.numpy()])),
    ("stack", lambda x: cg.stack([x, X], 1), lambda x: np.stack([x, X.numpy()], 1)),
    ("index", lambda x: x[1, 0], lambda x: x[1, 0]),
    ("slice", lambda x: x[:, 1:], lambda x: x[:, 1:]),
    ("None and ellipsis", lambda x: x[..., None, 0], lambda x: x[..., None, 0]),
    ("index arrays", lambda x: x[:, [2, 0]], lambda x: x[:, [2, 0]]),
    ("softmax", lambda x: x.softmax(0), lambda x: np.exp(x) / np.exp(x).sum(0)),
    ("cumsum", lambda x: x.cumsum(0), lambda x: np.cumsum(x, 0)),
    ("sort", lambda x: x.sort(0)[0], lambda x: np.sort(x, 0)),
    ("argmax", lambda x: x.argmax(), np.argmax),
    ("mean and var", lambda x: x.mean() / x.var(), lambda x: x.mean() / x.var(ddof=1)),
    ("clone in place", lambda x: x.clone().mul_(2).add_(1), lambda x: 2 * x + 1),
    ("set item", lambda x: _written(x, 7.0), lambda x: np.array([[7, 7, 7], x[1]])),
    ("set item, batched", lambda x: _written(x, x[1] * 2), lambda x: np.array([x[1] * 2, x[1]])),
    ("new zeros", lambda x: x.new_zeros(3).add_(x[0]), lambda x: x[0]),
    ("zeros like", lambda x: cg.zeros_like(x) + 1, lambda x: np.ones((2, 3))),
    ("expand", lambda x: x[:, :1].expand(2, 4), lambda x: np.repeat(x[:, :1], 4, 1)),
    ("split", lambda x: x.split(1)[1], lambda x: x[1:]),
    ("unbind", lambda x: x.unbind(1)[2], lambda x: x[:, 2]),
    ("iteration", lambda x: sum(row for row in x), lambda x: x.sum(0)),
    ("numbers", lambda x: 1 - 2 * x / 3, lambda x: 1 - 2 * x / 3),
    ("norm", lambda x: x.norm(), np.linalg.norm),
    ("diagonal", lambda x: x.diagonal(), np.diag),
    ("conversion", lambda x: x.float().double(), lambda x: x.astype("f4")),
    ("NumPy's function", lambda x: np.tanh(x), np.tanh),
]


def _written(x, value):
    y = x.clone()
    y[0] = value
    return y


@pytest.mark.parametrize("in_dim", [0, 1, 2])
@pytest.mark.parametrize(("f", "by_numpy"), [entry[1:] for entry in INSIDE], ids=[entry[0] for entry in INSIDE])
def test_operators(f, by_numpy, in_dim):
    examples = np.random.default_rng(0).standard_normal((4, 2, 3))
    batch = cg.tensor(np.moveaxis(examples, 0, in_dim).copy())
    expected = np.stack([by_numpy(example) for example in examples])
    result = vmap(f, in_dims=in_dim)(batch)
    assert tuple(result.shape) == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6 if expected.dtype == "f4" else 1e-12)


def test_batched_indices():
    same(vmap(lambda x, i: x[i])(X, cg.tensor([0, 2])), [0, 5])
    same(vmap(lambda i: Y[i])(cg.tensor([0, 2, 1, 1])), [0, 2, 1, 1])
    same(vmap(lambda x, i: x.gather(0, i))(X, cg.tensor([[0, 0], [2, 1]])), [[0, 0], [5, 4]])


@pytest.mark.cases("write", [
    lambda y, i, v: y.index_put((i,), v),
    lambda y, i, v: y.index_put((i,), v, accumulate=True),
    lambda y, i, v: y.put(i, v),
    lambda y, i, v: y.scatter(0, i, v),
    lambda y, i, v: y.index_copy(0, i, v),
    lambda y, i, v: y.index_add(0, i, v),
])
@pytest.mark.cases(("in_dims", "places"), [((None, 0), [[2, 0], [2, 0]]), ((0, None), [[2, 0], [0, 1]]), ((0, 0), [[2, 0], [0, 1]])])
def test_an_unbatched_tensor_may_be_written_to_out_of_place(write, in_dims, places):
    indices, values = cg.tensor(places), cg.ones(2, 2, dtype=cg.float64) * tensor(7, 8)[:, None]
    arguments = [all_of if dim == 0 else all_of[0] for all_of, dim in zip((indices, values), in_dims, strict=True)]
    result = vmap(lambda i, v: write(Y, i, v), in_dims=in_dims)(*arguments)
    expected = [write(Y, *(x if dim is None else x[k] for x, dim in zip(arguments, in_dims, strict=True))).tolist() for k in range(2)]
    same(result, expected)
    assert Y.tolist() == [0, 1, 2]


def test_promotion_ignores_the_batch_dim():
    """A batched number is promoted as a 0-d tensor of its dtype."""
    result = vmap(lambda x, y: x * y)(cg.tensor([1, 2]), tensor(1, 2))
    assert result.dtype == cg.float64
    same(result, [1, 4])
    assert vmap(lambda x: x * cg.ones(2))(cg.tensor([1, 2])).dtype == cg.float32


def test_the_batch_may_be_changed_in_place():
    x = X.clone()
    same(vmap(lambda x: x.mul_(2))(x), [[0, 2, 4], [6, 8, 10]])
    same(x, [[0, 2, 4], [6, 8, 10]])


def test_a_tensor_that_is_not_batched_cannot_hold_a_batch():
    with pytest.raises(RuntimeError):
        vmap(lambda x: cg.zeros(3, dtype=cg.float64).add_(x))(X)
    captured = Y.clone()
    with pytest.raises(RuntimeError):
        vmap(lambda x: captured.add_(x))(X)
    same(captured, [0, 1, 2])


DATA_DEPENDENT = [
    ("item", lambda x: x.sum().item(), r"vmap: It looks like you're calling .item\(\) on a Tensor"),
    ("float", lambda x: x * float(x.sum()), r"vmap: It looks like you're calling .item\(\) on a Tensor"),
    ("if", lambda x: x if x.sum() > 0 else -x, "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow"),
    ("numpy", lambda x: cg.tensor(x.numpy()), "vmap: It looks like"),
    ("tolist", lambda x: cg.tensor(x.tolist()), "vmap: It looks like"),
    ("nonzero", lambda x: x.nonzero(), "vmap: We do not support batching operators that can output dynamic shape"),
    ("mask", lambda x: x[x > 1], "vmap: We do not support batching operators that can support dynamic shape"),
]


@pytest.mark.parametrize(("f", "message"), [entry[1:] for entry in DATA_DEPENDENT], ids=[entry[0] for entry in DATA_DEPENDENT])
def test_values_of_examples_cannot_become_python_numbers(f, message):
    with pytest.raises(RuntimeError, match=message):
        vmap(f)(X)
    same(vmap(total)(X), [3, 12])           # and no level is left behind


def test_exceptions_come_out_and_leave_nothing_behind():
    def f(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        vmap(f)(X)
    with pytest.raises(ZeroDivisionError, match="mine"):
        vmap(vmap(f))(X)
    assert (X * 2).tolist() == [[0, 2, 4], [6, 8, 10]]


# ----- Random numbers -----
RANDOM = [lambda x: cg.rand(3), lambda x: cg.randn_like(x.float()), lambda x: cg.bernoulli(cg.full((20,), 0.5))]


@pytest.mark.parametrize("draw", RANDOM)
def test_random_numbers(draw):
    x = cg.ones(4, 3)
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        vmap(draw)(x)
    cg.manual_seed(0)
    same_for_all = vmap(draw, randomness="same")(x).numpy()
    assert (same_for_all == same_for_all[0]).all()
    different = vmap(draw, randomness="different")(x).numpy()
    assert len({row.tobytes() for row in different}) == 4


def test_another_word_for_randomness():
    with pytest.raises(RuntimeError, match="Only allowed values for randomness are 'error', 'different', or 'same'. Got other"):
        vmap(total, randomness="other")(X)


# ----- Nested -----
def test_nested():
    same(vmap(vmap(product, in_dims=(None, 0)), in_dims=(0, None))(Y, Y), [[0, 0, 0], [0, 1, 2], [0, 2, 4]])
    same(vmap(vmap(lambda x: x * 2), in_dims=1, out_dims=1)(X), [[0, 2, 4], [6, 8, 10]])
    cube = cg.arange(24, dtype=cg.float64).reshape(2, 3, 4)
    same(vmap(vmap(vmap(lambda x: x + 1)))(cube), np.arange(1, 25).reshape(2, 3, 4))
    same(vmap(lambda m: vmap(lambda row: row @ m.sum(0), in_dims=1)(m))(cube[:, :, :3]),
         [m.T @ m.sum(0) for m in cube[:, :, :3].numpy()])


def test_gradients_reach_the_batch():
    x = X.clone().requires_grad_()
    result = vmap(lambda x: (x**3).sum())(x)
    assert result.requires_grad
    result.sum().backward()
    same(x.grad, [[0, 3, 12], [27, 48, 75]])
