"""The dtypes besides float32 and float64, against torch: large arrays with fresh results, one thread, no grad; and chains of small ones."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import cygrad
from benchmarks.timing import Row, compare, peers

SIZE = 1_000_000
# Of complex64 and complex128: the part of torch's time that each function may take.
COMPLEX = {
    **dict.fromkeys(("exp", "sin", "tanh", "sqrt"), (0.15, 0.35)),
    **dict.fromkeys(("log", "pow"), (0.2, 0.35)),
    "div": (0.9, 1.1),
    **dict.fromkeys(("add", "mul"), (1.1, 1.1)),
}
STEPS = 100     # of a chain
# Of float16 and bfloat16: of four elements and of 1e6.
SMALL = dict.fromkeys(("add", "mul", "exp"), 0.3)
NARROW = {"add": 1.1, "sum": 1.2, "exp": 0.9, "tanh": 0.4}


def of_complex(libraries: dict[str, Any]) -> Iterator[Row]:
    """Yield the rows of complex numbers: 1e6 from the square of -3 to 3, and a recorded chain of products."""
    random = np.random.default_rng(0)
    x: Any
    y: Any
    for k, dtype in enumerate((np.complex64, np.complex128)):
        x, y = np.split(random.uniform(-3, 3, 4 * SIZE).view(complex).astype(dtype), 2)
        for function, limits in COMPLEX.items():
            names = {name: {"f": getattr(library, function), "x": library.from_numpy(x), "y": library.from_numpy(y)}
                     for name, library in libraries.items()}
            statement = "f(x, y)" if function in ("pow", "div", "add", "mul") else "f(x)"
            yield from compare(f"{function}, {dtype.__name__}, per element of 1e6, 1 thread, median", statement, names,
                               {"torch": limits[k]}, per=SIZE)
    names = {name: {"x": library.ones(4, dtype=library.complex128, requires_grad=True), "b": library.full((4,), 0.6 + 0.8j,
             dtype=library.complex128), "g": library.ones(4, dtype=library.complex128), "steps": range(STEPS)}
             for name, library in libraries.items()}
    chain = "y = x\nfor _ in steps: y = y * b\ny.backward(g)"
    yield from compare(f"chain of {STEPS} products of 4 complex128, forward + backward, median", chain, names, {"torch": 0.08})


def of_16_bits(libraries: dict[str, Any]) -> Iterator[Row]:
    """Yield the rows of float16 and bfloat16: four elements, 1e6, and a product of matrices, against a twentieth of torch's time."""
    random = np.random.default_rng(0)
    x = random.uniform(-3, 3, SIZE).astype(np.float32)
    for dtype in ("float16", "bfloat16"):
        names: dict[str, Any] = {name: {"library": library, "dtype": getattr(library, dtype)} for name, library in libraries.items()}
        for space in names.values():
            library = space.pop("library")
            whole = library.from_numpy(x).to(space.pop("dtype"))
            space |= {"x": whole, "small": whole[:4].clone(), "square": whole[:1 << 16].reshape(256, 256),
                      **{function: getattr(library, function) for function in (*SMALL, *NARROW)}}
        for function, limit in SMALL.items():
            statement = f"{function}(small, small)" if function != "exp" else "exp(small)"
            yield from compare(f"{function} of 4 {dtype}, median", statement, names, {"torch": limit})
        for function, limit in NARROW.items():
            statement = f"{function}(x, x)" if function == "add" else f"{function}(x)"
            yield from compare(f"{function}, {dtype}, per element of 1e6, 1 thread, median", statement, names, {"torch": limit}, per=SIZE)
        yield from compare(f"256 x 256 @ 256 x 256, {dtype}, median", "square @ square", names, {"torch": 0.05})


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    libraries = {"cygrad": cygrad, **peers("torch")}
    for library in libraries.values():
        library.set_num_threads(1)
    yield from of_16_bits(libraries)
    yield from of_complex(libraries)
