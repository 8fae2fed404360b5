"""Every dtype of the table: limits, promotion over all pairs, names, and the operators of unsigned integers. Data are torch's."""

import re

import numpy as np
import pytest

import cygrad as cg
from cygrad.ops import ELEMENTWISE, REDUCTIONS
from cygrad.ops.dtypes import DTYPES

NAMES = [row.name for row in DTYPES]
ROWS = pytest.mark.parametrize("row", DTYPES, ids=NAMES)
SHORT = dict(zip("b1 u1 i1 i2 i4 i8 u2 u4 u8 f2 bf f4 f8 c8 cd".split(), NAMES, strict=True))


# ----- Limits -----
LIMITS = {
    "uint8": "iinfo(min=0, max=255, dtype=uint8)",
    "int8": "iinfo(min=-128, max=127, dtype=int8)",
    "int16": "iinfo(min=-32768, max=32767, dtype=int16)",
    "int32": "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)",
    "int64": "iinfo(min=-9.22337e+18, max=9.22337e+18, dtype=int64)",
    "uint16": "iinfo(min=0, max=65535, dtype=uint16)",
    "uint32": "iinfo(min=0, max=4.29497e+09, dtype=uint32)",
    "uint64": "iinfo(min=0, max=1.84467e+19, dtype=uint64)",
    "float16": "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, tiny=6.10352e-05, "
               "dtype=float16)",
    "bfloat16": "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, eps=0.0078125, smallest_normal=1.17549e-38, "
                "tiny=1.17549e-38, dtype=bfloat16)",
    "float32": "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
               "tiny=1.17549e-38, dtype=float32)",
    "float64": "finfo(resolution=1e-15, min=-1.79769e+308, max=1.79769e+308, eps=2.22045e-16, smallest_normal=2.22507e-308, "
               "tiny=2.22507e-308, dtype=float64)",
}
LIMITS |= {"complex64": LIMITS["float32"], "complex128": LIMITS["float64"]}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name):
    dtype, of_floats = getattr(cg, name), LIMITS[name].startswith("finfo")
    info = cg.finfo(dtype) if of_floats else cg.iinfo(dtype)
    assert repr(info) == LIMITS[name] and info == type(info)(dtype) and info != 3
    assert info.bits == 8 * dtype.to_real().itemsize
    with pytest.raises(TypeError, match=rf"requires an? (integer|floating point) input type. Use cygrad.[if]info to handle '{name}'"):
        cg.iinfo(dtype) if of_floats else cg.finfo(dtype)


@pytest.mark.parametrize("name", [row.name for row in DTYPES if (row.is_integer or row.is_floating_point) and hasattr(np, row.name)])
def test_limits_equal_numpys(name):
    if cg.zeros(0, dtype=getattr(cg, name)).is_floating_point():
        ours, theirs = cg.finfo(getattr(cg, name)), np.finfo(name)
        assert (ours.eps, ours.max, ours.min, ours.tiny) == (theirs.eps, theirs.max, theirs.min, theirs.tiny)
    else:
        ours, theirs = cg.iinfo(getattr(cg, name)), np.iinfo(name)
        assert (ours.max, ours.min, ours.bits) == (theirs.max, theirs.min, theirs.bits)


def test_limits_of_the_default_and_of_unfit_dtypes():
    assert cg.finfo() == cg.finfo(cg.float32) and cg.finfo(float) == cg.finfo(cg.float64) and cg.iinfo(int) == cg.iinfo(cg.int64)
    for call, message in (
        (lambda: cg.iinfo(cg.bool), "cygrad.bool is not supported by cygrad.iinfo"),
        (lambda: cg.finfo(cg.bool), "requires a floating point input type"),
        (lambda: cg.finfo("float32"), "must be cygrad.dtype, not str"),
        (lambda: cg.iinfo(), "missing 1 required positional argument"),
        (lambda: hash(cg.finfo()), "unhashable type"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


# ----- Promotion -----
# The dtype of two tensors that have dims: a row for each left operand. Refused pairs are "--".
TENSORS = """
b1 u1 i1 i2 i4 i8 -- -- -- f2 bf f4 f8 c8 cd
u1 u1 i2 i2 i4 i8 -- -- -- f2 bf f4 f8 c8 cd
i1 i2 i1 i2 i4 i8 -- -- -- f2 bf f4 f8 c8 cd
i2 i2 i2 i2 i4 i8 -- -- -- f2 bf f4 f8 c8 cd
i4 i4 i4 i4 i4 i8 -- -- -- f2 bf f4 f8 c8 cd
i8 i8 i8 i8 i8 i8 -- -- -- f2 bf f4 f8 c8 cd
-- -- -- -- -- -- u2 -- -- f2 bf f4 f8 -- --
-- -- -- -- -- -- -- u4 -- f2 bf f4 f8 -- --
-- -- -- -- -- -- -- -- u8 f2 bf f4 f8 -- --
f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f4 f8 c8 cd
bf bf bf bf bf bf bf bf bf f4 bf f4 f8 c8 cd
f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c8 cd
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 cd cd
c8 c8 c8 c8 c8 c8 -- -- -- c8 c8 c8 cd c8 cd
cd cd cd cd cd cd -- -- -- cd cd cd cd cd cd
"""
# The same with a right operand without dims. Where torch has complex32, which is not supported, there is complex64.
ZERO_DIMS = """
b1 u1 i1 i2 i4 i8 -- -- -- f2 bf f4 f8 c8 cd
u1 u1 u1 u1 u1 u1 u1 u1 u1 f2 bf f4 f8 c8 cd
i1 i1 i1 i1 i1 i1 i1 i1 i1 f2 bf f4 f8 c8 cd
i2 i2 i2 i2 i2 i2 i2 i2 i2 f2 bf f4 f8 c8 cd
i4 i4 i4 i4 i4 i4 i4 i4 i4 f2 bf f4 f8 c8 cd
i8 i8 i8 i8 i8 i8 i8 i8 i8 f2 bf f4 f8 c8 cd
u2 u2 u2 u2 u2 u2 u2 u2 u2 f2 bf f4 f8 c8 cd
u4 u4 u4 u4 u4 u4 u4 u4 u4 f2 bf f4 f8 c8 cd
u8 u8 u8 u8 u8 u8 u8 u8 u8 f2 bf f4 f8 c8 cd
f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 c8 c8
bf bf bf bf bf bf bf bf bf bf bf bf bf c8 c8
f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 c8 c8
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 cd cd
c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8
cd cd cd cd cd cd cd cd cd cd cd cd cd cd cd
"""
NUMBERS = {
    True: "b1 u1 i1 i2 i4 i8 u2 u4 u8 f2 bf f4 f8 c8 cd",
    2: "i8 u1 i1 i2 i4 i8 u2 u4 u8 f2 bf f4 f8 c8 cd",
    0.5: "f4 f4 f4 f4 f4 f4 f4 f4 f4 f2 bf f4 f8 c8 cd",
    1j: "c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 cd c8 cd",
}


def pairs(table):
    return [(left, right, SHORT.get(found)) for left, line in zip(NAMES, table.split("\n")[1:-1], strict=True)
            for right, found in zip(NAMES, line.split(), strict=True)]


def ones(name, shape=(2,)):
    return cg.ones(shape, dtype=getattr(cg, name))


def check(left, right, expected):
    """Compare the dtypes that operators and functions give for two operands; `where` and `mul` take every dtype."""
    if expected is None:
        for call in (lambda: cg.result_type(left, right), lambda: left * right, lambda: left == right):
            with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported, attempted to promote"):
                call()
        return
    assert cg.result_type(left, right) == getattr(cg, expected)
    product = left * right
    assert product.dtype == getattr(cg, expected)
    assert product.to(cg.complex128).tolist() == [complex(right if not isinstance(right, cg.Tensor) else 1)] * 2


@pytest.mark.cases(("left", "right", "expected"), pairs(TENSORS))
def test_two_tensors(left, right, expected):
    check(ones(left), ones(right), expected)
    if expected is None:
        titles = [row.title for name in (left, right) for row in DTYPES if row.name == name]
        for call in (lambda: cg.promote_types(getattr(cg, left), getattr(cg, right)), lambda: cg.cat([ones(left), ones(right)])):
            with pytest.raises(RuntimeError, match="attempted to promote {} and {}".format(*titles)):
                call()
        return
    assert cg.promote_types(getattr(cg, left), getattr(cg, right)) == getattr(cg, expected)
    assert cg.result_type(ones(left, ()), ones(right, ())) == getattr(cg, expected)
    assert cg.cat([ones(left), ones(right)]).dtype == cg.stack([ones(left), ones(right)]).dtype == getattr(cg, expected)


@pytest.mark.cases(("left", "right", "expected"), pairs(ZERO_DIMS))
def test_a_tensor_and_one_without_dims(left, right, expected):
    check(ones(left), ones(right, ()), expected)


@pytest.mark.cases(("dtype", "number", "expected"), [(name, number, SHORT[found]) for number, line in NUMBERS.items()
                                                     for name, found in zip(NAMES, line.split(), strict=True)])
def test_a_tensor_and_a_number(dtype, number, expected):
    check(ones(dtype), number, expected)
    assert cg.result_type(ones(dtype, ()), number) == getattr(cg, expected)


@ROWS
def test_can_cast_by_kind(row):
    ranks = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    for other in DTYPES:
        assert cg.can_cast(getattr(cg, row.name), getattr(cg, other.name)) == (ranks[row.kind] <= ranks[other.kind])


# ----- Names -----
ALIASES = {"half": "float16", "float": "float32", "double": "float64", "cfloat": "complex64", "cdouble": "complex128", "short": "int16",
           "int": "int32", "long": "int64"}


@ROWS
def test_attributes(row):
    dtype = getattr(cg, row.name)
    x = cg.zeros(2, dtype=dtype)
    assert (dtype.itemsize, x.element_size()) == (row.itemsize, row.itemsize)
    assert dtype.is_signed == (row.name != "bool" and not row.name.startswith("uint"))
    assert (dtype.is_floating_point, dtype.is_complex) == (x.is_floating_point(), x.is_complex()) == (row.kind == "f", row.kind == "c")
    assert cg.is_complex(x) == dtype.is_complex and cg.is_floating_point(x) == dtype.is_floating_point
    assert dtype.to_real().name == {"complex64": "float32", "complex128": "float64"}.get(row.name, row.name)
    if dtype.is_differentiable:
        assert dtype.to_complex().name == ("complex128" if row.name in ("float64", "complex128") else "complex64")
    else:
        with pytest.raises(RuntimeError, match=f"Unknown Complex ScalarType for {row.title}"):
            dtype.to_complex()
    for convert in (*row.conversions, lambda x: x.to(dtype), lambda x: x.type(dtype)):
        assert (getattr(x, convert)() if isinstance(convert, str) else convert(x)).dtype == dtype
    assert [alias for alias, name in ALIASES.items() if name == row.name] == list(row.aliases)
    assert all(getattr(cg, alias) is dtype for alias in row.aliases)


ABSENT = ("complex32", "chalf", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2", "qint8", "uint4", "bits16")


@pytest.mark.parametrize("name", [name for name in ABSENT if name not in NAMES])
def test_dtypes_that_there_are_not(name):
    with pytest.raises(AttributeError, match=f"module 'cygrad' has no attribute '{name}': this dtype is not supported; there are bool, "):
        getattr(cg, name)
    with pytest.raises(AttributeError, match="module 'cygrad' has no attribute 'uint9'$"):
        _ = cg.uint9


@ROWS
def test_the_default_dtype(row):
    dtype = getattr(cg, row.name)
    if not dtype.is_floating_point:
        with pytest.raises(TypeError, match="^only floating-point types are supported as the default type"):
            cg.set_default_dtype(dtype)
        assert cg.get_default_dtype() == cg.float32
        return
    try:
        cg.set_default_dtype(dtype)
        integers = cg.ones(2, dtype=cg.int32)
        for tensor in (cg.tensor(0.5), cg.tensor([1, 0.5]), cg.zeros(2), integers + 0.5, integers / 2, integers.exp()):
            assert tensor.dtype == dtype
        assert cg.tensor(1j).dtype == (integers * 1j).dtype == dtype.to_complex()
        assert "dtype" not in repr(cg.tensor(0.5)) and "dtype" in repr(cg.tensor(0.5, dtype=cg.float64)) or row.name == "float64"
    finally:
        cg.set_default_dtype(cg.float32)


def test_a_name_is_no_default_dtype():
    with pytest.raises(TypeError, match="^invalid dtype object: only floating-point types are supported as the default type"):
        cg.set_default_dtype("float32")


# ----- Unsigned integers -----
UNSIGNED = [row.name for row in DTYPES if row.kind == "u"]


def of(name, values):
    return cg.tensor(values, dtype=getattr(cg, name))


@pytest.mark.parametrize("row", [row for row in ELEMENTWISE.values() if not row.params and not row.masks], ids=lambda row: row.name)
@pytest.mark.cases("dtype", UNSIGNED)
def test_rows_of_unsigned_integers(row, dtype):
    """Rows of integers give the values of int64; rows of floats refuse them, with the loop and dtype that torch names."""
    function = getattr(cg, row.name, None)
    if function is None:
        return
    operands = [[3, 1, 2], [1, 2, 3], [1, 1, 1]][:len(row.operands)]
    tensors = [of(dtype, values) for values in operands]
    title = next(item.title for item in DTYPES if item.name == dtype)
    if "u" in row.kinds:
        result, expected = function(*tensors), function(*(of("int64", values) for values in operands))
        assert result.dtype == (cg.bool if row.result == "bool" else getattr(cg, dtype)) and result.tolist() == expected.tolist()
    elif "i" in row.kinds:
        with pytest.raises((NotImplementedError, RuntimeError), match=f"not implemented for '{title}'"):
            function(*tensors)


def test_unsigned_integers_hold_their_largest_numbers():
    for name, bits in zip(UNSIGNED, (16, 32, 64), strict=True):
        largest = of(name, [2**bits - 1, 0])
        assert largest.tolist() == [2**bits - 1, 0] and (largest == largest).all()
        assert largest.sort().values.tolist() == [0, 2**bits - 1]
        assert largest.double().tolist() == [float(2**bits - 1), 0.0] and largest.float().tolist() == [float(np.float32(2**bits - 1)), 0]
        assert largest.to(cg.complex128).real.tolist() == largest.double().tolist()
        assert (largest * 3).tolist() == [(2**bits - 1) * 3 % 2**bits, 0] and (largest & 5).tolist() == [5, 0]
        assert largest.bool().tolist() == [True, False] and largest.any() and not largest.all()
        assert (largest / 1).tolist() == largest.float().tolist() and repr(largest).endswith(f"dtype=cygrad.{name})")
        assert cg.from_numpy(largest.numpy()).dtype == largest.dtype and largest.numpy().dtype == name
        assert largest.to(cg.float16).tolist() == [np.inf, 0] and largest.to(cg.int64).tolist() == [2**bits - 1 if bits < 64 else -1, 0]


@pytest.mark.parametrize("name", UNSIGNED)
def test_negative_integers_are_written_modulo_the_size(name):
    """Written into elements, or into a new tensor, as into uint8."""
    top = 2 ** (8 * of(name, [0]).itemsize)
    x = of(name, [7, 7])
    x[0] = -1
    written = (x[:1], x.clone().fill_(-1), cg.full((1,), -1, dtype=x.dtype), x.masked_fill(cg.tensor(True), -1))
    assert all(tensor[0].item() == top - 1 for tensor in written)
    assert x.fill_(-top // 2 + 1).tolist() == [top // 2 + 1] * 2


@pytest.mark.parametrize("name", UNSIGNED)
@pytest.mark.parametrize("function, dims", [("addmm", (2, 2, 2)), ("baddbmm", (3, 3, 3)), ("addbmm", (2, 3, 3)), ("addmv", (1, 2, 1))])
def test_products_of_unsigned_integers_are_refused(function, dims, name):
    with pytest.raises(NotImplementedError, match="not implemented for 'UInt"):
        getattr(cg, function)(*(cg.ones([2] * ndim, dtype=getattr(cg, name)) for ndim in dims))


@pytest.mark.parametrize("name", UNSIGNED)
def test_other_operators_of_unsigned_integers(name):
    x = of(name, [3, 1, 2])
    for reduction, row in REDUCTIONS.items():
        if "u" in row.kinds:
            result, expected = getattr(x, reduction)(), getattr(x.long(), reduction)()
            assert result.dtype == expected.dtype and result == expected
        else:
            with pytest.raises((NotImplementedError, RuntimeError), match="not implemented for 'UInt|could not infer output dtype"):
                getattr(x, reduction)()
    for call in (lambda x: x.cumsum(0), lambda x: x.cumprod(0), lambda x: x.argsort(), lambda x: x.isnan()):
        assert call(x).dtype == call(x.long()).dtype and call(x).tolist() == call(x.long()).tolist()
    for call in (lambda x: x.sort().values, lambda x: x.unique(), lambda x: x[1:], lambda x: x[cg.tensor([0, 2])], lambda x: x.roll(1),
                 lambda x: cg.cat([x, x]), lambda x: cg.where(x == 1, x, x), lambda x: x.clone().fill_(7), lambda x: x * True,
                 lambda x: x * -1 * -1, lambda x: x.reshape(3, 1).expand(3, 2), lambda x: x.floor(), lambda x: x.mul(2, out=x.clone())):
        assert call(x).dtype == x.dtype and call(x).tolist() == call(x.long()).tolist()
    for call in (lambda: x @ x, lambda: cg.arange(3, dtype=x.dtype), lambda: x - 1, lambda: x < 2, lambda: x // 2, lambda: -x, lambda: x**2,
                 lambda: x.add_(x), lambda: x.clamp(0, 1)):
        with pytest.raises(NotImplementedError, match="not implemented for 'UInt"):
            call()
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
        cg.arange(5)[x]
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        cg.ones(2, dtype=x.dtype, requires_grad=True)
    assert of(name, [1]).add(0.5).tolist() == [1.5] and re.fullmatch(r"tensor\(\[3, 1, 2\], dtype=cygrad.uint\d\d\)", repr(x))
