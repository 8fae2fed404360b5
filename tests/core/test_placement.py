"""Gradients of parts, added at their place in the gradient of the whole: the same bits as spread over zeros, and the same observations."""

import contextlib
import gc
import threading

import numpy as np
import pytest

import cygrad as cg
from core.test_memory import allocations
from cygrad.autograd import Function, forward_ad, grad, profiler
from cygrad.func import hessian, jvp, vmap
from cygrad.ops.dtypes import DTYPES
from samples import array_of, same_bits

SHAPE = (6, 5, 4)
INDEX = np.array([[0, 2, 0], [5, 2, 1]])


def leaf(shape=SHAPE, dtype="float64", seed=0):
    return cg.tensor(np.random.default_rng(seed).standard_normal(shape).astype(dtype), requires_grad=True)


@pytest.mark.parametrize("dtype", [row.name for row in DTYPES if row.is_differentiable])
def test_parts_of_every_dtype(dtype):
    """Small parts end within a vector: the elements behind them belong to another tensor, also if their gradients are longer."""
    factor, weight = (cg.full((64,), value, dtype=getattr(cg, dtype)) for value in (2, 4))      # sums are exact in any format
    for first in range(1, 30):
        size = 2 * first + 3
        x = cg.ones(size, dtype=getattr(cg, dtype), requires_grad=True)
        parts = slice(first), slice(first, None), slice(first), slice(2, first + 2)
        lengths = [len(range(size)[part]) for part in parts]
        y = [x[part] * factor[:length] for part, length in zip(parts, lengths, strict=True)]
        g, = grad(y, x, [weight[:length] for length in lengths])
        assert g.real.tolist() == [8 * sum(place in range(size)[part] for part in parts) for place in range(size)]


def nodes_of(*results):
    """Return all nodes of a graph except accumulators of leaves."""
    nodes, waiting = [], [result.grad_fn for result in results]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in nodes and node.name() != "AccumulateGrad":
            nodes.append(node)
            waiting += [follower for follower, _ in node.next_functions]
    return nodes


def spread(*results):
    """Put hooks on the nodes, which keep their gradients from being placed."""
    for node in nodes_of(*results):
        node.register_prehook(lambda grads: None)


def total(parts):
    """Return a number in which each part has another weight, so that exchanged parts change it."""
    return sum(((k + 0.5) * part * part.detach().cos()).sum() for k, part in enumerate(parts))


# Reads of a tensor: of one output or several, with parts that overlap, of parts, and beside other readers.
PARTS = {
    "select": lambda x: [x[0], x[-1], x[2], x[2]],
    "elements": lambda x: [x[k % 6, k % 5, k % 4] for k in range(12)],
    "chained elements": lambda x: [x[k % 6][k % 5][k % 4] for k in range(12)],
    "slice": lambda x: [x[1:], x[:-1], x[::2, 1:4], x[2:2]],
    "steps": lambda x: [x[:, ::3], x[1::2, :, 1::2]],
    "new dims": lambda x: [x[None, 1], x[:, None, 2:], x[..., 1, None]],
    "narrow": lambda x: [x.narrow(0, 1, 3), x.narrow(2, 0, 2), x.select(1, 3)],
    "iteration": lambda x: [row for matrix in x for row in matrix],
    "unbind": lambda x: [*x.unbind(1)[::2], *x.unbind(2)],
    "split": lambda x: [*x.split(4), *x.split([1, 2, 2], 1)[1:], x.chunk(3, 2)[0]],
    "splits that give one part": lambda x: [x.split(6)[0][1:], x.chunk(1, 1)[0][2], x[:1].unbind()[0][3], x.split([5], 1)[0]],
    "tensor_split": lambda x: [*x.tensor_split(4), *x.tensor_split([1, 3], 1)],
    "diagonal": lambda x: [x.diagonal(), x.diagonal(1, 0, 2), x.diagonal(-2)],
    "unfold": lambda x: [x.unfold(0, 3, 1), x.unfold(1, 2, 2), x.unfold(2, 4, 1), x[1].unfold(0, 3, 2)],
    "index": lambda x: [x[INDEX[0]], x[:, INDEX[1] % 5], x[INDEX[0], INDEX[1] % 5], x[cg.tensor(INDEX)], x[x.detach() > 0]],
    "index_select": lambda x: [x.index_select(0, cg.tensor([0, 3, 0])), x[1:].index_select(1, cg.tensor([4, 4]))],
    "gather": lambda x: [x.gather(0, cg.tensor(INDEX[:, :, None])), x[0].gather(1, cg.tensor([[3, 3, 0]]))],
    "take": lambda x: [x.take(cg.tensor([0, 119, 0])), x[1].take(cg.tensor(INDEX))],
    "extrema": lambda x: [x.max(0).values, x.min(2, True).values, x[1:].max(-2).values, x[0, 0].max(0).values, x[1, 1, 1].min(0).values],
    "parts of parts": lambda x: [x[1:][2:4][0], x[1:4].diagonal()[1], x[2][1:3], x.split(2)[1][0, 1:], x[::2][:, 1].unbind()[2]],
    "a part read twice": lambda x: [part for row in [x[1], x[2:]] for part in (row[0], row[-1], row * 2, row[..., 1:])],
    "rearranged": lambda x: [x.T[1], x.reshape(30, 4)[3:9], x.permute(2, 0, 1)[1:, 2], x.transpose(0, 1)[0].reshape(-1)[5]],
    "repeated": lambda x: [x[1:2].expand(7, 5, 4), x[:, :1].expand(-1, 5, -1)[2], x[0, 0, 0].expand(3)],
    "beside others": lambda x: [x[0], x * 2, x[1:], x.sum(0), x[2, 3], x],
    "in other dtypes": lambda x: [x[0].float(), x[1:].float()[1], x.float()[2], x[3]],
}


def gradients(program, dtype="float64", watched=False, **options):
    x = leaf(dtype=dtype)
    y = x * 1.5
    parts = program(y) + program(x)
    result = total(parts)
    if watched:
        spread(result)
    return [array_of(g) for g in grad(result, [x, y], **options)]


SUMMED = {"unfold", "index", "index_select", "gather", "take"}      # elements that one reader reads twice are summed in another order


def check(name, results, expected):
    for a, b in zip(results, expected, strict=True):
        if name in SUMMED:
            np.testing.assert_allclose(a, b, rtol=1e-14 if a.dtype == np.float64 else 1e-5, atol=1e-15)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.cases("dtype", ["float64", "float32"])
def test_placed_gradients_have_the_bits_of_gradients_spread_over_zeros(name, dtype):
    check(name, gradients(PARTS[name], dtype), gradients(PARTS[name], dtype, watched=True))


@pytest.mark.parametrize("name", PARTS)
def test_observers_of_the_wholes_see_the_same_gradients(name):
    """Hooks on a tensor and its retained gradient, inputs that are no leaves, and gradients added to `.grad`."""
    def seen(watched):
        x = leaf()
        y = x * 1.5
        z = y[:]
        result, hooked = total(PARTS[name](z) + PARTS[name](y)), []
        z.retain_grad()
        y.register_hook(hooked.append)
        x.register_post_accumulate_grad_hook(lambda x: hooked.append(x.grad.clone()))
        if watched:
            spread(result)
        result.backward(retain_graph=True)
        result.backward(inputs=[x, z], retain_graph=True)
        return [array_of(g) for g in (*hooked, z.grad, x.grad, *grad(result, [z, y]))]

    placed, expected = seen(False), seen(True)
    assert len(placed) == 8
    check(name, placed, expected)


@pytest.mark.parametrize("name", PARTS)
def test_recorded_and_batched_gradients_and_tangents_are_the_same(name):
    if name in ("index", "in other dtypes"):        # a mask has no shape inside of vmap
        return
    x = leaf()

    def value(x):
        return total(part.sin() for part in PARTS[name](x * 1.0) + PARTS[name](x))

    first, = grad(value(x), x, create_graph=True)
    plain, = grad(value(x), x)
    np.testing.assert_allclose(array_of(first), array_of(plain), rtol=1e-12)
    second, = grad((first * first.detach().cos()).sum(), x)
    _, tangent = jvp(lambda x: grad(value(x), x, create_graph=True)[0], (x.detach().requires_grad_(),), (first.detach().cos(),))
    np.testing.assert_allclose(array_of(tangent), array_of(second), rtol=1e-10, atol=1e-12)

    parts = PARTS[name](x * 1.0) + PARTS[name](x)
    rows = cg.stack([part.sin().sum() for part in parts])
    weights = cg.eye(len(parts), dtype=cg.float64)
    batched, = grad(rows, x, weights, is_grads_batched=True, retain_graph=True)
    for weight, row in zip(weights, batched, strict=True):
        np.testing.assert_allclose(array_of(grad(rows, x, weight, retain_graph=True)[0]), array_of(row), rtol=1e-12, atol=1e-14)


# ----- Observations of a node -----
def test_hooks_of_the_part_see_its_gradient_as_large_as_the_whole():
    x = leaf((4,))
    y = x[1:3]
    seen = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs[0].tolist(), outputs[0].tolist())))
    (y.sum() + x[0]).backward()
    assert seen == [([0, 1, 1, 0], [1, 1])]
    assert x.grad.tolist() == [1, 1, 1, 0]


def test_a_hook_may_replace_the_gradient_of_a_part():
    x = leaf((4,))
    first, second = x[1:3], x[2:]
    first.register_hook(lambda g: g * 10)
    second.grad_fn.register_prehook(lambda grads: (grads[0] * 100,))
    (first.sum() + second.sum() + x[3]).backward()
    assert x.grad.tolist() == [0, 10, 110, 101]


@pytest.mark.filterwarnings("ignore:Error detected", "ignore:Anomaly Detection")
def test_anomaly_mode_finds_the_part_whose_gradient_is_no_number():
    x = leaf((4,))
    with cg.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan"):
        ((x[0] * 0).sqrt() * 0 + x[1]).backward()
    y = x.clone()[1]
    y.register_hook(lambda g: g * float("nan"))
    with cg.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match=r"'SelectBackward0' returned nan"):
        y.backward()


def test_a_profile_has_an_event_for_each_part():
    x = leaf((4,))
    with profiler.profile() as profile:
        (x[0] + x[1:].sum() + x.unbind()[1]).backward()
    names = [event.name for event in profile.function_events]
    for name in ("SelectBackward0", "SliceBackward0", "UnbindBackward0"):
        assert any(name in each for each in names)
    assert x.grad.tolist() == [1, 2, 1, 1]


def test_a_saved_index_that_was_changed_is_refused():
    x, index = leaf((4,)), cg.tensor([0, 1])
    y = x.index_select(0, index) + x.gather(0, index)
    index[0] = 3
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_hooks_on_saved_tensors_run_once_for_each():
    x, unpacked = leaf((4,)), []
    with cg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: unpacked.append(t) or t):
        y = x.gather(0, cg.tensor([0, 1])) + x[2:]
    y.sum().backward()
    assert len(unpacked) == 1
    assert x.grad.tolist() == [1, 1, 1, 1]


def test_a_graph_that_was_freed_is_refused():
    x = leaf((4,))
    for read in (lambda x: x[cg.tensor([0, 1])], lambda x: x.index_select(0, cg.tensor([0, 1]))):
        y = read(x).sum()
        y.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()


# ----- Gradients with other references -----
def test_the_weight_stays_unchanged():
    x, weight = leaf((4,)), cg.ones(4, dtype=cg.float64)
    y = x * 2
    cg.autograd.backward([y, y[1], y[2:], y.view(2, 2)[0]], [weight, weight[0], weight[:2], weight[2:]])
    assert weight.tolist() == [1] * 4
    assert x.grad.tolist() == [4, 6, 4, 4]


def test_a_gradient_that_goes_to_two_places_is_not_written_over():
    x, y = leaf((4,)), leaf((4,))
    a, b = x * 1, y * 1
    joined = cg.cat([a, b]) + cg.stack([a, b]).reshape(-1)
    seen = []
    joined.register_hook(seen.append)
    total([joined, a[1], b[2:], a[0]]).backward()
    copy = seen[0].clone()
    assert same_bits(array_of(copy), array_of(seen[0]))
    other = [leaf((4,)), leaf((4,))]
    result = total([cg.cat(other) + cg.stack(other).reshape(-1), other[0][1], other[1][2:], other[0][0]])
    spread(result)
    for expected, gradient in zip(grad(result, other), (x.grad, y.grad), strict=True):
        np.testing.assert_allclose(array_of(gradient), array_of(expected), rtol=1e-15)


def test_a_gradient_without_memory_of_its_own_is_copied_before_it_is_added_to():
    class Repeated(Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return g.expand(4)

    x = leaf((4,))
    (x[0] + Repeated.apply(x) + x[1:].sum() + x.sum()).backward()
    assert x.grad.tolist() == [3, 3, 3, 3]


def test_gradients_of_one_backward_stay_unchanged_in_the_next():
    x = leaf((4,))
    y = x * 1
    result = y[0] + y[1:].sum() + y[2]
    first, = grad(result, y, retain_graph=True)
    second, = grad(result, y, retain_graph=True)
    result.backward()
    assert first.tolist() == second.tolist() == x.grad.tolist() == [1, 1, 2, 1]
    assert first.data_ptr() != second.data_ptr()


def test_parts_of_a_tensor_changed_in_place():
    def gradient(watched):
        x = leaf()
        y = x * 1.5
        before = y[0] * 2
        y[1] = y[2].clone() * x[3]
        y[2, 1:].mul_(3)
        view = y[2:4]
        view[0] += x[0]
        result = total([before, y[1], view[0], view[1, 2], y[2][1]])
        if watched:
            spread(result)
        return array_of(grad(result, x)[0])

    np.testing.assert_allclose(gradient(False), gradient(True), rtol=1e-14)


def test_gradients_of_a_subclass():
    class Named(cg.Tensor):
        pass

    x = leaf((4,))
    weight = cg.ones(2, dtype=cg.float64).as_subclass(Named)
    cg.autograd.backward([x[1:3], x[0], x[2:]], [weight, cg.tensor(1.0, dtype=cg.float64), weight])
    assert x.grad.tolist() == [1, 1, 2, 1]
    assert weight.tolist() == [1, 1]


def test_gradients_that_have_tangents():
    x = leaf((4,))
    y = x * 1
    result = [y[0], y[1:3], y[2:]]
    with forward_ad.dual_level():
        weights = [forward_ad.make_dual(part.detach().cos(), part.detach().sin()) for part in result]
        g, tangent = forward_ad.unpack_dual(grad(result, x, weights)[0])
    value = array_of(x.detach())
    times = np.array([1, 1, 2, 1])
    np.testing.assert_allclose(array_of(g), times * np.cos(value))
    np.testing.assert_allclose(array_of(tangent), times * np.sin(value))


@pytest.mark.parametrize("dual", [0, 1, 2])
def test_gradients_of_which_one_has_a_tangent(dual):
    x = leaf((3, 2))
    rows = x.unbind()
    with forward_ad.dual_level():
        weights = [row.detach().cos() for row in rows]
        weights[dual] = forward_ad.make_dual(weights[dual], cg.ones(2, dtype=cg.float64))
        g, tangent = forward_ad.unpack_dual(grad(rows, x, weights)[0])
    np.testing.assert_array_equal(array_of(g), array_of(x.detach().cos()))
    assert array_of(tangent).tolist() == [[float(row == dual)] * 2 for row in range(3)]


def test_gradients_of_which_one_is_one_of_many():
    x = leaf((3, 2))
    for order in ([0, 1, 2], [2, 0, 1]):
        def weighted(w, order=order):
            rows = x.unbind()
            weights = [cg.ones(2, dtype=cg.float64), w, cg.ones(2, dtype=cg.float64)]
            return grad([rows[k] for k in order], x, [weights[k] for k in order])[0]

        many = vmap(weighted)(cg.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=cg.float64))
        assert many.tolist() == [[[1, 1], [1, 2], [1, 1]], [[1, 1], [3, 4], [1, 1]]]


def test_batches_in_batches():
    def value(x):
        return x[0] * x[1] * x[2] + (x[1:] * x[:-1]).sum().sin()

    x = cg.tensor(np.random.default_rng(0).standard_normal((3, 4)))
    hessians = vmap(hessian(value))(x)
    for row, matrix in zip(x, hessians, strict=True):
        np.testing.assert_allclose(array_of(cg.autograd.functional.hessian(value, row)), array_of(matrix), rtol=1e-12)
        np.testing.assert_allclose(array_of(cg.autograd.functional.hessian(value, row, vectorize=True)), array_of(matrix), rtol=1e-12)


def test_two_threads_on_one_graph():
    x = leaf((200,))
    y = x * 1
    result = total([y[k] for k in range(200)] + [y[k:k + 3] for k in range(0, 190, 7)])
    expected, = grad(result, x, retain_graph=True)
    gradients = []

    def run():
        gradients.extend(array_of(grad(result, x, retain_graph=True)[0]) for _ in range(20))

    workers = [threading.Thread(target=run) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(gradients) == 60
    assert all(same_bits(each, array_of(expected)) for each in gradients)


# ----- Cost -----
COUNT = 40


@pytest.mark.parametrize("read", [
    lambda x: [x[k] for k in range(COUNT)],
    lambda x: [x[k:k + 5] for k in range(COUNT)],
    lambda x: list(x)[::2],
    lambda x: x.split(3),
    lambda x: [x.reshape(COUNT, -1)[0].narrow(0, 1, 2)] * 2,
    lambda x: [x[2:][1:][k] for k in range(COUNT)],
])
def test_parts_take_only_the_memory_of_the_whole(read):
    x = leaf((100 * COUNT,))
    parts = read(x)
    weights = [cg.ones(part.shape, dtype=cg.float64) for part in parts]

    def run():
        x.grad = None
        cg.autograd.backward(parts, weights, retain_graph=True)

    count = allocations(run)
    assert count <= 2 + (len(parts) == 2)
    assert array_of(x.grad).sum() == sum(weight.numel() for weight in weights)


@pytest.mark.parametrize("read", [lambda x: x[[0, 2], [1, 1]], lambda x: x.gather(1, cg.tensor([[2]])), lambda x: x.max(1).values])
@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 2])
def test_elements_are_added_to_another_gradient_and_no_zeros_are_made(read, make):
    """Whichever comes first: the reader that is newer puts itself behind the other one."""
    whole = make(leaf((40, 50)))
    for part_is_newer in (True, False):
        other = whole.exp() if part_is_newer else None
        part = read(whole)
        other = whole.exp() if other is None else other
        counts, gradients = [], []
        for results in ([part], [other], [part, other]):
            weights = [cg.ones(result.shape, dtype=cg.float64) for result in results]
            counts.append(allocations(lambda: grad(results, whole, weights, retain_graph=True)))     # noqa: B023  # called at once
            gradients.append(array_of(*grad(results, whole, weights, retain_graph=True)))
        assert counts[2] < counts[0] + counts[1]
        np.testing.assert_array_equal(gradients[2], gradients[0] + gradients[1])


def test_an_error_on_the_way_leaves_no_memory():
    x = leaf((1000,))
    with contextlib.suppress(RuntimeError):
        y = x * 1
        y.register_hook(lambda g: g[:5])
        (y[0] + y[1:3].sum()).backward()
    assert x.grad is None
    del y
    gc.collect()
    (x[0] + x[1:3].sum()).backward()
    assert array_of(x.grad).sum() == 3


def test_gradients_with_repeated_indices_are_added_in_one_order():
    """Rows that are added twice to one gradient: two nodes wait for others to run, and the newest of them is always first."""
    numbers = np.random.default_rng(1)
    arrays = [numbers.uniform(0.3, 0.9, shape) for shape in ((5, 7), (2, 5, 7), (5, 7))]
    index = cg.tensor([0, 0])

    def inner(a, b):
        return grad((a * b).sin().sum(), a, create_graph=True)[0]

    def function(u, v, w):
        wide, shifted = u.expand(2, 5, 7), v - 1.25
        largest, doubled = cg.maximum(shifted, w), v.detach() * 2 + shifted
        product = inner(u, u)
        scaled = w.float() * wide
        first, second = doubled.index_select(0, index), doubled.index_select(0, index)
        return scaled, first, inner(v, second), product.clone().mul_(0.5).add_(largest.mean())

    seen = set()
    for _ in range(60):
        leaves = [cg.tensor(array, requires_grad=True) for array in arrays]
        gradients = grad([result.sum() for result in function(*leaves)], leaves)
        seen.add(tuple(array_of(gradient).tobytes() for gradient in gradients))
    assert len(seen) == 1
