"""Steps over small arrays that another step of a captured program does: bits are as by steps one by one."""

import itertools

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import group_from
from samples import same_bits

PROGRAMS, CALLS = 200, 3


def set_part(a, b, number):
    result = a * number
    result[:1] = b[:1] + a[:1]
    return result


def set_parts(a, b, number):
    result = cg.zeros_like(a)
    result[1:].add_(b[1:])
    result[:1] = a[:1] * number
    return result


def add_to_zeros(a, b, number):
    result = cg.zeros_like(a)
    result[:1].sub_(b[:1] * a[:1])
    return result + a * number


STEPS = {
    "add": lambda a, b, number: a + b,
    "subtract": lambda a, b, number: a - b,
    "negate": lambda a, b, number: -a,
    "scale": lambda a, b, number: a * number,
    "add a multiple": lambda a, b, number: cg.add(a, b, alpha=number),
    "multiply": lambda a, b, number: a * b,
    "look up": lambda a, b, number: a.sin(),
    "add in place": lambda a, b, number: a.add_(b),
    "scale in place": lambda a, b, number: a.mul_(number),
    "subtract in place": lambda a, b, number: a.sub_(b, alpha=number),
    "copy": lambda a, b, number: a.copy_(b),
    "fill": lambda a, b, number: a.zero_(),
    "join": lambda a, b, number: cg.cat([a[:1] * number, b[1:] - a[1:]]),
    "stack": lambda a, b, number: cg.stack([a + b, b * number, a.sin()]).sum(0),
    "set a part": set_part,
    "set the parts of zeros": set_parts,
    "add to zeros": add_to_zeros,
    "put elements together": lambda a, b, number: cg.cat([a[:1] * b[:1], a[1:] - b[1:]]) * number + b,
}


def tensors(seed, dtype, size, count=3):
    rng = np.random.default_rng(seed)
    return [cg.tensor(rng.standard_normal(size).astype(dtype)) for _ in range(count)]


def random_program(seed):
    """Return a function of three tensors that goes on from its values, changes some of them, and gives some back."""
    rng = np.random.default_rng(seed)
    steps = [(str(rng.choice([*STEPS])), *rng.random(2), float(rng.choice([1.0, -1.0, 0.5, -0.3])))
             for _ in range(rng.integers(3, 16))]
    returned = rng.random(2)

    def function(*inputs):
        values = [each * 1.5 for each in inputs]
        for name, first, second, number in steps:
            a, b = (values[-1 - int(place * place * len(values))] for place in (first, second))
            if first < 0.2:     # parts that overlap
                a, b = a[1:], b[:-1]
            elif second < 0.1:
                b = inputs[0]
            if a.shape == b.shape:
                values.append(STEPS[name](a, b, number))
        return [values[int(place * len(values))].clone() for place in returned] + [values[-1]]

    return function


def with_gradients(function):
    """Return the function that returns the results of another one, and the gradients of a sum of these."""
    def value(*inputs):
        inputs = [each.detach().requires_grad_() for each in inputs]
        results = function(*inputs)
        gradients = cg.autograd.grad(sum((each * each).sum() for each in results), inputs, allow_unused=True)
        return [each.detach() for each in results] + [each for each in gradients if each is not None]

    return value


def compare(function, dtype, size, seed):
    compiled = cg.compile(function)
    for call in range(CALLS):
        mine, others = tensors(seed + call, dtype, size), tensors(seed + call, dtype, size)
        for result, expected in zip(compiled(*mine), function(*others), strict=True):
            assert same_bits(result.numpy(), expected.numpy()), seed
        for changed, expected in zip(mine, others, strict=True):
            assert same_bits(changed.numpy(), expected.numpy()), seed


@pytest.mark.cases("dtype", ["float64", "float32"])
@pytest.mark.cases("size", [1, 2, 3, 4, 7, 8, 9, 33])
def test_programs_at_random(dtype, size):
    for seed in range(PROGRAMS):
        compare(random_program(seed), dtype, size, seed)


@pytest.mark.cases("size", [1, 4, 5, 8, 9])
def test_gradients_of_programs_at_random(size):
    for seed in range(PROGRAMS // 4):
        function = random_program(seed)
        try:
            with_gradients(function)(*tensors(seed, "float64", size))
        except RuntimeError:        # a value that a derivative needs has changed
            continue
        compare(with_gradients(function), "float64", size, seed)


@pytest.fixture(autouse=True)
def no_groups():
    before = group_from(1 << 20)
    yield
    group_from(before)


def steps_of(function, *inputs):
    """Return how many steps the captured program of a function has."""
    compiled = cg.compile(function, fullgraph=True)
    compiled(*inputs)
    return int(compiled.explain(*inputs).split(maxsplit=1)[0])


@pytest.mark.cases("size", [1, 4, 8, 9])
def test_a_sum_is_one_step(size):
    x, y, z = tensors(0, "float64", size)
    assert steps_of(lambda x, y, z: x + 2 * y - 0.5 * z, x, y, z) == 1
    assert steps_of(lambda x, y, z: 0.1 * (x + 2 * y) + z, x, y, z) == 1
    assert steps_of(lambda x, y, z: (x + y).add_(z).sub_(x), x, y, z) == 1
    assert steps_of(lambda x, y, z: x * y + z, x, y, z) == (1 if size <= 8 else 2), "a term is a product of a few elements alone"


SPECIAL = [0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 5e-324]


@pytest.mark.cases("terms", [1, 2, 3, 4])
@pytest.mark.cases("factor", [1.0, -1.0, 0.3])
@pytest.mark.cases("scale", [1.0, -1.0, 0.7])
@pytest.mark.cases("size", [1, 5])
def test_sums_of_products(terms, factor, scale, size):
    for products in itertools.product((False, True), repeat=terms):
        def function(*inputs, products=products):
            inputs, total = iter(inputs), None
            for is_product in products:
                term = next(inputs) * next(inputs) if is_product else next(inputs) * factor
                total = term if total is None else total - term if factor < 0 else total + term
            return total if scale == 1 else -total if scale == -1 else total * scale

        count = terms + sum(products)
        compiled = cg.compile(function, fullgraph=True)
        for seed in range(40):
            values = np.random.default_rng(seed).choice(SPECIAL, (count, size)) if seed else np.ones((count, size))
            inputs = [cg.tensor(row, dtype=cg.float64) for row in values]
            with np.errstate(all="ignore"):
                result, expected = compiled(*inputs).numpy(), function(*inputs).numpy()
                assert np.array_equal(result, expected, equal_nan=True)
                assert same_bits(result[~np.isnan(result)], expected[~np.isnan(expected)]), (products, values)
        if count <= 5 and factor != 0.3:
            assert int(compiled.explain(*inputs).split(maxsplit=1)[0]) == 1


def test_a_multiple_that_several_sums_read_is_no_step():
    x, y, z = tensors(0, "float64", 1)
    assert steps_of(lambda x, y, z: [(t := 0.3 * x) + y, t - z, y - t], x, y, z) == 3
    assert steps_of(lambda x, y, z: [(t := 0.3 * x) + y, t - z, t.sin()], x, y, z) == 4, "the sine needs it"
    assert steps_of(lambda x, y, z: [(t := 0.3 * x) + y, t - z, t], x, y, z) == 3, "it is a result"
    compare(lambda x, y, z: [(t := 0.3 * x) + y, t - x.add_(z), y - t, x + 2 * t], "float64", 1, 0)


def test_zeros_that_are_written_over_are_no_step():
    def pieces(x, y, z):
        result = cg.zeros(3, dtype=x.dtype)
        result[2:] = x * y
        result[1:2].add_(y - z)
        result[:1].sub_(z)
        return result * 2.0

    def gradient(x, y, z):
        x = x.detach().requires_grad_()
        a, b, c = (cg.cat([x, y, z]) * 2.0).unbind(0)
        return cg.autograd.grad(a * b - c * a, x)[0]

    for function in (pieces, gradient):
        compiled = cg.compile(function, fullgraph=True)
        for seed in range(40):
            inputs = [cg.tensor([value], dtype=cg.float64) for value in np.random.default_rng(seed).choice(SPECIAL[:4], 3)]
            assert same_bits(compiled(*inputs).numpy(), function(*inputs).numpy()), seed
        assert "zeros" not in compiled.explain(*inputs)


def test_a_zero_term_counts_where_it_changes_bits():
    def infinite(x, y, z):
        return cg.add(x, cg.zeros(1, dtype=x.dtype), alpha=np.inf)

    def behind_a_multiple(x, y, z):
        return cg.add(z, x + y, alpha=0.3) + cg.zeros(1, dtype=x.dtype)

    for values in itertools.product(SPECIAL[:2] + [-5e-324], repeat=3):
        inputs = [cg.tensor([value], dtype=cg.float64) for value in values]
        for function in (infinite, behind_a_multiple):
            compiled = cg.compile(function, fullgraph=True)
            assert same_bits(compiled(*inputs).numpy(), function(*inputs).numpy())
            assert same_bits(compiled(*inputs).numpy(), function(*inputs).numpy()), values


def test_zeros_that_are_needed_stay():
    def read_before(x, y, z):
        result = cg.zeros(2, dtype=x.dtype)
        before = result.cos()
        result[:1], result[1:] = x, y
        return before + result

    def in_part(x, y, z):
        result = cg.zeros(3, dtype=x.dtype)
        result[1:2] = x * y
        return result

    def apart(x, y, z):
        result = cg.zeros(3, dtype=x.dtype)
        result[:1], result[2:] = x * y, y - z
        return result * 1.5

    def strided(x, y, z):
        result = cg.zeros(2, 2, dtype=x.dtype)
        result.diagonal().copy_(x.expand(2))
        return result + y

    def multiplied(x, y, z):
        result = cg.zeros(1, dtype=x.dtype)
        return result * x + y, (-result) * y

    for function in (read_before, in_part, apart, strided, multiplied):
        compare(function, "float64", 1, 0)
        assert "zeros" in cg.compile(function).explain(*tensors(0, "float64", 1))


def test_a_value_is_computed_at_the_place_of_its_copy():
    x, y, z = tensors(0, "float64", 3)
    assert steps_of(lambda x, y, z: cg.stack([x + y, y * z, z - x]), x, y, z) == 3
    assert steps_of(lambda x, y, z: cg.cat([x[:1] + y[:1], y[1:] * z[1:]]), x, y, z) == 2
    assert steps_of(lambda x, y, z: cg.stack([x + y, x.sin()]), x, y, z) == 3, "vector mathematics writes over the end"


def test_values_that_are_needed_stay():
    def twice(x, y, z):
        a = x + y
        return a - z, a + z

    def returned(x, y, z):
        a = x + y
        return a, a - z

    def later(x, y, z):
        a = x + y
        b = a * 2.0
        a.add_(z)       # `b` is a multiple of the value before
        return a, b - z

    def copied(x, y, z):
        a = x - y
        b = a * 2.0     # a term of the next sum, which reads `a`
        c = x * y
        total = b + z
        a.copy_(c)
        return total, a

    for function, steps in ((twice, 3), (returned, 2), (later, 3), (copied, 4)):
        compare(function, "float64", 4, 0)
        assert steps_of(function, *tensors(0, "float64", 4)) <= steps


def test_an_argument_is_changed_in_order():
    def function(x, y, z):
        scaled = x * 2.0
        x.add_(y)
        later = x * 2.0
        x[1:].add_(x[:-1] * 3.0)
        own = x + y
        own[1:].sub_(own[:-1] * 3.0)
        return scaled + z, later + z, x + z, own

    for size in (5, 100):       # elements behind a vector are read after it is written
        compare(function, "float64", size, 0)


def test_a_step_writes_nothing_behind_its_result():
    """Loops run over whole vectors where memory is their own."""
    def function(x, y, z):
        parts = cg.zeros(3 * 3, dtype=x.dtype)
        for k in (2, 0, 1):
            parts[3 * k:3 * k + 3] = x[:3] + y[:3] * float(k) - z[:3]
        return parts * 1.0, cg.cat([x + y, y - z]), cg.stack([x * 2.0 - z, z + y])

    for size in (3, 5, 12):
        compare(function, "float64", size, size)


def test_a_profile_names_the_parts_of_a_sum():
    x, y, z = tensors(0, "float64", 4)
    compiled = cg.compile(lambda x, y, z: x + 2.0 * y - z)
    compiled(x, y, z)
    with cg.autograd.profiler.profile() as profile:
        compiled(x, y, z)
    assert "aten::mul + add + sub" in {event.name for event in profile.function_events}
