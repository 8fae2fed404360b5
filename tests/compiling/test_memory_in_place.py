"""Tensors that get other memory or another shape in place: programs follow new ones, and none from outside."""

import pytest

import cygrad as cg
from capturing import captured, same

X = cg.arange(1.0, 7.0, dtype=cg.float64)


def by_data(x):
    y = x * 1
    y.data = x * 2
    return y + 1


def by_data_of_a_leaf(x):
    weight = cg.ones(6, dtype=x.dtype, requires_grad=True)
    for _ in range(3):
        (gradient,) = cg.autograd.grad((weight * x).sin().sum(), [weight])
        weight.data = weight.detach() - 0.1 * gradient
    return weight.detach() * x


def by_data_of_a_constant(x):
    y = cg.tensor([1.0, 2.0], dtype=x.dtype)
    y.data = x[:2] * y
    return y


def by_set(x):
    y, z = x * 1, x * 2
    y.set_(z)
    z += 1
    return y * 3


def by_set_of_a_part(x):
    y = cg.empty(0, dtype=x.dtype)
    y.set_(x.sin(), 1, (2, 2), (2, 1))
    return y @ y


def with_an_older_view(x):
    y = x * 1
    view = y[1:]
    y.data = x * 3
    y += 1
    return y[:-1] * view


def grown(x):
    y = cg.empty(0, dtype=x.dtype)
    y.resize_(6).copy_(x)
    return y * 2


def grown_values(x):
    y = x[:4] * 2
    y.resize_(5)
    y[4] = x[5]
    return y.sin()


def shrunk(x):
    y = x * 2
    y.resize_(2, 2)
    return y @ y


def resized_as_another(x):
    y = x * 2
    y.resize_as_(x[:3])
    y.mul_(y)
    return y


def into_an_empty_result(x):
    y = cg.empty(0, dtype=x.dtype)
    y.resize_(x.shape)
    cg.exp(-x, out=y)
    return y


def of_other_shapes(x):
    y = (x * 2).unsqueeze_(0)
    y.squeeze_().unsqueeze_(1)
    y.t_()
    y.mul_(3)
    return y


def exchanged(x):
    a, b = x * 2, x * 3
    a.data, b.data = b.data, a.data
    a += 1
    return a - b * b


FUNCTIONS = [by_data, by_data_of_a_leaf, by_data_of_a_constant, by_set, by_set_of_a_part, with_an_older_view, grown, grown_values, shrunk,
             resized_as_another, into_an_empty_result, of_other_shapes, exchanged]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_new_tensors_may_get_other_memory(function):
    replayed = captured(function)
    for number in range(4):
        x = X * (1 + number)
        same(replayed(x), function(x))
    assert replayed.cache_info() == (3, 1, 0, 1)


@pytest.mark.parametrize("function", [function for function in FUNCTIONS if function not in (grown, grown_values, resized_as_another)],
                         ids=lambda function: function.__name__)
def test_steps_of_loops_may_give_tensors_other_memory(function):
    def summed(x):
        return cg.func.scan(lambda total, row: (total + function(row).sum(), None), x.new_zeros(()), cg.stack([x, x + 1, x * 2, -x, x]))[0]

    replayed = captured(summed)
    for number in range(3):
        same(replayed(X + number), sum_of(function, X + number))


def sum_of(function, x):
    total = x.new_zeros(())
    for row in cg.stack([x, x + 1, x * 2, -x, x]):
        total = total + function(row).sum()
    return total


@pytest.mark.parametrize("function", [
    lambda x: x[1:4].unsqueeze_(0) * 2,
    lambda x: x.detach().resize_(3) * 2,
    lambda x: x.view(-1).set_(x * 2),
    lambda x: (x.view(2, 3).t_() * 2, x[::2].as_strided_((2,), (1,), 1)),
])
def test_so_may_new_tensors_over_memory_from_outside(function):
    replayed = captured(function)
    for number in range(3):
        x = X + number
        for ours, theirs in zip(replayed(x), function(x), strict=True):
            same(ours, theirs)
    assert replayed.cache_info().hits == 2


# ----- Tensors from outside -----
STATE = cg.ones(6, dtype=cg.float64)
PART = cg.ones(6, dtype=cg.float64)[:3]


def assign_data(tensor, x):
    tensor.data = x * 2


CHANGES = {
    "data": assign_data,
    "set_": lambda tensor, x: tensor.set_(x * 2),
    "set_ of a part": lambda tensor, x: tensor.set_(x, 1, tensor.shape),
    "resize_": lambda tensor, x: tensor.resize_(3, 3),
    "unsqueeze_": lambda tensor, x: tensor.unsqueeze_(0),
    "as_strided_": lambda tensor, x: tensor.as_strided_(tensor.shape, (1,), 1 if tensor is PART else 0),
}


@pytest.mark.parametrize("of_argument", [True, False], ids=["an argument", "a tensor that it names"])
@pytest.mark.parametrize("name", CHANGES)
def test_tensors_from_outside_may_not(name, of_argument):
    state = [STATE.clone(), PART.new_ones(6)[:3]]
    compiled = cg.compile(lambda x, y: (CHANGES[name](y if of_argument else state[1], x), state[0] + x)[1], fullgraph=True)
    before = state[1].detach()
    for _ in range(3):
        y = before.detach()
        with pytest.raises(RuntimeError, match="gets other memory, or another shape|changes an argument|which is outside of it"):
            compiled(X, y)
        state[1].set_(before)


# ----- Gradients -----
PARAMETER = cg.ones(2, 3, dtype=cg.float64, requires_grad=True)


def exchange_data(x):
    gradient = PARAMETER.grad
    PARAMETER.grad = None
    gradient.data = x * 2
    PARAMETER.grad = gradient


def unsqueeze_a_new_gradient(x):
    PARAMETER.grad = None
    (PARAMETER * x).sum().backward()
    PARAMETER.grad.unsqueeze_(0)


def clip_by_data(x):
    (PARAMETER * x).sum().backward()
    PARAMETER.grad.data = PARAMETER.grad.clamp(-1, 1)


GRADIENT_CHANGES = {
    "data": lambda x: assign_data(PARAMETER.grad, x),
    "data of a clipped gradient": clip_by_data,
    "data, then added to": lambda x: (assign_data(PARAMETER.grad, x), PARAMETER.grad.add_(1)),
    "data of a gradient that is put back": exchange_data,
    "set_": lambda x: PARAMETER.grad.set_(x * 2),
    "unsqueeze_": lambda x: PARAMETER.grad.unsqueeze_(0),
    "unsqueeze_ of a new one": unsqueeze_a_new_gradient,
    "as_strided_": lambda x: PARAMETER.grad.as_strided_((2, 3), (1, 2)),
    "requires_grad_": lambda x: PARAMETER.grad.requires_grad_(not PARAMETER.grad.requires_grad),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", GRADIENT_CHANGES)
def test_gradients_from_outside_change_at_each_call(name):
    def states(function):
        PARAMETER.grad = cg.arange(6.0, dtype=cg.float64).view(2, 3)
        for number in range(4):
            yield function(cg.full((2, 3), number + 0.5, dtype=cg.float64)), PARAMETER.grad.clone(), PARAMETER.grad.requires_grad

    def function(x):
        GRADIENT_CHANGES[name](x)
        return x * 2

    for (ours, *our_state), (theirs, *their_state) in zip([*states(cg.compile(function))], [*states(function)], strict=True):
        same(ours, theirs)
        same(our_state[0], their_state[0])
        assert our_state[0].stride() == their_state[0].stride() and our_state[1] == their_state[1]


# ----- Constants as results -----
@pytest.mark.parametrize("view", [
    lambda t: t[:, 1], lambda t: t[::2, :2], lambda t: t[1:], lambda t: t.T, lambda t: t.diagonal(), lambda t: t[0, 0].expand(2, 2),
    lambda t: t.unbind(1)[2], lambda t: t,
])
def test_a_view_of_a_constant_lies_as_eager_lays_it(view):
    def function(x):
        whole = cg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
        return x * 2, view(whole), view(whole)

    replayed = captured(function)
    for number in range(3):
        results, expected = replayed(X + number), function(X + number)
        for ours, theirs in zip(results, expected, strict=True):
            same(ours, theirs)
            assert (ours.stride(), ours.storage_offset()) == (theirs.stride(), theirs.storage_offset())
            assert ours.untyped_storage().nbytes() == theirs.untyped_storage().nbytes()
        for _, first, second in (results, expected):        # views of one memory
            if 0 not in first.stride():
                first[0] = 5
                assert cg.equal(first, second)


@pytest.mark.parametrize("write", [
    lambda w, v: w.data.__setitem__(True, v), lambda w, v: cg.cummax(v, 0, out=(w.data, cg.zeros(3, 3, dtype=cg.int64))),
    lambda w, v: cg.median(v, 1, out=(w.data[0], cg.zeros(3, dtype=cg.int64))), lambda w, v: w.data.copy_(v),
])
def test_writes_through_data_are_not_counted(write):
    w = cg.zeros(3, 3)
    compiled = captured(lambda v: (write(w, v), v * 2)[1])
    for _ in range(4):
        compiled(cg.rand(3, 3))
        assert w._version == 0


@pytest.mark.parametrize("backward", [lambda y: y.backward(cg.ones(3, dtype=cg.float64)), lambda y: y.sum().backward()])
def test_a_constant_that_a_backward_reads_may_not_change_as_a_result(backward):
    def function(x):
        constant = cg.tensor([1.0, 2.0, 3.0], dtype=cg.float64)
        return constant, x * constant, x.exp()

    compiled = captured(function)
    for number in range(4):
        x = (X[:3] + number).requires_grad_()
        constant, y, _ = compiled(x)
        if number % 2:
            constant.mul_(3)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                backward(y)
        else:
            backward(y)
            assert x.grad.tolist() == [1.0, 2.0, 3.0]
