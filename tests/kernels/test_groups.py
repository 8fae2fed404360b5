"""Programs of maps over arrays of any geometry and dtype have the bits of their operators, one by one."""

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import grains, program_checks, run_steps, set_programs
from cygrad.ops.dtypes import NUMBER
from programs import Program

PROGRAMS = 200
FIRST_REAL = 8      # in the bits of operands: from there on those that are real beside complex numbers


@pytest.fixture(params=[1, 2])
def threads(request):
    """Run with so many threads, from few elements on."""
    before = cg.get_num_threads()
    cg.set_num_threads(request.param)
    with grains(512):
        yield request.param
    cg.set_num_threads(before)


def same(a, b):
    return a.tobytes() == b.tobytes() or bool(np.isnan(a) and np.isnan(b))


def check_programs(seeds):
    """Return how many programs ran, of which the last result was written, and summed."""
    ran = summed = 0
    for seed in seeds:
        program = Program(seed)
        if not program.steps or not program.run():
            continue
        ran += program.ran == len(program.steps)
        assert not program.differences(), seed
        program = Program(seed)
        total = program.sum()
        if total is not None:
            summed += 1
            assert same(total, program.results[-1].sum().numpy()), seed
            assert not program.differences(len(program.results) - 1), seed
    return ran, summed


def test_random_programs_have_the_bits_of_operators(threads):
    first = threads * PROGRAMS
    ran, summed = check_programs(range(first, first + PROGRAMS // 2))
    assert ran > PROGRAMS // 3 and summed > PROGRAMS // 10


def test_programs_of_any_geometry_are_checked():
    checks, faults = program_checks()
    before = set_programs("check")
    try:
        ran, summed = check_programs(range(PROGRAMS // 10))
    finally:
        set_programs(before)
    assert program_checks()[0] >= checks + ran + summed and program_checks()[1] == faults


def address(array):
    return array.__array_interface__["data"][0]


def test_operands_that_are_real_beside_complex_numbers():
    """The partial of abs reads a real gradient, here of a repeated row, and complex numbers."""
    gradient = np.random.default_rng(1).normal(size=40)
    x = cg.randn(30, 40, dtype=cg.complex128, requires_grad=True)
    numbers, result = x.detach().numpy().copy(), np.zeros(1300, complex)
    x.abs().backward(cg.tensor(gradient).expand(30, 40))
    real, dtype = NUMBER["float64"], NUMBER["complex128"]
    arrays = (address(gradient), real, (0, 8), False), (address(numbers), dtype, (640, 16), False)
    step = "abs_dx", dtype, 1 << FIRST_REAL, 0, (0, 1), dtype, dtype, address(result)
    assert run_steps((30, 40), arrays, (step,)) == 1
    assert np.array_equal(result[:1200].reshape(30, 40), x.grad.numpy())


def test_slices_of_one_base_are_one_program():
    """A step of the heat equation: five places of one array, weighted and added."""
    u, rate, shape = np.random.default_rng(2).normal(size=(300, 200)), np.array(0.2), (298, 198)
    dtype, scaled, padded = NUMBER["float64"], np.array([-4.0]), np.zeros(298 * 198 + 8)
    corners = ((1, 1), (0, 1), (2, 1), (1, 0), (1, 2))
    arrays = *((address(u[i:, j:]), dtype, u.strides, True) for i, j in corners), (address(rate), dtype, (0, 0), True)
    steps = [("add", dtype, 0, 0, (1, 2)), ("add", dtype, 0, 0, (-1, 3)), ("add", dtype, 0, 0, (-2, 4)),
             ("add_scaled", dtype, 0, address(scaled), (-3, 0)), ("mul", dtype, 0, 0, (-4, 5)), ("add", dtype, 0, 0, (0, -5))]
    assert run_steps(shape, arrays, tuple((*step, dtype, dtype, address(padded) if k == 5 else 0) for k, step in enumerate(steps))) == 6
    middle, *others = (u[i:i + 298, j:j + 198] for i, j in corners)
    expected = middle + (others[0] + others[1] + others[2] + others[3] + -4.0 * middle) * rate
    assert np.array_equal(padded[:-8].reshape(shape), expected)


def test_steps_that_do_not_fit_are_left_out():
    x, dtype = np.zeros((3, 9)), NUMBER["float64"]
    arrays = tuple((address(x), dtype, (8 * k, 8), False) for k in range(8))
    steps = tuple(("add", dtype, 0, 0, (0, k), dtype, dtype, 0) for k in range(8))
    assert run_steps((3, 9), arrays, steps[:6]) == 6
    assert run_steps((3, 9), arrays, steps) == 6            # traversals
    assert run_steps((3, 9), arrays, steps[:1] * 48) == 39      # steps, of which a conversion may be one


def test_a_loop_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="exp has no loop of 1 inputs of dtype"):
        run_steps((1,), ((0, NUMBER["int64"], (0,), True),), (("exp", NUMBER["int64"], 0, 0, (0,), 0, 0, 0),))
