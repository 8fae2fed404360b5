"""Leaves: which tensors are, how requires_grad and .grad are set, detach and data, retain_grad, copies."""

import copy

import pytest

import cygrad as cg

LEAVES = [
    (lambda x: x, True, True),
    (lambda x: x * 2, False, True),
    (lambda x: x.detach(), True, False),
    (lambda x: x.data, True, False),
    (lambda x: cg.ones(2), True, False),
    (lambda x: cg.ones(2) * 2, True, False),
    (lambda x: x > 0, True, False),
    (lambda x: x[0], False, True),
    (lambda x: x.clone(), False, True),
    (lambda x: x.detach().requires_grad_(), True, True),
    (lambda x: (x * 2).detach_(), True, False),
    (lambda x: cg.zeros_like(x), True, False),
    (lambda x: x.float(), True, True),
    (lambda x: x.double(), False, True),
]


@pytest.mark.parametrize(("make", "is_leaf", "requires_grad"), LEAVES)
def test_leaves(x, make, is_leaf, requires_grad):
    y = make(x)
    assert (y.is_leaf, y.requires_grad) == (is_leaf, requires_grad)
    assert (y.grad_fn is None) is is_leaf


def test_detach_shares_memory_and_version(x):
    y = x.detach()
    y += 1
    assert x.tolist() == [2, 3]
    assert x._version == y._version == 1


def test_data_shares_memory_but_not_the_version(x):
    x.data[0] = 5
    assert x.tolist() == [5, 2]
    assert x._version == 0


def test_requires_grad_of_a_leaf_can_be_switched(x):
    x.requires_grad_(False)
    assert not (x * 2).requires_grad
    x.requires_grad = True
    assert (x * 2).requires_grad
    assert x.requires_grad_() is x


def assign(name, value):
    return lambda tensor: setattr(tensor, name, value)


REQUIRES_GRAD = [
    (
        lambda: (cg.ones(2, requires_grad=True) * 2).requires_grad_(False),
        RuntimeError,
        "you can only change requires_grad",
    ),
    (lambda: assign("requires_grad", False)(cg.ones(2, requires_grad=True) * 2), RuntimeError, "you can only change"),
    (lambda: assign("requires_grad", "a")(cg.ones(2)), RuntimeError, "requires_grad must be a bool"),
    (
        lambda: cg.ones(2, dtype=cg.int64).requires_grad_(),
        RuntimeError,
        "only Tensors of floating point .*can require grad",
    ),
    (lambda: cg.tensor([True]).requires_grad_(), RuntimeError, "only Tensors of floating point .*can require grad"),
    (
        lambda: assign("requires_grad", True)(cg.tensor([1])),
        RuntimeError,
        "only Tensors of floating point .*can require",
    ),
    (
        lambda: cg.ones(2, dtype=cg.int64, requires_grad=True),
        RuntimeError,
        "Only Tensors of floating point .* can require grad",
    ),
    (
        lambda: cg.tensor([1], requires_grad=True),
        RuntimeError,
        "Only Tensors of floating point .* can require gradients",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REQUIRES_GRAD)
def test_requires_grad_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_requires_grad_false_is_allowed_for_integers():
    assert not cg.ones(2, dtype=cg.int64).requires_grad_(False).requires_grad


def test_grad_can_be_set(x):
    gradient = cg.full((2,), 10.0)
    x.grad = gradient
    assert x.grad is gradient
    x.sum().backward()
    assert x.grad.tolist() == [11, 11]
    x.grad = None
    assert x.grad is None


GRAD_REFUSED = [
    (cg.ones(3), RuntimeError, "attempting to assign a gradient of size"),
    (
        cg.ones(2, dtype=cg.float64),
        RuntimeError,
        "attempting to assign a gradient with dtype|assigned grad has data of a different type",
    ),
    (1.0, TypeError, "assigned grad expected to be a Tensor or None but got"),
    ([1.0, 1.0], TypeError, "assigned grad expected to be a Tensor or None but got"),
]


@pytest.mark.parametrize(("gradient", "error", "message"), GRAD_REFUSED)
def test_grad_refused(x, gradient, error, message):
    with pytest.raises(error, match=message):
        x.grad = gradient
    assert x.grad is None


def test_a_tensor_cannot_be_its_own_gradient(x):
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x


# ----- retain_grad -----


def test_retain_grad_keeps_the_gradient_of_a_non_leaf(x):
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3, 3]
    assert x.grad.tolist() == [6, 6]


def test_retain_grad_of_a_leaf_does_nothing(x):
    x.retain_grad()
    assert not x.retains_grad
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_retain_grad_needs_a_gradient():
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        cg.ones(2).retain_grad()


def test_retain_grad_of_one_of_two_outputs(x):
    values, _ = (x * 2).reshape(2, 1).max(dim=1)
    values.retain_grad()
    (values * 5).sum().backward()
    assert values.grad.tolist() == [5, 5]


def test_a_dead_tensor_retains_nothing(x):
    y = x * 2
    y.retain_grad()
    z = (y * 3).sum()
    del y
    z.backward()
    assert x.grad.tolist() == [6, 6]


def test_grad_of_a_non_leaf_warns(x):
    y = x * 2
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_graph_leaves_are_deepcopied_and_non_leaves_refused(x):
    x.sum().backward()
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y.is_leaf
    assert y.tolist() == x.tolist()
    assert y.data_ptr() != x.data_ptr()
    assert y.grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)
