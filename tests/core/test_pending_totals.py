"""A reduction of all elements of a pending result, and numbers that are computed from it, are pending, too: the same bits as at once."""

import gc
import random
import threading
import time

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import pending_results
from cygrad.ops import REDUCTIONS
from pending import SIZE, arrays, at_once, leaves, results_with_failing_allocations
from samples import array_of, same_bits, threads

pytestmark = pytest.mark.usefixtures("small_results_are_pending")

FLOATS = ["float16", "float32", "float64", "complex64", "complex128"]


def sum_of_a_value_that_lives(a, b, c, d):
    x = (a * b).tanh()
    total = x.sum()
    return total + (x * c + d).sum(), x


def two_totals(a, b, c, d):
    x, y = a * b + c, a.sin() * d
    return x.sum(), y.sum(), x.mean()


def totals_of_one_value(a, b, c, d):
    x = a * b + c * d
    return x.sum(), x.mean(), x.prod(), x


def total_and_rows(a, b, c, d):
    x = (a * b).exp()[:5000].view(50, 100) * c[:100]
    y = a[:5000].view(50, 100) * b[:5000].view(50, 100)
    return y.sum(), (y + 1).sum(1), y.mean(), x.sum()


def total_that_is_read(a, b, c, d):
    x = a * b
    return (x / x.sum()).exp().sum(), (x - x.mean()).square().mean()


def total_of_a_copy(a, b, c, d):
    x = a * b
    y = cg.cat([x, c * d])
    return x.sum(), y.sum()


def total_of_a_part_of_a_stack(a, b, c, d):
    x = a + b
    total = x.sum()
    return cg.stack([x, c * d], 1), total       # x is computed at its place in the stack, and reduced there


def numbers_of_totals(a, b, c, d):
    x = a * b
    n = cg.tensor(len(a), dtype=a.dtype)
    return -x.sum() / len(a), (x.sum() / n + 1).exp(), 0.5 * (x * c).sum() + d[0], (x + d).mean() * (a - c).mean(), x.sum().square() / 3


def number_of_a_number(a, b, c, d):
    x = (a * b).sum() / 7
    return x, (c + d).sum() * 2 + x.sin() * x.detach()


def comparisons(a, b, c, d):
    x = (a * b).real
    return (x > 0.3).all(), (x < 0.2).any(), (x > 0.3).sum(), x.sum()


def strides(a, b, c, d):
    x = a[:5000].view(50, 100) * b[:5000].view(100, 50).mT
    return x.sum(), (x.mT * 2).sum(), x.view(-1).mean()


PROGRAMS = [sum_of_a_value_that_lives, two_totals, totals_of_one_value, total_and_rows, total_that_is_read, total_of_a_copy,
            total_of_a_part_of_a_stack, numbers_of_totals, number_of_a_number,
            comparisons, strides]


def everything(program, dtype, size=SIZE):
    """Return the results, and the gradients of their sum."""
    inputs = leaves(4, dtype, size)
    results = program(*inputs)
    recorded = [result for result in results if result.requires_grad]
    gradients = cg.autograd.grad(recorded, inputs, [cg.ones_like(result) for result in recorded], allow_unused=True)
    return [array_of(value) for value in [*results, *gradients] if value is not None]


def same(results, expected):
    return all(same_bits(x, y) for x, y in zip(results, expected, strict=True))


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_bits_as_at_once(program, dtype):
    with at_once():
        expected = everything(program, dtype)
    assert same(everything(program, dtype), expected) and pending_results() == 0


@pytest.mark.cases("count", [1, 2, 3])
@pytest.mark.cases("program", PROGRAMS, ids=lambda program: program.__name__)
def test_threads_and_streams(program, count):
    size = (1 << 19) + 77
    with threads(1), at_once():
        expected = everything(program, "float64", size)
    with threads(count):
        assert same(everything(program, "float64", size), expected)


@pytest.mark.cases("dtype", ["bool", "int32", "int64", "bfloat16", *FLOATS])
@pytest.mark.cases("alive", [False, True])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_every_reduction(name, alive, dtype):
    a, b = arrays(2)

    def compute():
        x = cg.tensor(a, requires_grad=True) * cg.tensor(b)
        y = (x * 8 - 3).to(getattr(cg, dtype))
        x = y if alive else None
        try:
            total = getattr(y, name)()
        except (RuntimeError, TypeError) as error:
            return str(error)
        del y
        return [array_of(total), *([array_of(x)] if alive else [])]

    with at_once():
        expected = compute()
    results = compute()
    assert results == expected if isinstance(expected, str) else same(results, expected)


def test_a_total_is_pending_until_it_is_read():
    a, b = leaves(2)
    x = a * b
    total = x.sum()
    assert pending_results() == 2
    del x
    assert pending_results() == 1
    y = a * b               # joins the program
    assert pending_results() == 2
    assert total.item() == (a.detach() * b.detach()).sum().item()
    assert pending_results() == 0 and same_bits(array_of(y), array_of(a) * array_of(b))


def test_a_backward_computes_it_with_the_gradients():
    a, b = leaves(2)
    total = ((a * b).tanh() * a).sum()
    assert pending_results() == 2           # tanh is saved
    gradients = cg.autograd.grad(total, [a, b])
    assert pending_results() == 0
    x = cg.tensor(np.tanh(array_of(a) * array_of(b)) * array_of(a))
    np.testing.assert_allclose(array_of(total), array_of(x.sum()))
    assert len(gradients) == 2


def test_numbers_are_pending_with_their_total():
    a, b = leaves(2)
    expected = (a.detach() * b.detach()).sum().item()
    x = (a * b).sum()
    y = x / 8
    assert pending_results() == 2
    z = -y + 1
    assert pending_results() == 4 - 1       # the negative one has died
    del x, y
    assert pending_results() == 1
    assert z.item() == -(expected / 8) + 1 and pending_results() == 0
    x = (a * b).sum()
    y = x * 2
    del x, y
    assert pending_results() == 0


def test_a_loss_in_a_few_operators_is_one_program_with_its_backward():
    a, b = leaves(2)
    loss = 0.5 * ((a - b) ** 2).sum() / len(a) + 1
    pending = pending_results()
    (gradient,) = cg.autograd.grad(loss, a)
    assert pending > 0 and pending_results() == 0
    np.testing.assert_allclose(array_of(gradient), (array_of(a) - array_of(b)) / SIZE)
    np.testing.assert_allclose(loss.item(), 0.5 * ((array_of(a) - array_of(b)) ** 2).mean() + 1)


def test_a_total_that_dies_is_not_computed():
    a, b = leaves(2)
    x = a * b
    x.sum()
    assert pending_results() == 1
    x.mean()
    assert pending_results() == 1 and same_bits(array_of(x), array_of(a) * array_of(b))


@pytest.mark.parametrize("read", [
    lambda total: total.item(), float, bool, lambda total: total.numpy(), lambda total: (total * 2).item(), repr,
    lambda total: total.tolist(), lambda total: total.clone().item(), lambda total: cg.stack([total, total]).tolist(),
    lambda total: total.reshape(1).data_ptr(),
    lambda total: total.add_(1).item(), lambda total: cg.equal(total, total), lambda total: total.view(cg.int64).item(),
    lambda total: cg.full((3,), 2.0).mul(total).tolist(),
])
def test_reads(read):
    a, b = leaves(2)
    a, b = a.detach(), b.detach()

    def compute():
        with cg.enable_grad():
            total = (a.requires_grad_() * b).sum().detach()
        return read(total)

    with at_once():
        expected = compute()
    results = compute()
    assert pending_results() == 0
    assert results == expected or isinstance(expected, int)     # an address


@pytest.mark.parametrize("change", ["x.detach().add_(1)", "a.detach().zero_()", "total.detach().zero_()"])
def test_changes_after_a_total(change):
    a, b = leaves(2)
    x = a * b
    total = x.sum()
    expected = (array_of(a) * array_of(b)).copy()
    exec(change)
    if "total" in change:
        assert total.item() == 0
    else:
        assert same_bits(array_of(total), array_of(cg.tensor(expected).sum()))
    assert same_bits(array_of(x), expected + 1 if "x." in change else expected)


def test_allocations_that_fail():
    def program(a, b, c, d):
        return (*two_totals(a, b, c, d), *total_that_is_read(a, b, c, d))

    with at_once():
        expected = everything(program, "float64")
    attempts = [*results_with_failing_allocations(lambda: everything(program, "float64"))]
    assert len(attempts) > 20 and same(attempts[-1], expected) and pending_results() == 0


class Garbage:
    """A cycle, at whose collection a function is called."""

    def __init__(self, function, is_collected):
        self.function, self.is_collected, self.own = function, is_collected, self

    def __del__(self):
        try:
            self.function()
        finally:
            self.is_collected.set()


def with_collection(number, function, compute):
    """Return the result of an operator, in the midst of which a function is called: by the collector, at some allocation of a tensor."""
    gc.collect()
    gc.disable()
    alive, before = [cg.zeros(()) for _ in range(3000)], gc.get_threshold()     # no dead tensor is left for reuse
    is_collected = threading.Event()
    Garbage(function, is_collected)
    gc.set_threshold(gc.get_count()[0] + number)
    gc.enable()
    try:
        result = compute()
    finally:
        gc.set_threshold(*before)
        del alive
    gc.collect()
    assert is_collected.wait(60)    # another thread may be the one that collects
    return result


@pytest.mark.cases("number", [0, *range(7)])
@pytest.mark.parametrize("other", [lambda x: x.sum(), lambda x: x * 2, lambda x: x.mean() * 3, lambda x: x.sum(1)])
@pytest.mark.parametrize("compute", [lambda x: x.sum(1), lambda x: x.sum(), lambda x: x.sum() * 2, lambda x: (x.sum(), x.mean())[1]])
def test_a_collection_within_an_operator_adds_to_the_program(compute, other, number):
    (a,) = leaves(1, size=1000 * 1000)
    a = a.view(1000, 1000)
    with at_once():
        expected = array_of(compute((a * 2).sin() * 3)), array_of(other((a * 2).sin() * 3))
    x, results = (a * 2).sin() * 3, []
    y = with_collection(number, lambda: results.append(other(x)), lambda: compute(x))
    assert same([array_of(y), array_of(results[0])], expected)


def test_a_collection_while_rows_are_reduced():
    """At the allocation of the reduction's own memory a total joins the program."""
    (a,) = leaves(1, size=1000 * 1000)
    a = a.view(1000, 1000)
    with at_once():
        expected = [array_of(((a * 2).sin() * 3).sum(1)), array_of(((a * 2).sin() * 3).sum())]
    for number in (3, 0, 1, 2, 4, 5):
        x, results = (a * 2).sin() * 3, []
        y = with_collection(number, lambda x=x, results=results: results.append(x.sum()), lambda x=x: x.sum(1))
        assert same([array_of(y), array_of(results[0])], expected)


def test_another_thread_reads_a_total_while_a_number_of_it_is_made():
    (a,) = leaves(1, size=1 << 22)
    expected = (a.detach() * 2).sin().exp().sum().item()
    started = threading.Event()
    for number in [0, 0, 1, 1]:
        total = (a * 2).sin().exp().sum()
        thread = threading.Thread(target=lambda total=total: (started.wait(5), total.item()))
        thread.start()
        y = with_collection(number, lambda: (started.set(), time.sleep(0.003)), lambda total=total: total * 3)
        thread.join()
        started.clear()
        assert y.item() == expected * 3 and total.item() == expected


def test_profiled_totals_are_computed_at_once():
    a, b = leaves(2)
    x = a * b
    with cg.autograd.profiler.profile():
        total = x.sum()
        assert pending_results() == 0
    assert same_bits(array_of(total), array_of((a.detach() * b.detach()).sum()))


OPERATIONS = [lambda x, y: x * y, lambda x, y: x + y * 0.5, lambda x, y: x.tanh(), lambda x, y: cg.where(x > y, x, 0.5 * y),
              lambda x, y: x.float().double() * y, lambda x, y: x.sin() - y]


@pytest.mark.cases("seed", range(40))
def test_long_programs_with_many_values_that_live(seed):
    """Up to the most steps and arrays: values of the forward part are read late in the backward."""
    def run():
        stream = random.Random(seed)
        a, b = leaves(2)
        values = [a, b]
        for _ in range(stream.choice([10, 20, 40, 80])):
            x, y = stream.choice(values[-stream.choice([2, 6, 30]):]), stream.choice(values)
            values.append(stream.choice(OPERATIONS)(x, y))
        totals = [value.mean() for value in stream.sample(values, 2)]
        last = values[-1] * a
        del values
        total = totals[0] * totals[1] + last.sum()
        return [array_of(value) for value in (total, *cg.autograd.grad(total, [a, b], materialize_grads=True))]

    with at_once():
        expected = run()
    assert same(run(), expected)
