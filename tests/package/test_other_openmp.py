"""cygrad beside results that bring an OpenMP of their own: results, threads that compute at once, and a fork after both have computed."""

import importlib.util
import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.openmp,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
]

# A function for each that computes in parallel and returns a number.
OTHERS = {
    "torch": """
        import torch
        torch.set_num_threads(2)
        data = torch.arange(1_000_000, dtype=torch.float64) / 1e6
        def other(): return float((data.exp() * data).max())
    """,
    "sklearn": """
        import numpy
        from sklearn.metrics import pairwise_distances_argmin_min
        points = numpy.random.default_rng(0).random((2000, 8))
        def other(): return float(pairwise_distances_argmin_min(points, points[:500])[1].max())
    """,
    "numba": """
        import numba
        numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
        @numba.njit(parallel=True)
        def largest(n):
            total = 0
            for i in numba.prange(n): total += i % 7
            return total
        def other(): return float(largest(1_000_000))
    """,
}

PROGRAM = """
import os, signal, sys, threading
import cygrad as cg

{other}

cg.set_num_threads(2)
x = (cg.arange(1_000_000, dtype=cg.float64) / 1e6).requires_grad_()

def ours():
    x.grad = None
    (x.exp() * x).sum().backward()
    return x.grad

expected, theirs = ours().clone(), other()
for _ in range(5):
    assert cg.equal(ours(), expected)
    assert other() == theirs

def without_gradient():
    with cg.no_grad():
        results.append(cg.equal(x.exp() * (1 + x), reference))

reference = (x.exp() * (1 + x)).detach()
results = []
threads = [threading.Thread(target=lambda: results.append(other() == theirs)),
           *(threading.Thread(target=without_gradient) for _ in range(2))]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert results == [True] * 3, results
assert cg.get_num_threads() == 2

child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if cg.equal(ours(), expected) and cg.equal(ours(), expected) else 1)
assert os.waitpid(child, 0)[1] == 0
assert cg.equal(ours(), expected) and other() == theirs
print("done")
"""


@pytest.mark.parametrize("first", ["cygrad", "other"])
@pytest.mark.parametrize("name", OTHERS)
def test_results_beside_another_openmp(name, first):
    """Loaded before or after: the one that comes first may be the one whose names the dynamic linker finds."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    program = PROGRAM.format(other="\n".join(line.removeprefix("        ") for line in OTHERS[name].splitlines()))
    script = program if first == "cygrad" else f"import {name}\n{program}"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
