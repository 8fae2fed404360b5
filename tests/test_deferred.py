"""Large recorded results wait until somebody looks: nobody can tell, whatever is looked at, written to or given up meanwhile."""

import contextlib
import copy
import ctypes
import gc
import io
import itertools
import os
import pickle
import random
import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad._kernels.threads import thread_report
from cygrad._testing import defer_from, fail_alloc, live_bytes, threads_used, waiting_results
from cygrad.ops import ELEMENTWISE
from samples import array_of, operands, same_bits, threads

SIZE = 5003         # no whole number of blocks, nor of vectors, nor of a reduction's blocks
FLOATS = ("float32", "float64")


@pytest.fixture(autouse=True)
def small_results_wait():
    before = defer_from(2048)       # below, operators do not ask
    yield
    defer_from(before)


@contextlib.contextmanager
def at_once():
    """Have nothing wait."""
    before = defer_from(1 << 62)
    try:
        yield
    finally:
        defer_from(before)


def arrays(count, dtype="float64", size=SIZE):
    stream = np.random.default_rng(count)
    return [stream.uniform(0.3, 0.9, size).astype(dtype) for _ in range(count)]


def leaves(count, dtype="float64", size=SIZE):
    return [cg.tensor(array, requires_grad=True) for array in arrays(count, dtype, size)]


# ----- The same bits -----
def chain(a, b, c, d):
    return (cg.tanh(a * b + c) * d).sum()


def kept(a, b, c, d):
    """Results that live on, in part."""
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


def folded_again(a, b, c, d):
    x = (a * b).exp() + c
    return x.sum() + x.amax() + x.mean() + (x * d).prod().clamp(max=1.0) + x.std()


def folded_and_built_upon(a, b, c, d):
    x = (a * b).exp()
    y = cg.leaky_relu((x * c).tanh() - 0.6, 0.3)
    s = y.sum()
    z = cg.leaky_relu(y * d - 0.1, 0.2)       # its parameters must not take the place of those of y
    return s + z.sum() + y.amin()


def folded_views(a, b, c, d):
    """Views of as many elements as there are, in another order or one of them several times."""
    x = (a * b).exp()
    s = x[5:6].expand(SIZE).sum() + x[:1].expand(SIZE).sum()
    y = (c * d).reshape(1, SIZE, 1)
    return s + y.permute(2, 1, 0).sum() + (a * c).as_strided((SIZE,), (0,)).sum() + (b * c).as_strided((SIZE // 2, 2), (1, 1)).mean()


PROGRAMS = (chain, kept, scalars, long, wide, params, lengths, folded_again, folded_and_built_upon, folded_views)


def everything(program, dtype, size=SIZE):
    inputs = leaves(4, dtype, size)
    value = program(*inputs)
    value.backward()
    return [array_of(value), *(array_of(leaf.grad) for leaf in inputs)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_bits_as_at_once(program, dtype):
    with at_once():
        expected = everything(program, dtype)
    found = everything(program, dtype)
    assert all(same_bits(x, y) for x, y in zip(found, expected, strict=True))


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [1 << 17, (1 << 20) + 77])
def test_threads_and_streams(count, size):
    """Of the larger ones the results are written past the caches."""
    with threads(1), at_once():
        expected = everything(chain, "float64", size)
    with threads(count), threads_used() as used:
        found = everything(chain, "float64", size)
    assert all(same_bits(x, y) for x, y in zip(found, expected, strict=True))
    assert used.count == (count if count > 1 and thread_report()["openmp"] else 0)


ROWS = [row for row in ELEMENTWISE.values() if row.partials and "f" in row.kinds]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows(row, dtype):
    """Each row after another one, so that it reads what was never written."""
    def compute():
        inputs = [cg.tensor(np.resize(value, SIZE)) for value in operands(row, dtype, ((53,),) * len(row.operands))]
        for value in inputs:
            if value.is_floating_point():
                value.requires_grad_()
        before = [value * 1.0 if value.is_floating_point() else value for value in inputs]
        result = getattr(cg, row.name)(*before)
        return waiting_results(), array_of(result.sum()), array_of(result)

    with at_once():
        _, *expected = compute()
    count, *found = compute()
    assert count > 1 or row.masks
    assert all(same_bits(x, y) for x, y in zip(found, expected, strict=True))


# ----- Programs at random -----
def random_step(stream, values, outside, log):
    """Do one thing with what there is; what it shows goes to the log."""
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


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_programs_at_random(first):
    """What is seen on the way and at the end, errors too, is what is seen where nothing waits."""
    def run(seed):
        stream, outside, log, values = random.Random(seed), [], [], leaves(3)
        for _ in range(40):
            try:
                random_step(stream, values, outside, log)
            except (RuntimeError, IndexError) as error:
                log.append(str(error))
        return log + [array_of(x).tobytes() for value in values for x in (value, value.grad if value.is_leaf else None) if x is not None]

    start = live_bytes()
    for seed in range(first, first + 25):
        with at_once():
            expected = run(seed)
        assert run(seed) == expected, seed
    gc.collect()
    assert waiting_results() == 0 and live_bytes() == start


# ----- What waits -----
def test_who_waits():
    a, b = leaves(2)
    x = a * b
    assert waiting_results() == 1
    y = x + 1.0
    assert waiting_results() == 2
    del x
    assert waiting_results() == 1           # a step of another result's now
    s = y.sum()
    assert waiting_results() == 1           # not even now, as it may be a temporary
    del y
    assert waiting_results() == 0
    assert s.item() == ((a.detach() * b.detach()) + 1.0).sum().item()
    y = a.exp()
    assert waiting_results() == 1
    s = y.sum()
    assert waiting_results() == 0           # its node saved it, so it is needed


@pytest.mark.parametrize("make", [
    lambda a, b: a.detach() * b.detach(),                           # not recorded
    lambda a, b: (a > b),
    lambda a, b: a[::2] * b[::2],
    lambda a, b: a * b[:1],
    lambda a, b: a[:100] * b[:100],
    lambda a, b: a * b.float(),
    lambda a, b: cg.mul(a.detach(), b.detach(), out=cg.empty(SIZE, dtype=cg.float64)),
    lambda a, b: a.clone().mul_(b),
    lambda a, b: cg.frombuffer(bytearray(8 * SIZE), dtype=cg.float64).requires_grad_() * b,
], ids=["unrecorded", "comparison", "strides", "broadcast", "small", "dtypes", "out", "in place", "foreign"])
def test_who_does_not_wait(make):
    a, b = leaves(2)
    result = make(a, b)
    assert waiting_results() == 0
    assert result.numel() > 0


@pytest.mark.parametrize("compute", [lambda: cg.ones(40_000) + 1, lambda: cg.ones(SIZE, requires_grad=True) * 2], ids=["plain", "recorded"])
def test_nothing_waits_once_two_threads_compute(compute):
    """One that does other things does not matter."""
    a, b = leaves(2)
    go, done = threading.Event(), threading.Event()
    idle = threading.Thread(target=lambda: (go.set(), done.wait(10)))
    idle.start()
    go.wait(10)
    x = a * b
    assert waiting_results() == 1
    done.set()
    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()
    idle.join()
    y = a * b
    assert waiting_results() == 0
    np.testing.assert_array_equal(array_of(x), array_of(y))


def test_another_thread_reads_what_waits():
    a, b = leaves(2)
    x = a * b
    assert waiting_results() == 1
    seen = []
    thread = threading.Thread(target=lambda: seen.append(array_of(x + 0)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(seen[0], array_of(a) * array_of(b))


# ----- What is written to meanwhile -----
def by_view(a):
    a.detach()[3:9].mul_(5)


def by_setitem(a):
    with cg.no_grad():
        a[5] = 100.0


def by_data(a):
    a.data.add_(1)


def by_assigning_data(a):
    a.data = cg.zeros(SIZE, dtype=cg.float64)


def by_out(a):
    cg.zeros(SIZE, dtype=cg.float64).add(1, out=a.detach())
    cg.add(cg.zeros(2, dtype=cg.float64), 7, out=a.detach()[1:3])


def by_numpy(a):
    a.detach().numpy()[:] = 3


def by_buffer(a):
    np.frombuffer(a.detach(), dtype="float64")[:] = 3


def by_dlpack(a):
    np.from_dlpack(a.detach().clone().copy_(a.detach()))
    np.asarray(a.detach())[:] = 4


def by_address(a):
    ctypes.memset(a.data_ptr(), 0, 8 * SIZE)


def by_random_numbers(a):
    cg.rand(SIZE, dtype=cg.float64, out=a.detach())


def by_resize(a):
    a.detach().resize_(2 * SIZE).zero_()


def by_set(a):
    a.detach().set_(cg.zeros(3, dtype=cg.float64))


def by_scatter(a):
    a.detach().index_fill_(0, cg.tensor([1, 2]), 9.0)
    a.detach().masked_fill_(cg.ones(SIZE, dtype=cg.bool), 2.0)


def by_copy(a):
    a.detach().copy_(cg.zeros(SIZE))
    a.detach()[:3].copy_(cg.ones(3))


WRITES = (by_view, by_setitem, by_data, by_assigning_data, by_out, by_numpy, by_buffer, by_dlpack, by_address, by_random_numbers, by_resize,
          by_set, by_scatter, by_copy)


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_operands_that_are_written_to(write):
    a, b = leaves(2)
    expected = array_of(a) * array_of(b) + 1.0
    x = a * b + 1.0
    assert waiting_results() == 1
    write(a)
    np.testing.assert_array_equal(array_of(x), expected)


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_results_that_are_written_to(write):
    results = []
    for wait in (at_once, contextlib.nullcontext):
        with wait():
            a, b = leaves(2)
            x = a * b
            assert waiting_results() == (wait is not at_once)
            cg.manual_seed(0)
            write(x)
            results.append(array_of(x * 2.0 + 1.0))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("reach", [
    lambda a: a.detach().numpy(), lambda a: np.asarray(memoryview(a.detach())), lambda a: np.from_dlpack(a.detach()),
    lambda a: a.data.numpy(), lambda a: a.detach()[:].numpy(),
    lambda a: np.frombuffer((ctypes.c_double * SIZE).from_address(a.data_ptr())),
], ids=["numpy", "buffer", "dlpack", "data", "view", "address"])
def test_operands_that_others_reach_without_asking(reach):
    a, b = leaves(2)
    outside = reach(a)
    expected = array_of(a) * array_of(b)
    x = a * b
    outside[:] = 0
    np.testing.assert_array_equal(array_of(x), expected)


def test_arrays_that_are_gone_do_not_count():
    a, b = leaves(2)
    for _ in range(3):
        a.detach().numpy().sum(), np.from_dlpack(a.detach()).sum(), a.data.numpy().sum(), a.tolist(), repr(a)
    x = a * b
    assert waiting_results() == 1
    del x


# ----- What is looked at -----
LOOKS = {
    "item": lambda x: x[3].item(),
    "numpy": lambda x: array_of(x),
    "tolist": lambda x: x.tolist(),
    "repr": repr,
    "buffer": lambda x: bytes(memoryview(x.detach())),
    "dlpack": lambda x: np.from_dlpack(x.detach()).copy(),
    "address": lambda x: list((ctypes.c_double * SIZE).from_address(x.data_ptr())),
    "view": lambda x: array_of(x.view(-1, 5003)[0, 4990:]),
    "small view": lambda x: array_of(-x[17:20]),
    "select": lambda x: float(x[5]),
    "truth": lambda x: bool(x[0]),
    "iteration": lambda x: [float(v) for v in x[:3]],
    "matmul": lambda x: array_of(x @ x),
    "matrix": lambda x: array_of(x.expand(2, -1) @ x),
    "small sum": lambda x: array_of(x[:9].sum()),
    "sum of a dim": lambda x: array_of(x.reshape(1, SIZE).sum(1)),
    "sum across": lambda x: array_of(x.reshape(SIZE, 1).sum(0)),
    "cumsum": lambda x: array_of(x.cumsum(0)),
    "sort": lambda x: array_of(x.sort()[0]),
    "max": lambda x: [array_of(v) for v in x.max(0)],
    "indices": lambda x: array_of(x[cg.tensor([1, 5])]),
    "mask": lambda x: array_of(x[x > 0.5]),
    "where": lambda x: array_of(cg.where(x > 0.5, x, 0)),
    "cat": lambda x: array_of(cg.cat([x, x])),
    "dtype": lambda x: array_of(x.float()),
    "clone": lambda x: array_of(x.clone()),
    "copy": lambda x: array_of(copy.copy(x.detach())),
    "deepcopy": lambda x: array_of(copy.deepcopy(x.detach())),
    "pickle": lambda x: array_of(pickle.loads(pickle.dumps(x.detach()))),
    "data": lambda x: array_of(x.data),
    "detach": lambda x: array_of(x.detach()),
    "broadcast": lambda x: array_of(x.reshape(SIZE, 1) * cg.ones(2)),
    "strided": lambda x: array_of(x[::2] * 2.0),
    "equal": lambda x: cg.equal(x, x),
    "resize": lambda x: array_of(x.detach().resize_(3)),
    "grow": lambda x: array_of(x.detach().resize_(2 * SIZE))[:SIZE],
    "unfold": lambda x: array_of(x.unfold(0, 2, 2)),
    "diagonal": lambda x: array_of(x[:4900].view(70, 70).diagonal()),
    "ufunc": lambda x: np.add(x.detach(), 1.0).tolist(),
    "array": lambda x: np.asarray(x.detach()).copy(),
    "out": lambda x: array_of( cg.mul(x.detach(), 2, out=cg.empty(SIZE, dtype=cg.float64))),
    "saved": lambda x: array_of(x.exp().grad_fn._saved_result),
    "kthvalue": lambda x: array_of(x.kthvalue(3)[0]),
    "einsum": lambda x: array_of(cg.einsum("i,i->", x, x)),
    "save": lambda x: saved(x.detach()),
}


def saved(x):
    file = io.BytesIO()
    cg.save(x, file)
    file.seek(0)
    return array_of(cg.load(file))


@pytest.mark.parametrize("look", LOOKS)
def test_looking_at_results(look):
    results = []
    for wait in (at_once, contextlib.nullcontext):
        with wait():
            a, b = leaves(2)
            x = (a * b).exp()
            assert waiting_results() == (wait is not at_once)
            results.append(LOOKS[look](x))
    np.testing.assert_equal(*results)


def test_gradients_of_what_waits():
    """A gradient that is itself a result that waits: of hooks, of create_graph, of Functions."""
    class Twice(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            with cg.enable_grad():
                return g.detach().requires_grad_() * 2.0 + 0.0

    def compute():
        a, b, weight = leaves(3)
        y = Twice.apply((a * b).tanh())
        y.register_hook(lambda g: g * weight)
        (first,) = cg.autograd.grad((y * y).sum(), a, create_graph=True)
        second = cg.autograd.grad(first.exp().sum(), (a, b, weight), allow_unused=True)
        return [array_of(first), *(array_of(g) for g in second if g is not None)]

    with at_once():
        expected = compute()
    assert all(same_bits(x, y) for x, y in zip(compute(), expected, strict=True))


# ----- What is given up -----
def test_results_nobody_looked_at():
    start = live_bytes()
    a, b = leaves(2)
    x = (a * b).exp() + b
    assert waiting_results() == 2           # exp saves its result
    del a, b, x
    assert waiting_results() == 0 and live_bytes() == start


def test_operands_live_until_the_result_is_computed():
    a, b = leaves(2)
    expected = array_of(a) + array_of(b)
    x = a + b
    del a, b
    for _ in range(4):
        cg.full((SIZE,), 7.0, dtype=cg.float64)     # would lie where they were
    np.testing.assert_array_equal(array_of(x), expected)


def test_memory_of_the_dead_is_used_again():
    """A result that died lends its memory to the next: the program must not take one for the other."""
    with at_once():
        expected = everything(long, "float64")
    for _ in range(3):
        assert all(same_bits(x, y) for x, y in zip(everything(long, "float64"), expected, strict=True))


def test_allocations_that_fail():
    with at_once():
        expected = everything(kept, "float64")
    for n in itertools.count(1):
        with fail_alloc(n) as failure:
            try:
                found = everything(kept, "float64")
            except MemoryError:
                found = None
        if not failure.fired:
            break
    assert n > 20 and all(same_bits(x, y) for x, y in zip(found, expected, strict=True)) and waiting_results() == 0


def test_memory_that_only_waiting_results_keep():
    """Where an allocation fails they are computed, and it is tried again."""
    a, b = leaves(2)
    x = a + b
    with fail_alloc(1) as failure:
        cg.zeros(SIZE)
    assert failure.fired and waiting_results() == 0
    np.testing.assert_array_equal(array_of(x), array_of(a) + array_of(b))


def test_a_garbage_collection_while_a_result_is_made():
    """What it runs may give an operand's memory away."""
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
        alive = [a.detach() for _ in range(1 << 15)]        # no dead tensor is left to be used again, and a collection is due
    finally:
        gc.enable()
    x = a * b
    gc.collect()
    outside[0][:] = 0
    np.testing.assert_array_equal(array_of(x), expected)
    assert alive


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_child_computes_what_waited():
    a, b = leaves(2)
    x = (a * b).exp()
    s = x.sum()
    child = os.fork()
    if not child:
        right = np.array_equal(array_of(x), np.asarray((a.detach() * b.detach()).exp())) and s.item() == x.sum().item()
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert s.item() == x.sum().item()


def test_profiled_operators_do_not_wait():
    a, b = leaves(2)
    y = a + b
    with cg.autograd.profiler.profile() as profile:
        assert waiting_results() == 0       # or operands that y keeps would be freed in the profile
        x = a * b
        assert waiting_results() == 0
    assert x.numel() == y.numel() and any(event.name.endswith("mul") for event in profile.function_events)
