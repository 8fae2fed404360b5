"""Sample operands for the table-driven tests: values from a row's domain and edges, in every dtype, shape and layout.

Arrays are NumPy's, drawn from fixed seeds; `LAYOUTS` place them into tensors. A new row is sampled without a word here. Any other operator
needs an entry in the file of its family; the tests that walk `SAMPLES` do the rest: values against NumPy in every layout and dtype,
derivatives, tangents, batches, degenerate and hostile operands, leaks. Everything is recomputed at each call, so tests may write to
the arrays.
"""

import contextlib
import functools
import importlib
import itertools
import math
import multiprocessing
import os
import pkgutil
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import cygrad as cg
import public
from cygrad._core.compute.dispatch import ops
from cygrad._kernels.drivers.elementwise import is_blocked
from cygrad._kernels.system.threads import thread_report
from cygrad._testing import threads_used
from cygrad.operators import public_name
from cygrad.ops import ELEMENTWISE
from samples.sample import RowSample

KINDS = {
    "bool": "b",
    **dict.fromkeys(("uint8", "int8", "int16", "int32", "int64"), "i"),
    "float32": "f",
    "float64": "f",
}
DTYPES = tuple(KINDS)
NUMBERS = tuple(dtype for dtype in DTYPES if KINDS[dtype] != "b")
FLOATS = ("float32", "float64")


def sizes(table):
    """Return a table of sizes, or the part of it that slow builds have time for (`make sanitize`)."""
    return table[::3] if os.environ.get("CYGRAD_TEST_SHAPES") == "few" else table


# Odd sizes around the lengths of vectors, rows of a few and of many elements, and more than 64 KiB.
SHAPES = sizes(((), (0,), (2, 0, 3), *((n,) for n in range(1, 18)), (1, 1), (3, 5), (2, 3, 4), (3, 200), (9001,)))
# The shapes of up to three operands that broadcast.
BROADCASTS = (
    ((3, 5), (5,), ()),
    ((3, 1), (1, 4), (4,)),
    ((), (6,), (1,)),
    ((0, 3), (1, 3), (3,)),
    ((2, 1, 1), (1, 3, 1), (1, 1, 4)),
    ((4, 1, 150), (3, 1), (4, 3, 150)),
)


# ----- Layouts -----
def _contiguous(array):
    return cg.tensor(array)


def _transposed(array):
    return cg.tensor(np.array(array.T, order="C")).permute(*reversed(range(array.ndim)))


def _stepped(array):
    if array.ndim == 0:
        return cg.tensor(np.array([0, array], array.dtype))[1]
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return cg.tensor(wide)[..., ::2]


def _cut(array):
    """Return dense rows that are the middle of longer ones, so that they start at any address."""
    if array.ndim == 0:
        return _stepped(array)
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 2), array.dtype)
    wide[..., 1:-1] = array
    return cg.tensor(wide)[..., 1:-1]


def _expanded(array):
    """Return the first row, repeated without a copy: the one layout that changes the values."""
    return cg.tensor(array[:1]).expand(array.shape) if array.ndim and array.size else cg.tensor(array)


def _foreign(array):
    """Return a tensor over memory of NumPy's, which has no padding."""
    return cg.from_numpy(array.copy())


LAYOUTS = {
    "contiguous": _contiguous,
    "transposed": _transposed,
    "stepped": _stepped,
    "cut": _cut,
    "expanded": _expanded,
    "foreign": _foreign,
}
# Layouts in which every element has memory of its own, as in-place operators and gradcheck need it.
WRITABLE = tuple(name for name in LAYOUTS if name != "expanded")


def array_of(tensor):
    """Return a copy of the elements as an array."""
    return np.array(tensor.detach().numpy())


def leaf(array, layout="contiguous"):
    """Return a tensor that requires a gradient."""
    return LAYOUTS[layout](array).requires_grad_()


def same_bits(a, b):
    """Return True if arrays are equal to the bit, except that any NaN equals any NaN."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    a, b = (np.ravel(x).view(x.real.dtype) for x in (a, b))
    return bool(((a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")) | (a != a) & (b != b)).all())


# ----- Values -----
def _integers(row, position, dtype):
    """Return the integers that an operand is drawn from: small ones, and the ends of the type."""
    limits = np.iinfo(dtype)
    numbers = {limits.min, limits.max, 0, 1, 2, 3, 5, 7} | ({-1, -2, -3} if limits.min else set())
    if row is not None and position == 1 and row.integers == "divisor":
        numbers -= {0}
    if row is not None and position == 1 and row.integers == "exponent":
        numbers = {number for number in numbers if number >= 0}
    return np.array(sorted(numbers), dtype)


def draw(dtype, shape, seed=0, domain=(-3.0, 3.0), row=None, position=0):
    """Return an array of random elements: floats from the domain, integers from `_integers`."""
    stream = np.random.default_rng([seed, position, *shape])
    if KINDS[dtype] == "f":
        return np.array(stream.uniform(*domain, shape), dtype)
    return np.array(
        stream.choice(np.array([False, True]) if dtype == "bool" else _integers(row, position, dtype), shape)
    )


def operands(row, dtype, shapes, seed=0):
    """Return an array for each operand of a row, within its domain; masks are bool."""
    return [
        draw("bool" if operand in row.masks else dtype, shape, seed, row.domain, row, position)
        for position, (operand, shape) in enumerate(zip(row.operands, shapes, strict=False))
    ]


def edge_operands(row, dtype):
    """Return arrays with every combination of edges: zeros, infinities, NaN, the ends of the type, the row's own."""
    if KINDS[dtype] == "f":
        limits = np.finfo(dtype)
        ends = (limits.max, -limits.max, limits.tiny, limits.smallest_subnormal) if len(row.operands) < 3 else ()
        edges = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, math.inf, -math.inf, math.nan, *row.domain, *row.edges, *ends]
        columns = [edges] * len(row.operands)
    else:
        columns = [[False, True] if dtype == "bool" else _integers(row, k, dtype) for k in range(len(row.operands))]
    columns = [[False, True] if operand in row.masks else c for operand, c in zip(row.operands, columns, strict=True)]
    return [
        np.array(column).astype("bool" if operand in row.masks else dtype)
        for operand, column in zip(row.operands, zip(*itertools.product(*columns), strict=True), strict=True)
    ]


# ----- Calls of elementwise rows -----
def row_sample(name):
    """Return the fields that tests need beside a row."""
    return ROWS.get(name, RowSample())


def parameters_of(name):
    """Return the parameters of the sample calls of a row; {} of other operators."""
    return row_sample(name).parameters


def function(row):
    """Return the public function of a row with sample parameters, as a function of the operands (and `out`)."""
    return _with_parameters(row, public.function(row.name))


def operator(row):
    """Return the same as NumPy's functions and formulas have it: operands are numbers where torch's function takes none, too."""
    return _with_parameters(row, ops[row.name] if row.tensors else public.function(row.name))


def _with_parameters(row, function):
    return lambda *tensors, **keywords: function(*tensors, **parameters_of(row.name), **keywords)


def method_names(row):
    """Return the names of a row that are methods; a name of a namespace is a function alone."""
    return [name for name in (row.name, *row.aliases) if public_name(name) == name]


def numpy_function(row):
    """Return NumPy's function of a row, or the one of `math`; None if there is neither."""
    own = row_sample(row.name).numpy or getattr(np, row.numpy or "", None)
    return own or (np.vectorize(getattr(math, row.name), otypes=[float]) if hasattr(math, row.name) else None)


def is_vectorised(row):
    """Return True if a row is evaluated by vector mathematics, so that it is right to a few ulp, not to the bit."""
    return is_blocked(row.name)


def dtypes_of(row):
    """Return the names of the dtypes that a row computes in."""
    return [dtype for dtype in DTYPES if KINDS[dtype] in row.kinds]


def differentiable_rows():
    """Return the rows that have partials."""
    return [row for row in ELEMENTWISE.values() if row.partials]


def named(rows):
    """Return rows as parameters of a test."""
    return [pytest.param(row, id=row.name) for row in rows]


def gradients(call, tensors, weight, **options):
    """Return the result and the gradients of the operands that require one, as arrays."""
    leaves = [tensor for tensor in tensors if tensor.requires_grad]
    result = call(*tensors)
    results = cg.autograd.grad(result, leaves, weight, **options) if result.requires_grad else ()
    return [array_of(result), *map(array_of, results)]


def prepared(arrays, place=cg.tensor):
    """Place arrays into tensors; floats are leaves."""
    return [place(array).requires_grad_() if array.dtype.kind == "f" else place(array) for array in arrays]


# ----- Calls of all other operators: a file for each family -----
FAMILIES = [importlib.import_module(f"samples.{module.name}") for module in pkgutil.iter_modules(__path__) if module.name != "sample"]
# Of rows of the tables, where they need more than the row.
ROWS = {name: row for family in FAMILIES for name, row in getattr(family, "ROWS", {}).items()}
SAMPLES = {name: calls for family in FAMILIES for name, calls in getattr(family, "SAMPLES", {}).items()}
# Of operators that have no gradient.
PLAIN = {name: calls for family in FAMILIES for name, calls in getattr(family, "PLAIN", {}).items()}

# The names of all operators that have a gradient.
DIFFERENTIABLE = [*(row.name for row in differentiable_rows()), *SAMPLES]


def of(name, *subjects):
    """Return (number, function, shapes) of the samples of an operator that tests of these subjects are for."""
    return [(number, sample.call, sample.shapes) for number, sample in enumerate(SAMPLES[name])
            if sample.exempt.keys().isdisjoint(subjects)]


def names_for(*subjects):
    """Return the operators with a gradient that have such samples."""
    return [name for name in SAMPLES if of(name, *subjects)]


def rule_cases():
    """Return (rule, number, function, shapes) of every sample."""
    return [(rule, *case) for rule in SAMPLES for case in of(rule)]


def calls_of(name):
    """Return (function, operands) of the samples of a differentiable row or of a rule, as parameters of a test."""
    if name in SAMPLES:
        return [pytest.param(call, rule_operands(shapes), id=str(number)) for number, call, shapes in of(name)]
    row = ELEMENTWISE[name]
    return [pytest.param(function(row), operands(row, "float64", ((3, 2), (2,), ())), id="broadcast")]


def rule_operands(shapes, seed=0):
    """Return distinct numbers for the operands of a rule: no ties, no zeros."""
    arrays = []
    for position, shape in enumerate(shapes):
        stream = np.random.default_rng([seed, position])
        count = math.prod(shape)
        arrays.append((stream.permutation(2 * count)[:count] + 0.5 - count).reshape(shape) / 4)
    return arrays


def graph_names(tensors):
    """Return the names of all nodes that tensors depend on."""
    names, open_nodes, seen = set(), [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None], set()
    while open_nodes:
        node = open_nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        names.add(node.name())
        open_nodes += [source for source, _ in node.next_functions if source is not None]
    return names


def in_reals(result):
    """Return complex numbers as the pairs of their parts, others as they are."""
    return result.view_as_real() if result.is_complex() else result


def as_tuple(result):
    """Return one result or several as a tuple."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


# ----- Threads and other processes -----
@contextlib.contextmanager
def threads(count, parallel=True):
    """Compute with a number of threads; fail if no parallel region had that many, as the work was too small."""
    before = cg.get_num_threads()
    try:
        cg.set_num_threads(count)
        with threads_used() as used:
            yield
        if parallel and thread_report()["openmp"]:
            assert max(used.count, 1) == cg.get_num_threads(), "give this test larger operands"
    finally:
        cg.set_num_threads(before)


@functools.cache
def process_at(level):
    """Return a pool of one process that computes with another instruction set; it lives as long as this one."""
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CYGRAD_ISA", level)
        pool.submit(int).result(timeout=120)    # it reads the variable at its start
    return pool


def call_by_name(module, name, arguments):
    return getattr(importlib.import_module(module), name)(*arguments)


def at_level(level, module, name, *arguments):
    """Return the dict of arrays that a function of a test module returns in a process with another instruction set."""
    return process_at(level).submit(call_by_name, module, name, arguments).result(timeout=900)
