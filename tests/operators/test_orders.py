"""The order of dims of results: elementwise operators keep their operands' order; results that torch makes row-major are row-major."""

import pytest

import calls
import cygrad as cg
import public
import samples
import torch_orders
from cygrad._core.exchange.aliases import storage_bytes

STRIDED = torch_orders.read()


@pytest.mark.cases("row", lambda: samples.named(samples.ELEMENTWISE.values()))
def test_elementwise_operators_keep_the_order_of_their_operands(row):
    transposed = samples.LAYOUTS["transposed"]
    operands = [transposed(array) for array in samples.operands(row, samples.dtypes_of(row)[-1], ((2, 3, 4),) * len(row.operands))]
    assert samples.function(row)(*operands).stride() == operands[0].stride() == (1, 2, 6)


@pytest.mark.cases("owner, name, arguments, keywords", lambda: calls.recorded_calls())
def test_a_result_of_transposed_operands_is_row_major_where_torchs_is(owner, name, arguments, keywords):
    positional, named = calls.transposed((arguments, keywords))
    memory = {storage_bytes(tensor).data_ptr() for tensor in calls.tensors_in((positional, named))}
    try:
        result = getattr(owner, name)(*positional, **named)
    except RuntimeError as refusal:     # view_as_complex
        pytest.skip(str(refusal))
    if public.declared_name(owner, name) not in STRIDED:
        fresh = [tensor for tensor in calls.tensors_in(result) if storage_bytes(tensor).data_ptr() not in memory]
        assert [tensor.stride() for tensor in fresh if not tensor.is_contiguous()] == []


def test_a_row_major_result_can_be_viewed():
    x = cg.arange(6.0).reshape(2, 3).T
    assert x.softmax(0).view(-1).shape == x.masked_fill(x > 2, 0).view(-1).shape == x.roll(1, 0).view(-1).shape == (6,)


def test_ravel_copies_unless_the_tensor_is_row_major():
    x = cg.zeros(2, 6)
    x[:, ::2].ravel().fill_(1)
    assert x.sum() == 0
    x.ravel().fill_(1)
    assert x.sum() == 12
