"""The reference documents' sentences on tensors: grad, requires_grad, is_leaf, detach, register_hook, Variable."""

import pytest

import cygrad as cg
from cygrad import autograd

MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"


# ----- grad, requires_grad, is_leaf -----


def test_grad_is_none_until_the_first_backward_and_a_tensor_that_accumulates_from_then_on(x):
    assert x.grad is None
    y = x * 3
    assert x.grad is None
    y.sum().backward()
    assert isinstance(x.grad, cg.Tensor)
    assert x.grad.tolist() == [3, 3]
    (x * 4).sum().backward()
    assert x.grad.tolist() == [7, 7]


REQUIRE_GRADIENTS = [
    (lambda x: x, True),
    (lambda x: x * 2, True),
    (lambda x: cg.ones(2) + x, True),
    (lambda x: cg.ones(2), False),
    (lambda x: cg.ones(2) * 2, False),
    (lambda x: x.detach(), False),
    (lambda x: x > 1, False),
]


@pytest.mark.parametrize(("make", "expected"), REQUIRE_GRADIENTS)
def test_requires_grad_is_whether_a_gradient_is_computed(x, make, expected):
    assert make(x).requires_grad is expected


def test_a_tensor_without_requires_grad_is_a_leaf_even_as_a_result():
    for tensor in (cg.ones(2), cg.ones(2) * 2, cg.ones(2)[0], cg.ones(2).exp().sum()):
        assert not tensor.requires_grad
        assert tensor.is_leaf
        assert tensor.grad_fn is None


def test_a_tensor_with_requires_grad_is_a_leaf_if_the_user_made_it(x):
    assert x.is_leaf
    assert x.grad_fn is None
    for result in (x * 2, x[0], x.reshape(2, 1), x.clone()):
        assert not result.is_leaf
        assert result.grad_fn is not None


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_leaves_get_grad_and_others_by_retain_grad_only(x):
    y = x * 2
    z = y * 3
    z.retain_grad()
    z.sum().backward()
    assert x.grad.tolist() == [6, 6]
    assert y.grad is None
    assert z.grad.tolist() == [1, 1]


# ----- Variable -----


def test_variable_gives_a_tensor():
    tensor = cg.ones(2)
    assert type(autograd.Variable(tensor)) is cg.Tensor
    assert not autograd.Variable(tensor).requires_grad
    assert isinstance(tensor, autograd.Variable)


@pytest.mark.parametrize(("arguments", "keywords"), [((True,), {}), ((), {"requires_grad": True})], ids=["positional", "keyword"])
def test_variable_with_requires_grad_is_a_leaf_on_the_same_memory(arguments, keywords):
    tensor = cg.ones(2)
    variable = autograd.Variable(tensor, *arguments, **keywords)
    assert variable.requires_grad
    assert variable.is_leaf
    assert not tensor.requires_grad
    assert variable.data_ptr() == tensor.data_ptr()
    (variable * 3).sum().backward()
    assert variable.grad.tolist() == [3, 3]


def test_variable_takes_tensors_only():
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        autograd.Variable([1.0])


def test_variables_have_the_methods_and_data_of_tensors(x):
    variable = autograd.Variable(cg.tensor([1.0, 2.0]), requires_grad=True)
    assert variable.data.tolist() == x.data.tolist()
    assert not variable.data.requires_grad
    for tensor in (variable, x):
        seen = []
        tensor.register_hook(lambda gradient, seen=seen: seen.append(gradient.tolist()))
        (tensor * 2).sum().backward()
        assert seen == [[2, 2]]
        assert not tensor.detach().requires_grad


FACTORIES = {
    "randn": (2, 3, 4),
    "rand": (2, 3, 4),
    "zeros": (2, 3, 4),
    "ones": (2, 3, 4),
    "empty": (2, 3, 4),
    "full": ((2, 3, 4), 1.5),
    "tensor": ([1.0, 2.0],),
    "eye": (3,),
    "linspace": (0, 1, 5),
    "arange": (3.0,),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_a_factory_takes_requires_grad(name):
    leaf = getattr(cg, name)(*FACTORIES[name], requires_grad=True)
    assert leaf.requires_grad
    assert leaf.is_leaf
    leaf.sum().backward()
    assert leaf.grad.tolist() == cg.ones(tuple(leaf.shape)).tolist()


# ----- detach -----


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 2, lambda x: x[:1]])
def test_detach_gives_a_new_tensor_outside_the_graph(x, make):
    tensor = make(x)
    detached = tensor.detach()
    assert detached is not tensor
    assert not detached.requires_grad
    assert detached.grad_fn is None
    assert tensor.requires_grad


def test_detach_shares_memory_both_ways(x):
    y = x * 2
    detached = y.detach()
    assert detached.data_ptr() == y.data_ptr()
    detached[0] = 7
    assert y.tolist() == [7, 4]
    with cg.no_grad():
        y[1] = 9
    assert detached.tolist() == [7, 9]


DETACHED_CHANGES = {
    "add_": lambda detached: detached.add_(1),
    "zero_": lambda detached: detached.zero_(),
    "copy_": lambda detached: detached.copy_(cg.ones(2)),
    "of an element": lambda detached: detached[0].fill_(3),
    "assignment": lambda detached: detached.__setitem__(0, 3),
}


@pytest.mark.parametrize("name", DETACHED_CHANGES)
def test_a_change_through_detach_is_found_by_backward(x, name):
    y = x * 2
    root = (y * y).sum()
    DETACHED_CHANGES[name](y.detach())
    with pytest.raises(RuntimeError, match=MODIFIED):
        root.backward()
    assert x.grad is None


SHAPE_CHANGES = {
    "resize_": (lambda tensor: tensor.resize_(3, 3), (3, 3)),
    "resize_as_": (lambda tensor: tensor.resize_as_(cg.ones(4, 4)), (4, 4)),
    "set_": (lambda tensor: tensor.set_(cg.ones(4)), (4,)),
    "transpose_": (lambda tensor: tensor.transpose_(0, 1), (3, 2)),
    "t_": (lambda tensor: tensor.t_(), (3, 2)),
    "unsqueeze_": (lambda tensor: tensor.unsqueeze_(0), (1, 2, 3)),
}


@pytest.mark.parametrize("name", SHAPE_CHANGES)
def test_a_change_of_sizes_after_detach_does_not_reach_the_original(name):
    change, shape = SHAPE_CHANGES[name]
    original = cg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    detached = original.detach()
    change(detached)
    assert tuple(detached.shape) == shape
    assert original.stride() == (3, 1)
    assert original.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_detach_in_place_makes_a_leaf(x):
    y = x * 2
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad
    assert y.grad_fn is None
    z = y * x
    z.sum().backward()
    assert x.grad.tolist() == [2, 4]


VIEWS = {
    "of a result": lambda x: (x * 2)[0],
    "of a leaf": lambda x: x[0],
    "of a constant": lambda x: cg.ones(2)[0],
    "reshaped": lambda x: (x * 2).view(2, 1),
    "of a view": lambda x: (x * 2).view(2, 1)[0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_cannot_be_detached_in_place(x, name):
    view = VIEWS[name](x)
    needed = view.requires_grad
    with pytest.raises(RuntimeError, match=r"Can't detach views in-place. Use detach\(\) instead"):
        view.detach_()
    assert view.requires_grad is needed


# ----- register_hook -----


def test_a_hook_takes_the_gradient_and_returns_none_or_another(x):
    seen = []
    y = x * 1
    y.register_hook(lambda gradient: seen.append(gradient.tolist()))
    y.register_hook(lambda gradient: gradient * 5)
    weight = cg.ones(2)
    y.backward(weight)
    assert seen == [[1, 1]]
    assert x.grad.tolist() == [5, 5]
    assert weight.tolist() == [1, 1]


def test_a_hook_is_called_each_time_the_gradient_is_computed_by_backward_or_grad(x):
    calls = []
    y = x * 1
    for tensor in (x, y):
        tensor.register_hook(lambda gradient: calls.append(gradient.tolist()))
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    autograd.grad(y.sum(), x)
    assert calls == [[1, 1]] * 6


def test_the_handle_of_a_hook_removes_it(x):
    handle = x.register_hook(lambda gradient: gradient * 2)
    x.sum().backward()
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [3, 3]
