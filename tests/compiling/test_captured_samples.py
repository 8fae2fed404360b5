"""Every sample and every row, captured: replays with other values have eager's bits, gradients included, or the function stays as it is."""

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad import func
from cygrad.autograd import grad
from cygrad.pytree import tree_flatten
from samples import array_of, as_tuple

pytestmark = pytest.mark.filterwarnings("ignore:compile")


def computed(call, leaves):
    """Return the results of a call and their gradients."""
    inputs = [leaf for leaf in leaves if leaf.requires_grad]
    results = [result for result in as_tuple(call(*leaves)) if isinstance(result, cg.Tensor)]
    outputs = [result for result in results if result.requires_grad]
    gradients = grad(outputs, inputs, [cg.ones_like(output) for output in outputs], allow_unused=True) if outputs else ()
    return [result.detach() for result in results] + [gradient for gradient in gradients if gradient is not None]


def bits(tensors):
    return [(tensor.dtype, tensor.shape, array_of(tensor).tobytes()) for tensor in tensors]


def outcome(call, arrays):
    """Return the bits of the results and gradients of a call, or its error."""
    cg.manual_seed(3)
    try:
        return bits(computed(call, samples.prepared(arrays)))
    except np.linalg.LinAlgError as error:      # a singular matrix among the operands
        return type(error), str(error)


def compare(call, operands):
    """Compare calls of a function and of the compiled one on operands, in order; return how often a program was replayed."""
    compiled = cg.compile(call)
    for arrays in operands:
        assert outcome(compiled, arrays) == outcome(call, arrays)
    return compiled.cache_info().hits


@pytest.mark.cases("name", samples.SAMPLES)
def test_samples(name):
    for _, call, shapes in samples.of(name):
        compare(call, [samples.rule_operands(shapes, seed) for seed in (0, 1, 2)])


@pytest.mark.cases("row", samples.differentiable_rows)
def test_rows(row):
    shapes = ((3, 2), (2,), ())
    assert compare(samples.function(row), [samples.operands(row, "float64", shapes, seed=seed) for seed in (0, 1, 2)])


def argument_sets(call, arrays, times):
    """Return how many different arguments the kernels of some calls have, gradients included; None where they are not captured."""
    @cg.compile
    def compiled(*leaves):
        return [computed(call, [leaf.detach().requires_grad_(leaf.requires_grad) for leaf in leaves]) for _ in range(times)]

    compiled(*samples.prepared(arrays))
    return next((entry.replay.argument_sets for entries in compiled._entries.values() for entry in entries), None)


@pytest.mark.usefixtures("usual_sizes")
@pytest.mark.cases("name", samples.SAMPLES)
def test_a_second_call_of_an_operator_has_the_arguments_of_the_first(name):
    """Bytes of arguments that no kernel reads are 0, else long programs do not fit into the caches."""
    for _, call, shapes in samples.of(name):
        arrays = samples.rule_operands(shapes, 0)
        assert argument_sets(call, arrays, 2) == argument_sets(call, arrays, 1)


def tensors_of(call):
    return lambda *leaves: tuple(result for result in as_tuple(call(*leaves)) if isinstance(result, cg.Tensor))


def tangents(call):
    return lambda *leaves: func.jvp(tensors_of(call), leaves, tuple(leaf.cos() for leaf in leaves))


def batched(call):
    return lambda *leaves: func.vmap(tensors_of(call), randomness="different")(*(cg.stack([leaf, leaf.cos()]) for leaf in leaves))


# Samples that stay as they are, and why: in transforms, in one kind of call, and in all.
IN_TRANSFORMS = {"bincount": "sizes of results are its values"}
REFUSED = {
    **dict.fromkeys((name for name in samples.SAMPLES if "dropout" in name or "gumbel" in name), "they set a seed"),
    "sparse_times": "its sparse tensor is found by no name", "product_along": "it reads the pattern of a sparse tensor"}
STAYING = {
    tensors_of: {"alias": "it returns a tensor of a subclass"},
    tangents: {**IN_TRANSFORMS, "sparse_solve": "its product reads the pattern of a sparse tensor"},
    batched: IN_TRANSFORMS}


@pytest.mark.parametrize("kind", [tensors_of, tangents, batched])
@pytest.mark.cases("name", samples.SAMPLES)
def test_samples_are_captured_alone_and_in_transforms(name, kind):
    for _, call, shapes in samples.of(name)[:1]:
        operands = [[leaf.detach() for leaf in samples.prepared(samples.rule_operands(shapes, seed))] for seed in (0, 0, 1)]
        function = kind(call)
        compiled, expected = cg.compile(function), [function(*leaves) for leaves in operands]
        ours = [compiled(*leaves) for leaves in operands]
        assert bits(tree_flatten(ours)[0]) == bits(tree_flatten(expected)[0])
        assert (compiled.cache_info().hits > 0) == (name not in {**REFUSED, **STAYING[kind]})


LONG = np.random.default_rng(0).random((300, 500))


@pytest.mark.parametrize("call", [lambda x: (x * x + 1).exp().sum(0), lambda x: x @ x.mT, lambda x: x.softmax(1).T.contiguous() * 2],
                         ids=["elementwise", "product", "softmax"])
def test_large_arrays(call):
    assert compare(call, [[LONG], [LONG + 1]]) == 1
