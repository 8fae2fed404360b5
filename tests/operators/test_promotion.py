"""The dtype of results: two tensors, a tensor and a number, 0-d tensors, division, reductions, refusals."""

import math
import operator

import pytest

import cygrad as cg

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]

# The dtype of a sum of two tensors: a row for each left operand, in the order of DTYPES.
SUMS = """
bool     uint8    int8     int16    int32    int64    float32  float64
uint8    uint8    int16    int16    int32    int64    float32  float64
int8     int16    int8     int16    int32    int64    float32  float64
int16    int16    int16    int16    int32    int64    float32  float64
int32    int32    int32    int32    int32    int64    float32  float64
int64    int64    int64    int64    int64    int64    float32  float64
float32  float32  float32  float32  float32  float32  float32  float64
float64  float64  float64  float64  float64  float64  float64  float64
"""
PAIRS = [
    (left, right, result)
    for left, row in zip(DTYPES, SUMS.split("\n")[1:-1], strict=True)
    for right, result in zip(DTYPES, row.split(), strict=True)
]


def ones(dtype, shape=(2,)):
    return cg.ones(shape, dtype=getattr(cg, dtype))


def name(tensor):
    return str(tensor.dtype).rpartition(".")[2]


@pytest.mark.cases(("left", "right", "result"), PAIRS)
def test_two_tensors(left, right, result):
    assert name(ones(left) + ones(right)) == result
    assert name(ones(left) * ones(right)) == result
    assert name(cg.maximum(ones(left), ones(right))) == result
    assert name(cg.where(cg.tensor([True, False]), ones(left), ones(right))) == result
    assert name(ones(left) < ones(right)) == "bool"
    assert cg.promote_types(getattr(cg, left), getattr(cg, right)) == getattr(cg, result)


@pytest.mark.cases(("left", "right", "result"), PAIRS)
def test_true_division_gives_floats(left, right, result):
    assert name(ones(left) / ones(right)) == (result if result.startswith("float") else "float32")


# ----- Numbers are weak -----

NUMBERS = {
    True: {},
    2: {"bool": "int64"},
    0.5: dict.fromkeys(DTYPES[:6], "float32"),
}
ARITHMETIC = [operator.add, operator.mul]


@pytest.mark.parametrize("function", ARITHMETIC)
@pytest.mark.parametrize("number", list(NUMBERS))
@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.cases("shape", [(2,), ()])
def test_a_number_and_a_tensor(function, number, dtype, shape):
    expected = NUMBERS[number].get(dtype, dtype)
    left, right = function(ones(dtype, shape), number), function(number, ones(dtype, shape))
    assert name(left) == name(right) == expected
    value = bool(function(1, number)) if expected == "bool" else function(1, number)
    assert left.flatten().tolist() == right.flatten().tolist() == [value] * left.numel()


@pytest.mark.cases(
    ("call", "expected"),
    [
        (lambda t: t - 1, "same"),
        (lambda t: 1 - t, "same"),
        (lambda t: t**2, "same"),
        (lambda t: 2**t, "same"),
        (lambda t: t // 2, "same"),
        (lambda t: t % 2, "same"),
        (lambda t: t / 2, "float"),
        (lambda t: 2 / t, "float"),
        (lambda t: t**0.5, "float"),
        (lambda t: t.clamp(0, 5), "same"),
        (lambda t: cg.where(t > 0, t, 0), "same"),
        (lambda t: cg.maximum(t, t), "same"),
        (lambda t: t.abs(), "same"),
        (lambda t: -t, "same"),
        (lambda t: t.sign(), "same"),
        (lambda t: t.square(), "same"),
        (lambda t: t.exp(), "float"),
        (lambda t: t.sqrt(), "float"),
        (lambda t: t.sigmoid(), "float"),
        (lambda t: t.reciprocal(), "float"),
        (lambda t: t == 1, "bool"),
        (lambda t: t.isnan(), "bool"),
        (lambda t: t.logical_not(), "bool"),
        (lambda t: t.max(), "same"),
        (lambda t: t.amin(dim=0), "same"),
        (lambda t: t.sum(), "sum"),
        (lambda t: t.prod(), "sum"),
        (lambda t: t.cumsum(0), "sum"),
        (lambda t: t.argmax(), "int64"),
        (lambda t: t.any(), "bool or byte"),
        (lambda t: t.all(), "bool or byte"),
        (lambda t: t[None], "same"),
        (lambda t: t @ t, "same"),
    ],
)
@pytest.mark.cases("dtype", DTYPES[1:])
def test_kinds_of_results(call, expected, dtype):
    floating = dtype.startswith("float")
    names = {
        "same": [dtype],
        "float": [dtype if floating else "float32"],
        "sum": [dtype if floating else "int64"],
        "bool or byte": ["bool", "uint8"] if dtype == "uint8" else ["bool"],
    }
    assert name(call(ones(dtype))) in names.get(expected, [expected])


@pytest.mark.cases(
    ("call", "values", "dtype"),
    [
        (lambda a, b: a + b, [True, True, True, False], "bool"),
        (lambda a, b: a * b, [True, False, False, False], "bool"),
        (lambda a, b: a & b, [True, False, False, False], "bool"),
        (lambda a, b: a | b, [True, True, True, False], "bool"),
        (lambda a, b: a ^ b, [False, True, True, False], "bool"),
        (lambda a, b: ~a, [False, False, True, True], "bool"),
        (lambda a, b: a == b, [True, False, False, True], "bool"),
        (lambda a, b: a > b, [False, True, False, False], "bool"),
        (lambda a, b: a + 1, [2, 2, 1, 1], "int64"),
        (lambda a, b: a + 0.5, [1.5, 1.5, 0.5, 0.5], "float32"),
        (lambda a, b: a.float(), [1, 1, 0, 0], "float32"),
        (lambda a, b: a.sum(), 2, "int64"),
        (lambda a, b: a.cumsum(0), [1, 2, 2, 2], "int64"),
        (lambda a, b: a.any(), True, "bool"),
        (lambda a, b: a.all(), False, "bool"),
        (lambda a, b: cg.maximum(a, b), [True, True, True, False], "bool"),
        (lambda a, b: a / True, [1, 1, 0, 0], "float32"),
    ],
)
def test_bools(call, values, dtype):
    result = call(cg.tensor([True, True, False, False]), cg.tensor([True, False, True, False]))
    assert name(result) == dtype
    assert result.tolist() == values


@pytest.mark.parametrize("default", ["float32", "float64"])
def test_the_default_dtype(default):
    integers = cg.ones(2, dtype=cg.int32)
    try:
        cg.set_default_dtype(getattr(cg, default))
        assert cg.get_default_dtype() == getattr(cg, default)
        for tensor in (cg.tensor(0.5), cg.tensor([1, 0.5]), cg.zeros(2), integers + 0.5, integers / 2, integers.exp()):
            assert name(tensor) == default
        assert name(cg.ones(2, dtype=cg.float32) + 0.5) == "float32"
        assert name(cg.arange(3)) == "int64"
        assert name(cg.arange(3.0)) == default
        assert name(cg.linspace(0, 1, 3)) == default
        assert name(cg.full((2,), 0.5)) == default
    finally:
        cg.set_default_dtype(cg.float32)


CONSTRUCTED = [
    (1, "int64"),
    (True, "bool"),
    (0.5, "float32"),
    ([1, 2], "int64"),
    ([True, False], "bool"),
    ([1, True], "int64"),
    ([1, 2.0], "float32"),
    ([True, 0.5], "float32"),
    ([], "float32"),
    (math.inf, "float32"),
    (2**62, "int64"),
]


@pytest.mark.parametrize(("data", "dtype"), CONSTRUCTED, ids=str)
def test_data_of_python(data, dtype):
    assert name(cg.tensor(data)) == dtype


@pytest.mark.parametrize("value", ["float64", "float32", "int8", "uint8", "bool"])
def test_a_large_number_does_not_widen(value):
    assert name(ones(value) + 1.0) == (value if value.startswith("float") else "float32")
    assert (cg.ones(2, dtype=cg.float32) * 1e300).tolist() == [math.inf, math.inf]


OUT_OF_RANGE = [
    ("uint8", 256),
    ("uint8", -1),
    ("int8", 128),
    ("int8", -129),
    ("int16", 2**15),
    ("int32", 2**31),
    ("int64", 2**63),
]


@pytest.mark.parametrize(("dtype", "number"), OUT_OF_RANGE)
def test_a_python_int_out_of_range_is_refused(dtype, number):
    for call in (lambda t: t + number, lambda t: number * t, lambda t: t - number, lambda t: cg.add(t, number)):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {dtype}_t without overflow"):
            call(ones(dtype))


@pytest.mark.parametrize(
    ("dtype", "number"), [("uint8", 255), ("int8", -128), ("int8", 127), ("int16", -(2**15)), ("int64", 2**63 - 1)]
)
def test_a_python_int_at_the_edge_is_not(dtype, number):
    assert (cg.zeros(1, dtype=getattr(cg, dtype)) + number).tolist() == [number]


def test_integer_arithmetic_wraps():
    assert (cg.tensor([255], dtype=cg.uint8) + cg.tensor([1], dtype=cg.uint8)).tolist() == [0]
    assert (cg.tensor([127], dtype=cg.int8) + 1).tolist() == [-128]
    assert (-cg.tensor([1], dtype=cg.uint8)).tolist() == [255]


REFUSED = [
    (
        lambda: cg.ones(2, dtype=cg.bool) - cg.ones(2, dtype=cg.bool),
        "Subtraction, the `-` operator, with two bool tensors is not sup",
    ),
    (lambda: -cg.ones(2, dtype=cg.bool), "Negation, the `-` operator, on a bool tensor is not supported."),
    (
        lambda: cg.ones(2, dtype=cg.int64).mean(),
        "mean\\(\\): could not infer output dtype. Input dtype must be either a floating",
    ),
    (lambda: cg.ones(2) @ cg.ones(2, dtype=cg.float64), "expected .*same dtype"),
    (lambda: cg.ones(2, 2) @ cg.ones(2, 2, dtype=cg.int64), "expected .* to have the same dtype"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refused(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_bitwise_operators_take_no_floats():
    for call in (lambda t: t & t, lambda t: t | 1, lambda t: ~t):
        with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
            call(cg.ones(2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_have_the_dtype_of_their_tensor(dtype):
    x = cg.ones(2, dtype=getattr(cg, dtype), requires_grad=True)
    other = cg.ones(2, dtype=cg.float64, requires_grad=True)
    ((x * 2.0 + other) * cg.ones(2, dtype=cg.int32)).sum().backward()
    assert x.grad.dtype == x.dtype
    assert other.grad.dtype == other.dtype


ALIASES = [("float", "float32"), ("double", "float64"), ("long", "int64"), ("int", "int32"), ("short", "int16")]


@pytest.mark.parametrize(("alias", "dtype"), ALIASES)
def test_aliases(alias, dtype):
    assert getattr(cg, alias) is getattr(cg, dtype)
    converted = getattr(cg.tensor([1.0, 2.7]), alias)()
    assert name(converted) == dtype
    assert converted.tolist() == pytest.approx([1, 2.7] if dtype.startswith("float") else [1, 2])


@pytest.mark.cases("target", DTYPES)
@pytest.mark.cases("source", DTYPES)
def test_to(source, target):
    values = cg.tensor([0, 1, 1], dtype=getattr(cg, source))
    converted = values.to(getattr(cg, target))
    assert name(converted) == target
    assert converted.tolist() == [0, 1, 1]
    assert (converted is values) is (source == target)


def test_a_float_as_exponent_of_integers_makes_floats():
    """Also where another operator computes the power."""
    for exponent in (2.0, -1.0, 0.5, 3.0):
        for power in (cg.tensor([1, 4])**exponent, cg.pow(cg.tensor([1, 4]), exponent)):
            assert power.dtype == cg.float32
            assert power.tolist() == [1.0, 4.0**exponent]
    assert (cg.tensor([1, 4])**2).dtype == cg.int64
