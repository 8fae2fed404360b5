"""Every operator of the tables under cygrad.func: forward mode against reverse mode, vmap against a loop over the examples."""

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad.func import grad, jvp, vjp, vmap
from cygrad.ops import ELEMENTWISE
from samples import array_of, as_tuple

COUNT = 3       # examples in a batch

# Samples whose results have as many elements as the data say, or that take a gradient of their own on the way.
DATA_DEPENDENT = {("index", 2)}


def entry(name, call, arrays):
    """Return a case: a function of tensors, and what makes its operands from a seed."""
    return pytest.param(call, arrays, id=name)


def elementwise_cases(rows, shapes=((2, 3), (2, 3), (2, 3))):
    return [entry(row.name, samples.function(row), lambda seed, row=row: samples.operands(row, "float64", shapes, seed)) for row in rows]


def rule_cases(excluded=()):
    return [entry(f"{name}-{number}", call, lambda seed, shapes=shapes: samples.rule_operands(shapes, seed))
            for name, number, call, shapes in samples.rule_cases() if (name, number) not in excluded]


BROADCAST = ((2, 3), (3,), (2, 1))
DIFFERENTIABLE = elementwise_cases(samples.differentiable_rows()) + rule_cases()
BATCHABLE = elementwise_cases(ELEMENTWISE.values()) + rule_cases(DATA_DEPENDENT)


def is_float(array):
    return array.dtype.kind == "f"


def of_floats(call, arrays):
    """Return the function of the floating-point operands, these operands, and random numbers of their shapes."""
    stream = np.random.default_rng(1)
    chosen = [number for number, array in enumerate(arrays) if is_float(array)]

    def f(*floats):
        operands = [cg.tensor(array) for array in arrays]
        for number, value in zip(chosen, floats, strict=True):
            operands[number] = value
        return tuple(part for part in as_tuple(call(*operands)) if part.is_floating_point())

    floats = tuple(cg.tensor(arrays[number]) for number in chosen)
    return f, floats, tuple(random_like(tensor, stream) for tensor in floats), stream


def random_like(tensor, stream):
    return cg.tensor(stream.standard_normal(tuple(tensor.shape)), dtype=tensor.dtype)


def inner(xs, ys):
    return sum(float((array_of(x).astype("f8") * array_of(y)).sum()) for x, y in zip(xs, ys, strict=True))


def tolerance(values):
    return 1e-5 if any(value.dtype == cg.float32 for value in values) else 1e-10


@pytest.mark.parametrize(("call", "arrays"), DIFFERENTIABLE)
def test_forward_mode_is_the_transpose_of_reverse_mode(call, arrays):
    """<w, J v> = <J' w, v>."""
    f, floats, tangents, stream = of_floats(call, arrays(0))
    values, slopes = jvp(f, floats, tangents)
    for value, plain, slope in zip(values, f(*floats), slopes, strict=True):
        np.testing.assert_array_equal(array_of(value), array_of(plain))
        assert (slope.shape, slope.dtype) == (value.shape, value.dtype)
    weights = tuple(random_like(value, stream) for value in values)
    _, pull = vjp(f, *floats)
    assert inner(weights, slopes) == pytest.approx(inner(pull(weights), tangents), rel=tolerance(values), abs=tolerance(values))


@pytest.mark.parametrize(("call", "arrays"), DIFFERENTIABLE)
def test_forward_over_reverse_is_reverse_over_reverse(call, arrays):
    """Products with the Hessian of the squares of the results, which has the operator's second derivatives and first ones twice."""
    f, floats, tangents, _ = of_floats(call, arrays(0))

    def scalar(*floats):
        return sum(((part**2).sum() for part in f(*floats)), cg.zeros((), dtype=cg.float64))

    argnums = tuple(range(len(floats)))
    gradients, forward = jvp(grad(scalar, argnums), floats, tangents)
    _, pull = vjp(grad(scalar, argnums), *floats)
    for gradient, plain in zip(gradients, grad(scalar, argnums)(*floats), strict=True):
        np.testing.assert_allclose(array_of(gradient), array_of(plain), rtol=1e-12)
    for one, other in zip(forward, pull(tangents), strict=True):
        np.testing.assert_allclose(array_of(one), array_of(other), rtol=1e-5, atol=1e-8)


def stacked(arrays, dims):
    """Return operands for `vmap`: the examples of each operand along its dim, or the first example if that is None."""
    examples = [arrays(seed) for seed in range(COUNT)]
    batch = [cg.tensor(column[0]) if dim is None else cg.tensor(np.stack(column, dim))
             for column, dim in zip(zip(*examples, strict=True), dims, strict=True)]
    rows = [[cg.tensor(examples[0 if dim is None else number][k]) for k, dim in enumerate(dims)] for number in range(COUNT)]
    return batch, rows


def check_vmap(f, arrays, dims):
    batch, rows = stacked(arrays, dims)
    results = as_tuple(vmap(lambda *operands: as_tuple(f(*operands)), in_dims=tuple(dims))(*batch))
    for result, *examples in zip(results, *(as_tuple(f(*row)) for row in rows), strict=True):
        expected = np.stack([array_of(example) for example in examples])
        assert result.dtype == examples[0].dtype
        np.testing.assert_allclose(array_of(result), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("call", "arrays"), BATCHABLE)
def test_vmap_is_a_loop(call, arrays):
    operands = arrays(0)
    check_vmap(call, arrays, [0] * len(operands))
    check_vmap(call, arrays, [-1 if array.ndim else 0 for array in operands])
    for number in range(len(operands)):
        if len(operands) > 1:
            check_vmap(call, arrays, [None if k == number else 0 for k in range(len(operands))])


@pytest.mark.parametrize(("call", "arrays"), elementwise_cases([row for row in ELEMENTWISE.values() if len(row.operands) > 1], BROADCAST))
def test_vmap_of_operands_that_broadcast(call, arrays):
    check_vmap(call, arrays, [0] * len(arrays(0)))
    check_vmap(call, arrays, [-1, *[None] * (len(arrays(0)) - 1)])


@pytest.mark.parametrize(("call", "arrays"), elementwise_cases(samples.differentiable_rows()) + rule_cases(DATA_DEPENDENT))
def test_vmap_of_gradients_is_a_loop(call, arrays):
    """The gradients of batched operands, and the same by forward mode."""
    examples = [of_floats(call, arrays(seed)) for seed in range(COUNT)]
    masks = [array for array in arrays(0) if not is_float(array)]
    if masks:
        pytest.skip("an operand that is no number is the same for all examples")
    f = examples[0][0]

    def scalar(*floats):
        return sum(((part**2).sum() for part in f(*floats)), cg.zeros((), dtype=cg.float64))

    argnums = tuple(range(len(examples[0][1])))
    batch = [cg.stack(list(column)) for column in zip(*(floats for _, floats, _, _ in examples), strict=True)]
    tangents = tuple(cg.stack(list(column)) for column in zip(*(tangents for _, _, tangents, _ in examples), strict=True))
    gradients = vmap(grad(scalar, argnums))(*batch)
    slopes = vmap(lambda floats, tangents: jvp(scalar, floats, tangents)[1])(tuple(batch), tangents)
    for number, (_, floats, own_tangents, _) in enumerate(examples):
        expected = grad(scalar, argnums)(*floats)
        for gradient, plain in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(array_of(gradient[number]), array_of(plain), rtol=1e-10, atol=1e-12)
        assert slopes[number].item() == pytest.approx(inner(expected, own_tangents), rel=1e-5, abs=1e-8)
