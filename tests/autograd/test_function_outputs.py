"""User functions whose outputs are inputs, views, or inputs changed in place."""

import pytest

import cygrad as cg
from cygrad import autograd


class Double(autograd.Function):
    """Double the input in place."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Same(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


class Halves(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[:2], x[2:]

    @staticmethod
    def backward(ctx, first, second):
        return cg.cat([first, second])


class Viewed(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(2, 2)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.view(4)


@pytest.fixture
def four():
    return cg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)


def test_a_dirty_input_takes_on_the_history(four):
    y = four * 1
    before = y.grad_fn
    out = Double.apply(y)
    assert out is y
    assert y.grad_fn.name() == "DoubleBackward"
    assert y.grad_fn.next_functions == ((before, 0),)
    assert y._version == 2  # the change, and its mark
    y.sum().backward()
    assert four.grad.tolist() == [2, 2, 2, 2]


def test_a_dirty_view_rebases_its_base(four):
    y = four * 1
    view = y[:2]
    assert Double.apply(view) is view
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert y.grad_fn.name() == "CopySlices"
    y.sum().backward()
    assert four.grad.tolist() == [2, 2, 1, 1]


def test_a_dirty_input_and_a_second_output(four):
    class Scaled(autograd.Function):
        @staticmethod
        def forward(ctx, w, x):
            ctx.mark_dirty(x)
            ctx.save_for_backward(w, x.clone())
            return x.mul_(w), w * 1

        @staticmethod
        def backward(ctx, gradient, other):
            w, x = ctx.saved_tensors
            return gradient * x + other, gradient * w

    w = cg.tensor([2.0, 3.0, 4.0, 5.0], requires_grad=True)
    y = four * 1
    out, _ = Scaled.apply(w, y)
    assert out is y
    y.sum().backward()
    assert four.grad.tolist() == [2, 3, 4, 5]
    assert w.grad.tolist() == [1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="modifies inplace an input that is a view of another Tensor, your Function cannot return more"):
        Scaled.apply(w, (four * 1)[:])


def test_a_dirty_view_that_is_not_the_first_input(four):
    class Scaled(autograd.Function):
        @staticmethod
        def forward(ctx, w, x):
            ctx.mark_dirty(x)
            ctx.save_for_backward(w, x.clone())
            return x.mul_(w)

        @staticmethod
        def backward(ctx, gradient):
            w, x = ctx.saved_tensors
            return gradient * x, gradient * w

    w = cg.tensor([2.0, 3.0], requires_grad=True)
    y = four * 1
    Scaled.apply(w, y[1:3])
    y.sum().backward()
    assert four.grad.tolist() == [1, 2, 3, 1]
    assert w.grad.tolist() == [2, 3]


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: Double.apply(x), "a leaf Variable that requires grad has been used in an in-place operation."),
    (lambda x: Double.apply(x[:2]), "a view of a leaf Variable that requires grad is being used in an in-place operation."),
    (lambda x: Double.apply((x * 1).split(2)[0]), "Output 0 of Split is a view and is being modified inplace."),
    (lambda x: Viewed.apply(x * 1).mul_(2), "Output 0 of Viewed is a view and is being modified inplace. This view was created inside a "
     "custom Function (or because an input was returned as-is)"),
    (lambda x: Same.apply(x * 1).mul_(2), "Output 0 of Same is a view and is being modified inplace. This view was created inside"),
    (lambda x: Halves.apply(x * 1)[0].mul_(2), "Output 0 of Halves is a view and is being modified inplace. This view is the output of a "
     "function that returns multiple views"),
])
def test_in_place_changes_that_are_refused(four, call, message):
    with pytest.raises(RuntimeError) as error:
        call(four)
    assert str(error.value).startswith(message)


def test_a_dirty_input_has_to_be_returned(four):
    class Lost(Double):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2).clone()

    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned as output"):
        Lost.apply(four * 1)
    with pytest.raises(TypeError, match="mark_dirty can only accept variables, but argument 0 is of type int"):
        autograd.function.FunctionCtx.mark_dirty(None, 3)


def test_marking_a_tensor_that_is_no_input_warns(four):
    class Needless(Double):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        y = Needless.apply(four)
    y.sum().backward()
    assert four.grad.tolist() == [2, 2, 2, 2]


def test_an_input_as_output_comes_back_as_a_view(four):
    y = four * 1
    out = Same.apply(y)
    assert out is not y
    assert (out._is_view(), out._base is y) == (True, True)
    assert y.grad_fn.name() == "MulBackward0"
    out.sum().backward()
    assert four.grad.tolist() == [3, 3, 3, 3]
    with cg.no_grad():
        assert not Same.apply(four).requires_grad
        plain = cg.ones(2)
        assert Same.apply(plain) is plain


def test_views_as_outputs(four):
    first, second = Halves.apply(four * 1)
    (first * 2 + second * 5).sum().backward()
    assert four.grad.tolist() == [2, 2, 5, 5]


def test_a_dirty_input_without_gradient():
    x = cg.ones(2)
    assert Double.apply(x) is x
    assert (x.tolist(), x._version, x.requires_grad) == ([2, 2], 2, False)


def test_keywords_with_setup_context(four):
    class Scale(autograd.Function):
        @staticmethod
        def forward(x, factor=2.0):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.factor, None

    Scale.apply(four).sum().backward()
    assert four.grad.tolist() == [2, 2, 2, 2]
    Scale.apply(four, factor=3.0).sum().backward()
    assert four.grad.tolist() == [5, 5, 5, 5]


def test_keywords_stand_for_arguments_at_their_positions(four):
    class Scale(autograd.Function):
        @staticmethod
        def forward(ctx, x, factor=2.0, offset=None):
            assert ctx.needs_input_grad == (True, False, True)[:1 + (factor != 2.0) + (offset is not None)]
            ctx.factor, ctx.has_offset = factor, offset is not None
            return x * factor if offset is None else x * factor + offset

        @staticmethod
        def backward(ctx, gradient):
            return (gradient * ctx.factor, None, gradient)[:2 + ctx.has_offset] if ctx.factor != 2.0 else gradient * 2

    offset = cg.ones(4, requires_grad=True)
    Scale.apply(x=four).sum().backward()
    Scale.apply(four, factor=3.0).sum().backward()
    Scale.apply(offset=offset, factor=4.0, x=four).sum().backward()
    assert (four.grad.tolist(), offset.grad.tolist()) == ([9] * 4, [1] * 4)
    with pytest.raises(TypeError, match="'offset' by keyword: .* the arguments before it"):
        Scale.apply(four, offset=offset)
    with pytest.raises(TypeError, match="unexpected keyword argument 'scale'"):
        Scale.apply(four, scale=3.0)


def test_arguments_that_forward_takes_by_keyword_alone(four):
    class Scale(autograd.Function):
        @staticmethod
        def forward(x, *, factor=2.0):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            assert len(inputs) == 1

    assert Scale.apply(four).tolist() == (four * 2).tolist()
    with pytest.raises(TypeError, match="cannot take 'factor' by keyword: forward\\(\\) must take it by position"):
        Scale.apply(four, factor=3.0)


def test_double_backward_through_a_dirty_input():
    x = cg.tensor([0.5, -1.5], dtype=cg.float64, requires_grad=True)

    class Square(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.clone())
            ctx.mark_dirty(x)
            return x.mul_(x)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 2 * gradient * x

    def run(x):
        y = x * 1.5
        Square.apply(y)
        return y.sin()

    assert autograd.gradcheck(run, (x,))


# ----- Gradients of unused outputs -----
UNGIVEN = {     # (_materialize_non_diff_grads, set_materialize_grads; None: the default) -> the gradient in backward, as in torch 2.13
    (None, None): 0, (None, True): 0, (None, False): None, (True, None): 0, (True, True): 0, (True, False): None,
    (False, None): None, (False, True): None, (False, False): None,
}


@pytest.mark.parametrize(("of_constants", "of_all"), UNGIVEN)
@pytest.mark.cases("second", ["marked", "integers", "unused"])
def test_gradients_of_outputs_that_have_none(of_constants, of_all, second):
    """The first of the two options has no effect on an output that is differentiable and merely not used."""
    seen = []

    class Two(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if of_constants is not None:
                ctx._materialize_non_diff_grads = of_constants
            if of_all is not None:
                ctx.set_materialize_grads(of_all)
            other = (x * 3).long() if second == "integers" else x * 3
            if second == "marked":
                ctx.mark_non_differentiable(other)
            return x * 2, other

        @staticmethod
        def backward(ctx, g, h):
            seen.append(h if h is None else h.tolist())
            return g

    Two.apply(cg.ones(2, requires_grad=True))[0].sum().backward()
    expected = UNGIVEN[None if second == "unused" else of_constants, of_all]
    assert seen == [expected if expected is None else [expected] * 2]
