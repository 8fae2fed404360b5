"""A result of an operator may be saved for its backward: changing it in between is an error, or makes no difference."""

import pytest

import cygrad as cg
import samples
from cygrad.autograd import grad


def places_of(results):
    return [result for result in results if not result.dtype.is_differentiable]


def calls():
    for name, number, call, shapes in samples.rule_cases():
        if places_of(samples.as_tuple(call(*samples.prepared(samples.rule_operands(shapes))))):
            yield pytest.param(call, shapes, id=f"{name}-{number}")


@pytest.mark.cases("call, shapes", calls)
def test_writes_to_returned_indices_cannot_change_a_gradient(call, shapes):
    """Indices of max, sort, cummax and their kin may be written to by the user."""
    tensors = samples.prepared(samples.rule_operands(shapes))

    def gradients(change):
        results = samples.as_tuple(call(*tensors))
        for places in places_of(results):
            change(places)
        values = [result for result in results if result.requires_grad]
        return [g.tolist() for g in grad([value.sum() for value in values], tensors)]

    expected = gradients(lambda places: None)
    try:
        result = gradients(lambda places: places.copy_(places.max() - places))
    except RuntimeError as error:
        assert "has been modified by an inplace operation" in str(error)
    else:
        assert result == expected


@pytest.mark.parametrize("name", ["max", "min", "sort", "cummax", "cummin"])
def test_indices_are_saved_as_in_torch(name):
    x = cg.tensor([[3.0, 1.0, 2.0]], requires_grad=True)
    values, places = getattr(x, name)(1)
    assert values.grad_fn._saved_indices.flatten().tolist() == places.flatten().tolist()
    places.zero_()
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        values.sum().backward()


@pytest.mark.parametrize("name", samples.DIFFERENTIABLE)
@pytest.mark.cases("call, arrays", samples.calls_of)
def test_a_result_may_be_changed_though_it_was_laid_out_as_a_view(name, call, arrays):
    """x.norm(), x.repeat(2), x.max(1).values may be changed in place, whether they have a history or get one by the change."""
    tensors = samples.prepared(arrays)
    if any(result.data_ptr() == tensor.data_ptr() or result._is_view() and result._base is tensor
           for result in samples.as_tuple(call(*tensors)) for tensor in tensors):
        pytest.skip("the result is a view of an operand")
    for tensors in (samples.prepared(arrays), [tensor.detach() for tensor in samples.prepared(arrays)]):
        for result in samples.as_tuple(call(*tensors)):
            if result.is_floating_point():
                factor = cg.full((), 2.0, dtype=result.dtype, requires_grad=True)
                expected = result.detach().sum()
                result.mul_(factor)
                assert grad(result.sum(), factor)[0] == expected


@pytest.mark.parametrize("quotient", [lambda a, b: a / b, lambda a, b: a.clone().div_(b), lambda a, b: 1 / b, cg.true_divide])
def test_a_quotient_may_be_changed(quotient):
    """A division saves its operands, as in torch."""
    a, b = (cg.tensor(numbers, requires_grad=True) for numbers in ([1.0, 2.0], [4.0, 5.0]))
    expected = grad(quotient(a, b).sum(), (a, b), allow_unused=True)
    result = quotient(a, b)
    result += 1
    for gradient, other in zip(grad(result.sum(), (a, b), allow_unused=True), expected, strict=True):
        assert gradient is other is None or gradient.tolist() == other.tolist()
