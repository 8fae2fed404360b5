"""Copies of pending results into other memory are pending, too: the same bits, whichever of both is read, changed or dropped first."""

import gc

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import live_bytes, pending_results
from pending import SIZE, arrays, at_once, leaves, results_with_failing_allocations
from samples import array_of, same_bits, threads

pytestmark = pytest.mark.usefixtures("small_results_are_pending")

ROWS, COLUMNS = 61, 82      # rows of no whole vectors


def joined(a, b, c, d):
    return cg.cat([a[:3], a * b, c.tanh() + d, d[-1:]])


def beside_each_other(a, b, c, d):
    w, x, y, z = (value[:ROWS * COLUMNS].view(ROWS, COLUMNS) for value in (a, b, c, d))
    return cg.cat([w * x, y[:, :5], z.exp() - 1, w], 1)


def stacked(a, b, c, d):
    return cg.stack([a * c - b * d, a * d + b * c, a.sin()], -1)


def stacked_twice(a, b, c, d):
    return cg.stack([cg.stack([a * b, c + d]), cg.stack([a - b, c * d])], 1)


def repeated(a, b, c, d):
    x = a * b
    return cg.cat([x, c, x, x])


def converted(a, b, c, d):
    return cg.cat([a * b, (c * d).float(), (a - d).half()])


def assigned(a, b, c, d):
    x = cg.zeros(len(a) + 9, 3, dtype=a.dtype)
    x[4:-5, 1] = a * b
    x[9:, 1] = c.exp() + d
    x[:-9, 2] = (a - b).float()
    return x


def assigned_whole(a, b, c, d):
    x, y = cg.zeros(len(a), dtype=a.dtype), a * b
    x[:] = y
    return (x * c + d) * x + x.sum() + y


def padded(a, b, c, d):
    x = (a * b)[:ROWS * COLUMNS].view(ROWS, COLUMNS)
    return cg.nn.functional.pad(x * 2 + 1, (1, 2, 3, 4)) + cg.nn.functional.pad(c * d, (-2, 3)).sum()


def heat(a, b, c, d):
    u = a * b
    for _ in range(5):
        inner = u[1:-1] + 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = cg.cat([u[:1], inner, u[-1:]])
    return u * c + d


def split_again(a, b, c, d):
    x, y = cg.cat([a * b, c.tanh()]).chunk(2)
    return cg.cat([x * y, x + d])


PROGRAMS = (joined, beside_each_other, stacked, stacked_twice, repeated, converted, assigned, assigned_whole, padded, heat, split_again)


def everything(program, dtype, size=SIZE):
    inputs = leaves(4, dtype, size)
    value = program(*inputs)
    loss = (value * value).sum()
    loss.backward()
    return [array_of(value), array_of(loss), *(array_of(leaf.grad) for leaf in inputs if leaf.grad is not None)]


@pytest.mark.cases("dtype", ["float32", "float64"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_bits_as_at_once(program, dtype):
    with at_once():
        expected = everything(program, dtype)
    results = everything(program, dtype)
    assert all(same_bits(x, y) for x, y in zip(results, expected, strict=True)) and pending_results() == 0


@pytest.mark.cases("count", [1, 2, 3])
@pytest.mark.cases("program", [joined, stacked, assigned, assigned_whole, heat], ids=lambda program: program.__name__)
def test_threads_and_streams(program, count):
    size = (1 << 19) + 77
    with threads(1), at_once():
        expected = everything(program, "float64", size)
    with threads(count):
        results = everything(program, "float64", size)
    assert all(same_bits(x, y) for x, y in zip(results, expected, strict=True))


def before_a_column(x, extra):
    return cg.cat([x * x + 1, extra], 1)


def between_columns(x, extra):
    return cg.cat([extra, x.exp() * x, extra], 1)


def beside_zeros(x, extra):
    return cg.nn.functional.pad((x * 2 + extra[:, :1]) * x, (0, extra.shape[1]))


def assigned_columns(x, extra):
    result = cg.zeros(len(x), x.shape[1] + extra.shape[1], dtype=x.dtype)
    result[:, extra.shape[1]:] = (x - 1) * x
    result[:, :extra.shape[1]] = extra * 2 + 1
    return result


def converted_columns(x, extra):
    return cg.cat([(x * x).float(), (extra * 2).float(), (x - extra[:, :1]).float()], 1)


def parts_of_columns(x, extra):
    whole = cg.cat([x, extra], 1)
    return whole[:, :x.shape[1]].square() * x + whole[:, extra.shape[1]:] / 3


@pytest.mark.cases("width", [1, 4, 16])
@pytest.mark.cases("dtype", ["float32", "float64"])
@pytest.mark.cases("compiles", [False, True])
@pytest.mark.parametrize("program", [before_a_column, between_columns, beside_zeros, assigned_columns, converted_columns, parts_of_columns],
                         ids=lambda program: program.__name__)
def test_streams_to_columns(program, dtype, width, compiles):
    """Rows are whole vectors, and begin at any place: a store past the caches would fail there."""
    def results_of(function):
        x, extra = (leaf.detach().view(4500, -1).requires_grad_()
                    for leaf in (*leaves(1, dtype, 4500 * 128), *leaves(1, dtype, 4500 * width)))
        value = function(x, extra)
        (value * value).sum().backward()
        return [array_of(value), array_of(x.grad), array_of(extra.grad)]

    with threads(1, parallel=False):
        with at_once():
            expected = results_of(program)
        function = cg.compile(program, fullgraph=True) if compiles else program
        for _ in range(3 if compiles else 1):
            assert all(same_bits(x, y) for x, y in zip(results_of(function), expected, strict=True))


def by_slice(x):
    result = cg.empty(SIZE + 2, dtype=cg.float64)
    result[1:-1] = x
    return result


@pytest.mark.cases("copy", [lambda x: cg.cat([x, x]), lambda x: cg.stack([x, x + 1], -1), by_slice,
                            lambda x: cg.nn.functional.pad(x, (1, 1))], ids=["cat", "stack", "slice", "pad"])
def test_a_copy_is_pending_with_its_source(copy):
    a, b = leaves(2)
    with at_once():
        expected = array_of(copy(a * b))
    x = a * b
    y = copy(x)
    pending = pending_results()
    assert pending >= 2
    del x
    assert 0 < pending_results() < pending          # x is never written to memory of its own
    assert same_bits(array_of(y), expected) and pending_results() == 0


@pytest.mark.cases("first", [0, 1])
@pytest.mark.cases("copy", [lambda x: cg.cat([x, x * 2]), lambda x: cg.stack([x, x * 2], 1)], ids=["cat", "stack"])
def test_changes_of_a_source_or_a_copy_do_not_reach_the_other(copy, first):
    a, b = arrays(2)
    x = cg.tensor(a, requires_grad=True) * cg.tensor(b)
    y = copy(x)
    (x, y)[first].detach().add_(1)
    (y, x)[first].detach().mul_(3)
    product = a * b
    expected = product + 1 if first == 0 else product * 3
    other = array_of(copy(cg.tensor(product)))
    assert same_bits(array_of(x), expected) and same_bits(array_of(y), other * 3 if first == 0 else other + 1)


def test_copies_that_die_leave_no_memory():
    start = live_bytes()
    a, b = leaves(2)
    expected = array_of(a) * array_of(b)
    x = a * b
    cg.cat([x, x + 1])
    assert pending_results() == 1 and same_bits(array_of(x), expected)
    y = cg.stack([a * b, a + b], -1)
    del x, y, a, b
    gc.collect()
    assert pending_results() == 0 and live_bytes() == start


def test_targets_that_others_reach_are_written_at_once():
    a, b = leaves(2)
    expected = array_of(a) * array_of(b)
    whole = cg.zeros(SIZE, dtype=cg.float64)
    array, memory = whole.numpy(), bytearray(8 * SIZE)
    x, y = a * b, b * a
    whole[:] = x.detach()
    np.testing.assert_array_equal(array, expected)
    cg.frombuffer(memory, dtype=cg.float64)[:] = y.detach()
    np.testing.assert_array_equal(np.frombuffer(memory), expected)


def test_a_target_that_a_pending_result_reads_keeps_its_values_until_then():
    a, b = leaves(2)
    expected, before = array_of(a) * array_of(b), array_of(a).copy()
    x = a * b
    with cg.no_grad():
        a[2:] = x[:-2] * 2
    assert same_bits(array_of(x), expected)
    assert same_bits(array_of(a), np.concatenate([before[:2], expected[:-2] * 2]))


def test_parts_that_overlap_are_written_in_order():
    a, b = leaves(2)
    x = cg.zeros(SIZE + 1, dtype=cg.float64)
    with cg.no_grad():
        x[:-1] = a * b
        x[1:] = a + b
        x[:-1] = a - b
    assert same_bits(array_of(x), np.append(array_of(a) - array_of(b), (array_of(a) + array_of(b))[-1]))


def test_allocations_that_fail():
    with at_once():
        expected = everything(joined, "float64")
    attempts = [*results_with_failing_allocations(lambda: everything(joined, "float64"))]
    for results in attempts:
        assert results is None or all(same_bits(x, y) for x, y in zip(results, expected, strict=True))
    assert len(attempts) > 10 and attempts[-1] is not None and pending_results() == 0
