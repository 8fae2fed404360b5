"""The ways of the reduction driver: each meets every row of the table in every dtype, at borders of its strips, groups and blocks.

Values are compared with NumPy's; and an output has the same bits wherever it stands among the others, and for every number of threads.
"""

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad.ops import REDUCTIONS
from samples import DTYPES, KINDS, array_of, same_bits

# The shape, the part that is reduced, the dims, and the dims of the base and of the result along which outputs change places.
WAYS = {
    "short rows": ((37, 40), None, 1, 0, 0),
    "rows": ((70, 301), None, 1, 0, 0),
    "long rows": ((5, 1501), None, 1, 0, 0),
    "rows in blocks": ((3, 9001), None, 1, 0, 0),
    "columns": ((700, 3), None, 1, 0, 0),
    "columns of one": ((530, 2), np.s_[:, 1:], 1, 0, 0),
    "columns of steps": ((70, 18), np.s_[:, ::2], 1, 0, 0),
    "columns of several dims": ((5, 3, 4, 7), np.s_[:, :, ::2, :6:2], (1, 3), 0, 0),
    "groups": ((90, 5, 4), None, 1, 0, 0),
    "groups in strips": ((300, 2, 3), None, 1, 0, 0),
    "across, in strips": ((9, 600), None, 0, 1, 0),
    "across, in blocks": ((1_200, 33), np.s_[::2], 0, 1, 0),
    "across several dims": ((4, 7, 50), np.s_[:, :6], (0, 1), 2, 0),
    "side by side": ((2, 300, 3), None, 1, 0, 0),
    "side by side, in blocks": ((20_000, 3), None, 0, 1, 0),
    "gathered": ((6, 300), np.s_[:, ::2], 1, 0, 0),
    "gathered, in blocks": ((3, 12_001), np.s_[:, ::2], 1, 0, 0),
    "gathered from several dims": ((3, 9, 5, 20), np.s_[:, :, :, :19], (1, 3), 2, 1),
    "nothing, across": ((4, 0, 3), None, 1, 0, 0),
    "nothing, dense": ((4, 0), None, 1, 0, 0),
}


def reduced(name, array, part, dims):
    x = cg.tensor(array)
    return getattr(cg, name)(x if part is None else x[part], dims)


def expected(row, array, dims):
    """Return NumPy's result, of floats in extended precision."""
    wide = {"dtype": np.longdouble} if array.dtype.kind == "f" else {"dtype": np.int64} if row.result == "widest" else {}
    if "dtype" in wide and array.dtype.kind == "f":
        array, wide = array.astype(np.longdouble), {}
    return samples.numpy_function(row)(array, axis=dims, **wide)


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.cases(("shape", "part", "dims", "axis", "result_axis"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("row", REDUCTIONS.values(), ids=REDUCTIONS)
def test_every_way_of_reducing(row, shape, part, dims, axis, result_axis, dtype):
    if KINDS[dtype] not in row.kinds or 0 in shape and not row.empty:
        return
    array = samples.draw(dtype, shape, 7, (0.9, 1.1) if row.name == "prod" else row.domain)
    result = array_of(reduced(row.name, array, part, dims))
    with np.errstate(all="ignore"):
        values = array if part is None else array[part]
        true = expected(row, values, dims)
        size = np.abs(values).sum(dims, dtype=np.longdouble) if row.name != "prod" else np.abs(true) * values.size
        size = size / (max(values.size // max(result.size, 1), 1) if row.name == "mean" else 1)
    if result.dtype.kind != "f" or row.name in ("amax", "amin"):
        assert np.array_equal(result, true.astype(result.dtype))
    elif values.size:
        assert (np.abs(result - true) <= np.spacing(np.abs(result)) + 8 * np.finfo(dtype).eps * size).all()
    else:
        assert np.array_equal(result, true, equal_nan=True)
    moved = array_of(reduced(row.name, np.roll(array, 1, axis), part, dims))
    assert same_bits(moved, np.roll(result, 1, result_axis))


# Shapes of which threads share the work.
LARGE = {
    "rows": ((9_001, 60), None, 1),
    "columns": ((180_001, 3), None, 1),
    "groups": ((30_001, 6, 3), None, 1),
    "across": ((500, 1_100), None, 0),
    "side by side": ((3, 90_001, 2), None, 1),
    "gathered": ((700, 1_600), np.s_[:, ::2], 1),
}


@pytest.mark.cases(("shape", "part", "dims"), LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("name", ["sum", "amax"])
def test_threads_reduce_to_the_same_bits(name, shape, part, dims):
    array = samples.draw("float32", shape, 3)
    expected = None
    for threads in (1, 2, 3):
        with samples.threads(threads):
            result = array_of(reduced(name, array, part, dims))
        expected = result if expected is None else expected
        assert same_bits(result, expected)


def test_a_row_by_itself_has_the_bits_of_a_row_among_others():
    """Columns keep the order of elements that short rows have, and gathered rows the order of dense ones."""
    for dtype in ("float32", "float64"):
        for n in (1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 130, 1023, 1024, 1030, 4096):
            array = samples.draw(dtype, (33, 2 * n), n)
            alone = [cg.tensor(row[::2].copy()).sum().item() for row in array]
            assert cg.tensor(array)[:, ::2].sum(1).tolist() == alone
            assert cg.tensor(array[:, ::2].copy()).sum(1).tolist() == alone
