"""Every row of the elementwise table and every partial: distance from the true value, on every instruction set.

Points lie over the whole range of a dtype, and on both sides of every branch: of the formula, and of the vector mathematics that it calls.
Branches are found, not listed: conditions are read from the formula and the headers, and the places where they change by bisection.
Points of other tests: infinities, NaN and zeros (test_elementwise), ties and poles (CONVENTIONS), rows without floats.
"""

import ast
import functools
import re
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp

import cygrad as cg
import samples
import truth
from cygrad._kernels.drivers.elementwise import available_isas, isa
from cygrad.ops import ELEMENTWISE, formula
from samples import array_of

# 4 units in the last place of the result, or of the larger number that the row's sample has. A partial that reads y may moreover have the
# error that 4 units of y make, since y is rounded when it is saved.
LIMIT = 4
ROWS = {name: row for name, row in ELEMENTWISE.items() if "f" in row.kinds and row.result != "bool"}
READINGS = [(row, operand) for row in ROWS.values() for operand in (None, *row.partials)]
KERNELS = Path(__file__).parents[2] / "cygrad" / "_kernels" / "mathematics"
pytestmark = pytest.mark.skipif(not KERNELS.is_dir(), reason="reads the branches in the headers, and there are no sources here")


# ----- Branches -----
@functools.cache
def compared_numbers():
    """Return, for each dtype and function of vector mathematics, the numbers that it, or a function it calls, compares with."""
    text = "".join(path.read_text() for path in KERNELS.glob("*.h") if not path.name.startswith("complex"))
    bodies, result = {}, {}
    start = r"^CG_(?:INLINE|VECTOR_FUNCTION) .*?(?:CG_NAME\((\w+)\)|\b(\w+)_float(?:32|64))"
    for shared, own, body in re.findall(start + r"\([^{;]*\)\s*\{(.*?)\}$", text, re.S | re.M):
        bodies[shared or own] = bodies.get(shared or own, "") + body
    for dtype, part in zip(("float64", "float32"), text.split("#define CG_TYPE ")[1:3], strict=True):
        macros = dict(re.findall(r"#define (CG_\w+) (-?\d\S*)", part))
        for name in bodies:
            sides = re.findall(r"(?<![<>])[<>]=?(?![<>=])([^?;:&|<>]*)", "".join(bodies[word] for word in reached(name, bodies)))
            sides = [[float_of(macros.get(word, word)) for word in re.findall(r"\bCG_[A-Z_]+\b|\b\d[\w.]*(?:(?<=p)[+-]\d+)?", side)
                      if word in macros or word[0].isdigit()] for side in sides]
            result[dtype, name] = {abs(number) for numbers in sides for number in (*numbers, sum(numbers))} - {0}
    return result


def reached(name, bodies):
    """Return a function and those that it calls."""
    seen, waiting = set(), [name]
    while waiting:
        word = waiting.pop()
        if word in bodies and word not in seen:
            seen.add(word)
            waiting += [a or b for a, b in re.findall(r"CG_NAME\((\w+)\)|\b(\w+)_float(?:32|64)", bodies[word])]
    return seen


def float_of(literal):
    """Return the value of a number in C."""
    if not literal.startswith(("0x", "-0x")):
        return float(literal.rstrip("f"))
    return float.fromhex(literal.rstrip("f")) if "p" in literal else float(int(literal, 16))


def differences(row, dtype):
    """Return functions of the operands and parameters that change their sign at the branches of a row's formulas."""
    results = set()
    for node in (node for text in (row.y, *row.partials.values()) for node in ast.walk(row.tree(text))):
        match node:
            case ast.Compare(left=left, comparators=[right]) | ast.Call(func=ast.Name(id="maximum" | "minimum"), args=[left, right]):
                results.add(f"({ast.unparse(left)}) - ({ast.unparse(right)})")
            case ast.Call(func=ast.Name(id=name), args=[argument, *_]):
                results |= {f"abs({ast.unparse(argument)}) - {number!r}" for number in compared_numbers().get((dtype, name), ())}
    trees = [tree for tree in map(formula.parse, sorted(results)) if "y" not in formula.names(tree)]
    return [(formula.names(tree), formula.to_tensor_function(tree, [*row.operands, *row.params], NUMPY, row.name)) for tree in trees]


NUMPY = {"where": np.where, **{name: getattr(np, row.numpy) for name, row in ELEMENTWISE.items() if row.numpy}}


# ----- Points -----
def around_branches(row, operand, fixed, grid):
    """Return the last number before each change of sign and the first behind it, as one operand runs over the grid."""
    kind, result = grid.dtype.type, [grid[:0]]
    parameters = {name: kind(value) for name, value in {**samples.parameters_of(row.name), **fixed}.items()}
    for difference in (function for names, function in differences(row, grid.dtype.name) if operand in names):
        def sign(x, difference=difference):
            return np.sign(difference(**{operand: x}, **parameters))

        low, signs = ordered(grid), sign(grid)
        places = np.flatnonzero((signs[1:] != signs[:-1]) & ~np.isnan(signs[1:] + signs[:-1]))
        low, high, before = low[places], low[places + 1], signs[places]
        while (high - low > 1).any():
            middle = low + (high - low) // 2
            same = sign(number(middle, kind)) == before
            low, high = np.where(same, middle, low), np.where(same | (high - low <= 1), high, middle)
        result += [number(low, kind), number(high, kind)]
    return np.concatenate(result)


def ordered(values):
    """Return floats as integers in the same order, neighbours as neighbours."""
    bits = values.view(f"i{values.itemsize}").astype(np.int64)
    lowest = np.iinfo(f"i{values.itemsize}").min
    return np.where(bits < 0, lowest - bits, bits)


def number(places, kind):
    """Return the floats of such integers."""
    size = np.dtype(kind).itemsize
    return np.where(places < 0, np.iinfo(f"i{size}").min - places, places).astype(f"i{size}").view(kind)


@functools.cache
def points(name, dtype):
    """Return an array for each operand of a row."""
    row, (kind, _, lowest, top) = ROWS[name], truth.DTYPES[dtype]
    rng, count = np.random.default_rng(8), len(row.operands)
    whole = 2.0 ** np.concatenate([np.linspace(lowest, top - 0.01, 14), [2 - top, 1 - top, -top]])
    middle = 2.0 ** np.linspace(-12.3, 10.7, 19 if count == 1 else 9)
    sizes = np.concatenate([whole if count == 1 else whole[::4], middle, [1, 2]]).astype(kind)
    columns = np.concatenate([-sizes[::-1], [0], sizes])
    fine = np.linspace(-30, 30, 2000) / 7
    grid = np.unique(np.concatenate([columns, fine, *(np.outer([-1, 1], 2.0 ** np.linspace(lowest + 1, top - 0.01, 900)))]).astype(kind))
    results = []
    for position, operand in enumerate(row.operands):
        for others in ((0.7, 0.3), (-2.5, 40.0)) if count > 1 else [()]:
            fixed = dict(zip((word for word in row.operands if word != operand), others, strict=False))
            near = around_branches(row, operand, fixed, grid)
            if len(near):
                results.append([near if k == position else np.full(len(near), fixed[word], kind) for k, word in enumerate(row.operands)])
    if count == 1:
        results.append([columns])
    else:
        chosen = rng.choice(columns, (count, 50))
        close = (0.5 + rng.uniform(size=(count, 16)) * 10.0 ** rng.uniform(-6, 1, 16)).astype(kind)
        neighbours = close[:1] * (1 + 2.0 ** -rng.integers(1, 23, (count - 1, 16)))
        results += [list(chosen), list(close), list(-close), [close[0], *neighbours]]
    arrays = [np.concatenate(column).astype(kind) for column in zip(*results, strict=True)]
    keep = np.all(np.isfinite(arrays), axis=0)
    return [(array != 0) if word in row.masks else array[keep] for word, array in zip(row.operands, arrays, strict=True)]


# ----- True values and their bounds -----
@functools.cache
def reference(name, operand, dtype):
    """Return the true values of a row or of a partial, NaN where there is none, and the largest errors allowed."""
    row, parameters = ROWS[name], {word: mp.mpf(value) for word, value in samples.parameters_of(name).items()}
    read = truth.reading(row.tree(row.partials[operand])) if operand and "y" in row.saved(operand) else None
    bound = samples.row_sample(name).bounds.get(operand, lambda y, x, dtype: y)
    true, allowed = [], []
    for x in zip(*(map(float, array) for array in points(name, dtype)), strict=True):
        y = truth.derivative(name, x, row.operands.index(operand), **parameters) if operand else truth.value(name, x, **parameters)
        true.append(truth.extended(y))
        allowed.append(LIMIT * truth.ulp(bound(y, [*map(mp.mpf, x)], dtype), dtype) if not mp.isnan(y) else 0)
        if read is not None and not mp.isnan(y):
            names = {**dict(zip(row.operands, map(mp.mpf, x), strict=True)), **parameters}
            allowed[-1] += error_of_y(read, truth.value(name, x, **parameters), names, dtype)
    return np.array(true), np.array(allowed, np.longdouble)


def error_of_y(read, y, names, dtype):
    """Return the effect of rounding y in a partial that reads it; no partial is right where y overflows."""
    if abs(y) >= mp.ldexp(1, truth.DTYPES[dtype][3]):
        return np.inf
    error = LIMIT * mp.mpf(float(truth.ulp(y, dtype)))
    with mp.workprec(200):
        try:
            return truth.extended(mp.mpf(abs(read(y=y + error, **names) - read(y=y - error, **names)) / 2))
        except ZeroDivisionError:
            return np.inf


# ----- Results of one instruction set -----
def results(names):
    """Return the results of this process; runs once per instruction set."""
    results = {}
    for name in names:
        row = ROWS[name]
        for dtype in truth.DTYPES:
            tensors = samples.prepared(points(name, dtype))
            result = samples.function(row)(*tensors)
            results[f"{name} None {dtype}"] = array_of(result)
            leaves = {operand: tensor for operand, tensor in zip(row.operands, tensors, strict=True) if operand in row.partials}
            gradients = cg.autograd.grad(result, [*leaves.values()], cg.ones_like(result)) if leaves else ()
            for operand, gradient in zip(leaves, gradients, strict=True):
                results[f"{name} {operand} {dtype}"] = array_of(gradient)
    return results


@pytest.fixture(scope="module")
def levels(request):
    """Return the results of every instruction set, of the rows that are tested; one test compares them all: a true value is found once."""
    items = (item for item in request.session.items if item.path == request.path and hasattr(item, "callspec"))
    names = sorted({item.callspec.params["row"].name for item in items if "row" in item.callspec.params})
    others = {level: samples.at_level(level, "test_accuracy", "results", names)
              for level in available_isas() if level != isa()}
    return others | {isa(): results(names)}


def test_every_row_is_covered():
    assert set(ROWS) <= set(truth.TRUE), "give the definition in samples/elementwise.py"
    bounded = {(name, operand) for name, entry in samples.ROWS.items() for operand in entry.bounds}
    assert bounded <= {(row.name, operand) for row, operand in READINGS}


BRANCHES = {"asinh float64": 1e9, "softplus float64": 2 / 1.5, "exp float64": 746, "exp float32": 105, "sinh float32": 40,
            "erf float64": 5.95, "erf float32": 3.95, "erfc float64": 27.4, "atan float32": 2.0**60, "tan float64": 2.0**24}


@pytest.mark.parametrize(("case", "branch"), BRANCHES.items())
def test_both_sides_of_branches_are_found(case, branch):
    """The comparisons of a formula, of a function in a header, of functions it calls, for one type or both."""
    x, = points(*case.split())
    near = np.abs(x[np.isclose(np.abs(x), branch, rtol=4 * np.finfo(x.dtype).eps)])
    assert near.min() <= branch <= near.max()
    assert near.min() < near.max()


@pytest.mark.slow
@pytest.mark.cases("dtype", truth.DTYPES)
@pytest.mark.parametrize(("row", "operand"), [pytest.param(row, operand, id=f"{row.name}-{operand or 'y'}") for row, operand in READINGS])
def test_distance_from_the_true_value(levels, row, operand, dtype):
    true, allowed = reference(row.name, operand, dtype)
    known = ~np.isnan(true)
    edge = np.ldexp(np.longdouble(1), truth.DTYPES[dtype][3])
    for level, result in levels.items():
        values = result[f"{row.name} {operand} {dtype}"]
        assert values.dtype == dtype
        error = np.abs(np.clip(values.astype(np.longdouble), -edge, edge) - np.clip(true, -edge, edge))
        ratio = np.where(known, np.where(np.isnan(values), np.inf, error / np.where(known, allowed, 1)), 0)
        worst = int(ratio.argmax())
        arguments = [array[worst].item() for array in points(row.name, dtype)]
        assert ratio[worst] <= 1, f"{level}, {arguments}: {values[worst]!r}, not {true[worst]!r}: {float(ratio[worst] * LIMIT):.4g} ulp"
