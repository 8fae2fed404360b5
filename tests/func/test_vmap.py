"""vmap where it is easily wrong: against a loop over the examples, values, writes, and refusals."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import grad, jacfwd, jvp, vmap
from samples import array_of, as_tuple

pytestmark = pytest.mark.usefixtures("nothing_left")

F = cg.tensor(np.random.default_rng(0).permutation(24).reshape(4, 2, 3) / 7 - 1.7)     # four examples
G = F.flip(0) * 0.3
B = F > 0.2
I = cg.tensor([[1, 0], [2, 2], [0, 1], [1, 1]])  # noqa: E741 - indices
K = cg.tensor([1, 0, 1, 0])
ROW, MATRIX = cg.tensor([10.0, 20.0, 30.0], dtype=cg.float64), cg.tensor(np.arange(16.0).reshape(4, 4))
CUBE = cg.tensor(np.arange(96.0).reshape(4, 2, 4, 3))


def compare(f, *batches, in_dims=0):
    """Compare a function of all examples at once, and its writes to its arguments, with a loop."""
    dims = [in_dims] * len(batches) if isinstance(in_dims, int) else in_dims
    copies = [x.clone() for x in batches]
    together = as_tuple(vmap(lambda *x: (*as_tuple(f(*x)), *x), in_dims=tuple(dims))(*copies))
    count = next(x.shape[d] for x, d in zip(batches, dims, strict=True) if d is not None)
    alone = []
    for k in range(count):
        example = [x.clone() if d is None else x.select(d, k).clone() for x, d in zip(batches, dims, strict=True)]
        alone.append([array_of(item) for item in (*as_tuple(f(*example)), *example)])
    for got, *expected in zip(map(array_of, together), *alone, strict=True):
        assert got.dtype == expected[0].dtype
        np.testing.assert_allclose(got, np.stack(expected), rtol=1e-12)


def changed(f):
    """Return a function that changes a copy of its first argument and returns that."""
    def with_copy(x, *others):
        x = x.clone()
        f(x, *others)
        return x

    return with_copy


# ----- Against a loop -----
def set_at(*key):
    """Return a function that writes its second argument at a key; "x" in the key stands for the third."""
    def write(x, value, index=None):
        x[tuple(index if item == "x" else item for item in key)] = value

    return changed(write)


CALLS = [
    # In place, by operators that compute a result first.
    ("round_", changed(lambda x: x.round_()), F),
    ("round_ to decimals", changed(lambda x: x.round_(decimals=1)), F),
    ("cumsum_", changed(lambda x: x.cumsum_(1)), F),
    ("tril_", changed(lambda x: x.tril_()), F),
    ("clamp_", changed(lambda x: x.clamp_(-1, 1)), F),
    ("unsqueeze_", changed(lambda x: x.unsqueeze_(1).mul_(2)), F),
    ("squeeze_ twice", changed(lambda x: x.unsqueeze_(0).squeeze_().squeeze_(0)), F),
    ("t_", changed(lambda x: x.t_()[1].mul_(2)), F),
    ("transpose_", changed(lambda x: x.transpose_(0, -1).add_(x)), F),
    ("as_strided_", changed(lambda x: x.as_strided_((2, 2), (1, 1))), F),
    # Truth values as elements: where() must not take the first operand for the condition.
    ("masked_fill of bool", lambda m, n: m.masked_fill(n, n.any()), B, B),
    ("masked_scatter of bool", lambda m, n: m.masked_scatter(n, m), B, B.flip(0)),
    ("index_fill of bool", lambda m, i: m.index_fill(1, i, m.any()), B, I),
    ("index_put of bool", lambda m, i: m.index_put((i % 2,), ~m), B, I),
    # Writing batched values into unbatched tensors, out of place.
    ("index_put, index differs", lambda i: ROW.index_put((i,), ROW[:2] * 2), I),
    ("index_put, value differs", lambda x: ROW.index_put((cg.tensor([2, 0]),), x[0, :2]), F),
    ("index_put, accumulated", lambda i: ROW.index_put((i,), ROW[:2], accumulate=True), I),
    ("put, index differs", lambda i: MATRIX.put(i, ROW[1:]), I),
    ("scatter, index differs", lambda i: ROW.scatter(0, i[:1], 5.0), I),
    ("masked_fill, mask differs", lambda m: MATRIX[:2, :3].masked_fill(m, 0.0), B),
    # Indices.
    ("apart", lambda x: x[[0, 1], :, [2, 0]], CUBE),
    ("apart, by lists of lists", lambda x: x[[[0, 1], [1, 0]], :, [[2, 0], [1, 1]]], CUBE),
    ("apart, by ranges", lambda x: x[range(2), :, range(2)], CUBE),
    ("apart, by arrays", lambda x: x[np.array([0, 1]), :, np.array([2, 0])], CUBE),
    ("apart, one differs", lambda x, i: x[i % 2, :, [2, 0]], CUBE, I),
    ("a number that differs", lambda x, k: x[k], F, K),
    ("a number that differs, behind", lambda x, k: x[..., k], F, K),
    ("a number and an array", lambda x, k, i: x[k, :, i], CUBE, K, I),
    ("of an empty list", lambda x: x[[]], F),
    ("set: apart", set_at([0, 1], slice(None), [2, 0]), CUBE, F[:, :, :1]),
    ("set: apart, one value for all", lambda x: set_at([0, 1, 0, 1], slice(None), [2, 0, 1, 1])(x, MATRIX), CUBE),
    ("set: apart, a list", lambda x: set_at([0, 1, 0, 1], slice(None), [2, 0, 1, 1])(x, MATRIX.tolist()), CUBE),
    ("set: apart, an array", lambda x: set_at([0, 1, 0, 1], slice(None), [2, 0, 1, 1])(x, MATRIX.numpy()), CUBE),
    ("set: the key differs", set_at("x", slice(1, 3)), F, G[:, :, 1:], I % 2),
    ("set: the key differs, behind", set_at(slice(None), "x"), F, G[:, :, 1:], I),
    ("gather of a number", lambda x, i: x[0, 0].gather(0, i * 0), F, I),
    ("gather, one index", lambda x, k: x[0].gather(0, k), F, K),
    ("index_fill from the end", lambda x, i: x.index_fill(1, -1 - i, 7.0), F, I),
    ("masked_select by one mask", lambda x: x.masked_select(MATRIX[:2, :3] > 3), F),
    ("masked_select, broadcast", lambda x: x[0].masked_select(MATRIX[:2, :3] > 3), F),
    ("index_select, then by strides", lambda x: x.index_select(1, cg.tensor([2, 0])).as_strided((2, 2), (1, 2)), F),
    # Parts.
    ("chunks of nothing", lambda x: tuple(x[:0].chunk(3)), F),
    ("split of nothing", lambda x: tuple(x[:0].split(0)), F),
    ("sizes that are tensors", lambda x: x.reshape(cg.tensor(3), 2).expand(cg.tensor(2), 3, 2), F),
    ("dims that are tensors", lambda x: x.sum(cg.tensor(1)), F),
    ("NumPy's names", lambda x: (cg.stack([x, x], axis=1), *x.median(axis=1), cg.cross(x, x + 1, axis=1), x.max(axis=0, keepdims=True)[0]),
     F),
    # Factories.
    ("new_full", lambda x: x.new_full((2,), 3), F),
    ("new_full of a number that differs", lambda x: x.new_full((2,), x[0, 0]), F),
    ("size=", lambda x: x.new_zeros(size=(2,)), F),
    ("as_subclass", lambda x: x.as_subclass(type("Field", (cg.Tensor,), {})) * 2, F),
    ("asarray", lambda x: cg.asarray(x, copy=True).mul_(2), F),
    ("cat with integers", lambda x, i: cg.cat([x[0], i]), F, I),
]


@pytest.mark.cases(("f", "batches"), [(f, batches) for _, f, *batches in CALLS], ids=[name for name, *_ in CALLS])
def test_calls(f, batches):
    compare(f, *batches)
    compare(f, *(x.movedim(0, -1) for x in batches), in_dims=[x.ndim - 1 for x in batches])


def test_one_matrix_for_all_with_different_tangents():
    matrix, tangents = cg.tensor(np.arange(12.0).reshape(3, 4)), cg.tensor(np.cos(np.arange(48.0)).reshape(4, 3, 4))
    products = vmap(lambda x, t: jvp(lambda w: x @ w, (matrix,), (t,))[1])(F, tangents)
    np.testing.assert_allclose(array_of(products), array_of(F) @ array_of(tangents))
    both = vmap(lambda x, t: jvp(lambda w: grad(lambda v: ((x @ v) ** 2).sum())(w), (matrix,), (t,))[1])(F, tangents)
    np.testing.assert_allclose(array_of(both), 2 * array_of(F.mT) @ array_of(F) @ array_of(tangents))


def test_formulas_compute_in_the_dtype_of_their_operator():
    """In every mode an integer or a narrower operand is converted before a partial is computed from it."""
    x, n = cg.tensor([0.3, 1.7], dtype=cg.float64), cg.tensor([3, 5])
    for f, y in ((cg.xlogy, n), (lambda x, y: y**x, n), (cg.atan2, cg.tensor([0.7, 2.0])), (cg.hypot, n)):
        wide = jvp(lambda x, f=f, y=y: f(x, y.double()), (x,), (x,))[1]
        np.testing.assert_allclose(array_of(jvp(lambda x, f=f, y=y: f(x, y), (x,), (x,))[1]), array_of(wide), rtol=1e-14)
        both = vmap(lambda x, y, f=f: jvp(lambda x: f(x, y), (x,), (x,))[1])(x, y)
        np.testing.assert_allclose(array_of(both), array_of(wide), rtol=1e-14)
        leaf = x.clone().requires_grad_()
        gradient, = cg.autograd.grad(f(leaf, y), leaf, x, create_graph=True)
        np.testing.assert_allclose(array_of(gradient), array_of(wide), rtol=1e-14)


# ----- Hooks -----
def test_hooks_see_the_gradient_of_one_example():
    seen = []

    def f(x):
        y = x * x
        y.register_hook(lambda g: seen.append(tuple(g.shape)))
        handle = y.register_hook(lambda g: g * 2)
        y.register_hook(lambda g: g * 100).remove()
        assert handle is not None
        return (y * x).sum()

    result = vmap(grad(f))(F)
    np.testing.assert_allclose(array_of(result), 5 * array_of(F) ** 2)
    assert seen == [(2, 3)]
    np.testing.assert_allclose(array_of(vmap(vmap(grad(f)))(F)), 5 * array_of(F) ** 2)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        vmap(f)(F)


# ----- Errors of one example, with the same message -----
WRONG = [
    lambda x: x.expand(-1, 2, 3),
    lambda x: x.expand(3),
    lambda x: x.repeat(2),
    lambda x: x.sum(2),
    lambda x: x.sum((0, 0)),
    lambda x: x.squeeze(5),
    lambda x: x.unbind(3),
    lambda x: x.split([1, 2]),
    lambda x: x.split(2, 4),
    lambda x: x.chunk(0),
    lambda x: x.narrow(0, 1, 2),
    lambda x: x[0].tril(),
    lambda x: x.permute(0, 0),
    lambda x: x.reshape(4),
    lambda x: x.view(-2, 3),
    lambda x: x[5],
    lambda x: x[0, 0, 0],
    lambda x: x[0].dot(x[0, :2]),
    lambda x: x.mm(x[0]),
    lambda x: cg.cat([x, x[0]]),
    lambda x: cg.stack([x, x[0]]),
    lambda x: x.scatter(0, cg.tensor([[0]])),
    lambda x: x.scatter(0, cg.tensor([[0]]), x, reduce="mean"),
    lambda x: x[:0].max(),
    lambda x: x[:0].argmax(),
    lambda x: x.max(keepdim=True),
    lambda x: x.flip(0, 0),
    lambda x: x.tril(0.5),
    lambda x: x.masked_scatter(x > 100, x.float()),
    lambda x: x.index_select(0, cg.tensor([-1])),
    lambda x: x.index_copy(0, cg.tensor([0, 1]), x[:1]),
    lambda x: x.gather(1, cg.tensor([[7]])),
    lambda x: x.cross(x[:, :2]),
    lambda x: x.fill_(x),
    lambda x: x.clone().__setitem__(0, [1.0, 2.0]),
    lambda x: x.clone().__setitem__((0, 0), cg.ones(4)),      # as many as there are examples
]


@pytest.mark.cases("number", range(len(WRONG)))
def test_wrong_calls(number):
    with pytest.raises((IndexError, RuntimeError, TypeError)) as plain:
        WRONG[number](F[0].clone())
    with pytest.raises(type(plain.value)) as batched:
        vmap(lambda x: (WRONG[number](x), x)[1])(F.clone())
    assert str(batched.value) == str(plain.value)


def test_errors_of_some_examples():
    """An error of one example is an error for all."""
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones in mask"):
        vmap(lambda x, m: x.masked_scatter(m, x[0, :1]))(F, B)
    with pytest.raises((IndexError, RuntimeError), match="index -1 is out of bounds|out of range"):
        vmap(lambda x, i: x.index_select(1, i))(F, I - 1)
    with pytest.raises(RuntimeError, match="index 1 is out of bounds for dimension 0 with size 1"):
        vmap(lambda x, i: x[0, 0].gather(0, i))(F, I)


# ----- Random numbers -----
@pytest.mark.parametrize("call", [
    lambda **options: vmap(lambda x: cg.rand(3) + 0 * x, **options)(F[:, 0]),
    lambda **options: jacfwd(lambda x: cg.rand(3) * x, **options)(cg.ones(3)).diagonal(),
], ids=["vmap", "jacfwd"])
def test_the_same_numbers_for_all_chunks(call):
    cg.manual_seed(1)
    together, following = array_of(call(randomness="same")), cg.rand(1).item()
    cg.manual_seed(1)
    np.testing.assert_array_equal(array_of(call(randomness="same", chunk_size=2)), together)
    assert cg.rand(1).item() == following
    rows = array_of(vmap(lambda x: cg.rand(3) + 0 * x, randomness="different", chunk_size=2)(F[:, 0]))
    assert len({row.tobytes() for row in rows}) == 4


def test_random_numbers_written_into_a_tensor():
    for randomness in ("different", "same"):
        with pytest.raises(RuntimeError, match="vmap: We do not support calling out variants of random operations inside of vmap"):
            vmap(lambda x: cg.rand(2, 3, out=x), randomness=randomness)(F.clone())
    out = cg.zeros(3)
    with pytest.raises(RuntimeError, match="vmap: We do not support calling out variants"):
        vmap(lambda x: cg.rand(3, out=out), randomness="different")(F)
    vmap(lambda x: cg.rand(3, out=out), randomness="same")(F)
    assert out.all()


# ----- Attributes that one example of a batch lacks -----
REFUSED = [
    ("copy", copy.copy, "vmap"),
    ("deepcopy", copy.deepcopy, "vmap"),
    ("pickle", pickle.dumps, "vmap"),
    ("buffer", memoryview, "vmap: the buffer protocol"),
    ("DLPack", lambda x: x.__dlpack__(), "vmap"),
    ("from_dlpack", cg.from_dlpack, "vmap"),
    ("address", lambda x: x.data_ptr(), "vmap: data_ptr"),
    ("data", lambda x: x.data, "accessing `data` under vmap transform is not allowed"),
    ("set data", lambda x: setattr(cg.zeros(2, 3, dtype=x.dtype), "data", x), "mutating directly with `.data` under vmap"),
    ("detach_", lambda x: x.clone().detach_(), "vmap: detach_"),
    ("set_", lambda x: x.set_(x), "set_\\(\\) takes no tensors"),
    ("resize_", lambda x: x.resize_(1), "resize_\\(\\) takes no tensors"),
    ("a list of its elements", lambda x: cg.tensor([x[0, 0], x[0, 1]]), "vmap: It looks like you're calling .item"),
    ("arange", lambda x: cg.arange(x[0, 0]), "vmap: It looks like you're calling .item"),
    ("NumPy's out", lambda x: np.add(x, 1, out=np.zeros((2, 3))), "vmap: It looks like you're calling .item"),
    ("masked_select by many", lambda x: x.masked_select(x > 0), "vmap: We do not support batching operators that can output dynamic"),
    ("where, one argument", lambda x: cg.where(x > 0), "vmap: We do not support batching operators that can output dynamic shape"),
    ("in", lambda x: 2.0 in x, "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow"),
    ("as a dim", lambda x: x.sum(x[0, 0].long()), "vmap: It looks like you're calling .item"),
    ("as a size", lambda x: x.expand(x[0, 0].long(), 2, 3), "vmap: It looks like you're calling .item"),
    ("as a size of new", lambda x: x.new_zeros(x[0, 0].long()), "vmap: It looks like you're calling .item"),
]


OUT = [lambda x, out: cg.add(x, x, out=out), lambda x, out: cg.sum(x, out=out), lambda x, out: cg.outer(x[0], x[0], out=out),
       lambda x, out: cg.hstack([x, x], out=out), lambda x, out: cg.where(x > 0, x, x, out=out),
       lambda x, out: cg.max(x, 0, out=(out, out)), lambda x, out: np.add(x, x, out=out)]


@pytest.mark.parametrize("call", OUT)
def test_out(call):
    out = cg.zeros(2, 3, dtype=cg.float64)
    with pytest.raises(RuntimeError, match="Batching rule not implemented for .*out; the fallback path doesn't work on out= or view ops"):
        vmap(lambda x: call(x, out))(F)
    with pytest.raises(RuntimeError, match="Batching rule not implemented for"):
        vmap(lambda x: call(ROW[None], x))(F)
    with pytest.raises(NotImplementedError, match="Trying to use forward AD with .*_out that does not support it because it is an out="):
        jvp(lambda x: call(x, out), (F[0],), (F[0],))
    with pytest.raises(NotImplementedError, match="Trying to use forward AD with"):
        jvp(lambda x: call(ROW[None], x), (F[0].clone(),), (F[0],))
    assert not out.any()


@pytest.mark.cases(("f", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(f, message):
    before = array_of(F)
    with pytest.raises((RuntimeError, BufferError), match=message):
        vmap(lambda x: (f(x), x)[1])(F)
    np.testing.assert_array_equal(array_of(F), before)
