"""Every rule and every elementwise row with 0-d and empty operands, and with one element: forward, backward and twice backward.

The samples are the usual ones with their shapes made degenerate; a call that refuses such operands is left out, but a call that
computes forward has derivatives.
"""

import math

import pytest

import cygrad as cg
import samples
from cygrad.autograd import grad, gradcheck, gradgradcheck
from cygrad.ops import ELEMENTWISE
from samples import as_tuple

REFUSALS = (IndexError, NotImplementedError, RuntimeError, TypeError, ValueError)
ROWS = [row for row in ELEMENTWISE.values() if row.partials]


def degenerate(shapes):
    """Return the shapes with all operands 0-d, of one element, empty, and with one size after the other empty or 1."""
    sizes = sorted({size for shape in shapes for size in shape})
    changed = [tuple(() for _ in shapes), *(tuple((one,) * len(shape) for shape in shapes) for one in (0, 1))]
    changed += [tuple(() if k == chosen else shape for k, shape in enumerate(shapes)) for chosen in range(len(shapes))]
    changed += [tuple(tuple(other if n == size else n for n in shape) for shape in shapes) for size in sizes for other in (0, 1)]
    return [case for case in dict.fromkeys(changed) if case != tuple(map(tuple, shapes))]


def differentiate(results, leaves):
    """Return the gradients of some weighted sum of results, recorded, or None if no result depends on a leaf."""
    results = [result for result in as_tuple(results) if isinstance(result, cg.Tensor) and result.requires_grad]
    if not results:
        return None
    weights = [cg.full_like(result, 0.5) for result in results]
    return grad(results, leaves, weights, create_graph=True, allow_unused=True)


def check_derivatives(call, leaves, tolerances):
    try:
        results = call(*leaves)
    except REFUSALS:
        return False
    gradients = differentiate(results, leaves)
    if gradients is None:
        return True
    for leaf, gradient in zip(leaves, gradients, strict=True):
        assert gradient is None or (gradient.shape, gradient.dtype) == (leaf.shape, leaf.dtype)
    defined = [gradient for gradient in gradients if gradient is not None]
    for leaf, second in zip(leaves, differentiate([gradient * gradient for gradient in defined], leaves) or (), strict=False):
        assert second is None or second.shape == leaf.shape
    results = [result for result in as_tuple(results) if isinstance(result, cg.Tensor)]
    if all(leaf.numel() == 1 for leaf in leaves) and all(result.dtype == cg.float64 and result.isfinite().all() for result in results):
        assert gradcheck(call, leaves, **tolerances)
        assert gradgradcheck(call, leaves, **tolerances)
    return True


@pytest.mark.parametrize("name", sorted(samples.names_for("degenerate operands")))
def test_rules(name):
    """One operand may be degenerate, or all of them."""
    for number, call, shapes in samples.of(name, "degenerate operands"):
        for changed in degenerate(shapes):
            leaves = [samples.leaf(array + k / 64) for k, array in enumerate(samples.rule_operands(changed))]      # no two are equal
            check_derivatives(call, leaves, samples.SAMPLES[name][number].tolerances)


@pytest.mark.parametrize("row", samples.named(ROWS))
def test_rows(row):
    call, count = samples.function(row), len(row.operands)
    for shape in ((), (1,), (1, 1), (0,), (2, 0, 3)):
        arrays = samples.operands(row, "float64", [shape] * count)
        masks = [operand in row.masks for operand in row.operands]
        tensors = [cg.tensor(array) if mask else samples.leaf(array) for array, mask in zip(arrays, masks, strict=True)]
        leaves = [tensor for tensor, mask in zip(tensors, masks, strict=True) if not mask]
        if any(masks):
            assert check_derivatives(lambda *others, mask=tensors[0]: call(mask, *others), leaves, {})
        else:
            assert check_derivatives(call, leaves, {})


INDEX = cg.tensor([0, 0, -1])
CALLS = {
    "take": lambda x: x.take(INDEX),
    "put": lambda x: x.put(INDEX, cg.ones(3, dtype=cg.float64)),
    "put and accumulate": lambda x: x.put(INDEX, cg.ones(3, dtype=cg.float64), True),
    "take a matrix": lambda x: x.take(INDEX[None]),
    "scatter_add of a number": lambda x: cg.zeros(3, dtype=cg.float64).scatter_add(0, cg.tensor([2]), x),
    "gather": lambda x: x.gather(0, cg.tensor(0)),
    "index_select": lambda x: x.index_select(0, cg.tensor([0])),
    "mask": lambda x: x[cg.tensor(True)],
    "no mask": lambda x: x[cg.tensor(False)],
    "masked_select": lambda x: x.masked_select(cg.tensor([True, False, True])),
    "sort": lambda x: x.sort().values,
    "expand": lambda x: x.expand(0, 3),
}


@pytest.mark.parametrize("call", CALLS)
def test_0d_operands(call):
    x = cg.tensor(1.5, dtype=cg.float64, requires_grad=True)
    assert gradcheck(CALLS[call], x)
    assert gradgradcheck(CALLS[call], x)
    assert math.isfinite(grad(CALLS[call](x).sum(), x)[0].item())
