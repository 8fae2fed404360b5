"""The derivatives of every row of the elementwise table: first and second, fused and evaluated by tensor operations.

The tests iterate the table. Gradients at kinks, ties, bounds and poles are torch's, written out in CONVENTIONS.
"""

import math

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad.autograd import grad, gradcheck, gradgradcheck
from samples import FLOATS, array_of, gradients, named, prepared, same_bits

SMOOTH = samples.differentiable_rows()
INF, NAN = math.inf, math.nan


# ----- Against finite differences -----
@pytest.mark.cases("layout", ["contiguous", "transposed", "stepped"])
@pytest.mark.parametrize("row", named(SMOOTH))
def test_first_and_second_derivatives(row, layout):
    arrays = samples.operands(row, "float64", [(2, 3)] * len(row.operands))
    tensors = [cg.tensor(array) if array.dtype == bool else samples.leaf(array, layout) for array in arrays]
    assert gradcheck(samples.function(row), tensors)
    assert gradgradcheck(samples.function(row), tensors, gen_non_contig_grad_outputs=layout == "stepped")


@pytest.mark.cases(
    "shapes", [((2, 3), (3,), ()), ((2, 1), (1, 3), (3,)), ((), (2,), (1,)), ((0, 2), (1, 2), (2,))], ids=str
)
@pytest.mark.parametrize("row", named(row for row in SMOOTH if len(row.operands) > 1))
def test_derivatives_of_operands_that_broadcast(row, shapes):
    for order in (shapes[: len(row.operands)], shapes[: len(row.operands)][::-1]):
        arrays = samples.operands(row, "float64", order)
        tensors = [cg.tensor(array) if array.dtype == bool else samples.leaf(array) for array in arrays]
        assert gradcheck(samples.function(row), tensors)
        assert gradgradcheck(samples.function(row), tensors)


@pytest.mark.parametrize("row", named(SMOOTH))
def test_derivatives_beside_numbers_and_of_repeated_elements(row):
    arrays = samples.operands(row, "float64", [(3,)] * len(row.operands))
    call = samples.operator(row)
    for position in range(len(row.operands)):
        if row.operands[position] not in row.partials:
            continue
        others = [cg.tensor(array) if name in (*row.masks, "x") else array[0].item()
                  for name, array in zip(row.operands, arrays, strict=True)]  # fmt: skip

        def alone(x, position=position, others=others):
            return call(*others[:position], x, *others[position + 1 :])

        x = samples.leaf(arrays[position])
        assert gradcheck(alone, x)
        assert gradgradcheck(alone, x)
        assert gradcheck(lambda x: alone(x.expand(2, 3)), x)  # noqa: B023
        assert gradgradcheck(lambda x: alone(x[:1].expand(3)), x)  # noqa: B023


@pytest.mark.parametrize("row", named(row for row in SMOOTH if row.in_place))
def test_gradients_of_in_place_forms(row):
    arrays = samples.operands(row, "float64", [(2, 3), (3,), (2, 1)])
    weight = cg.tensor(np.arange(1.0, 7.0).reshape(2, 3))
    plain, changed = ([samples.leaf(array) for array in arrays] for _ in range(2))
    (samples.function(row)(*plain) * weight).sum().backward()
    first = changed[0] * 1
    result = getattr(first, row.name + "_")(*changed[1:], **samples.parameters_of(row.name))
    assert result is first
    (first * weight).sum().backward()
    for a, b in zip(plain, changed, strict=True):
        assert same_bits(array_of(a.grad), array_of(b.grad))


@pytest.mark.parametrize("row", named(SMOOTH))
def test_gradients_of_long_and_of_short_tensors_have_the_same_bits(row):
    """From 2048 elements on a partial may be written over the gradient that arrived, if nothing else refers to it."""
    arrays = samples.operands(row, "float64", [(3000,)] * len(row.operands))
    weight = samples.draw("float64", (3000,), seed=1)

    def gradients_of(part):
        operands = prepared([array[part] for array in arrays])
        leaves = [operand for operand in operands if operand.requires_grad]
        product = samples.function(row)(*operands) * cg.tensor(weight[part])        # its gradient is a fresh tensor
        return [array_of(gradient) for gradient in grad(product.sum(), leaves)]

    few = zip(*(gradients_of(slice(start, start + 1000)) for start in range(0, 3000, 1000)), strict=True)
    for gradient, parts in zip(gradients_of(slice(None)), few, strict=True):
        assert same_bits(gradient, np.concatenate(parts))


# ----- Gradients that are zero by definition -----
POINTS = np.array([-2.5, -1.75, -0.3, 0.0, 0.3, 1.75, 2.5])
STEP = 2**-6


def gradient_at(row, points, gradient, dtype, create_graph):
    x = cg.tensor(points, dtype=dtype, requires_grad=True)
    y = samples.function(row)(x)
    return array_of(grad(y, x, cg.full_like(y, gradient), create_graph=create_graph)[0].detach().to(cg.float64))


@pytest.mark.cases("create_graph", [False, True])
@pytest.mark.cases("dtype", [cg.float64, cg.float32, cg.float16, cg.bfloat16], ids=str)
@pytest.mark.parametrize("row", named(row for row in SMOOTH if len(row.operands) == 1))
def test_gradients_are_zero_where_functions_are_constant(row, dtype, create_graph):
    """Zero, also times infinity or NaN: the value did not depend on the operand."""
    constant = np.logical_and.reduce([
        gradient_at(row, POINTS + step, 1.0, dtype, create_graph) == 0 for step in (-STEP, 0, STEP)
    ])
    for gradient in (INF, NAN):
        assert (gradient_at(row, POINTS, gradient, dtype, create_graph)[constant] == 0).all()


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_gradient_of_a_zeroth_power_is_zero(create_graph):
    for exponent in (0, 0.0, cg.tensor(0.0), cg.zeros(4)):
        x = cg.tensor([-2.0, 0.0, 0.5, INF], requires_grad=True)
        (gradient,) = grad(x**exponent, x, cg.full((4,), INF), create_graph=create_graph)
        assert gradient.tolist() == [0.0] * 4
    assert grad(cg.xlogy(x, -1.0), x, cg.full((4,), INF), create_graph=create_graph)[0][1] == 0


# ----- Conventions -----
# Torch's gradients at kinks, ties, bounds and poles: (call, operands, gradients of the sum).
CONVENTIONS = {
    "abs": (cg.abs, [[0, -0.0, 2, -2, INF, -INF]], [[0, 0, 1, -1, 1, -1]]),
    "relu": (cg.relu, [[0, -0.0, 2, -2, NAN, INF, -INF]], [[0, 0, 1, 0, 1, 1, 0]]),
    "sign": (cg.sign, [[0, 2, NAN]], [[0, 0, 0]]),
    "maximum": (
        cg.maximum,
        [[1, 1, 2, NAN, 1, NAN], [1, 2, 1, 1, NAN, NAN]],
        [[0.5, 0, 1, 1, 1, 1], [0.5, 1, 0, 1, 1, 1]],
    ),
    "minimum": (
        cg.minimum,
        [[1, 1, 2, NAN, 1, NAN], [1, 2, 1, 1, NAN, NAN]],
        [[0.5, 1, 0, 1, 1, 1], [0.5, 0, 1, 1, 1, 1]],
    ),
    "clamp by numbers": (lambda x: x.clamp(0, 1), [[-1, 0, 0.5, 1, 2, NAN, INF, -INF]], [[0, 1, 1, 1, 0, 0, 0, 0]]),
    "clamp from below": (lambda x: x.clamp(min=0.0), [[-1, 0, 0.5, NAN]], [[0, 1, 1, 0]]),
    "clamp from above": (lambda x: x.clamp(max=0.0), [[-1, 0, 0.5, NAN]], [[1, 1, 0, 0]]),
    "clamp by tensors": (
        cg.clamp,
        [[-1, 0, 0.5, 1, 2, 0.5, 0.5, 0.5, NAN], [0, 0, 0, 0, 0, 2, 1, 0.5, 0], [1, 1, 1, 1, 1, 1, 1, 0.5, 1]],
        [[0, 1, 1, 1, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 0, 0, 0]],
    ),
    "clamp by a lower tensor": (
        lambda x, low: cg.clamp(x, min=low),
        [[-1, 0, 1, NAN, 0], [0, 0, 0, 0, NAN]],
        [[0, 1, 1, 0, 0], [1, 0, 0, 0, 0]],
    ),
    "clamp by an upper tensor": (
        lambda x, high: cg.clamp(x, max=high),
        [[-1, 0, 1, NAN, 0], [0, 0, 0, 0, NAN]],
        [[1, 1, 0, 0, 0], [0, 0, 1, 0, 0]],
    ),
    "sqrt": (cg.sqrt, [[0, -1, 4, INF]], [[INF, NAN, 0.25, 0]]),
    "rsqrt": (cg.rsqrt, [[0, -1, 4]], [[-INF, NAN, -0.0625]]),
    "log": (cg.log, [[0, -1, 2]], [[INF, -1, 0.5]]),
    "log1p": (cg.log1p, [[-1, -2, 0]], [[INF, -1, 1]]),
    "reciprocal": (cg.reciprocal, [[0, -0.0, 2]], [[-INF, -INF, -0.25]]),
    "div": (cg.div, [[1, 0, 1], [0, 0, 2]], [[INF, INF, 0.5], [-INF, NAN, -0.25]]),
    "pow 0": (lambda x: x**0, [[0, 2]], [[0, 0]]),
    "pow 2": (lambda x: x**2, [[0, 2]], [[0, 4]]),
    "pow 0.5": (lambda x: x**0.5, [[0, 4]], [[INF, 0.25]]),
    "pow -1": (lambda x: x**-1, [[0, 2]], [[-INF, -0.25]]),
    "pow of tensors": (
        cg.pow,
        [[0, 0, 0, 0, -1, -1, 0, 2], [0, 1, 2, -1, 2, 0.5, 0.5, 0]],
        [[0, 1, 0, -INF, -2, NAN, INF, 0], [0, 0, 0, -INF, NAN, NAN, 0, math.log(2)]],
    ),
    "2 ** y": (lambda y: 2**y, [[0, 3]], [[math.log(2), 8 * math.log(2)]]),
    "0 ** y": (lambda y: 0**y, [[0, 1, 2]], [[0, 0, 0]]),
    "remainder": (cg.remainder, [[5, -5, 4], [3, 3, 2]], [[1, 1, 1], [-1, 2, -2]]),
    "where": (lambda x: cg.where(x > 0, x.sqrt(), 0.0), [[-1, 4, 0]], [[NAN, 0.25, NAN]]),
    "square": (cg.square, [[0, -3]], [[0, -6]]),
    "softplus": (cg.softplus, [[0, 20, 21, -800, INF, -INF]], [[0.5, 1 / (1 + math.exp(-20)), 1, 0, 1, 0]]),
    "sigmoid": (cg.sigmoid, [[0, INF, -INF]], [[0.25, 0, 0]]),
    "gelu": (cg.gelu, [[0, INF, -INF, 30]], [[0.5, NAN, NAN, 1]]),
    "silu": (cg.silu, [[0, INF, -INF, 800, -800]], [[0.5, NAN, NAN, 1, -0.0]]),
    "tanh": (cg.tanh, [[0, INF, -INF]], [[1, 0, 0]]),
    "erf": (cg.erf, [[0, INF, -INF]], [[2 / math.sqrt(math.pi), 0, 0]]),
    "exp": (cg.exp, [[0, INF, -INF]], [[1, INF, 0]]),
    "exp2": (cg.exp2, [[0, -INF]], [[math.log(2), 0]]),
    "log2 and log10": (lambda x: cg.log2(x) + cg.log10(x), [[0, 1]], [[INF, 1 / math.log(2) + 1 / math.log(10)]]),
    "asin": (cg.asin, [[0, 1, -1, 2]], [[1, INF, INF, NAN]]),
    "acos": (cg.acos, [[0, 1, 2]], [[-1, -INF, NAN]]),
    "acosh": (cg.acosh, [[1, -1, 0.5]], [[INF, NAN, NAN]]),
    "atan": (cg.atan, [[0, INF]], [[1, 0]]),
    "atan2": (cg.atan2, [[0, 0, 1], [0, 2, 0]], [[0, 0.5, 0], [0, 0, -1]]),
    "hypot": (cg.hypot, [[0, 3], [0, 4]], [[NAN, 0.6], [NAN, 0.8]]),
    "fmod": (cg.fmod, [[5, -5, 4], [3, 3, 2]], [[1, 1, 1], [-1, 1, -2]]),
    "floor": (cg.floor, [[1, 1.5, NAN]], [[0, 0, 0]]),
    "frac": (cg.frac, [[1, 1.5]], [[1, 1]]),
    "sinc": (cg.sinc, [[0, 1]], [[0, -1]]),
    "xlogy": (cg.xlogy, [[0, 0, 1, 0], [0, 2, 2, -1]], [[0, math.log(2), math.log(2), 0], [NAN, 0, 0.5, 0]]),
    "logaddexp": (cg.logaddexp, [[0, -INF, INF], [0, 0, 0]], [[0.5, 0, 1], [0.5, 1, 0]]),
    "copysign": (cg.copysign, [[0, 2, -3], [-1, -1, -1]], [[0, -1, 1], [0, 0, 0]]),
    "fmax": (cg.fmax, [[1, 1, NAN, 1], [1, 2, 1, NAN]], [[1, 0, 0, 1], [0, 1, 1, 0]]),
    "fmin": (cg.fmin, [[1, 1, NAN, 1], [1, 2, 1, NAN]], [[1, 1, 0, 1], [0, 0, 1, 0]]),
    "nan_to_num": (cg.nan_to_num, [[NAN, INF, -INF, 1]], [[0, 0, 0, 1]]),
    "elu": (cg.elu, [[0, -INF, 800, NAN]], [[1, 0, 1, NAN]]),
    "logit": (cg.logit, [[0, 0.5, 1, -1, 2, NAN, INF]], [[INF, 4, INF, NAN, NAN, NAN, NAN]]),
    "nextafter": (cg.nextafter, [[1, 1, -0.0, NAN], [1, 2, 0, 1]], [[0, 1, 0, 1], [0, 0, 0, 0]]),
    "selu": (cg.selu, [[0, 1]], [[1.7580993408473766, 1.0507009873554805]]),
    "leaky_relu": (cg.leaky_relu, [[0, 1, -1]], [[0.01, 1, 0.01]]),
    "hardtanh": (cg.hardtanh, [[-1, 0, 1, 2]], [[0, 1, 0, 0]]),
    "relu6": (cg.relu6, [[0, 1, 6]], [[0, 1, 0]]),
    "hardsigmoid": (cg.hardsigmoid, [[-3, 0, 3]], [[0, 1 / 6, 0]]),
    "hardswish": (cg.hardswish, [[-3, 0, 3, NAN]], [[0, 0.5, 1, NAN]]),
    "softshrink": (cg.softshrink, [[0.5, 1, -0.5, NAN]], [[0, 1, 0, 0]]),
    "hardshrink": (cg.hardshrink, [[0.5, 1, -0.5, NAN]], [[0, 1, 0, 0]]),
    "threshold": (lambda x: cg.threshold(x, 1, 7), [[1, 2, 0]], [[0, 1, 0]]),
    "logsigmoid": (cg.logsigmoid, [[0, 800, -800]], [[0.5, 0, 1]]),
    "lerp": (cg.lerp, [[1], [3], [0.25]], [[0.75], [0.25], [2]]),
    "expm1": (cg.expm1, [[0, INF, -INF]], [[1, INF, 0]]),
}


@pytest.mark.cases("create_graph", [False, True])
@pytest.mark.parametrize(("call", "values", "expected"), CONVENTIONS.values(), ids=CONVENTIONS)
def test_gradients_at_kinks_and_poles_are_torchs(call, values, expected, create_graph):
    tensors = [cg.tensor(column, dtype=cg.float64, requires_grad=True) for column in values]
    gradients = grad(call(*tensors).sum(), tensors, create_graph=create_graph)
    for gradient, column in zip(gradients, expected, strict=True):
        assert np.allclose(array_of(gradient), column, rtol=1e-15, atol=0, equal_nan=True), gradient


# ----- Two evaluations of one formula -----
@pytest.mark.parametrize("row", named(SMOOTH))
@pytest.mark.cases("dtype", FLOATS)
def test_fused_backward_is_the_tensor_reading(row, dtype):
    for arrays in (samples.operands(row, dtype, [(3, 17)] * len(row.operands)), samples.edge_operands(row, dtype)):
        weight = cg.tensor(samples.draw(dtype, np.broadcast_shapes(*(a.shape for a in arrays)), 9))
        fused = gradients(samples.function(row), prepared(arrays), weight)
        read = gradients(samples.function(row), prepared(arrays), weight, create_graph=True)
        for a, b in zip(fused, read, strict=True):
            assert np.allclose(a, b, rtol=4 * np.finfo(dtype).eps, atol=0, equal_nan=True)


@pytest.mark.parametrize("row", named(row for row in SMOOTH if len(row.operands) > 1))
def test_gradients_of_mixed_dtypes(row):
    """Each operand gets a gradient of its own dtype, computed in the common one."""
    arrays = samples.operands(row, "float64", [(3, 17), (17,), (3, 1)])
    mixed = prepared(
        array if array.dtype == bool or k == 1 else array.astype("float32") for k, array in enumerate(arrays)
    )
    wide = prepared(array_of(tensor if tensor.dtype == cg.bool else tensor.double()) for tensor in mixed)
    weight = cg.tensor(samples.draw("float64", (3, 17), 9))
    (_, *results), (_, *expected) = (gradients(samples.function(row), tensors, weight) for tensors in (mixed, wide))
    for tensor, a, b in zip((tensor for tensor in mixed if tensor.requires_grad), results, expected, strict=True):
        assert same_bits(a, b.astype(tensor.dtype.name))


# ----- Recording -----
@pytest.mark.parametrize("row", named(samples.ELEMENTWISE.values()))
def test_recorded_only_where_there_is_a_gradient(row):
    dtype = samples.dtypes_of(row)[-1]
    arrays = samples.operands(row, dtype, [(3,)] * len(row.operands))
    call = samples.function(row)
    assert not call(*map(cg.tensor, arrays)).requires_grad
    for chosen, operand in enumerate(row.operands):
        if arrays[chosen].dtype.kind != "f":
            continue
        tensors = [cg.tensor(array).requires_grad_(k == chosen) for k, array in enumerate(arrays)]
        result = call(*tensors)
        assert result.requires_grad == (operand in row.partials)
        with cg.no_grad():
            assert not call(*tensors).requires_grad
        if operand in row.partials:
            node = row.node or "".join(word.capitalize() for word in row.name.split("_"))
            assert result.grad_fn.name() == node + "Backward0"
            assert [source is not None for source, _ in result.grad_fn.next_functions] == [
                k == chosen for k in range(len(arrays))
            ]


@pytest.mark.parametrize("row", named(SMOOTH))
def test_changes_of_saved_values_are_errors(row):
    """Changing in place an operand that the partial reads is refused; any other operand may change."""
    arrays = samples.operands(row, "float64", [(3,)] * len(row.operands))
    for position, operand in enumerate(row.operands):
        if operand not in row.partials:
            continue
        for changed in (*range(len(arrays)), "y"):
            tensors = [cg.tensor(array).requires_grad_(k == position) for k, array in enumerate(arrays)]
            result = samples.function(row)(*tensors)
            expected = array_of(grad(result, tensors[position], cg.ones_like(result), retain_graph=True)[0])
            with cg.no_grad():
                (result if changed == "y" else tensors[changed]).zero_()
            name = changed if changed == "y" else row.operands[changed]
            if name in row.saved(operand):
                with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
                    grad(result, tensors[position], cg.ones_like(result))
            else:
                assert same_bits(array_of(grad(result, tensors[position], cg.ones_like(result))[0]), expected)
