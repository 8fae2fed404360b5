"""Python's functions of elements: numbers that they get, conversions, and tensors that stay as they were after an error."""

import pytest

import cygrad as cg


def test_functions_get_numbers_of_python():
    numbers = []
    for dtype, kind in ((cg.bool, bool), (cg.int8, int), (cg.bfloat16, float), (cg.complex64, complex)):
        cg.ones(1, dtype=dtype).apply_(lambda number: numbers.append(number) or number)
        assert type(numbers[-1]) is kind
    assert cg.zeros(2, dtype=cg.int64).apply_(lambda number: 1.7).tolist() == [1, 1]
    assert cg.zeros(2, dtype=cg.bool).apply_(lambda number: 2).tolist() == [True, True]


def test_layouts():
    x = cg.arange(6.0).reshape(2, 3)
    view = x.T[::2]
    assert view.apply_(lambda number: -number) is view and x.tolist() == [[0, 1, -2], [-3, 4, -5]]
    assert view.map_(cg.tensor([10.0, 20.0]), lambda a, b: a + b) is view and x.tolist() == [[10, 1, 8], [17, 4, 15]]
    assert view.map2_(cg.ones(()), cg.tensor([[2.0], [3.0]]), lambda a, b, c: a * b - c) is view
    assert x.tolist() == [[8, 1, 5], [15, 4, 12]]
    assert cg.zeros(0).apply_(abs).shape == (0,) and cg.tensor(2.0).apply_(lambda a: a * a).item() == 4


def test_a_function_that_raises_changes_nothing():
    x = cg.ones(3)
    with pytest.raises(ZeroDivisionError):
        x.apply_(lambda number, seen=[]: seen.append(number) or 1 / (len(seen) - 3))
    with pytest.raises(TypeError, match="must be real number, not str: apply_"):
        x.apply_(lambda number: "a")
    assert x.tolist() == [1, 1, 1] and x._version == 0


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: cg.ones(2).apply_(3), TypeError, "'int' object is not callable"),
    (lambda: cg.ones(2).map_(3, max), TypeError, "argument 'other' .* must be Tensor, not int"),
    (lambda: cg.ones(2).map_(cg.ones(2).double(), max), TypeError, "map_: expected cygrad.FloatTensor for 'other'"),
    (lambda: cg.ones(2).map2_(cg.ones(2), 3, max), TypeError, r"map2_\(\): argument 'y' .* must be Tensor, not int"),
    (lambda: cg.ones(2).map2_(cg.ones(2).int(), cg.ones(2), max), TypeError, "map2_: expected cygrad.FloatTensor for argument 'x'"),
    (lambda: cg.ones(2).map2_(cg.ones(2), cg.ones(3), max), RuntimeError, "The expanded size of the tensor"),
    (lambda: cg.ones(2).map2_(cg.ones(2), cg.ones(2, requires_grad=True), max), RuntimeError, r"Can't call map2_\(\) on Variable"),
    (lambda: cg.ones(2).map_(cg.ones(3), max), RuntimeError, "The expanded size of the tensor"),
    (lambda: cg.ones(2, requires_grad=True).apply_(abs), RuntimeError, r"Can't call apply_\(\) on Variable that requires grad"),
    (lambda: cg.ones(2).map_(cg.ones(2, requires_grad=True), max), RuntimeError, r"Can't call map_\(\) on Variable that requires grad"),
    (lambda: cg.func.vmap(lambda x: x.apply_(abs))(cg.ones(2)), RuntimeError, "vmap"),
])
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
