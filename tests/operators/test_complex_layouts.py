"""Rows of complex numbers in every layout, beside real operands, in place and with out=: the bits of dense memory."""

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad.ops import ELEMENTWISE
from samples import LAYOUTS, WRITABLE, array_of, function

DTYPES = ("complex64", "complex128")
ROWS = [row for row in ELEMENTWISE.values() if "c" in row.kinds]
SHAPES = ((), (0,), (1,), (7,), (3, 5), (2, 3, 4), (3, 200), (2100,))


def drawn(row, dtype, shape, real=None):
    """Return an array for each operand; the one at a place may be real."""
    stream = np.random.default_rng([len(shape), sum(shape)])
    parts = np.dtype(dtype).type(0).real.dtype
    return [np.asarray(stream.random(shape) < 0.5) if operand in row.masks else
            np.asarray(stream.uniform(0.3, 2, shape), parts) if place == real else
            np.asarray(stream.uniform(-2, 2, shape) + 1j * stream.uniform(-2, 2, shape), dtype)
            for place, operand in enumerate(row.operands)]


def dense(row, arrays):
    return array_of(function(row)(*(cg.tensor(np.array(array)) for array in arrays)))


def same(result, expected):
    return (result.dtype, result.shape, result.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


@pytest.mark.cases("shape", SHAPES)
@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.parametrize("row", samples.named(ROWS))
def test_layouts(row, dtype, shape):
    arrays = drawn(row, dtype, shape)
    for first in LAYOUTS:
        for other in (first, "contiguous"):
            tensors = [LAYOUTS[first if place == 0 else other](array) for place, array in enumerate(arrays)]
            assert same(array_of(function(row)(*tensors)), dense(row, map(array_of, tensors))), (first, other)


@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.parametrize("row", samples.named(row for row in ROWS if len(row.operands) > 1 and row.name != "isclose"))
def test_real_operands_are_complex_ones(row, dtype):
    for place in range(len(row.operands)):
        arrays = drawn(row, dtype, (3, 5), place)
        converted = [array if array.dtype.kind == "b" else array.astype(dtype) for array in arrays]
        assert same(dense(row, arrays), dense(row, converted))


@pytest.mark.cases("layout", WRITABLE)
@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.parametrize("row", samples.named(row for row in ROWS if row.name != "isclose"))
def test_targets(row, dtype, layout):
    arrays = drawn(row, dtype, (3, 200))
    expected = dense(row, arrays)
    out = LAYOUTS[layout](np.zeros_like(expected))
    assert function(row)(*map(cg.tensor, arrays), out=out) is out and same(array_of(out), expected)
    if row.in_place and row.method and row.result == "same":
        target = LAYOUTS[layout](arrays[0])
        others = [cg.tensor(array) for array in arrays[1:]]
        assert getattr(target, f"{row.name}_")(*others, **samples.parameters_of(row.name)) is target
        assert same(array_of(target), expected)
