"""`python -m cygrad info` says what runs and, where there was a choice, why."""

import os
import platform
import re
import subprocess
import sys

import pytest

import cygrad
from cygrad._kernels.drivers.elementwise import available_isas
from cygrad._kernels.system.threads import thread_report

LEVELS = available_isas()
LINES = ["Python", "compiler", "instruction set", "threads", "OpenMP", "BLAS", "memory", "denormals"]
openmp = pytest.mark.skipif(not thread_report()["openmp"], reason="built without OpenMP")


def parsed(text):
    """Return the lines of a description as a dict."""
    head, *lines = text.splitlines()
    assert head == f"cygrad {cygrad.__version__}"
    return {name: value.strip() for name, _, value in (line.strip().partition(":") for line in lines)}


def info(*command, affinity=None, **variables):
    """Describe a process with these variables, and with none of those that would say something else."""
    command = [sys.executable, *(command or ("-m", "cygrad", "info"))]
    unwanted = ("OMP_", "GOMP_", "OPENBLAS_", "CYGRAD_ISA")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    done = subprocess.run(command, env=environment | variables, timeout=60, capture_output=True, text=True, check=True,
                          preexec_fn=affinity and (lambda: os.sched_setaffinity(0, affinity)))
    return parsed(done.stdout)


def test_every_line_is_there():
    lines = info()
    assert list(lines) == LINES
    assert lines["instruction set"] == f"{LEVELS[-1]} of {', '.join(LEVELS)}"
    assert re.search(r"GCC \d|Clang \d", lines["compiler"])


@pytest.mark.parametrize("level", LEVELS)
def test_instruction_set_that_was_asked_for(level):
    assert info(CYGRAD_ISA=level)["instruction set"] == f"{level} of {', '.join(LEVELS)} (CYGRAD_ISA={level})"


@openmp
def test_threads_and_why():
    assert info(OMP_NUM_THREADS="3")["threads"] == "3 (OMP_NUM_THREADS=3)"
    if hasattr(os, "sched_setaffinity"):
        assert re.match(r"1 \(CPUs in the affinity mask.*: 1\)", info(affinity={min(os.sched_getaffinity(0))})["threads"])


@openmp
def test_threads_that_threadpoolctl_lowered():
    pytest.importorskip("threadpoolctl")
    script = """if True:
        import cygrad, threadpoolctl
        with threadpoolctl.threadpool_limits(1, user_api="openmp"):
            print(cygrad.show_config())
    """
    assert info("-c", script, OMP_NUM_THREADS="3")["threads"] == "1 (lowered for the calling thread, as threadpoolctl does)"


def test_narrow_kernels_of_blas_are_named_with_what_to_ask_for():
    blas = info(OPENBLAS_CORETYPE="Nehalem")["BLAS"]
    if "Nehalem kernels" not in blas:
        pytest.skip("not an OpenBLAS with kernels for several processors")
    if LEVELS[-1] in ("x86-64-v3", "x86-64-v4"):
        assert re.search(r"16-byte vectors where this processor has (32|64): OPENBLAS_CORETYPE=\w+ may be faster$", blas)
    assert "may be faster" not in info()["BLAS"]


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="sets the register as glibc keeps it")
@pytest.mark.parametrize(("bits", "said"), [(0x8000, "results are flushed to zero"), (0x40, "operands are read as zero"),
                                            (0x8040, "results are flushed to zero and operands are read as zero")])
def test_denormals_that_a_library_turned_off(bits, said):
    script = f"""if True:
        import ctypes, cygrad
        libm, state = ctypes.CDLL("libm.so.6"), (ctypes.c_uint32 * 8)()
        libm.fegetenv(state)
        state[7] |= {bits}
        libm.fesetenv(state)
        print(cygrad.show_config())
    """
    assert info()["denormals"] == "kept"
    assert info("-c", script)["denormals"] == f"{said}: a library in this process has set that for this thread"
