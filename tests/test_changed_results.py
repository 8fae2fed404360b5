"""What an operator gives back may be what its backward needs: changed in between it is an error, or makes no difference."""

import pytest

import cygrad as cg
import samples
from cygrad.autograd import grad


def places_of(results):
    return [result for result in results if not result.is_floating_point()]


def calls():
    for name, number, call, shapes in samples.rule_cases():
        if places_of(samples.as_tuple(call(*samples.prepared(samples.rule_operands(shapes))))):
            yield pytest.param(call, shapes, id=f"{name}-{number}")


@pytest.mark.parametrize(("call", "shapes"), [*calls()])
def test_places_that_were_given_back_cannot_change_a_gradient(call, shapes):
    """Indices of max, sort, cummax and their kin are the user's to write to."""
    tensors = samples.prepared(samples.rule_operands(shapes))

    def gradients(change):
        results = samples.as_tuple(call(*tensors))
        for places in places_of(results):
            change(places)
        values = [result for result in results if result.requires_grad]
        return [g.tolist() for g in grad([value.sum() for value in values], tensors)]

    expected = gradients(lambda places: None)
    try:
        found = gradients(lambda places: places.copy_(places.max() - places))
    except RuntimeError as error:
        assert "has been modified by an inplace operation" in str(error)
    else:
        assert found == expected


@pytest.mark.parametrize("name", ["max", "min", "sort", "cummax", "cummin"])
def test_places_are_saved_as_torch_does(name):
    x = cg.tensor([[3.0, 1.0, 2.0]], requires_grad=True)
    values, places = getattr(x, name)(1)
    assert values.grad_fn._saved_indices.flatten().tolist() == places.flatten().tolist()
    places.zero_()
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        values.sum().backward()
