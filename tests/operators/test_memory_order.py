"""The order of dims in memory, addresses, and tensors of strides: torch's answers."""

import itertools

import pytest

import cygrad as cg


def test_orders_of_permuted_tensors():
    for order in itertools.permutations(range(4)):
        inverse = [order.index(dim) for dim in range(4)]
        assert cg.zeros(2, 3, 4, 5).permute(inverse).dim_order(ambiguity_check=True) == order


@pytest.mark.parametrize(("x", "expected"), [
    (cg.zeros(2, 3, 4, 5).permute(0, 3, 1, 2), (0, 2, 3, 1)), (cg.zeros(2, 1).expand(2, 3), (0, 1)),
    (cg.zeros(1, 4, 1).permute(2, 1, 0), (0, 1, 2)),
    (cg.tensor(1), ()), (cg.zeros(0, 3), (0, 1)), (cg.zeros(5)[::2], (0,)),
])
def test_orders(x, expected):
    assert x.dim_order() == expected


def test_ambiguous_orders():
    formats = [cg.contiguous_format, cg.channels_last]
    x = cg.zeros(1, 2, 3, 4)
    assert x.dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    assert cg.zeros(2, 3, 4, 5).permute(0, 3, 1, 2).dim_order(ambiguity_check=formats) == (0, 2, 3, 1)
    for ambiguous, check in ((x, True), (cg.zeros(2, 3, 1, 1), formats), (cg.zeros(2, 1).expand(2, 3), True)):
        with pytest.raises(RuntimeError, match="The tensor does not have unique dim order"):
            ambiguous.dim_order(ambiguity_check=check)
    for check in (3, [3], "no", None):
        with pytest.raises(TypeError, match="ambiguity_check argument must be a bool or a list of memory formats"):
            x.dim_order(ambiguity_check=check)


def test_addresses():
    x = cg.zeros(4)
    assert x[1:].const_data_ptr() == x.data_ptr() + 4


def test_new_tensors_of_strides():
    x = cg.zeros(2, dtype=cg.int16)
    y = x.new_empty_strided((2, 3), (1, 2))
    assert (y.stride(), y.shape, y.dtype) == ((1, 2), (2, 3), cg.int16)
    assert x.new_empty_strided((2,), (0,), dtype=cg.float64, requires_grad=False).dtype == cg.float64
    assert cg.func.vmap(lambda row: row.new_empty_strided((2, 3), (1, 2)).fill_(1))(cg.zeros(5, 2)).shape == (5, 2, 3)
    with pytest.raises(RuntimeError, match="length of strides and shape"):
        x.new_empty_strided((2, 3), (1,))
