"""The logger `cygrad` has the choices and their reasons at DEBUG, whenever a program sets logging up; other programs do not pay for it.

Each script runs in a process of its own, and prints its log.
"""

import os
import re
import subprocess
import sys

import pytest

from cygrad._kernels.system import machine

SETUP = "import logging; logging.basicConfig(level=logging.DEBUG, format='%(levelname)s %(name)s %(message)s', stream=sys.stdout)"
LARGE = "x = cygrad.ones(1 << 20).exp()"


def log(*lines, **variables):
    """Return the output of a program on either stream, as {subject: text} where it is a log of ours; else as lines."""
    unwanted = ("OMP_", "GOMP_", "CYGRAD_ISA", "CYGRAD_PROGRAMS", *(variable for _, variable, *_ in machine.LAUNCHERS))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    process = subprocess.run([sys.executable, "-c", "\n".join(["import sys", *lines])], env=environment | variables, timeout=60, text=True,
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return process.stdout.splitlines()


def subjects(lines):
    return [re.fullmatch(r"DEBUG cygrad ([\w ]+): .+", line)[1] for line in lines]


FIRST = ["cache of freed memory", "instruction set"]


@pytest.mark.openmp
@pytest.mark.parametrize("script", [[SETUP, "import cygrad", LARGE], ["import cygrad", SETUP, LARGE]], ids=["before", "after"])
def test_logging_set_up_before_and_after_the_import(script):
    lines = log(*script, OMP_NUM_THREADS="3", CYGRAD_ISA="")
    assert subjects(lines) == [*FIRST, "threads", "OpenMP"]
    assert lines[2] == "DEBUG cygrad threads: 3, OMP_NUM_THREADS=3"
    assert lines[1].endswith("the highest that build and processor have")


@pytest.mark.openmp
def test_choices_at_import_and_changed_ones_are_logged():
    assert subjects(log(SETUP, "import cygrad")) == FIRST
    lines = log("import cygrad", "cygrad.set_num_threads(3)", "cygrad.set_num_threads(2)", SETUP, "cygrad.set_num_threads(2)", LARGE,
                "cygrad.config.set_cache_limit(5)", LARGE)
    assert [line for line in lines if "threads" in line] == ["DEBUG cygrad threads: 2, set_num_threads(2)"]
    assert lines[-1] == "DEBUG cygrad cache of freed memory: at most 5 bytes, set_cache_limit"


def test_info_logs_pending_notes():
    lines = log("import cygrad", SETUP, "cygrad.config.describe(); cygrad.config.describe()")
    assert subjects(lines) == FIRST


@pytest.mark.openmp
def test_variables_that_say_nothing_are_named():
    lines = log(SETUP, "import cygrad", LARGE, SLURM_NTASKS_PER_NODE="many", MPI_LOCALNRANKS="1000")
    assert "DEBUG cygrad SLURM_NTASKS_PER_NODE: 'many' is no count, and ignored" in lines
    assert any(re.fullmatch(r"DEBUG cygrad threads: 1, .*(MPI_LOCALNRANKS|affinity).*", line) for line in lines)


def test_lapack_is_logged_when_it_is_looked_up():
    lines = log("import cygrad", SETUP, "x = cygrad.linalg.ldl_factor(cygrad.eye(300))")
    assert "LAPACK" in subjects(lines)


def test_nothing_is_logged_unless_debug_is_on():
    assert log("import cygrad, logging", LARGE, "cygrad.set_num_threads(2)", "cygrad.show_config()") == []
    assert log("import logging", "logging.basicConfig(level=logging.INFO)", "import cygrad", LARGE, "cygrad.show_config()") == []
    quiet = "logging.getLogger('cygrad').setLevel(logging.WARNING)"
    assert log(SETUP, quiet, "import cygrad", LARGE, "cygrad.show_config()") == []


def test_logging_is_not_imported_and_has_a_handler_where_it_is():
    assert log("import cygrad", LARGE, "print('logging' in sys.modules)") == ["False"]
    assert log("import logging, cygrad", "print(*map(type, logging.getLogger('cygrad').handlers))") == ["<class 'logging.NullHandler'>"]


@pytest.mark.openmp
def test_handlers_may_compute_and_may_fail():
    """They run between two instructions of the program, never within a loop."""
    handler = ["import cygrad, logging", "class Handler(logging.Handler):", "    def emit(self, record):",
               "        print(record.args[0], int(cygrad.ones(1 << 20).sum()) >> 20, flush=True)",
               "        if record.args[0] == 'OpenMP': raise ValueError('of a handler')",
               "logger = logging.getLogger('cygrad')", "logger.addHandler(Handler())", "logger.setLevel(logging.DEBUG)"]
    lines = log(*handler, LARGE, "print(x.shape)")
    assert lines[:4] == [f"{subject} 1" for subject in (*FIRST, "threads", "OpenMP")]
    assert lines[-1] == "cygrad.Size([1048576])"
    assert "ValueError: of a handler" in lines
