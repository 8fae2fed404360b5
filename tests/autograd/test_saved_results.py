"""Rules that read several results: saved results, their versions, hooks, names and release, and second derivatives."""

from __future__ import annotations

import gc
from typing import NamedTuple

import pytest

import cygrad as cg
from cygrad._core.graph.rules import rules
from cygrad._testing import live_bytes
from cygrad.autograd import forward_ad, gradcheck, gradgradcheck
from cygrad.autograd.graph import saved_tensors_hooks
from cygrad.operators._language.batches import same
from cygrad.operators._language.declaration import operator, recorded_together, unrecorded


class Waves(NamedTuple):
    sine: cg.Tensor
    cosine: cg.Tensor
    turns: cg.Tensor


def gradient(gs, y, y1):
    """Return the sum of each wave's cotangent times its derivative, which is the other wave."""
    first, second, none = gs
    assert none is None
    return (0 if first is None else first * y1) - (0 if second is None else second * y)


@pytest.fixture(scope="module")
def waves():
    """An operator of three results, the last of them integers; its rule reads the first two."""
    @operator(dinput=gradient, batch=same)
    def waves(input) -> Waves:
        results = unrecorded(lambda: (input.detach().sin(), input.detach().cos(), (input.detach() / 6.3).int()))
        return Waves(*recorded_together(waves, (input,), results))

    yield waves
    del rules["waves"]


def leaf():
    return cg.tensor([0.5, 1.0, 7.0], dtype=cg.float64, requires_grad=True)


def test_each_result_is_differentiated(waves):
    for part in (lambda w: w.sine, lambda w: w.cosine, lambda w: w.sine * w.cosine):
        assert gradcheck(lambda x, part=part: part(waves(x)), leaf())
        assert gradgradcheck(lambda x, part=part: part(waves(x)), leaf())
    assert not waves(leaf()).turns.requires_grad and waves(leaf()).turns.tolist() == [0, 0, 1]


def test_the_history_of_a_second_derivative_goes_through_the_results(waves):
    x = leaf()
    w = waves(x)
    first, = cg.autograd.grad(w.sine.sum(), x, create_graph=True)
    product = first.grad_fn.next_functions[0][0]
    assert (w.cosine.grad_fn, 1) in product.next_functions
    second, = cg.autograd.grad(first.sum(), x)
    assert cg.allclose(second, -x.sin())


def test_tangents_follow_from_the_gradients(waves):
    x, t = leaf(), cg.tensor([1.0, -2.0, 0.5], dtype=cg.float64)
    with forward_ad.dual_level():
        w = waves(forward_ad.make_dual(x.detach(), t))
        tangents = [forward_ad.unpack_dual(part).tangent for part in w]
    assert cg.allclose(tangents[0], t * x.cos()) and cg.allclose(tangents[1], -t * x.sin()) and tangents[2] is None
    hessian = cg.func.vmap(cg.func.hessian(lambda x: waves(x).sine * waves(x).cosine))(x.detach())
    assert cg.allclose(hessian, -2 * (2 * x).sin())


# ----- Versions -----
@pytest.mark.parametrize("number", [0, 1])
def test_a_result_that_changed_in_place_is_noticed(waves, number):
    w = waves(leaf())
    with cg.no_grad():
        w[number].add_(1)
    with pytest.raises(RuntimeError, match=f"by an inplace operation.*which is output {number} of WavesBackward0, is at version 1"):
        w[1 - number].sum().backward()


def test_a_result_may_change_that_no_rule_reads(waves):
    x = leaf()
    w = waves(x)
    w.turns.add_(1)
    w.sine.sum().backward()
    assert cg.allclose(x.grad, x.cos())


# ----- Names, hooks -----
def test_saved_results_have_the_names_of_the_fields(waves):
    w = waves(leaf())
    node = w.sine.grad_fn
    assert {name for name in dir(node) if name.startswith("_saved_")} == {"_saved_sine", "_saved_cosine"}
    assert (node._saved_cosine.grad_fn, node._saved_cosine.output_nr) == (node, 1)
    assert node._saved_sine.tolist() == w.sine.tolist()
    handle = node._raw_saved_cosine
    assert handle is node._raw_saved_cosine
    handle.register_hooks(lambda x: x.tolist(), lambda numbers: cg.tensor(numbers, dtype=cg.float64))
    w.sine.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        handle.unpack()
    with pytest.raises(RuntimeError, match="a second time"):
        node._saved_sine  # noqa: B018


def test_hooks_pack_each_result_once_and_see_its_history(waves):
    seen = []
    with saved_tensors_hooks(lambda x: seen.append((x.grad_fn.name(), x.output_nr)) or x.tolist(),
                             lambda numbers: cg.tensor(numbers, dtype=cg.float64)):
        w = waves(x := leaf())
    assert seen == [("WavesBackward0", 0), ("WavesBackward0", 1)]
    (w.sine + w.cosine).sum().backward()
    assert cg.allclose(x.grad, x.cos() - x.sin())


# ----- Release -----
def test_a_backward_frees_the_results_unless_they_are_retained(waves):
    x = leaf()
    w = waves(x)
    w.sine.sum().backward(retain_graph=True)
    w.sine.sum().backward()
    assert cg.allclose(x.grad, 2 * x.cos())
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        w.cosine.sum().backward()


def test_a_graph_dies_with_its_results(waves):
    gc.disable()
    try:
        before = live_bytes()
        w = waves(leaf())
        assert live_bytes() > before
        del w
        assert live_bytes() == before
    finally:
        gc.enable()
