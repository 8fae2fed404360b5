"""Functions at random, captured: replays on other values have eager's bits, gradients and changes of arguments included.

A function is a list of instructions over the values so far: operators, views, changes in place, decisions by values, gradients inside.
"""

import contextlib
import random

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import arenas, defer_from, group_from
from cygrad.autograd import grad
from cygrad.config import set_contraction
from samples import array_of

ROWS, COLUMNS = 5, 7
SHAPES = [(ROWS, COLUMNS), (COLUMNS,), (ROWS, 1), (1, COLUMNS), (), (2, ROWS, COLUMNS)]
COUNT = 200
SETTINGS = [(1 << 17, 1 << 11, False), (1 << 17, 1, True), (8, 1, True)]


def inner_gradient(a, b):
    """Return a gradient that is taken inside, which can be differentiated again."""
    if not a.requires_grad:
        return a * 2
    return grad((a * b).sin().sum(), a, create_graph=True)[0]


def branch(a, b):
    return a + b if a.sum() > b.sum() else a - b


def written(a, b):
    copy = a.clone()
    copy[..., :1] = b.mean()
    return copy


def shifted(a, b):
    """Add parts of an array to others, in an order that matters."""
    copy = a.detach().clone()
    if copy.dim():
        copy[..., 1:] += copy[..., :-1] * 2
        copy[..., :-1] *= a.detach()[..., 1:].sin()
    return copy + b


OPERATIONS = [
    lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - 1.25, lambda a, b: 2 * a, lambda a, b: a / (b * b + 1.5), lambda a, b: 3 - b,
    lambda a, b: a.exp(), lambda a, b: a.tanh() * b, lambda a, b: (a * a + 0.1).sqrt(), lambda a, b: a.clamp(0.4, 0.7),
    lambda a, b: cg.where(a > 0.5, a, b), lambda a, b: a.masked_fill(a > 0.6, 0.25), lambda a, b: cg.maximum(a, b),
    lambda a, b: a.float() * b, lambda a, b: a.double(), lambda a, b: a[..., 1:] * a[..., :-1], lambda a, b: a[..., ::2],
    lambda a, b: a.flip(-1) if a.dim() else a, lambda a, b: a.mT if a.dim() > 1 else a, lambda a, b: a.reshape(-1), lambda a, b: a.detach(),
    lambda a, b: a.expand(2, *a.shape), lambda a, b: cg.cat([a.reshape(-1), b.reshape(-1)]), lambda a, b: cg.stack([a, a.sin()]),
    lambda a, b: a.sum(), lambda a, b: a.sum(-1) if a.dim() else a, lambda a, b: a.mean(0, keepdim=True) if a.dim() else a,
    lambda a, b: a.softmax(-1), lambda a, b: a.logsumexp(-1), lambda a, b: a.cumsum(-1), lambda a, b: a.sort().values if a.dim() else a,
    lambda a, b: a.amax(-1, True), lambda a, b: a @ a.mT if a.dim() > 1 else a, lambda a, b: a.clone().mul_(0.5).add_(b.mean()),
    lambda a, b: cg.linalg.inv(a @ a.mT + 3 * cg.eye(a.shape[-2], dtype=a.dtype)) if a.dim() > 1 else a, inner_gradient, branch, written,
    lambda a, b: a.detach().mul_(1.5), lambda a, b: a.index_select(0, cg.tensor([0, 0])) if a.dim() else a, lambda a, b: a.norm(),
    lambda a, b: a[a.argmax(0)] if a.dim() == 1 else a, shifted, lambda a, b: a - 2 * b, lambda a, b: a + b * 0.5,
    lambda a, b: cg.cat([a[..., 1:] * 3, b[..., :1] + 1], -1) if a.dim() and a.shape == b.shape else a,
]


class Function:
    """A function of tensors: instructions that run on the first values it was given."""

    def __init__(self, seed):
        stream = random.Random(seed)
        self.shapes = [stream.choice(SHAPES) for _ in range(3)]
        self.dtypes = [stream.choice([cg.float64, cg.float64, cg.float32]) for _ in range(3)]
        self.needs_grad = [stream.random() < 0.6 for _ in range(3)]
        self.steps = []
        values = self.leaves(0)
        for _ in range(12):
            step = stream.randrange(len(OPERATIONS)), stream.randrange(len(values)), stream.randrange(len(values))
            with contextlib.suppress(RuntimeError, IndexError, ValueError, TypeError):
                result = OPERATIONS[step[0]](values[step[1]], values[step[2]])
                if result.numel() < 4000:
                    values.append(result)
                    self.steps.append(step)

    def leaves(self, seed):
        numbers = np.random.default_rng(seed)
        leaves = [cg.tensor(numbers.uniform(0.3, 0.9, shape)).to(dtype) for shape, dtype in zip(self.shapes, self.dtypes, strict=True)]
        return [leaf.requires_grad_(needs) for leaf, needs in zip(leaves, self.needs_grad, strict=True)]

    def __call__(self, *leaves):
        values = [*leaves]
        for operation, a, b in self.steps:
            values.append(OPERATIONS[operation](values[a], values[b]))
        return values[3:][-5:]


def observed(function, leaves):
    """Return the bits of results, gradients and leaves; or the error."""
    try:
        results = function(*leaves)
        inputs = [leaf for leaf in leaves if leaf.requires_grad]
        # The node of a view of a leaf stays beside the node of the call, so its part is added before or after the parts of that.
        outputs = [result.sum() for result in results if result.requires_grad and not any(result._base is leaf for leaf in leaves)]
        gradients = grad(outputs, inputs, allow_unused=True) if outputs else ()
    except (RuntimeError, IndexError, ValueError, np.linalg.LinAlgError) as error:
        return type(error), str(error)
    return [(tensor.dtype, tensor.shape, array_of(tensor).tobytes())
            for tensor in (*results, *gradients, *leaves) if tensor is not None]


def compare(seed):
    """Compare calls with several values; return how many of them were replays."""
    function = Function(seed)
    compiled = cg.compile(function)
    for values in (0, 1, 2, 1):
        assert observed(compiled, function.leaves(values)) == observed(function, function.leaves(values)), (seed, values)
    return compiled.cache_info().hits


# ----- Gradients of some results, in any strides -----
WEIGHTS = [
    lambda y: y.sum(), lambda y: (y * y).sum(), lambda y: (y.mT if y.dim() > 1 else y).exp().reshape(-1).cumsum(0).sum(),
    lambda y: y[..., ::2].sum() if y.dim() else y, lambda y: y.sum(0).exp().sum() if y.dim() else y, lambda y: y.reshape(-1)[:3].sum(),
    lambda y: (y.mT * 1.5).sum(0).tanh().sum() if y.dim() > 1 else y.exp().sum(),
]


def gradients_of_some(function, leaves, stream):
    """Return the bits of gradients of some results, each by another weight, several times."""
    inputs, seen = [leaf for leaf in leaves if leaf.requires_grad], []
    with contextlib.suppress(RuntimeError, IndexError, ValueError, np.linalg.LinAlgError):
        results = [result for result in function(*leaves) if result.requires_grad and not any(result._base is leaf for leaf in leaves)]
        for _ in range(3):
            losses = [stream.choice(WEIGHTS)(result) for result in results if stream.random() < 0.6]
            gradients = grad(losses, inputs, retain_graph=True, allow_unused=True) if losses else ()
            seen.append([each if each is None else (each.dtype, array_of(each).tobytes()) for each in gradients])
    return seen


def compare_some(seed):
    """Compare gradients of some results of calls; return how many of them were replays."""
    function = Function(seed)
    compiled = cg.compile(function)
    for values in (0, 1, 2):
        ours, theirs = (gradients_of_some(each, function.leaves(values), random.Random(seed + values)) for each in (compiled, function))
        assert ours == theirs, (seed, values)
    return compiled.cache_info().hits


@pytest.fixture
def settings(large, grouped, reuses):
    """From how many elements on work is deferred and grouped, and whether memory is reused; without contractions."""
    contracts = set_contraction(False)
    before = defer_from(large), group_from(grouped)
    with np.errstate(all="ignore"), arenas(reuses):
        yield
    defer_from(before[0])
    group_from(before[1])
    set_contraction(contracts)


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize(("large", "grouped", "reuses"), SETTINGS)
@pytest.mark.cases("first", range(0, COUNT, 20))
@pytest.mark.usefixtures("settings")
def test_replays_have_the_bits_of_the_function(first):
    assert sum(compare(seed) for seed in range(first, first + 20)) > 20


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize(("large", "grouped", "reuses"), SETTINGS)
@pytest.mark.cases("first", range(0, COUNT // 4, 10))
@pytest.mark.usefixtures("settings")
def test_gradients_of_some_results_have_the_bits_of_the_function(first):
    assert sum(compare_some(seed) for seed in range(first, first + 10)) > 5
