"""Programs of several processes: each test of this folder starts one by mpiexec, within a time limit."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
LIMIT = 240         # seconds


def mpiexec():
    """Return the path of the launcher beside this Python, else of the system's; None if there is none."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


needs_mpi = pytest.mark.skipif(find_spec("mpi4py") is None or mpiexec() is None,
                               reason="needs mpi4py and mpiexec: pip install mpi4py mpich")


def launched(ranks, *arguments, limit=LIMIT, threads="1"):
    """Return the finished process of a program on some ranks; `threads` is OMP_NUM_THREADS."""
    environment = os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
                                "PYTHONPATH": os.pathsep.join([*sys.path[1:], str(FOLDER)])}
    return subprocess.run([mpiexec(), "-n", str(ranks), sys.executable, *map(str, arguments)], capture_output=True, text=True,
                          timeout=limit, env=environment, stdin=subprocess.DEVNULL)


def passes(program, ranks):
    """Run all checks of a program on some ranks: an assertion that fails on one of them ends all."""
    result = launched(ranks, FOLDER / program)
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    assert f"checks passed on {ranks} ranks" in result.stdout
