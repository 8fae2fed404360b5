"""No hang without a word: ranks that fail, disagree or wait in vain end within seconds, by an error that names message and ranks."""

import re

import pytest

from launcher import FOLDER, launched, needs_mpi

pytestmark = needs_mpi
LIMIT = 60          # seconds in which each of them ends, on a busy machine


def ended(program, ranks=2):
    """Return the process of a program that ends badly, and its text."""
    process = launched(ranks, FOLDER / "faults.py", program, limit=LIMIT)
    return process.returncode, process.stdout + process.stderr


@pytest.mark.parametrize("program", ["raises", "raises_in_backward"])
def test_a_rank_that_raises_ends_the_others(program):
    code, text = ended(program)
    assert code != 0 and "ZeroDivisionError" in text and "ends all ranks, as it was ended by ZeroDivisionError" in text


def test_the_hook_can_be_turned_off():
    code, text = ended("does_not_abort")
    assert code != 0 and "ends all ranks" not in text


def test_calls_after_finalize_are_refused():
    code, text = ended("after_finalize")
    assert code == 0 and text.count("mpi.allreduce(): MPI_Finalize was called") == 4


DISAGREEMENTS = {
    "leaves_early": (r"TimeoutError on 1: mpi.debug: rank 1 is in message 1: allreduce \(sum\) of \[4\].*no message from rank 0",),
    "other_shape": (r"RuntimeError on 0: .*ranks disagree. rank 0 is in message 1: allreduce \(sum\) of \[4\].*rank 1: .* of \[3\]",
                    r"RuntimeError on 1: .*rank 1 is in message 1: allreduce \(sum\) of \[3\].*rank 0: .* of \[4\]"),
    "other_dtype": (r"RuntimeError on 0: .*float32.*rank 1: .*float64", r"RuntimeError on 1: .*float64.*rank 0: .*float32"),
    "other_operation": (r"RuntimeError on 0: .*allreduce.*rank 1: .*bcast", r"RuntimeError on 1: .*bcast.*rank 0: .*allreduce"),
    "other_root": (r"RuntimeError on 0: .*at root 0.*rank 1: .*at root 1", r"RuntimeError on 1: .*at root 1.*rank 0: .*at root 0"),
    "other_tag": (r"RuntimeError on 1: .*recv, .*float32 \[4\] with tag 2; rank 0: float32 \[4\] with tag 1",),
    "no_sender": (r"TimeoutError on 1: .*recv, float32 \[4\] with tag 0; .*no message from rank 0",),
    "never_waited_for": (r"TimeoutError on 1: .*recv from rank 0 of \[4\] with tag 0",),
    "loss_on_one_rank_without_a_tape": (r"TimeoutError on 0: .*allreduce .*no message from rank 1",),
}


@pytest.mark.parametrize("program", [name if name in ("other_shape", "leaves_early") else pytest.param(name, marks=pytest.mark.slow)
                                     for name in DISAGREEMENTS])
def test_debug_names_the_message_and_the_ranks(program):
    code, text = ended(program)
    assert code != 0
    for pattern in DISAGREEMENTS[program]:
        assert re.search(pattern, text), text
