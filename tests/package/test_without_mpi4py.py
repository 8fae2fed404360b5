"""The package does without mpi4py: only a message needs it, and says so."""

import subprocess
import sys

SCRIPT = """
import sys
sys.modules["mpi4py"] = None        # as if it were not installed
import cygrad
assert "cygrad.mpi" not in sys.modules and "mpi" in dir(cygrad)
assert callable(cygrad.mpi.allreduce) and "allreduce" in dir(cygrad.mpi)
for call in (lambda: cygrad.mpi.allreduce(cygrad.ones(2)), cygrad.mpi.barrier, lambda: cygrad.mpi.average_gradients([])):
    try:
        call()
    except ImportError as error:
        assert 'pip install "cygrad[mpi]"' in str(error), error
    else:
        raise AssertionError("no error")
print(sys.excepthook.__module__)
"""


def test_a_message_without_mpi4py_says_how_to_install_it():
    result = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "cygrad.mpi.failures\n"


def test_importing_the_package_neither_loads_mpi_nor_starts_it():
    script = "import sys, cygrad; import cygrad.mpi; print([name for name in sys.modules if name.startswith('mpi4py')])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.stdout == "[]\n"
