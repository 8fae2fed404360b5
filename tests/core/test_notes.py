"""Noted launches run again on other values, with the bits of the noted code: nothing else reads or writes memory unseen."""

import threading

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad import func
from cygrad._testing import Notes, fail_alloc
from cygrad.autograd import grad
from samples import array_of, as_tuple


def computed(call, leaves):
    """Return the results of a call and their gradients."""
    cg.manual_seed(3)
    inputs = [leaf for leaf in leaves if leaf.requires_grad]
    results = [result for result in as_tuple(call(*leaves)) if isinstance(result, cg.Tensor)]
    outputs = [result for result in results if result.requires_grad]
    gradients = grad(outputs, inputs, [cg.ones_like(output) for output in outputs], allow_unused=True) if outputs else ()
    return [result.detach() for result in results] + [gradient for gradient in gradients if gradient is not None]


def bits(tensors):
    return [array_of(tensor).tobytes() for tensor in tensors]


def replays(call, first, second):
    """Note a call, and return whether nothing looked at values; if so, a replay on other values has the bits of a new call."""
    leaves = samples.prepared(first)
    with Notes() as notes:
        results = computed(call, leaves)
    if notes.looks:
        return False
    for leaf, array in zip(leaves, second, strict=True):
        leaf.detach().copy_(cg.tensor(array))
    expected = bits(computed(call, samples.prepared(second)))
    notes.replay()
    assert bits(results) == expected
    return True


@pytest.mark.cases("name", samples.SAMPLES)
def test_samples_replay_with_other_values_or_look_at_them(name):
    for _, call, shapes in samples.of(name):
        replays(call, samples.rule_operands(shapes, 0), samples.rule_operands(shapes, 1))


@pytest.mark.cases("row", samples.differentiable_rows)
def test_rows_replay_with_other_values(row):
    shapes = ((3, 2), (2,), ())
    assert replays(samples.function(row), samples.operands(row, "float64", shapes), samples.operands(row, "float64", shapes, seed=1))


CALLS = {
    "indices": lambda x: x[1:, ::2].T,
    "products": lambda x: (x @ x.mT).softmax(0),
    "joined": lambda x: cg.cat([x, cg.stack([x[0], x[1]])]),
    "norms": lambda x: cg.nn.functional.layer_norm(x, (4,)),
    "changes": lambda x: x.clone().mul_(2).add_(x[0])[1:].exp_(),
    "convolution": lambda x: cg.nn.functional.conv1d(x[None], x[None, :, :2].contiguous()),
    "written into a part": lambda x: write_row(cg.zeros(4, 4, dtype=cg.float64), x),
    "tangents": lambda x: func.jvp(lambda y: (y * y).sin(), (x,), (x.detach() + 1,))[1],
    "batches": lambda x: func.vmap(lambda row: row.cumsum(0) * row.sum())(x),
    "second derivatives": lambda x: grad((x ** 3).sum(), x, create_graph=True)[0],
    "numbers": lambda x: x * 2.5 + cg.full((4,), 3., dtype=cg.float64) - cg.arange(4),
}


def write_row(whole, x):
    whole[1] = x[2]
    whole[2:] += x[:2]
    return whole


@pytest.mark.parametrize("name", CALLS)
def test_these_do_not_look_at_values(name):
    rng = np.random.default_rng(0)
    assert replays(CALLS[name], [rng.random((3, 4))], [rng.random((3, 4)) + 1])


@pytest.mark.parametrize("look", [lambda x: x.sum().item(), lambda x: bool((x > 0).all()), lambda x: x.numpy(), lambda x: x.tolist(),
                                  lambda x: x[cg.tensor([0])], lambda x: x.nonzero(), lambda x: x.data_ptr(), memoryview],
                         ids=["item", "bool", "numpy", "tolist", "index", "nonzero", "data_ptr", "buffer"])
def test_looks_are_counted(look):
    x = cg.arange(3.)
    with Notes() as notes:
        _kept = look(x)
    assert notes.looks


def test_memory_that_numpy_reaches_is_looked_at():
    x = cg.zeros(3)
    array = x.numpy()
    with Notes() as notes:
        y = x + 1
    assert notes.looks and y.tolist() == [1, 1, 1] and array.tolist() == [0, 0, 0]


def test_notes_may_be_nested_and_belong_to_a_thread():
    x = cg.ones(3)
    with Notes() as outer:
        _first = x + 1
        with Notes() as inner:
            _second = x * 2
            thread = threading.Thread(target=lambda: x - 3)
            thread.start()
            thread.join()
        _third = x / 4
    assert len(outer) == 2 and len(inner) == 1
    with Notes() as empty:
        pass
    assert len(empty) == 0
    empty.replay()


def test_a_kernel_without_memory_leaves_nothing_to_replay():
    x = cg.ones(300, 400)
    with Notes() as notes, fail_alloc(1), pytest.raises(MemoryError):
        x + 1
    assert len(notes) == 0
