"""From a row of the table of operators to work: its data, and the statement that each library executes."""
from __future__ import annotations

import math
import timeit
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

import cygrad
from cygrad.bench.libraries import LIKE_TORCH, array, entered, numpy_dtype, tensor
from cygrad.bench.operators import MATRICES, NUMBERS, Operator, Shape, words
from cygrad.bench.work import FORWARD, OPERATOR, OVERHEAD, Prepared, Task, Work
from cygrad.ops.dtypes import DTYPES

LATE = 10_000   # elements from which on recorded results may be pending, so that the timed statement reads them
SUMMED = ("reductions", "matmul")       # families that add
NARROW = frozenset(row.name for row in DTYPES if row.is_opaque)     # floats of 16 bits
NUMEXPR = ("int32", "int64", "float32", "float64", "complex128")       # its dtypes


def work(row: Operator, dtype: str, size: int, direction: str) -> Work:
    """Return the work of a row in a dtype, of a size, in a direction."""
    shapes = row.shapes(size)
    return Work(row.name, "overhead" if size == OVERHEAD else row.family, OPERATOR, dtype, size,
                ", ".join(" x ".join(map(str, shape)) for shape in shapes.values()), direction,
                partial(prepare, row, dtype, size, direction))


def prepare(row: Operator, dtype: str, size: int, direction: str, libraries: Sequence[str]) -> Prepared:
    """Make the data of a row, and the tasks of the libraries that compute it."""
    operands = data(row, dtype, size)
    ours = [name for name in operands if name in (*NUMBERS, *MATRICES)] if direction != FORWARD else []
    with cygrad.no_grad():
        y = eval(row.text, named(row.text, [cygrad]) | {name: cygrad.tensor(value) for name, value in operands.items()}).numpy()
    g = numbers(np.random.default_rng(1), y.shape, y.dtype, -1, 1)
    tasks: dict[str, Task] = {}
    for library in libraries:
        if library in LIKE_TORCH:
            tasks[library] = like_torch(row, library, operands, ours, g)
        elif library == "numpy":
            tasks[library] = in_numpy(row, dtype, direction, operands, ours, y, g)
        elif library == "jax" and library in row.peers and np.dtype(g.dtype).kind in "fc" and dtype not in NARROW:
            tasks[library] = in_jax(row, operands, ours, g)
        elif library == "numexpr" and library in row.peers and not ours and dtype in NUMEXPR:
            tasks[library] = in_numexpr(row, operands, y)
    moved = sum(value.nbytes for value in operands.values()) + y.nbytes
    if ours:
        moved += g.nbytes + sum(operands[name].nbytes for name in ours)
    shapes = {name: value.shape for name, value in operands.items()}
    operations = row.flops(shapes) if row.flops else max(math.prod(shape) for shape in (*shapes.values(), y.shape))
    return Prepared(tasks, moved, round(operations * (row.factor if ours else 1) * (4 if g.dtype.kind == "c" else 1)))


# ----- Data -----
def numbers(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any], low: float, high: float) -> np.ndarray:
    """Return numbers between two bounds, integers from 1 on."""
    if dtype.kind == "b":
        return random.integers(2, size=shape).astype(dtype)
    if dtype.kind in "iu":
        return random.integers(1, 10, size=shape).astype(dtype)
    values = random.uniform(low, high, shape)
    return (values + 1j * random.uniform(low, high, shape) if dtype.kind == "c" else values).astype(dtype)


def positive_definite(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> np.ndarray:
    """Return symmetric, positive definite matrices; gradients divide by the distances of eigenvalues, so these lie far from each other."""
    n = shape[-1]
    half = numbers(random, shape, dtype, -1, 1)
    return (half @ half.conj().swapaxes(-1, -2) / n + np.eye(n) * np.arange(1, n + 1)).astype(dtype)


def data(row: Operator, dtype: str, size: int) -> dict[str, np.ndarray]:
    """Return the operands of a row."""
    random = np.random.default_rng(size)
    element = numpy_dtype(dtype)
    if element is None:
        raise TypeError(f"NumPy has no {dtype}")
    arrays: dict[str, np.ndarray] = {}
    for name, shape in row.shapes(size).items():
        if name == "i":
            arrays[name] = random.permutation(math.prod(shape)).reshape(shape)
        elif name == "mask":
            arrays[name] = random.random(shape) < 0.5
        elif name in MATRICES:
            arrays[name] = positive_definite(random, shape, element)
        else:
            arrays[name] = numbers(random, shape, element, row.low, row.high)
    return arrays


def named(text: str, modules: Iterable[Any]) -> dict[str, Any]:
    """Return the objects named in a text, from the first module that has them."""
    return {word: getattr(module, word) for module in reversed(list(modules)) for word in words(text) if hasattr(module, word)}


# ----- Libraries -----
def like_torch(row: Operator, library: str, operands: dict[str, np.ndarray], ours: Sequence[str], g: np.ndarray) -> Task:
    """Return the task of cygrad or torch: the row's text as it stands, and a backward."""
    module = entered(library)
    names = named(row.text, [module])
    names |= {name: tensor(module, value, requires_grad=name in ours) for name, value in operands.items()}
    if not ours:
        return Task(row.text, names, lambda: [array(eval(row.text, names))])
    names["g"] = tensor(module, g)
    compute = f"y = {row.text}\ny.backward(g)\n" + "y.data_ptr()\n" * (g.size >= LATE)
    forget = "".join(f"{name}.grad = " for name in ours) + "None"

    def results() -> list[np.ndarray]:
        space = dict(names)
        exec(compute, space)
        tensors = [space["y"], *(names[name].grad for name in ours)]
        exec(forget, names)
        return [array(result) for result in tensors]

    return Task(compute + forget, names, results)


def in_numpy(row: Operator, dtype: str, direction: str, operands: dict[str, np.ndarray], ours: Sequence[str], y: np.ndarray,
             g: np.ndarray) -> Task:
    """Return the task of NumPy: the row's statements, with their memory.

    Floats of 16 bits are converted to floats of 32 and back where that is quicker, or where their sums would round worse. Operands that
    only moves elements is not.
    """
    statement, memory = row.statements(dtype, direction), {**operands, "y": np.empty_like(y), "g": g}
    memory |= {f"d{name}": np.empty_like(operands[name]) for name in ours}
    outputs = ("y", *(f"d{name}" for name in ours))
    plain = executed(row.before, statement, memory, outputs)
    if dtype not in NARROW or row.family == "indexing":
        return plain
    narrow = {name: value for name, value in memory.items() if value.dtype == numpy_dtype(dtype)}
    wide = {name: np.empty(value.shape, np.float32) for name, value in narrow.items()}
    into = "".join(f"copyto({name}, {name}_16); " for name in narrow if name not in outputs and name in words(statement))
    back = "".join(f"; copyto({name}_16, {name})" for name in outputs if name in narrow)
    converted = executed(row.before, into + statement + back, memory | wide | {f"{name}_16": value for name, value in narrow.items()},
                         [f"{name}_16" if name in narrow else name for name in outputs])
    if row.family in SUMMED:
        return converted
    return min(plain, converted, key=lambda task: min(timeit.repeat(task.statement, globals=task.names, number=1, repeat=3)))


def executed(before: str, statement: str, memory: dict[str, np.ndarray], outputs: Sequence[str]) -> Task:
    """Return NumPy's task of a statement in memory, whose results have these names."""
    names = named(f"{before} {statement}", [np]) | memory
    exec(before, names)

    def results() -> list[np.ndarray]:
        space = dict(names)
        exec(statement, space)
        return [space[name] for name in outputs]

    return Task(statement, names, results)


def in_jax(row: Operator, operands: dict[str, np.ndarray], ours: Sequence[str], g: np.ndarray) -> Task:
    """Return the task of JAX, compiled before anything is timed."""
    jax = entered("jax")
    text = row.peers["jax"]
    space = named(text, [jax.numpy, jax.nn, jax.scipy.special])
    values = {name: jax.numpy.asarray(value) for name, value in operands.items()}

    def function(parts: dict[str, Any], constants: dict[str, Any]) -> Any:
        return eval(text, space | constants | parts)

    def both(parts: dict[str, Any], constants: dict[str, Any], seed: Any) -> Any:
        y, pull = jax.vjp(partial(function, constants=constants), parts)
        return y, pull(seed)[0]

    parts = {name: values[name] for name in ours}
    constants = {name: value for name, value in values.items() if name not in ours}
    if not ours:
        names = {"f": jax.jit(function), "parts": parts, "constants": constants}
        return Task("f(parts, constants).block_until_ready()", names, lambda: [names["f"](parts, constants)])
    names = {"f": jax.jit(both), "parts": parts, "constants": constants, "g": jax.numpy.asarray(g.conj()), "wait": jax.block_until_ready}

    def results() -> list[Any]:
        y, gradients = names["f"](parts, constants, names["g"])
        return [y, *(np.conj(gradients[name]) for name in ours)]        # JAX's gradients are the conjugates of torch's

    return Task("wait(f(parts, constants, g))", names, results)


def in_numexpr(row: Operator, operands: dict[str, np.ndarray], y: np.ndarray) -> Task:
    """Return the task of numexpr, which has no derivatives."""
    names = {"evaluate": entered("numexpr").evaluate, "text": row.peers["numexpr"], "operands": operands, "y": np.empty_like(y)}

    def results() -> list[Any]:
        return [names["evaluate"](names["text"], operands, out=names["y"])]

    return Task("evaluate(text, operands, out=y)", names, results)
