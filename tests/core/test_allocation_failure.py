"""Every operation with its 1st, 2nd, ... allocation failing: OutOfMemoryError, no byte lost, the next call right.

A case makes operands and returns a call; it is made anew for every attempt, and called again after a
failure, so operands must be unchanged. Every row and rule is a case.
"""

import contextlib
import functools
import gc
import itertools

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad._testing import fail_alloc, live_bytes
from cygrad.autograd import grad
from cygrad.ops import ELEMENTWISE, REDUCTIONS
from samples import KINDS, LAYOUTS, array_of, same_bits

pytestmark = pytest.mark.usefixtures("usual_sizes")


# ----- Rows -----
def operands(row, leaves=False):
    """Return tensors that broadcast, convert and gather, so that there is something to allocate."""
    dtype = samples.dtypes_of(row)[-1]
    shapes = [(3, 40), (40,), (3, 1)][: len(row.operands)]
    layouts = [LAYOUTS["transposed"], LAYOUTS["stepped"], LAYOUTS["contiguous"]]
    tensors = [layout(array) for layout, array in zip(layouts, samples.operands(row, dtype, shapes), strict=False)]
    return [tensor.requires_grad_() if leaves and KINDS[tensor.dtype.name] == "f" else tensor for tensor in tensors]


def forward(row):
    tensors = operands(row)
    return lambda: samples.function(row)(*tensors)


def overlapping_out(row):
    *others, last = operands(row)
    memory = cg.zeros(4, 40, dtype=last.dtype)
    memory[:3] = last
    return lambda: samples.function(row)(*others, memory[:3], out=memory[1:])


def in_place(row):
    tensors = operands(row)
    return lambda: getattr(tensors[0], row.name + "_")(*tensors[1:], **samples.parameters_of(row.name))


def recorded_in_place(row):
    first, *others = operands(row, leaves=True)

    def run():
        result = getattr(first * 1, row.name + "_")(*others, **samples.parameters_of(row.name))
        return grad(result.sum(), [first, *(other for other in others if other.requires_grad)])

    return run


def differentiated(row, create_graph=False):
    tensors = operands(row, leaves=True)
    leaves = [tensor for tensor in tensors if tensor.requires_grad]
    weight = cg.tensor(samples.draw("float64", (3, 40)))

    def run():
        return grad(samples.function(row)(*tensors), leaves, weight, create_graph=create_graph)

    return run


def backward_alone(row):
    """The graph is made before the failure, and differentiated again after it."""
    tensors = operands(row, leaves=True)
    leaves = [tensor for tensor in tensors if tensor.requires_grad]
    weight = cg.tensor(samples.draw("float64", (3, 40)))
    result = samples.function(row)(*tensors)
    return lambda: grad(result, leaves, weight, retain_graph=True)


def uses(row):
    yield "forward", forward
    if row.result == "same":
        yield "overlapping out", overlapping_out
    if row.in_place:
        yield "in place", in_place
    if row.in_place and row.partials:
        yield "in place, recorded", recorded_in_place
    if row.partials:
        yield "forward, backward", differentiated
        yield "tensor reading", functools.partial(differentiated, create_graph=True)
        yield "backward", backward_alone


# ----- Rules and reductions -----
def rule(call, shapes, gradients):
    leaves = [samples.leaf(array, "transposed") for array in samples.rule_operands(shapes)]

    def derivatives(outputs, create_graph):
        outputs = [output for output in outputs if output is not None and output.requires_grad]
        return grad(
            outputs, leaves, [cg.ones_like(output) for output in outputs], create_graph=create_graph, allow_unused=True
        )

    def run():
        results = samples.as_tuple(call(*leaves))
        for order in range(gradients):
            results = derivatives(results, order + 1 < gradients)
        return results

    return run


def reduction(name, dtype, dim):
    x = LAYOUTS["transposed"](samples.draw(dtype, (3, 40)))
    return lambda: getattr(x, name)(dim)


def dtypes_of_reduction(name):
    return ("float32", "int8") if name in ("sum", "prod", "amax", "any", "max", "argmin", "cumsum") else ("float32",)


# ----- All others -----
def of(function, *arrays):
    """Return a case that calls a function of tensors."""

    def make():
        tensors = [LAYOUTS["stepped"](array) for array in arrays]
        return lambda: function(*tensors)

    return make


FLOATS, INTEGERS = samples.draw("float64", (6, 20)), np.arange(120, dtype=np.int32).reshape(6, 20)
MASK = FLOATS > 0
PLAIN_CASES = [
    ("index by tensors", of(lambda x: x[cg.tensor([5, 0, 5])], FLOATS)),
    ("index by a mask", of(lambda x, mask: x[mask], FLOATS, MASK)),
    ("index by both", of(lambda x: x[1:, cg.tensor([3, 3])], INTEGERS)),
    ("write a number", of(lambda x: x.__setitem__(slice(1, 3), 7) or x, FLOATS)),
    ("write a row", of(lambda x: x.__setitem__(slice(1, 3), x[0]) or x, FLOATS)),
    ("write by tensors", of(lambda x: x.__setitem__(cg.tensor([1, 3]), x[:2]) or x, FLOATS)),
    ("write by a mask", of(lambda x, mask: x.__setitem__(mask, 0) or x, FLOATS, MASK)),
    ("write a part of itself", of(lambda x: x.__setitem__(slice(1, None), x[:-1]) or x, FLOATS)),
    ("masked_fill", of(lambda x, mask: x.masked_fill(mask, 3), FLOATS, MASK)),
    ("masked_fill_", of(lambda x, mask: x.masked_fill_(mask, 3), FLOATS, MASK)),
    ("copy_", of(lambda x, y: x.copy_(y), FLOATS, INTEGERS)),
    ("fill_", of(lambda x: x.fill_(2), FLOATS)),
    ("zero_", of(lambda x: x.zero_(), FLOATS)),
    ("to", of(lambda x: x.to(cg.int8), FLOATS)),
    ("clone", of(lambda x: x.clone(), FLOATS)),
    ("contiguous", of(lambda x: x.contiguous(), FLOATS)),
    ("reshape", of(lambda x: x.reshape(-1), FLOATS)),
    ("mixed dtypes", of(lambda x, y: (x + y) * 2.5 - y, FLOATS, INTEGERS)),
    ("operators in place", of(lambda x, y: x.__iadd__(y).__imul__(2), FLOATS, INTEGERS)),
    ("allclose", of(lambda x: cg.allclose(x, x + 1e-9), FLOATS)),
    ("equal", of(lambda x: cg.equal(x, x), FLOATS)),
    ("where with a number", of(lambda x, mask: cg.where(mask, x, 0), FLOATS, MASK)),
    ("cat", of(lambda x, y: cg.cat([x, y]), FLOATS, INTEGERS)),
    ("stack", of(lambda x, y: cg.stack([x, y], 1), FLOATS, INTEGERS)),
    ("matmul of integers", of(lambda x, y: x @ y, INTEGERS, INTEGERS.T)),
    ("matmul of batches", of(lambda x, y: x[:, None] @ y[..., None], FLOATS, FLOATS)),
    ("out of a reduction", of(lambda x, y: cg.sum(x, 0, out=y), FLOATS, FLOATS[0])),
    ("repr", of(lambda x: len(repr(x)), FLOATS)),
    ("iteration", of(lambda x: [row * 2 for row in x], FLOATS)),
    ("division of integers", of(lambda x: x // (x + 1), INTEGERS)),
]
GENERATOR = cg.Generator()
FACTORIES = {
    "zeros": lambda: cg.zeros(3, 40),
    "ones": lambda: cg.ones(3, 40, dtype=cg.int8),
    "full": lambda: cg.full((3, 40), 2.5),
    "arange": lambda: cg.arange(100),
    "arange of floats": lambda: cg.arange(0, 9, 0.1),
    "linspace": lambda: cg.linspace(0, 1, 100),
    "eye": lambda: cg.eye(9),
    "tensor of lists": lambda: cg.tensor([[1.0, 2.0]] * 40),
    "tensor of an array": lambda: cg.tensor(INTEGERS),
    "tensor of tensors": lambda: cg.tensor([cg.tensor(1.0), 2]),
    "asarray": lambda: cg.asarray([1, 2, 3] * 30),
    "zeros_like": lambda: cg.zeros_like(cg.tensor(FLOATS).T),
    "full_like": lambda: cg.full_like(cg.tensor(FLOATS), 3),
    "new_ones": lambda: cg.tensor(FLOATS).new_ones(7),
    "rand": lambda: cg.rand(9, generator=GENERATOR.manual_seed(1)),
    "randn": lambda: cg.randn(9, generator=GENERATOR.manual_seed(1)),
    "randint": lambda: cg.randint(9, (50,), generator=GENERATOR.manual_seed(1)),
}


def arrays_of(result):
    """Return all tensors in a result as arrays."""
    return [
        array_of(part) if isinstance(part, cg.Tensor) else np.asarray(part)
        for part in samples.as_tuple(result)
        if part is not None
    ]


def nothing_is_lost(before):
    """Return True if no more bytes live than before; cycles are collected only if there are more, because that is slow."""
    if live_bytes() > before:
        gc.collect()
    return live_bytes() <= before


def survives(make):
    """Run a case with each of the first allocations failing in turn, then with ever fewer of the later ones, then without; return the
    number of the last that was tried: long cases repeat themselves, and take a run for each."""
    at_start, expected, n, last = live_bytes(), arrays_of(make()()), 0, 0
    while True:
        n += 1 + n // 64
        run = make()
        before, error = live_bytes(), None
        with fail_alloc(n) as failure:
            try:
                result = arrays_of(run())
            except cg.OutOfMemoryError as raised:
                error = str(raised)
        if not failure.fired:
            assert error is None
            break
        last = n
        assert error is not None, f"allocation {n} failed, and nothing was raised"
        assert "cannot allocate memory: you tried to allocate" in error
        assert nothing_is_lost(before)
        result = arrays_of(run())
        assert all(same_bits(a, b) for a, b in zip(result, expected, strict=True))
    assert all(same_bits(a, b) for a, b in zip(result, expected, strict=True))
    del run
    assert nothing_is_lost(at_start)
    return last


@pytest.fixture(autouse=True)
def undisturbed():
    """Keep the collector from freeing garbage of other tests during a test; disarm the failure afterwards."""
    gc.disable()
    yield
    gc.enable()
    fail_alloc(0)


@pytest.mark.parametrize("row", samples.named(ELEMENTWISE.values()))
@pytest.mark.cases("use, make", uses)
def test_rows(row, use, make):
    assert survives(lambda: make(row)) > 0 or make in (in_place, backward_alone)  # two cases that may need no allocation


@pytest.mark.parametrize("name", samples.SAMPLES)
@pytest.mark.cases("gradients", [0, 1, 2], ids=["forward", "backward", "twice backward"])
@pytest.mark.cases("number, call, shapes", samples.of)
def test_rules(name, number, call, shapes, gradients):
    survives(lambda: rule(call, shapes, gradients))


@pytest.mark.parametrize("name", [*REDUCTIONS, *"max min argmax argmin var std logsumexp softmax log_softmax cumsum".split()])
@pytest.mark.cases("dim", [0, 1])
@pytest.mark.cases("dtype", dtypes_of_reduction)
def test_reductions(name, dtype, dim):
    survives(lambda: reduction(name, dtype, dim))


@pytest.mark.cases("make", [pytest.param(make, id=name) for name, make in PLAIN_CASES])
def test_others(make):
    survives(make)


@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES)
def test_factories(make):
    assert survives(lambda: make) > 0


def test_accumulated_gradients_are_old_or_new():
    """A backward that fails midway leaves each `.grad` as it was, or with the whole new gradient added."""
    arrays = [samples.draw("float64", (3, 40), seed) for seed in range(3)]
    outcomes = set()
    for n in itertools.count(1):
        leaves = [samples.leaf(array) for array in arrays]
        total = sum((leaf * leaf).tanh().sum() for leaf in leaves)
        total.backward(retain_graph=True)
        old = [array_of(leaf.grad) for leaf in leaves]
        with fail_alloc(n) as failure, contextlib.suppress(cg.OutOfMemoryError):
            total.backward(retain_graph=True)
        state = [
            same_bits(array_of(leaf.grad), first) + 2 * same_bits(array_of(leaf.grad), 2 * first)
            for leaf, first in zip(leaves, old, strict=True)
        ]
        assert set(state) <= {1, 2}
        outcomes.add(tuple(state))
        if not failure.fired:
            break
    assert (1, 1, 1) in outcomes
    assert state == [2, 2, 2]
    assert cg.is_grad_enabled()
