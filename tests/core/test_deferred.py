"""Large recorded results stay pending until they are read: the same bits, also if they join, die or fail before."""

import gc
import itertools
import os
import random

import numpy as np
import pytest

import cygrad as cg
from cygrad._kernels.system.threads import thread_report
from cygrad._testing import fail_alloc, live_bytes, pending_results, threads_used
from cygrad.ops import ELEMENTWISE
from pending import SIZE, arrays, at_once, leaves, results_with_failing_allocations
from samples import array_of, operands, same_bits, threads

pytestmark = pytest.mark.usefixtures("small_results_are_pending")

FLOATS = ("float32", "float64")


# ----- The same bits -----
def chain(a, b, c, d):
    return (cg.tanh(a * b + c) * d).sum()


def survivors(a, b, c, d):
    """Some results stay alive, read only in part."""
    x = a * b
    y = x.exp() - c
    z = (y * x).sigmoid() / d
    return z.mean() + x[7] + y.reshape(-1)[-1]


def scalars(a, b, c, d):
    return (3.0 / (a * 2.0 - b) + (c ** 3) * (1 - d)).sum()


def long(a, b, c, d):
    x = a
    for other in itertools.islice(itertools.cycle((b, c, d)), 50):
        x = x * 0.5 + other
    return x.sum()


def wide(a, b, c, d):
    """More arrays than one program reads."""
    products = [x * y for x, y in itertools.product((a, b, c, d), repeat=2)]
    return sum(p.sin() for p in products).amax()


def params(a, b, c, d):
    return (cg.clamp(a * b, 0.2, 0.6) + cg.softplus(c, beta=2.0) + cg.leaky_relu(d - 0.5, 0.1)).logsumexp(0)


def lengths(a, b, c, d):
    """Another length and another dtype in between."""
    x, y = a * b, c[:4000] * d[:4000]
    z = x.float() * 2.0
    return (x + c).sum() + y.sum() + z.sum()


def reduced_again(a, b, c, d):
    x = (a * b).exp() + c
    return x.sum() + x.amax() + x.mean() + (x * d).prod().clamp(max=1.0) + x.std()


def reduced_and_built_upon(a, b, c, d):
    x = (a * b).exp()
    y = cg.leaky_relu((x * c).tanh() - 0.6, 0.3)
    s = y.sum()
    z = cg.leaky_relu(y * d - 0.1, 0.2)       # its parameters must not replace the ones of y
    return s + z.sum() + y.amin()


def reduced_views(a, b, c, d):
    """Views with as many elements as the result, in another order or with repetitions."""
    x = (a * b).exp()
    s = x[5:6].expand(SIZE).sum() + x[:1].expand(SIZE).sum()
    y = (c * d).reshape(1, SIZE, 1)
    return s + y.permute(2, 1, 0).sum() + (a * c).as_strided((SIZE,), (0,)).sum() + (b * c).as_strided((SIZE // 2, 2), (1, 1)).mean()


def reduced_dims(a, b, c, d):
    """Trailing dims by rows and tiles, leading ones, and results that are needed besides or saved."""
    x, y, z = (value.reshape(-1)[:4992].reshape(12, 8, 52) for value in (a, b, c * d))
    u = (x * y).tanh()
    v = u.sum(-1) + (u - z).amax(-1) + (z * y).sum((1, 2))[:, None]
    w = (y * 2.0 - z).exp()
    return (v + w.sum(2)).sum() + (x - y).sum(0).prod() + (x * z + y).mean((0, 2)).sum() + (y / z).sum(1, keepdim=True).logsumexp(2).sum()


def converted_rows(a, b, c, d):
    """Rows of programs with steps that convert, that have parameters, and few long rows; each sum ends its program."""
    x, y, z, w = (value.reshape(-1)[:4992].reshape(78, 64) for value in (a, b, c, d))
    total = ((x * y).half().to(z.dtype) * z).sum(-1).sum()
    total = total + (x.half() * w.half() + 1).float().sum(1).sum()
    total = total + (cg.leaky_relu((x - y) * w, 0.1) + z.clamp(0.4, 0.6) * x).sum(1).exp().sum()
    total = total + cg.softplus(x * w, beta=2.0).amax(-1).sum() + ((z > 0.5) * (x * 2)).sum(1).sum()
    return total + ((a[:5000].half() * b[:5000]).reshape(2, 2500).double() * 2).sum(-1).sum()


PROGRAMS = (chain, survivors, scalars, long, wide, params, lengths, reduced_again, reduced_and_built_upon, reduced_views, reduced_dims,
            converted_rows)


def everything(program, dtype, size=SIZE):
    inputs = leaves(4, dtype, size)
    value = program(*inputs)
    value.backward()
    return [array_of(value), *(array_of(leaf.grad) for leaf in inputs)]


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_bits_as_at_once(program, dtype):
    with at_once():
        expected = everything(program, dtype)
    results = everything(program, dtype)
    assert all(same_bits(x, y) for x, y in zip(results, expected, strict=True))


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.cases("size", [1 << 17, (1 << 20) + 77])
def test_threads_and_streams(count, size):
    """The results of the larger size are written past the caches."""
    with threads(1), at_once():
        expected = everything(chain, "float64", size)
    with threads(count), threads_used() as used:
        results = everything(chain, "float64", size)
    assert all(same_bits(x, y) for x, y in zip(results, expected, strict=True))
    assert used.count == (count if count > 1 and thread_report()["openmp"] else 0)


ROWS = [row for row in ELEMENTWISE.values() if row.partials and "f" in row.kinds]


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows(row, dtype):
    """Each row runs after another one, so that it reads a result that was never written to memory."""
    def compute():
        inputs = [cg.tensor(np.resize(value, SIZE)) for value in operands(row, dtype, ((53,),) * len(row.operands))]
        for value in inputs:
            if value.is_floating_point():
                value.requires_grad_()
        before = [value * 1.0 if value.is_floating_point() else value for value in inputs]
        result = getattr(cg, row.name)(*before)
        return pending_results(), array_of(result.sum()), array_of(result)

    with at_once():
        _, *expected = compute()
    count, *results = compute()
    assert count > 1 or row.masks
    assert all(same_bits(x, y) for x, y in zip(results, expected, strict=True))


# ----- Programs at random -----
def random_step(stream, values, outside, log):
    """Take one step with the values; its observable results go to the log."""
    a, b, place = stream.choice(values), stream.choice(values), stream.randrange(len(values))
    waits = [
        lambda: values.append(a * b),
        lambda: values.append(0.7 - a),
        lambda: values.append(a.tanh() / (b * b + 0.5)),
        lambda: values.append(cg.leaky_relu(a - 0.5, 0.1) + b.sigmoid() * a),
        lambda: values.append(a + (a * b).sum().tanh()),
        lambda: values.extend((x := (a + b).sin(), x * 0.5, x.mean())),
        lambda: values.append(stream.choice([a.detach(), a.data, a.view(-1, 1)[:, 0]])),
        lambda: values.__delitem__(place) if len(values) > 3 else None,
        lambda: values.__delitem__(slice(-3, None)) if len(values) > 6 else None,
        lambda: log.append(bytes(memoryview(stream.choice([a.sum, a.amax, a.reshape(-1)[:1].expand(SIZE).sum])().detach()))),
    ]
    others = [
        lambda: log.append(array_of(a).tobytes()),
        lambda: values.extend(leaves(2)),
        lambda: a.detach().mul_(0.9),
        lambda: a.mul_(b) if a.grad_fn else None,
        lambda: a.data[3:9].copy_(b[:6].detach()),
        lambda: a.detach().set_(b.detach().clone()),
        lambda: outside.append(a.detach().numpy()),
        lambda: outside and np.multiply(outside[-1], 0.9, out=outside[-1]),
        lambda: outside.clear(),
        lambda: (a * b).sum().backward(retain_graph=place % 2 == 0) if a.requires_grad else None,
        lambda: values.extend(g for g in cg.autograd.grad(a.exp().sum(), (a, b), create_graph=True, allow_unused=True) if g is not None),
    ]
    stream.choice(waits if stream.random() < 0.8 else others)()


@pytest.mark.cases("first", range(0, 200, 25))
def test_programs_at_random(first):
    """All observations on the way and at the end, errors too, equal the observations of a run that defers nothing."""
    def run(seed):
        stream, outside, log, values = random.Random(seed), [], [], leaves(3)
        for _ in range(40):
            try:
                random_step(stream, values, outside, log)
            except (RuntimeError, IndexError) as error:
                log.append(str(error))
                for leaf in filter(lambda value: value.is_leaf, values):
                    leaf.grad = None        # of a backward that was refused midway, some have arrived
        return log + [array_of(x).tobytes() for value in values for x in (value, value.grad if value.is_leaf else None) if x is not None]

    start = live_bytes()
    for seed in range(first, first + 25):
        with at_once():
            expected = run(seed)
        assert run(seed) == expected, seed
    gc.collect()
    assert pending_results() == 0 and live_bytes() == start


# ----- Results that are deferred -----
def test_recorded_elementwise_results_are_deferred():
    a, b = leaves(2)
    x = a * b
    assert pending_results() == 1
    y = x + 1.0
    assert pending_results() == 2
    del x
    assert pending_results() == 1           # x is now a step of the other result
    s = y.sum()
    assert pending_results() == 2
    del y
    assert pending_results() == 1           # y is never written
    assert s.item() == ((a.detach() * b.detach()) + 1.0).sum().item()
    assert pending_results() == 0


def test_a_reduction_of_dims_leaves_its_operand_pending():
    a, b = (value.reshape(-1)[:4992].reshape(96, 52) for value in leaves(2))
    x = a * b + 1.0
    s = x.sum(1)
    assert pending_results() == 1           # x, which nothing has read
    del x
    assert pending_results() == 0 and same_bits(array_of(s), array_of((a.detach() * b.detach() + 1.0).sum(1)))
    y = (a * b).exp()
    y.sum(1)
    assert pending_results() == 0           # its node saved y, which is written while it is reduced


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "int64"])
@pytest.mark.parametrize("reduce", [
    lambda x: x.sum(1), lambda x: x.sum((1, 2)), lambda x: x.mean(1, keepdim=True) if x.dtype.is_floating_point else x.sum(1, keepdim=True),
    lambda x: x.sum((1, 3)), lambda x: x.sum((0, 2)), lambda x: x.prod(2),
], ids=["sum 1", "sum 1, 2", "mean 1", "sum 1, 3", "sum 0, 2", "prod 2"])
@pytest.mark.parametrize("shape", [(24, 26, 4, 2), (3, 400, 1, 5), (520, 2, 3, 2), (6, 5, 41, 4)], ids=str)
def test_reductions_of_dims_in_the_middle_run_with_their_operand(shape, reduce, dtype):
    a, b = (cg.tensor(np.resize(array, shape)).to(getattr(cg, dtype)) for array in arrays(2))
    a, b = (value.requires_grad_() if value.dtype.is_floating_point or value.dtype.is_complex else value for value in (a * 5, b * 3))
    with at_once():
        expected, whole = reduce(a * b + a), a * b + a
    x = a * b + a
    pending = pending_results()
    result = reduce(x)
    assert pending_results() == pending                 # x, which nothing has read
    assert same_bits(array_of(result), array_of(expected)) and same_bits(array_of(x), array_of(whole))
    y = a * b + a
    view = y[0]
    assert same_bits(array_of(reduce(y)), array_of(expected))       # y is written for its view
    assert same_bits(array_of(view), array_of(whole)[0])


@pytest.mark.parametrize("make", [
    lambda a, b: a[::2] * b[::2],
    lambda a, b: a * b[:1],
    lambda a, b: a[:5000].view(50, 100) * b[:5000].view(100, 50).mT,
    lambda a, b: a * b.float(),
    lambda a, b: a.half() * b.half(),
    lambda a, b: (a * b) > 0.3,
    lambda a, b: (a * b).half().double(),
    lambda a, b: a.float(),
    lambda a, b: (a * b).detach() + 1,
    lambda a, b: cg.where(b.detach() > 0.5, a, 0.5),
    lambda a, b: a[:5000].view(50, 100) * b[:50, None] + b[:100],
    lambda a, b: cg.exp(a.expand(2, SIZE)) * cg.complex(a, b),
], ids=["strides", "a number", "transposed", "dtypes", "half", "comparison", "conversions", "conversion", "unrecorded", "mask", "broadcast",
        "complex"])
def test_results_of_all_geometries_and_dtypes_are_deferred(make):
    a, b = leaves(2)
    with at_once():
        expected = make(a, b)
    result = make(a, b)
    assert pending_results() >= 1 and same_bits(array_of(result), array_of(expected))


@pytest.mark.parametrize("make", [
    lambda a, b: a.detach() * b.detach(),                           # not recorded
    lambda a, b: (a > b),
    lambda a, b: a[:100] * b[:100],
    lambda a, b: a[:5000].view(50, 100).mT * b[:5000].view(50, 100).mT,
    lambda a, b: cg.mul(a.detach(), b.detach(), out=cg.empty(SIZE, dtype=cg.float64)),
    lambda a, b: a.clone().mul_(b),
    lambda a, b: cg.frombuffer(bytearray(8 * SIZE), dtype=cg.float64).requires_grad_() * b,
], ids=["unrecorded", "comparison", "small", "not row-major", "out", "in place", "foreign"])
def test_other_results_are_not_deferred(make):
    a, b = leaves(2)
    result = make(a, b)
    assert pending_results() == 0
    assert result.numel() > 0


def test_results_are_deferred_inside_of_transforms():
    def f(x):
        y = (x * 2.0).exp()
        waited.append(pending_results())
        return (y * x).sum()

    (x,) = arrays(1)
    waited = []
    np.testing.assert_allclose(array_of(cg.func.grad(f)(cg.tensor(x))), np.exp(2 * x) * (1 + 2 * x))
    np.testing.assert_allclose(array_of(cg.autograd.functional.hvp(f, cg.tensor(x), cg.tensor(x))[1]), np.exp(2 * x) * (4 + 4 * x) * x)
    assert all(waited)


# ----- Results and operands that die -----
def test_unread_results_are_dropped():
    start = live_bytes()
    a, b = leaves(2)
    x = (a * b).exp() + b
    assert pending_results() == 2           # exp saves its result
    del a, b, x
    assert pending_results() == 0 and live_bytes() == start


def test_operands_live_until_the_result_is_computed():
    a, b = leaves(2)
    expected = array_of(a) + array_of(b)
    x = a + b
    del a, b
    for _ in range(4):
        cg.full((SIZE,), 7.0, dtype=cg.float64)     # would take the operands' memory
    np.testing.assert_array_equal(array_of(x), expected)


def test_memory_of_a_dropped_result_is_used_again():
    """The next result gets the memory of the dropped one: the program must not confuse the two."""
    with at_once():
        expected = everything(long, "float64")
    for _ in range(3):
        assert all(same_bits(x, y) for x, y in zip(everything(long, "float64"), expected, strict=True))


def test_allocations_that_fail():
    with at_once():
        expected = everything(survivors, "float64")
    attempts = [*results_with_failing_allocations(lambda: everything(survivors, "float64"))]
    assert len(attempts) > 20 and all(same_bits(x, y) for x, y in zip(attempts[-1], expected, strict=True)) and pending_results() == 0


def test_memory_held_by_pending_results_only():
    """If an allocation fails, pending results are computed, and it is tried again."""
    a, b = leaves(2)
    x = a + b
    with fail_alloc(1) as failure:
        cg.zeros(SIZE)
    assert failure.fired and pending_results() == 0
    np.testing.assert_array_equal(array_of(x), array_of(a) + array_of(b))


def test_a_garbage_collection_while_a_result_is_made():
    """A finalizer that runs there may hand an operand's memory to NumPy."""
    class Cycle:
        def __init__(self):
            self.own = self

        def __del__(self):
            outside.append(a.detach().numpy())

    outside = []
    a, b = leaves(2)
    expected = array_of(a) * array_of(b)
    gc.disable()
    try:
        Cycle()
        alive = [a.detach() for _ in range(1 << 15)]        # no dead tensor is left for reuse, and a collection is due
    finally:
        gc.enable()
    x = a * b
    gc.collect()
    outside[0][:] = 0
    np.testing.assert_array_equal(array_of(x), expected)
    assert alive


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_computes_pending_results():
    a, b = leaves(2)
    x = (a * b).exp()
    s = x.sum()
    child = os.fork()
    if not child:
        right = np.array_equal(array_of(x), np.asarray((a.detach() * b.detach()).exp())) and s.item() == x.sum().item()
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert s.item() == x.sum().item()


def test_profiled_operators_are_not_deferred():
    a, b = leaves(2)
    y = a + b
    with cg.autograd.profiler.profile() as profile:
        assert pending_results() == 0       # else operands that y keeps would be freed in the profile
        x = a * b
        assert pending_results() == 0
    assert x.numel() == y.numel() and any(event.name.endswith("mul") for event in profile.function_events)
