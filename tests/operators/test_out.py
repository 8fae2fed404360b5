"""Results in `out=`: what factories say of it, and memory that it shares with operands, of every function that takes it."""

import ast

import numpy as np
import pytest

import calls
import cygrad as cg
import samples
from cygrad.operators import stubs
from cygrad.ops import ELEMENTWISE, REDUCTIONS
from samples import array_of, same_bits

# ----- Factories -----
FACTORIES = {
    "arange": lambda **k: cg.arange(0, 6, 2, **k),
    "linspace": lambda **k: cg.linspace(0, 4, 3, **k),
    "full": lambda **k: cg.full((3,), 2, **k),
    "eye": lambda **k: cg.eye(3, 1, **k)[:, 0] if "out" not in k else cg.eye(3, 1, **k),
}


def out_for(name, dtype=cg.float32):
    return cg.zeros(3, 1, dtype=dtype) if name == "eye" else cg.zeros(3, dtype=dtype)


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_compute_in_the_dtype_of_out(name):
    for dtype in (cg.float32, cg.float64, cg.int64, cg.uint8):
        out = out_for(name, dtype)
        assert FACTORIES[name](out=out) is out
        assert out._version == 1 and out.reshape(-1).tolist() == FACTORIES[name]().tolist()


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_refuse_what_out_is_not(name):
    make = FACTORIES[name]
    with pytest.raises(RuntimeError, match=r"dtype cygrad.int64 does not match dtype of out parameter \(cygrad.float32\)"):
        make(out=out_for(name), dtype=cg.int64)
    with pytest.raises(RuntimeError, match=r"out= has shape \[4\] but the result has shape"):
        make(out=cg.zeros(4))
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not list"):
        make(out=[1])
    with pytest.raises(RuntimeError, match="functions with out=... arguments don't support automatic differentiation"):
        make(out=out_for(name).requires_grad_())


REFUSED = [
    (lambda: cg.linspace(0, 1, 2.5), TypeError, "steps"),
    (lambda: cg.linspace("a", 1, 2), TypeError, r"linspace\(\): argument 'start' must be Number, not str"),
    (lambda: cg.linspace(0, cg.ones(2), 2), RuntimeError, "linspace only supports 0-dimensional start and end tensors"),
    (lambda: cg.linspace(0, 1, 3, dtype=cg.bool), NotImplementedError, "not implemented for 'bool'"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ----- Shared memory: the result is what it would be in memory of its own (torch refuses most of these calls) -----
INDEX = cg.tensor([[2, 0, 1], [1, 1, 0]])
MASK = cg.tensor([True, False, True])
CALLS = {
    "add": lambda x, **k: cg.add(x, x.flip(0), alpha=2, **k),
    "where": lambda x, **k: cg.where(x > 0, x, -x, **k),
    "clamp": lambda x, **k: cg.clamp(x, -1, x.mean(), **k),
    "pow": lambda x, **k: cg.pow(x, 2, **k),
    "round": lambda x, **k: cg.round(x, decimals=1, **k),
    "logit": lambda x, **k: cg.logit(x, 0.25, **k),
    "nan_to_num": cg.nan_to_num,
    "maximum of two": lambda x, **k: cg.max(x, x.flip(1), **k),
    "cat": lambda x, **k: cg.cat([x[1:], x[:1]], **k),
    "stack": lambda x, **k: cg.stack([x[1], x[0]], **k),
    "vstack": lambda x, **k: cg.vstack([x[1], x[0]], **k),
    "gather": lambda x, **k: cg.gather(x, 1, INDEX, **k),
    "scatter": lambda x, **k: cg.scatter(x, 1, INDEX, x.flip(0), reduce="add", **k),
    "scatter_add": lambda x, **k: cg.scatter_add(x, 1, INDEX, x, **k),
    "scatter_reduce": lambda x, **k: cg.scatter_reduce(x, 1, INDEX, x, "prod", **k),
    "index_select": lambda x, **k: cg.index_select(x, 0, INDEX[1, 1:], **k),
    "index_add": lambda x, **k: cg.index_add(x, 0, INDEX[1, 1:], x, **k),
    "index_reduce": lambda x, **k: cg.index_reduce(x, 0, INDEX[1, 1:], x, "prod", **k),
    "index_copy": lambda x, **k: cg.index_copy(x, 0, INDEX[1, 1:], x, **k),
    "index_fill": lambda x, **k: cg.index_fill(x, 0, INDEX[1, :1], x[0, 0], **k),
    "index_put": lambda x, **k: cg.index_put(x, (INDEX[1, 1:],), x, **k),
    "masked_fill": lambda x, **k: cg.masked_fill(x, MASK, x[1, 1], **k),
    "masked_scatter": lambda x, **k: cg.masked_scatter(x, MASK, x.flip(0), **k),
    "masked_select": lambda x, **k: cg.masked_select(x, x == x, **({"out": k["out"].view(-1)} if k else {})),
    "take": lambda x, **k: cg.take(x, INDEX, **k),
    "put": lambda x, **k: cg.put(x, INDEX[0], x[0], **k),
    "take_along_dim": lambda x, **k: cg.take_along_dim(x, INDEX, 1, **k),
    "cumsum": lambda x, **k: cg.cumsum(x, 1, **k),
    "cumprod": lambda x, **k: cg.cumprod(x, 1, **k),
    "logcumsumexp": lambda x, **k: cg.logcumsumexp(x, 1, **k),
    "softmax": lambda x, **k: cg.softmax(x, 0, **k),
    "log_softmax": lambda x, **k: cg.log_softmax(x, 0, **k),
    "diff": lambda x, **k: cg.diff(x, prepend=x[:, :1], **k),
    "msort": cg.msort,
    "tril": cg.tril,
    "triu": cg.triu,
    "slice_scatter": lambda x, **k: cg.slice_scatter(x, x[:1] * 2, 0, 1, **k),
    "matmul": lambda x, **k: cg.matmul(x @ x.T, x, **k),
    "mm": lambda x, **k: cg.mm(x[:, :2], x, **k),
    "bmm": lambda x, **k: cg.bmm(x[None, :, :2], x[None], **k),
    "mv": lambda x, **k: cg.mv(x, x[0], **k),
    "dot": lambda x, **k: cg.dot(x[0], x[1], **k),
    "addmm": lambda x, **k: cg.addmm(x, x[:, :2], x, **k),
    "addr": lambda x, **k: cg.addr(x, x[:, 0], x[0], **k),
    "outer": lambda x, **k: cg.outer(x[:, 0], x[0], **k),
    "cross": lambda x, **k: cg.cross(x, x.flip(0), dim=1, **k),
    "addbmm": lambda x, **k: cg.addbmm(x, x[None, :, :2], x[None], **k),
    "baddbmm": lambda x, **k: cg.baddbmm(x[None], x[None, :, :2], x[None], **k),
    "addmv": lambda x, **k: cg.addmv(x[:, 1], x, x[0], **k),
    "clip": lambda x, **k: cg.clip(x, -1, 1, **k),
    "column_stack": lambda x, **k: cg.column_stack([x[1], x[0]], **k),
    "dstack": lambda x, **k: cg.dstack([x[1], x[0]], **k),
    "hstack": lambda x, **k: cg.hstack([x[1], x[0]], **k),
    "row_stack": lambda x, **k: cg.row_stack([x[1], x[0]], **k),
    "diag": lambda x, **k: cg.diag(x, **k),
    "ger": lambda x, **k: cg.ger(x[:, 0], x[0], **k),
    "inner": lambda x, **k: cg.inner(x, x, **k),
    "vdot": lambda x, **k: cg.vdot(x[0], x[1], **k),
    "kron": lambda x, **k: cg.kron(x, x[:1, :1], **k),
    "tensordot": lambda x, **k: cg.tensordot(x, x, ([0], [0]), **k),
    "logsumexp": lambda x, **k: cg.logsumexp(x, 0, **k),
    "nanmean": lambda x, **k: cg.nanmean(x, 0, **k),
    "norm": lambda x, **k: cg.norm(x, dim=0, **k),
    "var": lambda x, **k: cg.var(x, 0, **k),
    "std": lambda x, **k: cg.std(x, 0, **k),
}
PAIRS = {name: lambda x, name=name, **k: getattr(cg, name)(x, dim=1, **k)
         for name in ("cummax", "cummin", "max", "min", "median", "nanmedian", "sort")}
PAIRS |= {name: lambda x, name=name, **k: getattr(cg, name)(x, 2, dim=1, **k) for name in ("kthvalue", "topk")}
PLACES = {
    "argmax": lambda x, **k: cg.argmax(x, 1, **k),
    "argmin": lambda x, **k: cg.argmin(x, 1, **k),
    "argsort": lambda x, **k: cg.argsort(x, 1, descending=True, **k),
    "nonzero": lambda x, **k: cg.nonzero(x, **k),
    "searchsorted": lambda x, **k: cg.searchsorted(x.flip(1), x, **k),
    "bucketize": lambda x, **k: cg.bucketize(x, x[0].flip(0), **k),
}


def shifted(call):
    """Return the result in memory of its own, and in memory that overlaps the operand's, one element on."""
    memory = cg.tensor(np.linspace(-1.75, 2.25, 12).astype("float32"))
    expected = array_of(call(memory[:6].view(2, 3)))
    out = memory[1:1 + expected.size].view(expected.shape)
    result = call(memory[:6].view(2, 3), out=out)
    assert result.data_ptr() == out.data_ptr()
    return array_of(out), expected


@pytest.mark.cases("name", CALLS)
def test_out_that_overlaps_an_operand(name):
    written, expected = shifted(CALLS[name])
    assert same_bits(written, expected)


@pytest.mark.parametrize("name", [name for name, row in ELEMENTWISE.items() if "f" in row.kinds and row.result == "same" and not row.masks])
def test_out_of_rows_that_overlaps_an_operand(name):
    row = ELEMENTWISE[name]
    written, expected = shifted(lambda x, **k: samples.function(row)(*[x, x.flip(0), x.flip(1)][:len(row.operands)], **k))
    assert same_bits(written, expected)


@pytest.mark.parametrize("name", [name for name in REDUCTIONS if name not in ("any", "all")])
def test_out_of_reductions_that_overlaps_an_operand(name):
    written, expected = shifted(lambda x, **k: getattr(cg, name)(x, 0, **k))
    assert same_bits(written, expected)


@pytest.mark.cases("name, arguments, keywords", calls.calls_with_out)
def test_out_of_what_is_sampled_lies_where_the_first_operand_does(name, arguments, keywords):
    """One element on, if it is of that dtype, else in memory of its own."""
    function = getattr(cg, name)
    arguments = calls.copied(arguments)
    expected = function(*arguments, **keywords)
    if not isinstance(expected, cg.Tensor):
        return
    expected, (path, first) = expected.detach().clone(), next(place for place in calls.places(arguments) if isinstance(place[1], cg.Tensor))
    memory = cg.zeros(max(first.numel(), expected.numel()) + 1, dtype=first.dtype)
    inside = memory[:first.numel()].view(first.shape)
    inside.copy_(first)
    out = memory[1:1 + expected.numel()].view(expected.shape) if expected.dtype == first.dtype else cg.empty_like(expected)
    assert function(*calls.replaced(arguments, path, inside), **keywords, out=out) is out
    assert same_bits(array_of(out), array_of(expected))


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_which_one_overlaps_the_operand(name):
    memory = cg.tensor(np.linspace(-1.75, 2.25, 12).astype("float32")).flip(0)
    expected = [array_of(part) for part in PAIRS[name](memory[:6].view(2, 3))]
    out = memory[1:1 + expected[0].size].view(expected[0].shape), cg.empty(expected[1].shape, dtype=cg.int64)
    PAIRS[name](memory[:6].view(2, 3), out=out)
    assert all(same_bits(array_of(part), right) for part, right in zip(out, expected, strict=True))


@pytest.mark.parametrize("name", PLACES)
def test_places_written_over_the_operand(name):
    memory = cg.tensor(np.arange(12)[::-1].copy())
    expected = array_of(PLACES[name](memory[:6].view(2, 3)))
    out = memory[:expected.size].view(expected.shape)
    assert PLACES[name](memory[:6].view(2, 3), out=out) is out
    assert same_bits(array_of(out), expected)


def test_membership_written_over_the_operand():
    x = cg.tensor([True, False])
    assert cg.isin(x, x[:1], out=x) is x and x.tolist() == [True, False]


def test_every_function_that_takes_out_is_here():
    here = {*CALLS, *PAIRS, *PLACES, *ELEMENTWISE, *REDUCTIONS, *FACTORIES, "isin", "aminmax"}
    here |= {name for name, _, _ in calls.calls_with_out()}
    taking = {node.name for node in ast.parse(stubs.FUNCTIONS.read_text()).body if isinstance(node, ast.FunctionDef)
              and "out" in [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]}
    functions = [getattr(cg, name, None) for name in here]
    assert {name for name in taking - here if getattr(cg, name) not in functions} == set()
