"""Groups: maps of a captured program that run together, block by block, have the bits of the function."""

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import defer_from, group_from, set_programs
from samples import array_of

SIZE = 3000


@pytest.fixture(params=[1, 1 << 11], ids=["all", "large"])
def grouped(usual_sizes, request):
    before = group_from(request.param)
    yield request.param
    group_from(before)


def slices(x):
    inner = x[1:-1] + 0.25 * (x[2:] - 2 * x[1:-1] + x[:-2])
    return cg.cat([x[:1], inner, x[-1:]])


def shifted_sums(x):
    """Write sums of shifted parts of one array, whose order matters."""
    values = x.detach()
    y = values.clone()
    y[1:] += values[:-1].exp()
    y[:-1] += y[1:] * 0.5
    y[2:] *= y[:-2].sin()
    return y + x


def changed(x):
    y = x * 3
    z = y.tanh()
    y.mul_(0.1).add_(z, alpha=2)
    y.exp_()
    return y - z, z


def dtypes(x):
    narrow = x.half()
    return (narrow * 3 + x.float()).double() / 7 + narrow, (x > 0.5).double() * x, cg.where(x < 0.4, x, -x).int()


def broadcast(x):
    rows = x.reshape(3, -1)
    scaled = (rows - rows[:, :1]) * rows[:1].sin() + x.sum()
    return scaled.mT.exp().contiguous() * 2 + scaled.mT, scaled.reshape(-1) * x


def ends(x):
    """Write vector mathematics into parts of arrays."""
    y = cg.zeros_like(x)
    y[5:-5] = (x[5:-5] * 2).exp()
    y[7:-7].sin_()
    return y * x, cg.stack([x * 2, (x * 2).sin()])


def interleaved(x):
    a, b = x * 2, x[:2048] * 3
    a, b = a + 1, b + a[:2048]
    return a.sin() * x, b.cos() * x[:2048]


def multiples(x):
    return x - 2 * x[0], 0.5 * x + x, x + 3 * (x * x), -1 * x - x * 0.1, x + cg.inf * (x - 0.5), x - 0 * x


FUNCTIONS = [slices, shifted_sums, changed, dtypes, broadcast, ends, interleaved, multiples]


def results_and_gradient(function, values):
    x = cg.tensor(values).requires_grad_()
    results = function(x)
    results = results if isinstance(results, tuple) else (results,)
    total = sum((result * (k + 1)).sum() for k, result in enumerate(results) if result.requires_grad)
    return [array_of(tensor).tobytes() for tensor in (*results, cg.autograd.grad(total, x)[0], x)]


@pytest.mark.parametrize("size", [SIZE, 24 * 127])
@pytest.mark.cases("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_groups_have_the_bits_of_the_function(function, size, grouped):
    compiled = cg.compile(function)
    values = np.random.default_rng(0)
    for _ in range(4):
        x = values.uniform(0.1, 0.9, size)
        assert results_and_gradient(compiled, x) == results_and_gradient(function, x)
    assert compiled.cache_info().hits == 3


@pytest.mark.usefixtures("grouped")
def test_values_within_a_group_need_no_memory():
    compiled = cg.compile(lambda x: ((x * 2 + 1).sin() * x + x).exp())
    text = compiled.explain(cg.rand(1 << 16, dtype=cg.float64)).splitlines()
    assert text[1] == "6 of them in 1 groups, block by block"
    assert text[-1] == "memory: 4096 bytes of intermediates, 0 bytes kept for a backward"


def test_programs_that_are_eager_have_no_groups():
    before = set_programs("eager")
    try:
        text = cg.compile(lambda x: x * 2 + 1).explain(cg.rand(1 << 14))
    finally:
        set_programs(before)
    assert "0 of them in 0 groups" in text


@pytest.mark.cases("function", [multiples, changed, dtypes], ids=lambda function: function.__name__)
def test_pending_results_have_the_bits_of_the_function(function):
    """Sums with multiples are one loop in pending programs, too."""
    x = np.random.default_rng(1).uniform(0.1, 0.9, SIZE)
    expected = results_and_gradient(function, x)
    before = defer_from(8)
    try:
        assert results_and_gradient(function, x) == expected
    finally:
        defer_from(before)


@pytest.mark.usefixtures("usual_sizes")
def test_a_step_begins_the_group_of_the_step_that_reads_it():
    """The product fits into the group that makes its operand, which is written anyway."""
    def steps(x):
        for _ in range(3):
            x = cg.cat([x[:1], x[2:] - 2 * x[1:-1], x[-1:]])
        return x

    compiled = cg.compile(steps)
    x = cg.ones(SIZE)
    compiled(x)
    assert "\n9 of them in 3 groups" in compiled.explain(x)      # of a product, a difference and a copy each
    assert np.array_equal(compiled(x).numpy(), steps(x).numpy())


@pytest.mark.usefixtures("usual_sizes")
def test_long_chains_are_groups_side_by_side():
    def chain(x):
        for k in range(40):
            x = (x * 1.5).sin() if k % 2 else x * x
        return x

    text = cg.compile(chain).explain(cg.rand(SIZE, dtype=cg.float64))
    assert "60 of them in 2 groups" in text


@pytest.mark.usefixtures("usual_sizes")
def test_numbers_of_a_total_come_after_the_gradients():
    """So the gradients of a large array join the program of the total."""
    def value_and_gradient(x):
        loss = -(x.sin() * x).sum() / 7 + 1
        return loss.detach(), *cg.autograd.grad(loss, x)

    x = cg.rand(1 << 18, dtype=cg.float64).requires_grad_()
    compiled = cg.compile(value_and_gradient)
    compiled(x)
    with cg.autograd.profiler.profile() as profile:
        results = compiled(x)
    names = [event.name.removeprefix("aten::") for event in profile.function_events]
    assert names.index("sum") < names.index("sin_dx") < names.index("div")
    assert [*map(cg.equal, compiled(x), value_and_gradient(x))] == [True] * 2 == [*map(cg.equal, results, compiled(x))]


# ----- Values over which steps write others -----
def added_to(x, y):
    z = x.clone()
    z += y
    return z


def part_added_to(x, y):
    z = cg.zeros(len(x) + 1, dtype=x.dtype)
    z[1:] = x
    z[1:] += y
    return z


def halves_added(x, y):
    z = cg.cat([x, y])
    z[:len(x)] += z[len(x):]
    return z


def rows_changed(x, y):
    rows = cg.stack([x, y, x])
    rows[1] += rows[0]
    rows[2] *= rows[1]
    return rows


def dead_at_last(x, y):
    first = 3 * x
    other = first + 1
    result = first * 0.5
    other[:] = other * 2
    return result


def written_often(x, y):
    first = x.sin()
    other = first + y
    for _ in range(6):
        other[:] = other * 2
        other.copy_(first - other)
    return first.cos(), other


@pytest.mark.parametrize("size", [3, SIZE, 600001])
@pytest.mark.parametrize("function", [added_to, part_added_to, halves_added, rows_changed, dead_at_last, written_often])
def test_values_over_others(function, size, grouped):
    """In 600,001 doubles no cache holds a result until it is read, so steps write past the caches."""
    compiled = cg.compile(function, fullgraph=True)
    for seed in (0, 1, 2):
        x, y = (cg.tensor(np.random.default_rng([seed, k]).uniform(-1, 1, size)) for k in range(2))
        ours, theirs = compiled(x, y), function(x, y)
        for a, b in zip(*((each if isinstance(each, tuple) else (each,)) for each in (ours, theirs)), strict=True):
            assert array_of(a).tobytes() == array_of(b).tobytes()
    assert compiled.cache_info().hits == 2
