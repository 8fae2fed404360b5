"""Reductions of segments: against loops, empty segments, initial values, errors."""

import math

import numpy as np
import pytest

import cygrad as cg

REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "amax": np.max, "min": np.min, "amin": np.min, "prod": np.prod}
EMPTY = {"sum": 0, "mean": math.nan, "max": -math.inf, "amax": -math.inf, "min": math.inf, "amin": math.inf, "prod": 1}


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_segments_are_reduced(name, dtype):
    data, lengths = np.random.default_rng(0).integers(-3, 4, (7, 2)).astype(float), [2, 0, 4, 1]
    ends = np.cumsum(lengths)
    expected = [REDUCE[name](data[end - size:end], 0) if size else np.full(2, EMPTY[name]) for size, end in zip(lengths, ends, strict=True)]
    x = cg.tensor(data).to(getattr(cg, dtype))
    result = cg.segment_reduce(x, name, lengths=cg.tensor(lengths))
    assert result.dtype == x.dtype
    np.testing.assert_allclose(result.numpy().astype(float), expected, rtol=1e-3 if dtype == "float16" else 1e-6)
    offsets = cg.tensor([0, *ends.tolist()], dtype=cg.int32)
    np.testing.assert_array_equal(cg.segment_reduce(x, name, offsets=offsets).numpy(), result.numpy())


def test_initial_values_count_in_the_reduction_but_not_among_the_elements():
    x, lengths = cg.arange(6.0), cg.tensor([2, 0, 4])
    assert cg.segment_reduce(x, "max", lengths=lengths, initial=3).tolist() == [3, 3, 5]
    assert cg.segment_reduce(x, "mean", lengths=lengths, initial=3).tolist() == [2, 3, 4.25]
    assert cg.segment_reduce(x, "sum", lengths=lengths, initial=1).tolist() == [2, 1, 15]


def test_segments_of_their_own_for_each_row():
    x = cg.arange(6.0).reshape(2, 3)
    assert cg.segment_reduce(x, "sum", lengths=cg.tensor([[1, 2], [3, 0]]), axis=1).tolist() == [[0, 3], [12, 0]]
    assert cg.segment_reduce(x[0], "sum", lengths=cg.tensor([1, 1]), unsafe=True).tolist() == [0, 1]
    assert cg.segment_reduce(cg.ones(0), "sum", lengths=cg.tensor([0])).tolist() == [0]
    assert math.isnan(cg.segment_reduce(cg.tensor([1.0, math.nan]), "max", lengths=cg.tensor([2])).item())


ERRORS = [({}, "Either lengths or offsets must be defined"), ({"lengths": cg.tensor([2, 3])}, "to sum to data.size"),
          ({"lengths": cg.tensor([2, -3, 7])}, "lengths contains negative value!"), ({"offsets": cg.tensor([1, 6])}, "to begin with 0"),
          ({"offsets": cg.tensor([0, 7])}, "to sum to data.size"),
          ({"lengths": cg.tensor([[2, 4]])}, r"data.dim\(\) >= lengths_value.dim\(\)"),
          ({"lengths": cg.tensor([6.0])}, "not implemented for 'float32'"), ({"indices": cg.tensor([0])}, "indices based reduction")]


@pytest.mark.parametrize(("keywords", "message"), ERRORS, ids=str)
def test_segments_that_do_not_fit(keywords, message):
    with pytest.raises(RuntimeError, match=message):
        cg.segment_reduce(cg.arange(6.0), "sum", **keywords)


def test_other_refusals():
    lengths = cg.tensor([1, 1])
    with pytest.raises(RuntimeError, match="reduce argument must be either sum, prod, mean, amax or amin, got median"):
        cg.segment_reduce(cg.ones(2), "median", lengths=lengths)
    with pytest.raises(NotImplementedError, match="_segment_reduce_cpu"):
        cg.segment_reduce(cg.ones(2, dtype=cg.int64), "sum", lengths=lengths)
    with pytest.raises(RuntimeError, match="Expected axis to be the last dimension of lengths but got 1"):
        cg.segment_reduce(cg.ones(2, 2), "sum", lengths=lengths, axis=1)
