"""The reference documents' promise about in-place operations: a gradient that is not refused is right."""

import pytest

import cygrad as cg

MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"

# Programs of a leaf; some of them run to the end, some are refused: see below.
RIGHT = {
    "added to a result": lambda x: (x * x).add_(x),
    "multiplied": lambda x: (x * 3).mul_(x),
    "result saved after the change": lambda x: (x * 2).add_(1).exp(),
    "changed after a use that saves nothing": lambda x: [y := x * 2, y + 1, y.mul_(x)][1] + y,
    "exp_ of a sum": lambda x: (x + 1).exp_() * x,
    "sqrt_ after mul_": lambda x: (x * x).mul_(4).sqrt_(),
    "copied over": lambda x: (x * 0).copy_(x * x),
    "zeroed": lambda x: (x * 5).zero_() + x,
    "a buffer filled in a loop": lambda x: filled(x),
    "a row of a base": lambda x: change(x * 2, lambda y: y[0].mul_(x[1])),
    "a base with a live view": lambda x: [y := x * 2, y[1:], y.mul_(x)][1] * 3,
    "a view of a view": lambda x: change(x * 2, lambda y: y.view(2, 1)[0].add_(x[1])),
    "an element assigned": lambda x: change(x * 2, lambda y: y.__setitem__(0, x[1] * x[0])),
    "a chosen part": lambda x: change(x * x, lambda y: y.__setitem__(y > 2, 0.0)),
    "a constant that takes a history": lambda x: change(x.detach() * 0, lambda y: y[1:].add_(x[:1] * x[1:])),
    "accumulated": lambda x: accumulated(x),
    "swapped": lambda x: change(x * x, lambda y: y.copy_(y.flip(0))),
    "by a view of itself, used afterwards": lambda x: [y := x * 2, w := y[:], y.sub_(w, alpha=3)][1] * 5 + y,
    "a view by another view of it": lambda x: [y := x * 2, w := y[:], y.view(2).add_(w)][1] * 5 + y,
    "a part by another part": lambda x: [y := x * 2, w := y[:1], y[1:].add_(w)][0] + w * 3,
}
# torch refuses an operand that shares a part of its memory with the target; here a copy of it is read.
OVERLAPPING = {
    "multiplied by a part of itself": lambda x: change(x * 2, lambda y: y.mul_(y[1:])),
    "the part used afterwards": lambda x: [y := x * 2, w := y[1:], y.add_(w)][1] * 5,
    "moved by one": lambda x: [y := cg.cat([x, x * x]), w := y[:-1], y.__setitem__(slice(1, None), w)][0].sum() + (w * w).sum(),
    "moved by indices": lambda x: [y := cg.cat([x, x * x]), y.__setitem__(cg.tensor([1, 2]), y[:2])][0] * 3,
}
REFUSED = {
    "operand of a product": lambda x: [y := x * 2, y * y, y.add_(1)][1],
    "result of exp": lambda x: [y := x.exp(), y * 1, y.add_(1)][1],
    "through a view": lambda x: [y := x * 2, y * y, y[0].add_(1)][1],
    "through the base": lambda x: [y := x * 2, y[0] * y[1], y.zero_()][1],
    "through detach": lambda x: [y := x * 2, y.sin(), y.detach().zero_()][1],
    "by an assignment": lambda x: [y := x * 2, y**3, y.__setitem__(0, 1.0)][1],
    "a constant factor": lambda x: [n := cg.ones(2), x * n, n.add_(1)][1],
    "by out=": lambda x: [n := cg.ones(2), x * n, cg.add(n.detach(), 1, out=n)][1],
}


def change(tensor, in_place):
    in_place(tensor)
    return tensor


def filled(x):
    buffer = cg.zeros(3, 2, dtype=x.dtype)
    for row in range(3):
        buffer[row] = x * (row + 1) * x
    return buffer.sum(0)


def accumulated(x):
    total = cg.zeros(2, dtype=x.dtype)
    for power in range(1, 4):
        total += x**power
    return total


def slopes(program, point, step=1e-6):
    """Return the gradient of the sum of a program's result, by central differences."""

    def value(number, shift):
        moved = cg.tensor(point, dtype=cg.float64)
        moved[number] += shift
        return program(moved).sum().item()

    return [(value(number, step) - value(number, -step)) / (2 * step) for number in range(len(point))]


@pytest.mark.cases("name", RIGHT)
def test_an_in_place_program_that_is_not_refused_has_the_right_gradient(name):
    point = [1.5, 2.25]
    x = cg.tensor(point, dtype=cg.float64, requires_grad=True)
    RIGHT[name](x).sum().backward()
    assert x.grad.tolist() == pytest.approx(slopes(RIGHT[name], point), rel=1e-6)


@pytest.mark.parametrize("name", OVERLAPPING)
def test_a_change_by_memory_that_overlaps_is_right_or_refused(name):
    point = [1.5, 2.25]
    x = cg.tensor(point, dtype=cg.float64, requires_grad=True)
    try:
        OVERLAPPING[name](x).sum().backward()
    except RuntimeError as error:
        assert "unsupported operation: some elements of the input tensor and the written-to tensor" in str(error)
    else:
        assert x.grad.tolist() == pytest.approx(slopes(OVERLAPPING[name], point), rel=1e-6)


BY_THE_ORIGINAL = {
    "add_": (lambda detached, original: detached.add_(original), [1, 1]),
    "mul_": (lambda detached, original: detached.mul_(original), [1.5, 2.25]),
    "copy_": (lambda detached, original: detached.copy_(original), [1, 1]),
    "assignment": (lambda detached, original: detached.__setitem__(0, original[0]), [1, 0]),
}


@pytest.mark.cases("name", BY_THE_ORIGINAL)
@pytest.mark.cases("make", [lambda x: x, lambda x: x * 1, lambda x: x.view(2)], ids=["leaf", "result", "view"])
def test_a_detached_tensor_changed_by_the_original_takes_its_history(make, name):
    change, expected = BY_THE_ORIGINAL[name]
    x = cg.tensor([1.5, 2.25], requires_grad=True)
    original = make(x)
    detached = original.detach()
    change(detached, original)
    detached.sum().backward()
    assert x.grad.tolist() == expected


def test_a_view_made_without_grad_is_a_constant_operand_of_a_change_of_its_base():
    x = cg.tensor([1.5, 2.25], requires_grad=True)
    y = x * 1
    with cg.no_grad():
        view = y[:]
    y.add_(view)
    y.sum().backward()
    assert y.tolist() == [3, 4.5]
    assert x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_of_a_saved_tensor_is_an_error_once_backward_starts(name):
    x = cg.tensor([1.5, 2.25], requires_grad=True)
    root = REFUSED[name](x).sum()
    with pytest.raises(RuntimeError, match=MODIFIED):
        root.backward()
    assert x.grad is None


def test_tensors_keep_track_of_in_place_operations():
    tensor = cg.ones(2)
    assert tensor._version == 0
    for count, in_place in enumerate([lambda: tensor.add_(1), lambda: tensor[0].zero_(), lambda: tensor.detach().mul_(2)], 1):
        in_place()
        assert tensor._version == count
