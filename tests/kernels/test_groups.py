"""Programs of maps over arrays of any geometry and dtype have the bits of their operators, one by one."""

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import grains, program_checks, set_programs
from programs import Program

PROGRAMS = 200


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
        ran += 1
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
        ran, summed = check_programs(range(PROGRAMS // 5))
    finally:
        set_programs(before)
    assert program_checks() == (checks + ran + summed, faults)
