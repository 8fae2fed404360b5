"""Results in the memory of arguments, constants as results, and results with hooks."""

import warnings

import pytest

import cygrad as cg
from capturing import X, captured, refusal
from cygrad.autograd import Function, grad

VIEWS = {
    "select": lambda a, b: b[0],
    "transposed": lambda a, b: b.view(2, 1).T,
    "beside a result": lambda a, b: (a * 2, b[1:]),
    "detached": lambda a, b: (b.detach()[0], (a * b).sum()),
    "of a view": lambda a, b: b.view(2, 1)[1:].flatten(),
}
PARTS = {
    "rows": lambda w: (w[0], w[1]),
    "swapped": lambda w: (w[1], w[0]),
    "overlapping": lambda w: (w.view(-1)[:2], w.view(-1)[1:3]),
    "with the whole": lambda w: (w, w[1]),
    "first detached": lambda w: (w[0].detach(), w[1]),
    "second detached": lambda w: (w[0], w[1].detach()),
    "view of itself": lambda w: (w[1], w[1][:2]),
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_of_one_of_several_arguments_in_its_memory_have_its_history(view, parts):
    compiled = captured(view)
    for _ in range(3):
        gradients = []
        for function in (compiled, view):
            w = cg.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], requires_grad=True)
            arguments = parts(w)
            values = function(*arguments)
            recorded = [value for value in (values if type(values) is tuple else [values]) if value.requires_grad]
            sources = [w, *(each for each in arguments if each.requires_grad)]
            brought = grad(recorded, sources, [value.detach() + 1 for value in recorded], allow_unused=True) if recorded else ()
            gradients.append([value.tolist() for value in recorded] + [None if each is None else each.tolist() for each in brought])
        assert gradients[0] == gradients[1]


class Tenfold(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 10


def with_hook(x):
    row = x[:]
    row.register_hook(lambda gradient: gradient * 10)
    return row[0]


def with_hook_of_node(x):
    row = x[:]
    if row.requires_grad and row.grad_fn is not None:
        row.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (grad_inputs[0] * 10,))
    return row[0]


def with_view_before_a_change(w):
    with cg.no_grad():
        row = w[0]
        w.mul_(2)
    return row


def recorded_within(w):
    with cg.enable_grad():
        return w[0]


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("records", [True, False])
@pytest.mark.parametrize("function", [lambda x: Tenfold.apply(x)[0], with_hook, with_hook_of_node, with_view_before_a_change,
                                      recorded_within, lambda x: x.T, lambda x: (x[0], x.sin())[0]])
def test_views_whose_gradient_does_not_go_to_the_argument_alone(function, records):
    """A replay makes a view by one operator of the argument."""
    compiled = cg.compile(function)
    for _ in range(3):
        outcomes = []
        for each in (compiled, function):
            w = cg.tensor([[0.0, 1.0], [2.0, 3.0]], requires_grad=True)
            with cg.set_grad_enabled(records):
                value = each(w)
            try:
                outcomes.append((value.tolist(), value.requires_grad, grad(value.sum(), w)[0].tolist()))
            except RuntimeError as error:
                outcomes.append((value.tolist(), str(error)[:60]))
        assert outcomes[0] == outcomes[1]


def test_a_part_of_a_parameter_is_captured_under_no_grad():
    compiled = captured(lambda x, w: (w[0], x @ w.T))
    w = cg.ones(2, 2, requires_grad=True)
    with cg.no_grad():
        for _ in range(3):
            compiled(cg.ones(2), w)
    assert compiled.cache_info().hits == 2


def view_without_grad(p, x):
    with cg.no_grad():
        return x[1:]


OF_TWO = [lambda p, x: x[1:], lambda p, x: p[1:], lambda p, x: (p[1:].view(3, 1), x[:2]), lambda p, x: x.detach(),
          lambda p, x: (x.detach().add_(1), p.sin().sum()), view_without_grad, lambda p, x: x.unbind()[0], lambda p, x: x.view(2, 2).T]
TWO = {
    "detached first": lambda x: (x.detach(), x),
    "detached second": lambda x: (x, x.detach()),
    "view of a detached one": lambda x: (x.detach()[:], x.detach()),
    "computed": lambda x: ((x * 1).detach(), x * 1),
    "views of one": lambda x: (lambda y: (y[:], y.view(4)))(x * 1),
    "view first": lambda x: (x[:], x),
}


def outcome_of_in_place_change(function, pair, requires_grad, records, number):
    """Return values and history of the tensors that a caller has, after a change of one result in place by a tensor with a gradient."""
    weight = cg.full((1,), 2.0, dtype=cg.float64, requires_grad=True)
    x = cg.arange(4.0, dtype=cg.float64).add_(number).requires_grad_(requires_grad)
    arguments = pair(x)
    with cg.set_grad_enabled(records):
        results = function(*arguments)
    results = results if type(results) is tuple else (results,)
    seen = []
    try:
        results[0].mul_(weight)
    except RuntimeError as error:
        seen.append(type(error))
    try:
        for tensor in (*results, *arguments, x):
            seen += [tensor.requires_grad, tensor.is_leaf, tensor._version, tensor.tolist()]
        (arguments[0].sum() + arguments[1].sum() * 3 + results[0].sum()).backward()
    except RuntimeError as error:
        seen.append(type(error))
    return seen, *(None if leaf.grad is None else leaf.grad.tolist() for leaf in (x, weight))


@pytest.mark.filterwarnings("ignore:compile", "ignore:The .grad attribute")
@pytest.mark.parametrize("function", OF_TWO)
@pytest.mark.parametrize("pair", TWO.values(), ids=TWO)
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("records", [False, True])
def test_results_changed_in_place_change_the_history_of_the_same_tensors_as_eager(function, pair, requires_grad, records):
    compiled = cg.compile(function)
    for number in range(3):
        assert (outcome_of_in_place_change(compiled, pair, requires_grad, records, number)
                == outcome_of_in_place_change(function, pair, requires_grad, records, number))


def test_arguments_of_one_base_and_of_two_have_programs_of_their_own():
    compiled = captured(lambda p, x: p[1:])
    x = cg.arange(4.0)
    for p in (x.view(4), x.detach(), x.view(4), x.detach()):
        part = compiled(p, x)
        assert part._base is (x if p._base is x else p)
    assert compiled.cache_info().misses == 2


@cg.no_grad()
def row_without_grad(w):
    return w[0]


@cg.inference_mode()
def row_in_inference(w):
    return w[0]


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("function", [row_without_grad, row_in_inference, lambda w: row_without_grad(w).add_(1), lambda w: w.detach()[0]])
@pytest.mark.parametrize("records", [False, True])
def test_parts_without_history_of_a_parameter_in_a_buffer(function, records):
    """The parameter is a view itself, of a buffer that requires no gradient."""
    compiled = cg.compile(function)
    for number in range(3):
        outcomes = []
        for each in (function, compiled):
            buffer = cg.arange(6.0).add_(number)
            w = buffer[:4].view(2, 2).requires_grad_()
            with cg.set_grad_enabled(records):
                row = each(w)
            loss = (w * w).sum() + row.sum()
            loss.backward()
            outcomes.append((row.requires_grad, row.is_leaf, row.tolist(), w.grad.tolist(), buffer.tolist()))
        assert outcomes[0] == outcomes[1]


def write_then_view(x):
    with cg.no_grad():
        x.mul_(0.5)
    return x[1:]


def view_then_write(x):
    part = x[1:]
    with cg.no_grad():
        x.mul_(0.5)
    return part


def write_a_view(x):
    with cg.no_grad():
        part = x[1:]
        part.mul_(0.5)
    return part


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("function", [write_then_view, view_then_write, write_a_view])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("records", [False, True])
def test_views_are_as_old_as_in_eager_beside_changes_of_their_memory(function, requires_grad, records):
    """Autograd refuses a view without history that is older than a change of its base."""
    compiled = cg.compile(function)
    for number in range(3):
        outcomes = []
        for each in (function, compiled):
            x = cg.full((4,), number + 1.0, requires_grad=requires_grad)
            with cg.set_grad_enabled(records):
                part = each(x)
            try:
                outcomes.append((part.is_leaf, part.requires_grad, (part * 2).tolist(), part._version))
            except RuntimeError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


def test_results_with_hooks_are_not_captured():
    """In eager they run before hooks of the caller and before `retain_grad`; in a replay they would run after."""
    def clipped(x, of_view):
        y = x[:] if of_view else x.sin()
        y.register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))
        return y

    for of_view in (False, True):
        assert "a tensor with a hook" in refusal(clipped, X.clone().requires_grad_(), of_view)


def test_gradients_with_hooks_are_not_captured():
    def sets(x):
        gradient = (x.detach() * 2).requires_grad_() * 3
        gradient.register_hook(lambda g: g * 10)
        x.grad = gradient

    assert "sets as a gradient, a tensor with a hook" in refusal(sets, X.clone().requires_grad_())


@pytest.mark.parametrize("function", [
    lambda x, mask: (x[mask] * 2, x[mask].exp().sum() + (x * x).sum()),
    lambda x, mask: (cg.zeros(2), x * cg.tensor([2.0, 3.0, 4.0])),
    lambda x, mask: (cg.full((3,), 2.0), x.exp()),
], ids=["without elements", "a constant beside one", "a constant"])
def test_results_that_no_backward_reads_may_change(function):
    compiled = captured(function)
    for mask in (cg.tensor([True, False, True]), cg.tensor([False] * 3)):
        for _ in range(3):
            gradients = []
            for each in (compiled, function):
                x = X.clone().requires_grad_()
                first, second = each(x, mask)
                with cg.no_grad():
                    first.mul_(10)
                gradients.append(grad(second.sum(), x)[0].tolist())
            assert gradients[0] == gradients[1]


@pytest.mark.parametrize("function", [lambda x: (x * 2, TABLE := cg.tensor([1.0, 2.0, 3.0]), TABLE[:1]),
                                      lambda x: (x[:0], *cg.zeros(3).split([0, 3])), lambda x: (x + 1, cg.zeros(2), cg.zeros(2))])
def test_constants_that_share_memory(function):
    """Each replay copies a constant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for each in (cg.compile(function),) * 3:
            first, second, third = each(X.clone())
            second.add_(10)
            expected = function(X.clone())
            expected[1].add_(10)
            assert [first.tolist(), second.tolist(), third.tolist()] == [value.tolist() for value in expected]
