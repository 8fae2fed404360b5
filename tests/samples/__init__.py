"""Sample operands for the table-driven tests: values from a row's domain and edges, in every dtype, shape and layout.

Arrays are NumPy's, drawn from fixed seeds; `LAYOUTS` place them into tensors. A new row is sampled without a word here;
a new rule needs an entry in RULE_SAMPLES. Everything is recomputed at each call, so tests may write to what they get.
"""

import contextlib
import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg
from cygrad._kernels.system.threads import thread_report
from cygrad._testing import threads_used
from cygrad.func import vmap
from cygrad.ops import ELEMENTWISE, formula

KINDS = {
    "bool": "b",
    **dict.fromkeys(("uint8", "int8", "int16", "int32", "int64"), "i"),
    "float32": "f",
    "float64": "f",
}
DTYPES = tuple(KINDS)
FLOATS = ("float32", "float64")


def sizes(table):
    """Return a table of sizes, or the part of it that builds of a tenth of the speed have time for (`make sanitize`)."""
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
    """Dense rows that are the middle of longer ones, so that they start at any address."""
    if array.ndim == 0:
        return _stepped(array)
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 2), array.dtype)
    wide[..., 1:-1] = array
    return cg.tensor(wide)[..., 1:-1]


def _expanded(array):
    """The first row, repeated without a copy: the one layout that changes the values."""
    return cg.tensor(array[:1]).expand(array.shape) if array.ndim and array.size else cg.tensor(array)


def _foreign(array):
    """Memory of NumPy's, which has no padding."""
    return cg.from_numpy(array.copy())


LAYOUTS = {
    "contiguous": _contiguous,
    "transposed": _transposed,
    "stepped": _stepped,
    "cut": _cut,
    "expanded": _expanded,
    "foreign": _foreign,
}
# Those in which every element has memory of its own: what in-place operators and gradcheck need.
WRITABLE = tuple(name for name in LAYOUTS if name != "expanded")


def array_of(tensor):
    """Return a copy of the elements as an array."""
    return np.array(tensor.detach().numpy())


def leaf(array, layout="contiguous"):
    """Return a tensor that requires a gradient."""
    return LAYOUTS[layout](array).requires_grad_()


def same_bits(a, b):
    """Say whether arrays are equal to the bit, except that a NaN is a NaN."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    a, b = np.ravel(a), np.ravel(b)
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
    """Return an array of random elements: floats from the domain, integers from a few telling ones."""
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
PARAMETERS = {
    "add_scaled": {"alpha": 3},
    "sub_scaled": {"alpha": 3},
    "softplus": {"beta": 1.5, "threshold": 2.0},
    "addcmul": {"value": 3},
    "addcdiv": {"value": 2},
    "elu": {"alpha": 1.5},
    "celu": {"alpha": 1.5},
    "leaky_relu": {"negative_slope": 0.125},
    "hardtanh": {"min_val": 0, "max_val": 2},
    "softshrink": {"lambd": 0.75},
    "hardshrink": {"lambd": 0.75},
    "threshold": {"threshold": 1, "value": 7},
    "nan_to_num": {"nan": 1.0, "posinf": 2.0, "neginf": -2.0},
    "isclose": {"rtol": 0.25, "atol": 0.125, "equal_nan": True},
}


def function(row):
    """Return the public function of a row with sample parameters, as a function of the operands (and `out`)."""
    public = getattr(cg, row.name)
    return lambda *tensors, **keywords: public(*tensors, **PARAMETERS.get(row.name, {}), **keywords)


def is_vectorised(row):
    """Say whether a formula is evaluated by vector mathematics, so that it is right to a few ulp, not to the bit."""
    return formula.uses_vector_mathematics(row.tree(row.y))


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
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    result = call(*tensors)
    found = cg.autograd.grad(result, wanted, weight, **options) if result.requires_grad else ()
    return [array_of(result), *map(array_of, found)]


def prepared(arrays, place=cg.tensor):
    """Place arrays into tensors; floats are leaves."""
    return [place(array).requires_grad_() if array.dtype.kind == "f" else place(array) for array in arrays]


# ----- Calls of rules and reductions: functions of float64 tensors, with the shapes of these -----
def scatter(gradient):
    """The transpose of indexing, as the second derivative sees it."""
    source = cg.zeros(3, 2, dtype=cg.float64, requires_grad=True)
    return cg.autograd.grad(source[cg.tensor([2, 0, 2, 1])], source, gradient, create_graph=True)[0]


def write(key):
    """Return a function that writes its second operand into a copy of the first."""

    def written(x, value):
        y = x * 1
        y[key] = value
        return y

    return written


INDEX = cg.tensor([[2, 0], [0, 0], [2, 0]])     # for scatter_reduce: places that are hit once, several times and never
EXAMPLES = cg.tensor(np.arange(12.0).reshape(4, 3) / 7)
SOURCE = cg.zeros(5, 2, dtype=cg.float64, requires_grad=True)

RULE_SAMPLES = {
    "alias": [(lambda x: x.as_subclass(type("Field", (cg.Tensor,), {})), (2, 3))],
    "view": [
        (lambda x: x.view(2, 1, -1), (2, 3)),
        (lambda x: x.reshape(3, 2), (2, 3)),
        (lambda x: x.flatten(1), (2, 3, 2)),
    ],
    "squeeze": [(lambda x: x.squeeze(), (2, 1, 3, 1)), (lambda x: x.squeeze(-1), (2, 1))],
    "unsqueeze": [(lambda x: x.unsqueeze(1), (2, 3)), (lambda x: x.unsqueeze(-1), ())],
    "permute": [(lambda x: x.permute(2, 0, 1), (2, 3, 2)), (lambda x: x.T, (2, 1, 3))],
    "transpose": [(lambda x: x.transpose(0, -1), (2, 1, 3)), (lambda x: x.mT, (2, 2, 3))],
    "t": [(lambda x: x.t(), (2, 3)), (lambda x: x.T, (2, 3))],
    "enter": [(lambda x: vmap(lambda row: row * x)(EXAMPLES), (3,)), (lambda x: vmap(lambda row: x @ row)(EXAMPLES), (2, 3))],
    "expand": [
        (lambda x: x.expand(3, 2, 4), (2, 1)),
        (lambda x: x.expand(2, -1), (3,)),
        (lambda x: x.expand(0, 3), (1, 3)),
    ],
    "slice": [(lambda x: x[:, 1::2], (2, 4)), (lambda x: x[..., None], (2,)), (lambda x: x.narrow(1, cg.tensor(1), 2), (2, 4))],
    "select": [(lambda x: x[1], (2, 3)), (lambda x: x.select(1, -1), (2, 3))],
    "unbind": [(lambda x: x.unbind(1), (2, 3)), (lambda x: x.unbind()[1], (2, 3))],
    "split": [(lambda x: x.split(2, 1), (2, 5)), (lambda x: x.split(2)[1], (3,)), (lambda x: x.chunk(2, -1), (2, 3))],
    "split_with_sizes": [(lambda x: x.split([1, 0, 2]), (3, 2)), (lambda x: x.split_with_sizes([1, 2], 1)[0], (2, 3))],
    "as_strided": [
        (lambda x: x.as_strided((2, 2), (1, 2)), (2, 3)),
        (lambda x: x.as_strided((3, 2), (1, 1), 1), (5,)),
        (lambda x: x[1:].as_strided((2,), (2,), 1), (5,)),
        (lambda x: x.expand(3, 2).as_strided((2, 3), (1, 0)), (2,)),
    ],
    "scatter_view": [(lambda x: x._scatter_view(((4,), (1,), (3, 2), (1, 1), 0)), (3, 2))],
    "gather_view": [(lambda x: x._gather_view(((2, 3), (1, 2), (2,), (3,), 1)), (2, 3))],
    "put_view": [(lambda a, b: a.as_strided_scatter(b, (2, 2), (1, 3)), (2, 4), (2, 2))],
    "fill": [(lambda x: (x * 1).fill_(2) + x, (2, 3))],
    "zero": [(lambda x: (x * 1).zero_(), (2,))],
    "index": [
        (lambda x: x[cg.tensor([2, 0, 2])], (3, 2)),
        (lambda x: x[:, [1, 0]], (2, 2)),
        (lambda x: x[x > 0], (2, 3)),
    ],
    "scatter_key": [(scatter, (4, 2))],
    "diagonal": [
        (lambda x: x.diagonal(), (2, 3)),
        (lambda x: x.diagonal(-1, -1, 0), (3, 2, 3)),
        (lambda x: x.diagonal(7), (2, 2)),
    ],
    "unfold": [
        (lambda x: x.unfold(1, 3, 2), (2, 6)),
        (lambda x: x.unfold(0, 2, 1), (4, 2)),
        (lambda x: x.unfold(0, 1, 1), ()),
    ],
    "fold": [(lambda x: cg.autograd.grad(SOURCE.unfold(0, 3, 1), SOURCE, x, create_graph=True)[0], (3, 2, 3))],
    "diag_embed": [(lambda x: x.diag_embed(-1, 0, 2), (2, 3)), (lambda x: x.diag(1), (3,))],
    "diagonal_scatter": [(lambda x, s: x.diagonal_scatter(s, 1, 0, 2), (2, 3, 4), (3, 2))],
    "select_scatter": [(lambda x, s: x.select_scatter(s, 1, -2), (2, 3), (2,))],
    "slice_scatter": [(lambda x, s: x.slice_scatter(s, 1, 0, 5, 2), (2, 4), (2, 2))],
    "repeat": [
        (lambda x: x.repeat(2, 3, 2), (1, 2)),
        (lambda x: x.tile(2), (2, 3)),
        (lambda x: x.repeat(0, 2), (2,)),
        (lambda x: x.repeat(2), ()),
    ],
    "flip": [(lambda x: x.flip(0, -1), (2, 1, 3)), (lambda x: x.flip([]), (2,))],
    "roll": [(lambda x: x.roll((1, -1), (0, 1)), (2, 3)), (lambda x: x.roll(2), (2, 2))],
    "tril": [(lambda x: x.tril(), (3, 3)), (lambda x: x.tril(-1), (2, 3, 2)), (lambda x: (x * 1).tril_(1), (2, 3))],
    "triu": [(lambda x: x.triu(1), (3, 3)), (lambda x: (x * 1).triu_(), (2, 3))],
    "gather": [
        (lambda x: x.gather(0, cg.tensor([[2, 0], [2, 1]])), (3, 2)),
        (lambda x: x.gather(1, cg.tensor([[1, 1, 0]])), (3, 2)),
        (lambda x: x.gather(0, cg.tensor([0, 0])), ()),
    ],
    "scatter": [
        (lambda x, s: x.scatter(0, cg.tensor([[2, 0], [1, 1]]), s), (3, 2), (2, 2)),
        (lambda x, s: x.scatter(1, cg.tensor([[2, 0]]), s), (3, 3), (4, 2)),
        (lambda x: x.scatter(1, cg.tensor([[0], [2]]), 7.0), (2, 3)),
        (lambda x, s: (x * x).scatter_(1, cg.tensor([[2, 0]]), s), (3, 3), (1, 2)),
    ],
    "scatter_add": [
        (lambda x, s: x.scatter_add(0, cg.tensor([[2, 0], [2, 1]]), s), (3, 2), (2, 2)),
        (lambda x, s: x.scatter_add(1, cg.tensor([[0, 0, 1]]), s), (2, 2), (2, 3)),
        (lambda x, s: x.scatter(0, cg.tensor([0, 0]), s, reduce="add"), (2,), (2,)),
    ],
    **{
        f"scatter_{rule}": [
            (lambda x, s, r=reduce, k=kept: x.scatter_reduce(0, INDEX, s, r, include_self=k), (3, 2), (4, 2))
            for reduce in reduces
            for kept in (True, False)
        ]
        + [
            (lambda x, s, r=reduces[0], k=kept: (x * 1).scatter_reduce_(0, INDEX, s, r, include_self=k), (3, 2), (4, 2))
            for kept in (True, False)
        ]
        + [
            (lambda x, s, r=reduces[-1]: x.index_reduce(1, cg.tensor([2, 0, 2]), s, r), (2, 3), (2, 3)),
            (lambda x, s, r=reduces[0]: (x * 1).index_reduce_(0, cg.tensor([1, 1]), s, r, include_self=False), (2, 3), (2, 3)),
        ] * (rule != "sum")
        for rule, reduces in {"sum": ["sum"], "mean": ["mean"], "prod": ["prod"], "extremum": ["amax", "amin"]}.items()
    },
    "index_select": [
        (lambda x: x.index_select(1, cg.tensor([2, 0, 2])), (2, 3)),
        (lambda x: x.index_select(0, cg.tensor([0])), ()),
        (lambda x: x.repeat_interleave(2, 1), (2, 2)),
        (lambda x: x.unique(dim=1), (2, 3)),
    ],
    "index_add": [
        (lambda x, s: x.index_add(1, cg.tensor([2, 0, 2]), s, alpha=2.5), (2, 3), (2, 3)),
        (lambda x, s: (x * 1).index_add_(0, cg.tensor([1, 1]), s), (2, 3), (2, 3)),
    ],
    "index_copy": [
        (lambda x, s: x.index_copy(1, cg.tensor([2, 0]), s), (2, 3), (2, 2)),
        (lambda x, s: (x * 1).index_copy_(0, cg.tensor([2]), s), (3,), ()),
    ],
    "index_fill": [
        (lambda x, v: x.index_fill(1, cg.tensor([2, -3, 2]), v), (2, 3), ()),
        (lambda x: (x * 1).index_fill_(0, cg.tensor([1]), 5), (2, 3)),
    ],
    "index_put": [
        (write([2, 0]), (3, 2), (2, 2)),
        (write(([0, 1], slice(None))), (3, 2), (2,)),
        (lambda x, v: x.index_put((cg.tensor([2, 0]), cg.tensor([0, 1])), v), (3, 2), (2,)),
        (lambda x, v: x.index_put((cg.tensor([1, 1]),), v, accumulate=True), (3, 2), (1, 2)),
        (lambda x, v: (x * 1).index_put_((cg.tensor([True, False]),), v), (2, 3), ()),
        (write([2, 0]), (3, 2), (2, 2)),
        (write(([0, 1], slice(None))), (3, 2), (2,)),
    ],
    "masked_fill": [
        (lambda x, v: x.masked_fill(cg.tensor([True, False, True]), v), (2, 3), ()),
        (lambda x, v: x.masked_fill(cg.tensor([[True], [False]]), v), (3,), ()),
        (lambda x: (x * 1).masked_fill_(cg.tensor([True, False, True]), 2), (2, 3)),
    ],
    "masked_select": [(lambda x: x.masked_select(cg.tensor([True, False, True])), (2, 3))],
    "masked_scatter": [
        (lambda x, s: x.masked_scatter(cg.tensor([True, False, True]), s), (2, 3), (3, 2)),
        (lambda x, s: (x * 1).masked_scatter_(cg.tensor([True, False, True]), s), (2, 3), (4,)),
    ],
    "take": [(lambda x: x.take(cg.tensor([[5, -1], [0, 5]])), (2, 3)), (lambda x: x.take(cg.tensor(0)), ())],
    "put": [
        (lambda x, s: x.put(cg.tensor([[5, 0]]), s), (2, 3), (2,)),
        (lambda x, s: (x * 1).put_(cg.tensor([5, -1]), s, accumulate=True), (2, 3), (2, 1)),
    ],
    "sort": [
        (lambda x: x.sort(0, descending=True), (3, 2)),
        (lambda x: x.sort(), ()),
        (lambda x: x.msort(), (4,)),
    ],
    "topk": [(lambda x: x.topk(2, 1), (2, 4)), (lambda x: x.topk(2, largest=False), (4,))],
    "kthvalue": [(lambda x: x.kthvalue(2), (2, 3)), (lambda x: x.kthvalue(1, 0, keepdim=True), (3, 2))],
    "median": [(lambda x: x.median(1), (2, 4)), (lambda x: x.median(0, keepdim=True), (3,)), (lambda x: x.median(0), ())],
    "nanmedian": [(lambda x: x.nanmedian(-1), (2, 4))],
    "median_of_all": [(lambda x: x.median(), (2, 3))],
    "nanmedian_of_all": [(lambda x: x.nanmedian(), (3,))],
    "cummax": [(lambda x: x.cummax(1), (2, 4)), (lambda x: x.cummax(0), ())],
    "cummin": [(lambda x: x.cummin(0), (4, 2))],
    "cumprod": [
        (lambda x: x.cumprod(1), (2, 3)),
        (lambda x: (x * cg.tensor([1.0, 0.0, 1.0, 1.0])).cumprod(-1), (2, 4)),
        (lambda x: (x * 1).cumprod_(0), (3,)),
        (lambda x: x.cumprod(0), ()),
    ],
    "logcumsumexp": [(lambda x: x.logcumsumexp(1), (2, 4)), (lambda x: x.logcumsumexp(0), ())],
    "norm": [
        *((lambda x, p=p: x.norm(p), (2, 3)) for p in ("fro", 0, 0.5, 1, 1.5, 2, 3, math.inf, -math.inf, -2)),
        (lambda x: x.norm(3, (0, -1), keepdim=True), (2, 2, 2)),
        (lambda x: cg.norm(x, dim=1), (2, 3)),
        (lambda x: x.norm(), ()),
        (lambda x, y: x.dist(y, 3), (2, 3), (3,)),
    ],
    "addmm": [
        (lambda x, a, b: x.addmm(a, b), (2, 3), (2, 4), (4, 3)),
        (lambda x, a, b: x.addmm(a, b, beta=0.5, alpha=3), (3,), (2, 1), (1, 3)),
        (lambda x, a, b: (x * 1).addmm_(a, b), (2, 3), (2, 4), (4, 3)),
    ],
    "baddbmm": [(lambda x, a, b: x.baddbmm(a, b, beta=2), (2, 1, 3), (2, 2, 2), (2, 2, 3))],
    "cross": [(lambda a, b: a.cross(b), (2, 3), (2, 3)), (lambda a, b: cg.cross(a, b, dim=0), (3, 2), (3, 1))],
    "nansum": [(lambda x: x.nansum(), (2, 3)), (lambda x: x.nansum(1, keepdim=True), (2, 3)), (lambda x: x.nanmean(0), (2, 3))],
    "clone": [(lambda x: x.clone(), (2, 3)), (lambda x: x.T.contiguous(), (2, 3))],
    "to_copy": [(lambda x: x.to(cg.float32).to(cg.float64), (2, 3))],
    "copy": [(write(...), (2, 3), ()), (write(...), (2, 3), (3,))],
    "cat": [
        (lambda a, b: cg.cat([a, b, a], 1), (2, 1), (2, 3)),
        (lambda a, b: cg.cat([a, b], -1), (2,), (0,)),
        (lambda a, b: cg.block_diag(a, b, a), (2, 1), (3,)),
        (lambda a, b: cg.block_diag(a, b), (), (0, 2)),
    ],
    "stack": [(lambda a, b: cg.stack([a, b, a], 1), (2, 3), (2, 3)), (lambda a, b: cg.stack([a, b], -1), (), ())],
    "max": [(lambda x: x.max(1), (2, 4)), (lambda x: x.max(0, keepdim=True), (3,)), (lambda x: x.max(0), ())],
    "min": [(lambda x: x.min(-2), (3, 2, 2)), (lambda x: x.min(0), (3,))],
    "logsumexp": [(lambda x: x.logsumexp((0, 2)), (2, 3, 2)), (lambda x: x.logsumexp(0, keepdim=True), (3, 2))],
    "softmax": [(lambda x: x.softmax(1), (2, 3)), (lambda x: x.softmax(0), (3,))],
    "log_softmax": [(lambda x: x.log_softmax(-1), (2, 3)), (lambda x: x.log_softmax(0), (3, 2))],
    "var": [(lambda x: x.var(), (2, 3)), (lambda x: x.var(1, correction=0, keepdim=True), (2, 3))],
    "std": [(lambda x: x.std(), (2, 3)), (lambda x: x.std((0, 2)), (2, 3, 2))],
    "var_mean": [(lambda x: cg.var_mean(x, 1), (2, 3)), (lambda x: cg.var_mean(x, (0, 2), keepdim=True)[::-1], (2, 3, 2)),
                 (lambda x: cg.var_mean(x)[1], (2, 3))],
    "std_mean": [(lambda x: cg.std_mean(x, correction=0), (2, 3)), (lambda x: cg.std_mean(x, 0), (3, 2)),
                 (lambda x: cg.std_mean(x)[0], (3,))],
    "cumsum": [(lambda x: x.cumsum(1), (2, 3)), (lambda x: x.cumsum(0), (3, 2))],
    "matmul": [
        (lambda a, b: a @ b, (2, 3), (3, 2)),
        (lambda a, b: a @ b, (2, 3), (3,)),
        (lambda a, b: a @ b, (3,), (2, 3, 2)),
        (lambda a, b: a @ b, (2, 1, 2, 3), (2, 3, 1)),
        (lambda a, b: a.bmm(b), (2, 2, 1), (2, 1, 2)),
        (lambda a, b: a @ b, (2, 0), (0, 3)),
    ],
    "dot": [(lambda a, b: a.dot(b), (3,), (3,)), (lambda a, b: cg.dot(a, b), (0,), (0,))],
    **{
        name: [
            (lambda x, name=name: getattr(x, name)(), (2, 3)),
            (lambda x, name=name: getattr(x, name)(1, keepdim=True), (2, 3)),
            (lambda x, name=name: getattr(x, name)((0, -1)), (2, 3, 2)),
            (lambda x, name=name: getattr(x, name)(0), ()),
        ]
        for name in ("sum", "mean", "prod", "amax", "amin")
    },
}
# The names of all operators that have a gradient.
DIFFERENTIABLE = [*(row.name for row in differentiable_rows()), *RULE_SAMPLES]
# A conversion to float32 is linear but coarse: a step that is a power of two is exact in both.
RULE_TOLERANCES = {"to_copy": {"eps": 0.125, "atol": 1e-4}}


def of_rule(rule):
    """Return (number, function, shapes) of the samples of a rule."""
    return [(number, call, tuple(shapes)) for number, (call, *shapes) in enumerate(RULE_SAMPLES[rule])]


def rule_cases():
    """Return (rule, number, function, shapes) of every sample."""
    return [(rule, *case) for rule in RULE_SAMPLES for case in of_rule(rule)]


def calls_of(name):
    """Return (function, operands) of the samples of a differentiable row or of a rule, as parameters of a test."""
    if name in RULE_SAMPLES:
        return [pytest.param(call, rule_operands(shapes), id=str(number)) for number, call, shapes in of_rule(name)]
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


def as_tuple(result):
    """Return one result or several as a tuple."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


# ----- Threads and other processes -----
@contextlib.contextmanager
def threads(count, parallel=True):
    """Compute with a number of threads; fail where no region has had that many, for then the work was too small."""
    before = cg.get_num_threads()
    try:
        cg.set_num_threads(count)
        with threads_used() as used:
            yield
        if parallel and thread_report()["openmp"]:
            assert max(used.count, 1) == cg.get_num_threads(), "give this test larger operands"
    finally:
        cg.set_num_threads(before)


def at_level(level, module, name, path):
    """Return the dict of arrays that a function of a test module gives in a process with another instruction set."""
    script = f"import sys, numpy; from {module} import {name}; numpy.savez(sys.argv[1], **{name}())"
    folders = Path(__file__).parents[1], Path(sys.modules[module].__file__).parent, Path(cg.__file__).parents[1]
    search = [*map(str, folders), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "CYGRAD_ISA": level, "PYTHONPATH": os.pathsep.join(search)}
    subprocess.run([sys.executable, "-c", script, str(path)], env=environment, timeout=120, check=True)
    with np.load(path) as arrays:
        return dict(arrays)
