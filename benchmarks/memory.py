"""Peak memory of chains, forward and backward, in tensors: `python -m benchmarks.memory`.

Each library runs in a process of its own, which measures its peak resident memory above a small run's of the same chain.
The least possible is the saved tensors and two gradients; `exp` and `tanh` save their result, `mul` by data its factor, `sin` its input.
"""

import importlib
import importlib.util
import resource
import subprocess
import sys

LENGTH, ELEMENTS = 32, 1 << 21
CHAINS = {"exp": "y.exp()", "tanh": "y.tanh()", "sin": "y.sin()", "mul": "y * data", "mul, exp": "(y * data).exp()"}
SAVED = {"exp": LENGTH, "tanh": LENGTH, "sin": LENGTH, "mul": 1, "mul, exp": LENGTH + 1}     # but for the leaf


def measure(library_name: str, chain: str) -> float:
    """Return the rise of the peak of this process, in tensors."""
    library = importlib.import_module(library_name)
    step = eval(f"lambda y, data: {CHAINS[chain]}")

    def run(elements: int) -> None:
        y, data = library.full((elements,), 0.1, requires_grad=True) * 1, library.full((elements,), 0.9)
        for _ in range(LENGTH):
            y = step(y, data)
        total = y.sum()
        del y, data
        total.backward()

    run(16)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(ELEMENTS)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / (4 * ELEMENTS)


def main() -> None:
    """Print the peaks of each chain, or (with arguments) one of them."""
    if len(sys.argv) > 1:
        print(measure(*sys.argv[1:]))
        return
    libraries = [name for name in ("cygrad", "torch") if importlib.util.find_spec(name)]
    print(f"{f'chain of {LENGTH}':16}{'saved':>8}", *(f"{name:>8}" for name in libraries))
    for chain, saved in SAVED.items():
        peaks = [float(subprocess.check_output([sys.executable, "-m", "benchmarks.memory", name, chain])) for name in libraries]
        print(f"{chain:16}{saved:8}", *(f"{peak:8.1f}" for peak in peaks))


if __name__ == "__main__":
    main()
