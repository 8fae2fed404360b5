"""The conversion of a number to an element: one for all functions that write numbers; and the dtypes of data that names its own."""

import array
import inspect
import math
import subprocess
import sys

import numpy as np
import pytest

import cygrad as cg
from cygrad.ops.elementwise import ELEMENTWISE
from samples import DTYPES, KINDS
from test_promotion import name

NUMBERS = [
    True, False, 0, 1, 2, -1, 127, 128, 255, 256, -128, -129, -255, -256, 2**31, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64,
    0.5, -0.5, 0.0, -0.0, 1.5, 127.5, 255.9, 256.0, -1.0, -128.5, 1e10, 2.0**63, 1e300, math.inf, -math.inf, math.nan,
    np.float32(0.5), np.int64(3), np.int8(-1), np.bool_(True), np.float64(0.5),
]  # fmt: skip
ALL, FIRST, ONE = slice(None), cg.tensor([0]), cg.tensor([True])


def written(key, number, zeros):
    zeros[key] = number
    return zeros


WRITERS = {
    "fill_": lambda number, zeros: zeros.fill_(number),
    "fill": lambda number, zeros: cg.fill(zeros, number),
    "copy_": lambda number, zeros: zeros.copy_(number),
    "everywhere": lambda number, zeros: written(..., number, zeros),
    "at a slice": lambda number, zeros: written(ALL, number, zeros),
    "at a place": lambda number, zeros: written(0, number, zeros),
    "at an index": lambda number, zeros: written(FIRST, number, zeros),
    "at a mask": lambda number, zeros: written(ONE, number, zeros),
    "full": lambda number, zeros: cg.full((1,), number, dtype=zeros.dtype),
    "full out": lambda number, zeros: cg.full((1,), number, out=zeros),
    "full_like": lambda number, zeros: cg.full_like(zeros, number),
    "new_full": lambda number, zeros: zeros.new_full((1,), number),
    "masked_fill": lambda number, zeros: zeros.masked_fill(ONE, number),
    "masked_fill_": lambda number, zeros: zeros.masked_fill_(ONE, number),
    "index_fill": lambda number, zeros: zeros.index_fill(0, FIRST, number),
    "index_fill_": lambda number, zeros: zeros.index_fill_(0, FIRST, number),
    "fill_diagonal_": lambda number, zeros: zeros.reshape(1, 1).fill_diagonal_(number).reshape(1),
    "constant_pad_nd": lambda number, zeros: cg.constant_pad_nd(zeros[:0], (1, 0), number),
    "scatter": lambda number, zeros: zeros.scatter(0, FIRST, number),
    "scatter_": lambda number, zeros: zeros.scatter_(0, FIRST, value=number),
}
READERS = {     # a finite number may become infinite in float32: it is read, not written
    "tensor": lambda number, zeros: cg.tensor(number, dtype=zeros.dtype),
    "as_tensor": lambda number, zeros: cg.as_tensor(number, dtype=zeros.dtype),
    "a list": lambda number, zeros: cg.tensor([number], dtype=zeros.dtype),
    "new_tensor": lambda number, zeros: zeros.new_tensor([number]),
}


def element(number, dtype):
    """Return the element that a number becomes, or None if the dtype does not hold it; negative integers wrap in uint8."""
    number = number.item() if isinstance(number, np.generic) else number
    if dtype == "bool":
        return number != 0
    if KINDS[dtype] == "f":
        return float(np.array(float(number)).astype(dtype))
    limits = np.iinfo(dtype)
    if isinstance(number, int) and limits.min == 0 and -limits.max <= number < 0:
        return number + limits.max + 1
    return math.trunc(number) if limits.min <= number <= limits.max else None


def same(a, b):
    return a == b and math.copysign(1, a) == math.copysign(1, b) or a != a and b != b


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.parametrize("writer", [*WRITERS, *READERS])
def test_writers(writer, dtype):
    for number in NUMBERS:
        expected = element(number, dtype)
        if writer in WRITERS and dtype == "float32" and math.isinf(expected) and not math.isinf(number):
            expected = None
        zeros = cg.zeros(1, dtype=getattr(cg, dtype))
        call = WRITERS.get(writer) or READERS[writer]
        if expected is None:
            with pytest.raises((RuntimeError, OverflowError), match="without overflow|too big|too large"):
                call(number, zeros)
            assert not zeros.any(), number
        else:
            result = call(number, zeros)
            assert name(result) == dtype
            assert same(result.reshape(-1).tolist()[0], expected), number


def test_every_writer_is_tested():
    """Each function with a parameter for a number to write is in the table above; parameters of elementwise rows are tested below."""
    writers = {name for name in dir(cg) if inspect.isfunction(getattr(cg, name)) or hasattr(getattr(cg, name), "__wrapped__")}
    writers = {name for name in writers if not name.startswith("_") and name.rstrip("_") not in ELEMENTWISE
               and {"value", "fill_value"} & {*inspect.signature(getattr(cg, name)).parameters}}  # fmt: skip
    writers -= {"nonzero_static"}       # its number is an index, and an integer
    assert {writer.rstrip("_") for writer in writers} <= {writer.split()[0].rstrip("_") for writer in WRITERS}, "give calls in WRITERS"


@pytest.mark.parametrize(("dtype", "end"), [("uint8", 256), ("int8", 128), ("int16", 2**15)])
def test_ranges_do_not_wrap(dtype, end):
    kind = getattr(cg, dtype)
    assert cg.arange(end - 2, end, dtype=kind).tolist() == [end - 2, end - 1]
    for call in (lambda: cg.arange(end - 2, end + 1, dtype=kind), lambda: cg.linspace(0, end, 3, dtype=kind)):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {dtype}_t without overflow"):
            call()


def test_parameters_do_not_wrap():
    for call in (lambda t: cg.threshold(t, 300, 0), lambda t: cg.add(t, t, alpha=300)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            call(cg.ones(2, dtype=cg.uint8))


# ----- Data that names its dtype -----
class Arrayed:
    """A column of a data frame: an object with `__array__`."""

    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        return self.data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, place):
        return self.data[place]


class Interfaced:
    def __init__(self, data):
        self.data, self.__array_interface__ = data, data.__array_interface__


class Exchanged:
    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **keywords):
        return self.data.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


FORMS = {
    "__array__": Arrayed, "__array_interface__": Interfaced, "__dlpack__": Exchanged, "buffer": memoryview,
    "array.array": lambda data: array.array(data.dtype.char, data.tolist()), "scalar": lambda data: data[0],
    "array": lambda data: data, "0-d array": lambda data: data[:1].reshape(()),
}  # fmt: skip


@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("convert", [cg.tensor, cg.as_tensor, cg.asarray, lambda data: cg.tensor([data, data])],
                         ids=["tensor", "as_tensor", "asarray", "list"])  # fmt: skip
def test_data_keeps_its_dtype(convert, form, dtype):
    if form == "array.array" and dtype == "bool":
        return
    data = np.array([1, 0], dtype) if KINDS[dtype] != "f" else np.array([0.1, 0], dtype)
    result = convert(FORMS[form](data))
    assert name(result) == dtype
    assert result.reshape(-1).tolist()[0] == data[0]


MIXED = [
    ([np.float32(0.5), 1], "float32"),
    ([1, np.float32(0.5)], "float32"),
    ([1.5, np.float64(0.1)], "float64"),
    ([np.int32(1), 1], "int64"),
    ([np.int8(1), np.uint8(1)], "int16"),
    ([np.bool_(True), True], "bool"),
    ([[True], [np.array(1, np.int16)]], "int16"),
    ([cg.tensor(0.1, dtype=cg.float64), 1.0], "float64"),
    ([cg.tensor(1, dtype=cg.int8), cg.tensor(1, dtype=cg.int8)], "int8"),
    ([True, 1], "int64"),
    ([1, 0.5], "float32"),
    ([[], []], "float32"),
]


@pytest.mark.cases(("data", "dtype"), MIXED, ids=[str(number) for number in range(len(MIXED))])
def test_mixed_sequences_are_promoted(data, dtype):
    assert name(cg.tensor(data)) == dtype


# ----- Numbers taken from tensors -----
SCALARS = {
    "float": ("float(t)", 1), "complex": ("complex(t)", 1), "math": ("math.sin(t)", 1), "array": ("numpy.zeros(2)[0] = t", 1),
    "list": ("cg.tensor([t, t])", 1), "nested": ("cg.as_tensor([[t], [t]])", 1), "result": ("float(t * 2)", 1),
    "int": ("int(t)", 0), "bool": ("bool(t)", 0), "item": ("t.item()", 0), "format": ("f'{t} {t:.2f}'", 0),
    "detached": ("float(t.detach())", 0), "repr": ("repr(t)", 0), "write": ("cg.zeros(2)[0] = t", 0),
    "no_grad": ("with cg.no_grad(): float(t)", 0),
}  # fmt: skip
SCRIPT = """
import math, os, sys, warnings, numpy, cygrad as cg
t = cg.tensor(1.5, requires_grad=True)
for name, (line, count) in CASES.items():
    if os.fork():
        os._exit(1) if os.wait()[1] else None
        continue
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            exec(compile(line, "the user's file", "exec"))
    right = len(caught) == count and all(
        warning.category is UserWarning and warning.filename == "the user's file"
        and str(warning.message).startswith("Converting a tensor with requires_grad=True to a scalar") for warning in caught)
    print(name, [str(warning) for warning in caught], flush=True)
    os._exit(not right)
"""


def test_a_number_from_a_recorded_tensor_warns_once():
    """As in torch, which does not warn in int, bool and item."""
    done = subprocess.run([sys.executable, "-c", f"CASES = {SCALARS!r}\n{SCRIPT}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
