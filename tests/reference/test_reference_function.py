"""The reference documents' sentences on Function and the methods of its context, where no other test asserts them."""

import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import Function

MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"


def function(forward, backward=lambda ctx, gradient: gradient):
    return type("Foo", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


# ----- The graph of functions -----


def test_every_operation_makes_a_function_object_of_its_own(x):
    y, z = x * 2, x * 2
    assert y.grad_fn is not None
    assert y.grad_fn is not z.grad_fn
    assert y.grad_fn is y.grad_fn
    assert Doubled.apply(x).grad_fn is not Doubled.apply(x).grad_fn


def test_edges_lead_from_each_result_to_its_inputs(x):
    y = x * 2
    z = Doubled.apply(y) + y.sin()
    left, right = (edge[0] for edge in z.grad_fn.next_functions)
    assert left.name() == "DoubledBackward"
    assert left.next_functions == ((y.grad_fn, 0),)
    assert right.next_functions == ((y.grad_fn, 0),)
    assert y.grad_fn.next_functions[0][0].variable is x


class Doubled(Function):
    """Twice the input."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def test_backward_calls_each_function_once_after_all_that_use_it_and_passes_gradients_on(x):
    calls = []

    def noted(name, factor):
        def backward(ctx, gradient):
            calls.append((name, gradient.tolist()))
            return gradient * factor

        return function(lambda ctx, x: x * factor, backward).apply

    first = noted("first", 2)(x)
    left, right = noted("left", 3)(first), noted("right", 5)(first)
    noted("last", 7)(left + right + first).sum().backward()
    assert [name for name, _ in calls] in (["last", "right", "left", "first"], ["last", "left", "right", "first"])
    assert dict(calls) == {"last": [1, 1], "left": [7, 7], "right": [7, 7], "first": [63, 63]}
    assert x.grad.tolist() == [126, 126]


def test_new_operations_are_subclasses_of_function(x):
    assert issubclass(Doubled, Function)
    assert Function is autograd.Function is autograd.function.Function
    y = Doubled.apply(x)
    assert y.tolist() == [2, 4]
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_forward_called_directly_records_nothing(x):
    class Constant(Function):
        @staticmethod
        def forward(ctx, x):
            return x.detach() * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    assert Constant.forward(None, x).grad_fn is None
    assert Constant.apply(x).grad_fn.name() == "ConstantBackward"


# ----- forward and backward -----


MISSING = {"forward": "must implement the forward", "backward": "must implement either the backward"}


@pytest.mark.parametrize("method", MISSING)
def test_forward_and_backward_must_be_overridden(x, method):
    methods = {"forward": staticmethod(lambda ctx, x: x * 2), "backward": staticmethod(lambda ctx, gradient: gradient)}
    del methods[method]
    incomplete = type("Incomplete", (Function,), methods)
    with pytest.raises(NotImplementedError, match=MISSING[method]):
        incomplete.apply(x).sum().backward()


def test_forward_takes_any_arguments_after_the_context(x):
    seen = []

    def forward(ctx, *arguments):
        seen.append(arguments[1:])
        return arguments[0] * 2

    function(forward, lambda ctx, gradient: (gradient * 2,) + (None,) * 5).apply(x, 3, "text", None, [x], {"key": 1}).sum().backward()
    assert seen == [(3, "text", None, [x], {"key": 1})]
    assert x.grad.tolist() == [2, 2]


def test_backward_takes_a_gradient_for_each_output_and_gives_one_for_each_input(x):
    z = cg.tensor([3.0, 4.0], requires_grad=True)
    seen = []

    def backward(ctx, *gradients):
        seen.append([gradient.tolist() for gradient in gradients])
        return gradients[0] * 10, gradients[1] * 100 + gradients[2]

    a, b, c = function(lambda ctx, x, z: (x * 10, z * 100, z.clone()), backward).apply(x, z)
    (a + b * 2 + c * 3).sum().backward()
    assert seen == [[[1, 1], [2, 2], [3, 3]]]
    assert x.grad.tolist() == [10, 10]
    assert z.grad.tolist() == [203, 203]


def test_saved_tensors_come_back_in_backward(x):
    seen = []

    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x, y, None)
        return y

    def backward(ctx, gradient):
        seen.extend(ctx.saved_tensors)
        return gradient * ctx.saved_tensors[1]

    y = function(forward, backward).apply(x)
    y.sum().backward()
    assert seen[0] is x
    assert seen[1].tolist() == y.tolist()
    assert seen[2] is None
    assert x.grad.tolist() == y.tolist()


@pytest.mark.parametrize("needs", [(True, False), (False, True), (True, True)])
def test_needs_input_grad_has_a_bool_for_each_input(needs):
    seen = []

    def backward(ctx, gradient):
        seen.append(ctx.needs_input_grad)
        return gradient, gradient

    a, b = (cg.ones(2, requires_grad=need) for need in needs)
    function(lambda ctx, a, b: a + b, backward).apply(a, b).sum().backward()
    assert seen == [needs]


# ----- mark_dirty -----


@pytest.mark.parametrize("when", ["before", "after"])
def test_mark_dirty_makes_the_changed_input_a_result(x, when):
    def forward(ctx, tensor):
        if when == "before":
            ctx.mark_dirty(tensor)
        tensor.mul_(3)
        if when == "after":
            ctx.mark_dirty(tensor)
        return tensor

    y = x * 2
    version = y._version
    result = function(forward, lambda ctx, gradient: gradient * 3).apply(y)
    assert result is y
    assert y.grad_fn.name() == "FooBackward"
    assert y._version > version
    y.sum().backward()
    assert y.tolist() == [6, 12]
    assert x.grad.tolist() == [6, 6]


def test_a_dirty_input_that_was_saved_before_is_found(x):
    def forward(ctx, tensor):
        ctx.mark_dirty(tensor)
        return tensor.mul_(3)

    y = x * 2
    root = y * y
    function(forward).apply(y)
    with pytest.raises(RuntimeError, match=MODIFIED):
        root.sum().backward()


def test_the_last_mark_dirty_counts(x):
    def forward(ctx, first, second):
        ctx.mark_dirty(first)
        ctx.mark_dirty(second)
        return second.mul_(3)

    first, second = x * 1, x * 2
    result = function(forward, lambda ctx, gradient: (None, gradient * 3)).apply(first, second)
    assert result is second
    assert first.grad_fn.name() == "MulBackward0"
    second.sum().backward()
    assert x.grad.tolist() == [6, 6]


def marking(mark, result):
    def forward(ctx, tensor):
        ctx.mark_dirty(mark(tensor))
        return result(tensor)

    return function(forward).apply


NOT_RETURNED = "Some elements marked as dirty during the forward method were not returned as output"
DIRTY_REFUSED = {
    "a leaf": (lambda x: marking(lambda t: t, lambda t: t)(x), "a leaf Variable that requires grad has been used in an in-place operation"),
    "a view of a leaf": (
        lambda x: marking(lambda t: t, lambda t: t)(x[0]),
        "a view of a leaf Variable that requires grad is being used in an in-place operation",
    ),
    "no input": (lambda x: marking(lambda t: cg.ones(2), lambda t: t)(x * 1), NOT_RETURNED),
    "no output": (lambda x: marking(lambda t: t, lambda t: t * 2)(x * 1), NOT_RETURNED),
    "no tensor": (lambda x: marking(lambda t: 3, lambda t: t)(x * 1), "mark_dirty can only accept variables, but argument"),
}


@pytest.mark.parametrize("name", DIRTY_REFUSED)
def test_mark_dirty_refuses(x, name):
    call, message = DIRTY_REFUSED[name]
    with pytest.raises((RuntimeError, TypeError), match=message):
        call(x)
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


# ----- mark_non_differentiable -----


class MaxAndIndex(Function):
    """The largest element and its place; the gradients that arrive are recorded."""

    gradients = []

    @staticmethod
    def forward(ctx, x):
        value, index = x.max(0)
        position = index.to(x.dtype)
        ctx.mark_non_differentiable(position)
        ctx.save_for_backward(index)
        ctx.size = len(x)
        return value, position

    @staticmethod
    def backward(ctx, of_value, of_position):
        MaxAndIndex.gradients.append(of_position)
        return (cg.arange(ctx.size) == ctx.saved_tensors[0]) * of_value


def test_mark_non_differentiable_gives_results_outside_the_graph_and_zeros_in_backward(x):
    value, position = MaxAndIndex.apply(x)
    assert value.requires_grad
    assert (position.requires_grad, position.grad_fn, position.item()) == (False, None, 1)
    MaxAndIndex.gradients.clear()
    (value * 5).backward()
    (zeros,) = MaxAndIndex.gradients
    assert zeros.shape == position.shape
    assert zeros.tolist() == 0
    assert x.grad.tolist() == [0, 5]


def test_the_last_mark_non_differentiable_counts(x):
    def forward(ctx, x):
        first, second = x * 2, x * 3
        ctx.mark_non_differentiable(first)
        ctx.mark_non_differentiable(second)
        return first, second

    assert [result.requires_grad for result in function(forward).apply(x)] == [True, False]


def test_mark_non_differentiable_takes_tensors_only(x):
    def forward(ctx, x):
        ctx.mark_non_differentiable(3)
        return x * 2

    with pytest.raises((RuntimeError, TypeError), match="mark_non_differentiable only accepts variable arguments, but got"):
        function(forward).apply(x)


# ----- save_for_backward -----

IN_PLACE = {
    "an input": lambda x, y: x.add_(1),
    "a result": lambda x, y: y.add_(1),
    "through a view": lambda x, y: x[0].add_(1),
    "through detach": lambda x, y: y.detach().add_(1),
    "element assigned": lambda x, y: x.__setitem__(0, 5),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_saved_tensors_are_checked_for_in_place_changes(x, name):
    def forward(ctx, tensor):
        y = tensor.exp()
        ctx.save_for_backward(tensor, y)
        return y

    tensor = x * 1
    y = function(forward, lambda ctx, gradient: gradient * ctx.saved_tensors[1]).apply(tensor)
    root = y * 1
    assert len(y.grad_fn.saved_tensors) == 2
    IN_PLACE[name](tensor, y)
    with pytest.raises(RuntimeError, match=MODIFIED):
        root.sum().backward()
    assert x.grad is None
