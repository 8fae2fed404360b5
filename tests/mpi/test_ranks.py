"""`cygrad.mpi` on several ranks: each program of checks in one start of mpiexec."""

import re

import pytest

from launcher import FOLDER, launched, needs_mpi, passes

PROGRAMS = sorted(path.name for path in FOLDER.glob("check_*.py") if path.name != "check_examples.py")


@needs_mpi
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_checks(program, ranks):
    passes(program, ranks)


@needs_mpi
def test_examples_and_operators_with_one_process():
    passes("check_examples.py", 1)
    passes("check_operators.py", 1)


@needs_mpi
@pytest.mark.slow
def test_reproducible_sums():
    digests = {re.search("digest (.*)", launched(ranks, FOLDER / "check_data_parallel.py").stdout)[1] for ranks in (1, 2, 3)}
    assert len(digests) == 1


@needs_mpi
def test_ranks_share_the_cores_of_their_node():
    """OMP_NUM_THREADS without a number says nothing."""
    program = "import cygrad; about = cygrad.config.describe(); print(f\"<{about['node_cpus']} {about['threads']['threads']}>\")"
    for ranks in (1, 2):
        result = launched(ranks, "-c", program, threads="")
        shares = [tuple(map(int, share)) for share in re.findall(r"<(\d+) (\d+)>", result.stdout)]     # lines of ranks may mix
        assert len(shares) == ranks and all(threads <= max(cpus // ranks, 1) for cpus, threads in shares), result.stdout
