"""Every row of the elementwise table: values, dtypes, forms, and bits that depend on nothing but the operands.

The tests iterate the table. A row needs an entry in samples/elementwise.py only if NumPy and Python's math lack its function. The
derivatives are in test_elementwise_gradients; here bits are compared with the backward kernels.
"""

import ast
import itertools
import math
import re

import numpy as np
import pytest

import cygrad as cg
import public
import samples
from cygrad._core.compute.dispatch import ops
from cygrad._kernels.drivers.elementwise import available_isas, is_blocked, isa
from cygrad.ops import ELEMENTWISE
from cygrad.ops.refusals import REFUSALS, TWO_BOOLS, refusal
from samples import BROADCASTS, DTYPES, FLOATS, KINDS, LAYOUTS, SHAPES, WRITABLE, array_of, same_bits

ROWS = list(ELEMENTWISE.values())
OF_FLOATS = [row for row in ROWS if "f" in row.kinds]


# ----- Values -----
def reference(row, arrays):
    """Compute a row by NumPy: in its own dtype where the formula is exact arithmetic, else in extended precision."""
    compute = samples.numpy_function(row)
    if samples.is_vectorised(row) and arrays[0].dtype.kind == "f":
        arrays = [array.astype(np.longdouble) for array in arrays]
    with np.errstate(all="ignore"):
        return np.asarray(compute(*arrays, **samples.parameters_of(row.name)))


def check_values(row, result, arrays, dtype):
    """Compare with NumPy: exact rows to the bit, one vector function within 4 ulp, a formula of several to rounding."""
    expected, values = reference(row, arrays), array_of(result)
    assert values.dtype == (bool if row.result == "bool" else dtype)
    assert values.shape == expected.shape
    if not samples.is_vectorised(row) or KINDS[dtype] != "f":
        assert same_bits(values + 0, expected.astype(values.dtype) + 0)  # + 0: either zero will do for max(0, -0)
        return
    with np.errstate(all="ignore"):
        error, rounded = np.abs(values - expected), expected.astype(dtype)
        allowed = 4 * np.spacing(np.abs(rounded))
        if not isinstance(row.tree(row.y), ast.Call):
            allowed = allowed + 8 * np.finfo(dtype).eps
        right = (error <= allowed) | (values == rounded) | (np.isnan(values) & np.isnan(rounded))
    assert right.all(), (arrays, values[~right], expected[~right])


@pytest.mark.parametrize("row", samples.named(ROWS))
@pytest.mark.cases("dtype", samples.dtypes_of)
def test_values_in_every_layout_and_size(row, dtype):
    call = samples.function(row)
    for shape, turn in itertools.product(SHAPES, range(len(LAYOUTS))):
        # All operands in one layout, and each in another.
        for step in {0, 1} if len(row.operands) > 1 and len(shape) > 1 else {0}:
            layouts = [list(LAYOUTS.values())[(turn + step * k) % len(LAYOUTS)] for k in range(len(row.operands))]
            arrays = samples.operands(row, dtype, [shape] * len(row.operands), seed=turn)
            tensors = [layout(array) for layout, array in zip(layouts, arrays, strict=True)]
            check_values(row, call(*tensors), [array_of(tensor) for tensor in tensors], dtype)


@pytest.mark.parametrize("row", samples.named(row for row in ROWS if len(row.operands) > 1))
@pytest.mark.cases("dtype", samples.dtypes_of)
def test_values_of_operands_that_broadcast(row, dtype):
    call, count = samples.function(row), len(row.operands)
    for shapes, layout in itertools.product(BROADCASTS, LAYOUTS.values()):
        for order in (shapes[:count], shapes[:count][::-1]):
            arrays = samples.operands(row, dtype, order)
            tensors = [layout(array) for array in arrays]
            check_values(row, call(*tensors), [array_of(tensor) for tensor in tensors], dtype)


@pytest.mark.slow
@pytest.mark.parametrize("row", samples.named(row for row in OF_FLOATS if row.result == "same"))
@pytest.mark.cases("dtype", FLOATS)
def test_results_too_large_for_the_cache_have_the_same_bits(row, dtype):
    """Results and gradients of this size are written by loops of their own: past the caches."""
    length, times, call = 1001, 1050, samples.function(row)
    arrays = samples.operands(row, dtype, [(length,)] * len(row.operands))
    for scalar in (None, 0, 1) if len(arrays) == 2 else (None,):
        results = []
        for repeat in (1, times):
            operands = [array[:1] if k == scalar else np.tile(array, repeat) for k, array in enumerate(arrays)]
            leaves = [cg.tensor(array, requires_grad=name in row.partials) for name, array in zip(row.operands, operands, strict=True)]
            differentiable = [leaf for leaf in leaves if leaf.requires_grad and leaf.numel() > 1]
            with samples.threads(1):
                result = call(*leaves)
                parts = cg.autograd.grad(result, differentiable, cg.ones_like(result)) if differentiable else ()
            results.append([result.detach(), *parts])
        assert results[1][0].nbytes >= 1 << 22
        for small, big in zip(*results, strict=True):
            assert same_bits(array_of(big), np.tile(array_of(small), times))


@pytest.mark.parametrize("row", samples.named(ROWS))
@pytest.mark.cases("dtype", samples.dtypes_of)
def test_values_at_the_edges(row, dtype):
    arrays = samples.edge_operands(row, dtype)
    check_values(row, samples.function(row)(*map(cg.tensor, arrays)), arrays, dtype)


SIGNED = [
    row
    for row in OF_FLOATS
    if not any(word in row.y for word in ("maximum", "minimum", "remainder")) and row.name not in ("fmax", "fmin")
]


@pytest.mark.parametrize("row", samples.named(SIGNED))
@pytest.mark.cases("dtype", FLOATS)
def test_the_sign_of_zero(row, dtype):
    """Except where NumPy and torch leave the sign of zero open."""
    arrays = samples.edge_operands(row, dtype)
    values, expected = array_of(samples.function(row)(*map(cg.tensor, arrays))), reference(row, arrays)
    zero = (values == 0) & (expected == 0)
    assert (np.signbit(values) == np.signbit(expected))[zero].all()


@pytest.mark.parametrize("row", samples.named(ROWS))
def test_other_dtypes_are_converted_or_refused(row):
    call = samples.function(row)
    for dtype in set(DTYPES) - set(samples.dtypes_of(row)):
        tensors = [cg.tensor([0, 1, 1], dtype=getattr(cg, dtype))] * len(row.operands)
        counted = row.counts_bools and dtype == "bool"
        if (row.name, KINDS[dtype]) in REFUSALS or row.kinds.replace("c", "") != "f" and not counted:
            said = RuntimeError(TWO_BOOLS) if row.no_bools and len(tensors) == 2 and dtype == "bool" else refusal(row.name, dtype)
            with pytest.raises(type(said), match=re.escape(str(said))):
                call(*tensors)
            continue
        converted = call(*[tensor.long() if counted else tensor.float() for tensor in tensors])
        assert same_bits(array_of(call(*tensors)), array_of(converted))
        if row.in_place:
            with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
                getattr(tensors[0].clone(), row.name + "_")(*tensors[1:], **samples.parameters_of(row.name))


@pytest.mark.parametrize("row", samples.named(ROWS))
def test_results_are_dense_in_the_order_of_dims_of_their_operands(row):
    arrays = samples.operands(row, samples.dtypes_of(row)[-1], [(2, 3, 4)] * len(row.operands))
    transposed, row_major = ([LAYOUTS[layout](array) for array in arrays] for layout in ("transposed", "contiguous"))
    assert samples.function(row)(*transposed).stride() == (1, 2, 6)
    assert samples.function(row)(*[tensor[:, ::2] for tensor in transposed]).stride() == (1, 2, 4)
    assert samples.function(row)(transposed[0], *row_major[1:]).stride() == (1, 2, 6)
    assert samples.function(row)(row_major[0], *transposed[1:]).is_contiguous()


STRIDES_OF_SUMS = [
    (lambda: (cg.ones(2, 3).T, cg.ones(2)), (1, 3)),
    (lambda: (cg.ones(2), cg.ones(2, 3).T), (1, 3)),
    (lambda: (cg.ones(3, 1), cg.ones(1, 2)), (2, 1)),
    (lambda: (cg.ones(3, 1).expand(3, 2), cg.ones(2, 3).T), (1, 3)),
    (lambda: (cg.ones(1, 2).expand(3, 2), cg.ones(1)), (2, 1)),
    (lambda: (cg.ones(2, 3, 4).permute(2, 0, 1), cg.ones(4, 2, 3)), (1, 12, 4)),
    (lambda: (cg.ones(2, 3).T, cg.ones(())), (1, 3)),
]


@pytest.mark.parametrize(("make", "strides"), STRIDES_OF_SUMS)
def test_repeated_dims_do_not_count_for_the_layout_of_the_result(make, strides):
    a, b = make()
    assert (a + b).stride() == strides


# ----- Forms -----
@pytest.mark.parametrize("row", samples.named(ROWS))
@pytest.mark.cases("dtype", samples.dtypes_of)
def test_function_method_and_out_agree(row, dtype):
    tensors = [cg.tensor(array) for array in samples.operands(row, dtype, [(13,)] * len(row.operands))]
    call, parameters = samples.function(row), samples.parameters_of(row.name)
    expected = array_of(call(*tensors))
    for name in samples.method_names(row) if row.method else ():
        assert same_bits(array_of(getattr(tensors[0], name)(*tensors[1:], **parameters)), expected)
    for alias in row.aliases:
        assert same_bits(array_of(public.function(alias)(*tensors, **parameters)), expected)
    if row.name == "isclose":
        return  # has no out, as in torch
    for layout in WRITABLE:
        out = LAYOUTS[layout](np.ones_like(expected))
        assert call(*tensors, out=out) is out
        assert out._version == 1
        assert same_bits(array_of(out), expected)
    wide = cg.ones(13, dtype=cg.float64)
    assert same_bits(array_of(call(*tensors, out=wide)), expected.astype(float))


@pytest.mark.parametrize("row", samples.named(row for row in ROWS if row.in_place))
@pytest.mark.cases("dtype", samples.dtypes_of)
def test_in_place(row, dtype):
    parameters = samples.parameters_of(row.name)
    for layout, n in itertools.product(WRITABLE, (13, 201)):
        arrays = samples.operands(row, dtype, [(2, n), (n,), (2, 1)])
        expected = array_of(samples.function(row)(*map(cg.tensor, arrays)))
        target, *others = (LAYOUTS[layout](array) for array in arrays)
        for name in samples.method_names(row):
            assert hasattr(target, name + "_")
        assert getattr(target, row.name + "_")(*others, **parameters) is target
        assert target._version == 1
        assert same_bits(array_of(target), expected.astype(dtype))
        assert all(same_bits(array_of(other), array) for other, array in zip(others, arrays[1:], strict=True))


@pytest.mark.parametrize("row", samples.named(row for row in ROWS if row.in_place and len(row.operands) == 2))
def test_in_place_with_itself(row):
    dtype = samples.dtypes_of(row)[-1]
    (array,), method = samples.operands(row, dtype, [(13,)]), row.name + "_"
    expected = array_of(samples.function(row)(cg.tensor(array), cg.tensor(array)))
    target = cg.tensor(array)
    getattr(target, method)(target, **samples.parameters_of(row.name))
    assert same_bits(array_of(target), expected.astype(dtype))


@pytest.mark.parametrize("row", samples.named(ROWS))
def test_operands_and_results_that_overlap(row):
    """The result is computed from the old values if `out`, or the target, is another part of the operands' memory."""
    dtype = "bool" if row.result == "bool" else samples.dtypes_of(row)[-1]
    if dtype not in samples.dtypes_of(row):
        return
    for n in (3, 17, 600):
        arrays = samples.operands(row, dtype, [(n + 1,)] * len(row.operands))
        expected = array_of(samples.function(row)(*[cg.tensor(array[:-1]) for array in arrays]))
        for read, written in ((slice(0, -1), slice(1, None)), (slice(1, None), slice(0, -1))):
            shifted = [np.roll(array, read.start) for array in arrays]
            tensors = [cg.tensor(array) for array in shifted]
            samples.function(row)(*[tensor[read] for tensor in tensors], out=tensors[-1][written])
            assert same_bits(array_of(tensors[-1][written]), expected)


@pytest.mark.parametrize("row", samples.named(row for row in ROWS if len(row.operands) > 1 and row.name != "isclose"))
def test_numbers_on_either_side(row):
    """A number counts as a tensor full of it, in the dtype of the tensors; a float makes integers floats."""
    call, count = samples.operator(row), len(row.operands)
    for dtype, number in itertools.product(samples.dtypes_of(row), (True, 3, 0.75)):
        weaker = KINDS[dtype] == "b" or KINDS[dtype] == "i" and isinstance(number, float)
        common = dtype if not weaker or number is True else "int64" if number == 3 else "float32"
        if KINDS[common] not in row.kinds or row.no_bools and number is True:
            continue
        arrays = samples.operands(row, dtype, [(3, 5)] * count)
        for position in range(count):
            if row.operands[position] in (*row.masks, "x"):
                continue
            tensors = [cg.tensor(array) for array in arrays]
            full = [tensor if tensor.dtype == cg.bool and name in row.masks else tensor.to(getattr(cg, common))
                    for name, tensor in zip(row.operands, tensors, strict=True)]  # fmt: skip
            full[position] = cg.full((3, 5), number, dtype=getattr(cg, common))
            tensors[position] = number
            if row.integers == "divisor" and KINDS[common] == "i" and not all(full[1].flatten().tolist()):
                continue
            assert same_bits(array_of(call(*tensors)), array_of(call(*full)))


MIXED = [
    ("uint8", "int8"),
    ("int32", "float32"),
    ("float32", "float64"),
    ("bool", "int64"),
    ("float64", "int8"),
    ("bool", "float32"),
]


@pytest.mark.cases("dtypes", MIXED, ids="-".join)
@pytest.mark.parametrize("row", samples.named(row for row in ROWS if len(row.operands) > 1 and row.name != "isclose"))
def test_mixed_dtypes_are_promoted(row, dtypes):
    call = samples.function(row)
    common = cg.promote_types(*(getattr(cg, dtype) for dtype in dtypes))
    if KINDS[common.name] not in row.kinds or row.no_bools and "bool" in dtypes:
        return
    for layout in LAYOUTS.values():
        tensors = []
        for position, shape in enumerate(BROADCASTS[1][: len(row.operands)]):
            dtype = "bool" if row.operands[position] in row.masks else dtypes[position % 2]
            array = (
                samples.draw(dtype, shape, 1, row.domain, row, position) if dtype != "bool" else np.ones(shape, bool)
            )
            tensors.append(layout(array))
        converted = [
            tensor if name in row.masks else tensor.to(common)
            for name, tensor in zip(row.operands, tensors, strict=True)
        ]
        assert same_bits(array_of(call(*tensors)), array_of(call(*converted)))


# ----- Bits -----
@pytest.mark.parametrize("row", samples.named(OF_FLOATS))
@pytest.mark.cases("dtype", FLOATS)
def test_bits_depend_on_no_position_length_or_stride(row, dtype):
    call = samples.function(row)
    arrays = samples.operands(row, dtype, [(40,)] * len(row.operands))
    weight = samples.draw(dtype, (40,), 9)
    whole = samples.gradients(call, samples.prepared(arrays), cg.tensor(weight))
    places = [lambda a: a[5:-3].clone(), lambda a: a[5:-3], LAYOUTS["stepped"]]
    for start, n in itertools.product((0, 1, 6), range(1, 18)):
        for number, place in enumerate(places):
            cut = slice(start, start + n)
            pad = [np.pad(array[cut], (5, 3), mode="edge") if number < 2 else array[cut] for array in (*arrays, weight)]
            tensors = [place(cg.tensor(array)) if number < 2 else place(array) for array in pad]
            leaves = [t.requires_grad_() if t.is_floating_point() else t for t in tensors[:-1]]
            for part, all_of_it in zip(samples.gradients(call, leaves, tensors[-1]), whole, strict=True):
                assert same_bits(part, all_of_it[cut])
    for layout in ("transposed", "cut", "foreign"):
        tensors = [LAYOUTS[layout](array.reshape(5, 8)) for array in (*arrays, weight)]
        leaves = [t.requires_grad_() if t.is_floating_point() else t for t in tensors[:-1]]
        for part, all_of_it in zip(samples.gradients(call, leaves, tensors[-1]), whole, strict=True):
            assert same_bits(part.reshape(-1), all_of_it)


RUNS = [*itertools.product(["contiguous"], (1, 2, 3, 7)), ("transposed", 3), ("cut", 1), ("stepped", 7)]


@pytest.mark.slow
@pytest.mark.parametrize("row", samples.named(ROWS))
def test_bits_depend_on_no_thread_count(row):
    for dtype in {*samples.dtypes_of(row)} & {*FLOATS} or {"int32"}:
        arrays = samples.operands(row, dtype, [(3, 180_001), (180_001,), (3, 1)])
        weight = cg.tensor(samples.draw(dtype, (3, 180_001), 9))
        expected = None
        for layout, threads in RUNS:
            with samples.threads(threads):
                results = samples.gradients(samples.function(row), samples.prepared(arrays, LAYOUTS[layout]), weight)
            expected = expected or results
            assert all(same_bits(a, b) for a, b in zip(results, expected, strict=True))


def results_of_all_rows():
    """Return the results and gradients of all rows, for comparison between instruction sets."""
    results = {"isa": np.array(isa())}
    for row, dtype in ((one, dtype) for one in ROWS for dtype in samples.dtypes_of(one)):
        for place, arrays in enumerate([samples.operands(row, dtype, [(67,)] * 3), samples.edge_operands(row, dtype)]):
            weight = cg.tensor(samples.draw(dtype, arrays[0].shape, 9))
            for number, array in enumerate(samples.gradients(samples.function(row), samples.prepared(arrays), weight)):
                results[f"{row.name} {dtype} {place} {number}"] = array
    return results


@pytest.mark.slow
@pytest.mark.parametrize("level", available_isas())
def test_instruction_sets_agree(level):
    """Bits are equal, but where vector mathematics computes: it uses fused multiply-adds where there are any."""
    here, by_level = (
        results_of_all_rows(),
        samples.at_level(level, "test_elementwise", "results_of_all_rows"),
    )
    assert str(by_level.pop("isa")) == level
    assert set(by_level) == set(here) - {"isa"}
    for key, array in by_level.items():
        if same_bits(array, here[key]):
            continue
        row = ELEMENTWISE[key.split()[0]]
        assert any(map(is_blocked, (row.name, *(f"{row.name}_d{operand}" for operand in row.partials)))), key
        eps = np.finfo(array.dtype).eps
        assert np.allclose(array, here[key], rtol=16 * eps, atol=8 * eps, equal_nan=True), key


# ----- The odd ones -----
def test_where_as_a_method():
    x, condition = cg.tensor([1.0, 2.0]), cg.tensor([True, False])
    assert x.where(condition, 0.0).tolist() == [1, 0]
    assert condition.where(~condition, cg.tensor(True)).tolist() == [True, False]
    with pytest.raises(TypeError, match="argument 'condition'"):
        condition.where(1.0, 0.0)
    assert cg.where(condition, x, cg.tensor(5.0)).tolist() == [1, 5]
    assert [indices.tolist() for indices in cg.where(cg.tensor([[True, False], [True, True]]))] == [
        [0, 1, 1],
        [0, 0, 1],
    ]
    with pytest.raises(RuntimeError, match="expected condition to be a boolean tensor"):
        cg.where(x, x, x)


def test_keywords_choose_the_row():
    a, b = cg.tensor([7.0, -7.0]), cg.tensor([2.0, 2.0])
    assert cg.add(a, b, alpha=10).tolist() == a.add(b, alpha=10).tolist() == [27, 13]
    assert cg.sub(a, b, alpha=0.5).tolist() == [6, -8]
    assert cg.div(a, b, rounding_mode="trunc").tolist() == [3, -3]
    assert a.div(b, rounding_mode="floor").tolist() == [3, -4]
    assert cg.div(a, b, rounding_mode=None).tolist() == [3.5, -3.5]
    assert a.clone().div_(b, rounding_mode="floor").tolist() == a.clone().floor_divide_(b).tolist() == [3, -4]
    assert a.clone().add_(b, alpha=2).tolist() == [11, -3]
    assert cg.gelu(a, approximate="tanh").tolist() == cg.gelu_tanh(a).tolist()
    with pytest.raises(
        RuntimeError, match="expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'"
    ):
        cg.div(a, b, rounding_mode="up")
    with pytest.raises(
        RuntimeError, match="For integral input tensors, argument alpha must not be a floating point number"
    ):
        cg.add(cg.tensor([1]), cg.tensor([2]), alpha=0.5)


def test_one_bound_or_two():
    x = cg.tensor([-2.0, 0.5, 3.0])
    assert x.clamp(0, 1).tolist() == cg.clip(x, 0, 1).tolist() == x.clone().clamp_(min=0, max=1).tolist() == [0, 0.5, 1]
    assert x.clamp(min=0).tolist() == x.clamp_min(0).tolist() == [0, 0.5, 3]
    assert x.clamp(max=cg.tensor([0.0, 0.0, 5.0])).tolist() == [-2, 0, 3]
    assert x.clamp(2, 1).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        x.clamp()


@pytest.mark.parametrize("name", ["floor_divide", "trunc_divide", "remainder"])
@pytest.mark.parametrize("divisor", [0, cg.tensor([1, 0])], ids=["number", "tensor"])
def test_integers_are_not_divided_by_zero(name, divisor):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(cg, name)(cg.tensor([1, 2]), divisor)


def test_closeness():
    a, b = (
        cg.tensor([1.0, math.nan, math.inf, math.inf, 0.0]),
        cg.tensor([1 + 1e-6, math.nan, math.inf, -math.inf, 1e-9]),
    )
    assert cg.isclose(a, b).tolist() == [True, False, True, False, True]
    assert a.isclose(b, equal_nan=True).tolist() == [True, True, True, False, True]
    for name in ("rtol", "atol"):
        for function in (cg.isclose, cg.allclose):
            for tolerance in (-1, math.nan):
                with pytest.raises(RuntimeError, match=f"{name} must be greater than or equal to zero, but got {tolerance}"):
                    function(a, b, **{name: tolerance})
    assert cg.isclose(cg.tensor([100]), cg.tensor([101]), rtol=0.1).tolist() == [True]
    for name in ("rtol", "atol"):
        with pytest.raises(RuntimeError, match=f"^{name} must be greater than or equal to zero, but got -0.5"):
            cg.isclose(cg.ones(1), cg.ones(1), **{name: -0.5})
    assert cg.allclose(a[:1], b[:1])
    assert not a.allclose(b)
    assert cg.equal(a[:1], a[:1].clone())
    assert not cg.equal(a, a)
    assert not a[:1].equal(b)
    with pytest.raises(TypeError, match="argument 'other' .* must be Tensor, not float"):
        cg.isclose(a, 1.0)
    with pytest.raises(RuntimeError, match="did not match"):
        cg.isclose(a, a.double())


def test_integers_to_negative_powers_are_refused():
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        cg.tensor([2, 1]) ** -1
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        cg.pow(cg.tensor([2, 1]), -1, out=cg.zeros(2, dtype=cg.int64))
    assert (cg.tensor([2, 1, -1, 0]) ** cg.tensor([-1, -1, -1, 5])).tolist() == [0, 1, -1, 0]


# ----- Completeness -----
@pytest.mark.parametrize("row", samples.named(ROWS))
def test_every_row_is_covered(row):
    assert samples.numpy_function(row), "give NumPy's function in samples/elementwise.py"
    assert set(samples.parameters_of(row.name)) == set(row.params), "give sample parameters in samples/elementwise.py"
    assert row.name in ops
    assert callable(getattr(cg, row.name))
    assert set(row.partials) <= set(row.operands)


@pytest.mark.cases("dtype", ["float64", "float32", "float16", "complex128"])
def test_negative_gradients_of_operands_that_broadcast(dtype):
    """They are negated after their sum, of which one that is 0 is +0 all the same; an operand that does not broadcast has -0."""
    weight = np.array([[1, 2, 0], [-1, 3, 0]]).astype(dtype)
    x, row, whole = (cg.tensor(np.zeros(shape, dtype), requires_grad=True) for shape in ((2, 1), (3,), (2, 3)))
    (x - row).backward(cg.tensor(weight))
    assert np.array_equal(row.grad.real, [0, -5, 0]) and not np.signbit(row.grad.real.numpy()[[0, 2]]).any()
    (x - whole).backward(cg.tensor(weight))
    assert np.array_equal(whole.grad.real, -weight.real) and np.signbit(whole.grad.real.numpy()[:, 2]).all()
