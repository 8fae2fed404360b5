"""`cygrad.mpi` on several ranks: each program of checks in one start of mpiexec."""

import re

import pytest

from launcher import FOLDER, launched, needs_mpi, passes

PROGRAMS = sorted(path.name for path in FOLDER.glob("check_*.py") if path.name != "check_examples.py")


@needs_mpi
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("ranks", [2, 4])
def test_checks(program, ranks):
    passes(program, ranks)


@needs_mpi
def test_examples_and_operators_with_one_process():
    passes("check_examples.py", 1)
    passes("check_operators.py", 1)


@needs_mpi
def test_reproducible_sums():
    digests = {re.search("digest (.*)", launched(ranks, FOLDER / "check_data_parallel.py").stdout)[1] for ranks in (1, 2, 3)}
    assert len(digests) == 1
