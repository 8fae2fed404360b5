"""In-place operators and out=: versions, saved tensors that were changed, leaves, views, dtypes, shapes."""

import operator

import pytest

import cygrad as cg
from cygrad import autograd

MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"


# ----- Values and gradients -----

CHANGES = {
    "add_": (lambda y: y.add_(1), [3, 5], [2, 2]),
    "sub_": (lambda y: y.sub_(1), [1, 3], [2, 2]),
    "mul_": (lambda y: y.mul_(3), [6, 12], [6, 6]),
    "div_": (lambda y: y.div_(2), [1, 2], [1, 1]),
    "neg_": (lambda y: y.neg_(), [-2, -4], [-2, -2]),
    "add_ of a tensor": (lambda y: y.add_(cg.tensor([10.0, 20.0])), [12, 24], [2, 2]),
    "mul_ of a tensor": (lambda y: y.mul_(cg.tensor([10.0, 20.0])), [20, 80], [20, 40]),
    "add_ broadcasts": (lambda y: y.add_(cg.tensor([10.0])), [12, 14], [2, 2]),
    "add_ with alpha": (lambda y: y.add_(cg.ones(2), alpha=5), [7, 9], [2, 2]),
    "relu_": (lambda y: y.relu_(), [2, 4], [2, 2]),
    "clamp_": (lambda y: y.clamp_(0, 3), [2, 3], [2, 0]),
    "zero_": (lambda y: y.zero_(), [0, 0], [0, 0]),
    "fill_": (lambda y: y.fill_(7), [7, 7], [0, 0]),
    "copy_": (lambda y: y.copy_(cg.tensor([8.0, 9.0])), [8, 9], [0, 0]),
    "+=": (lambda y: operator.iadd(y, 1), [3, 5], [2, 2]),
    "-=": (lambda y: operator.isub(y, 1), [1, 3], [2, 2]),
    "*=": (lambda y: operator.imul(y, 3), [6, 12], [6, 6]),
    "/=": (lambda y: operator.itruediv(y, 2), [1, 2], [1, 1]),
    "twice": (lambda y: y.add_(1).mul_(3), [9, 15], [6, 6]),
    "sqrt_ of a square": (lambda y: y.mul_(8).sqrt_(), [4, 32**0.5], [2, 8 / 32**0.5]),
}


@pytest.mark.parametrize("name", list(CHANGES))
def test_an_in_place_change_is_recorded(x, name):
    change, values, gradient = CHANGES[name]
    y = x * 2
    assert change(y) is y
    assert y.tolist() == pytest.approx(values)
    assert not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx(gradient)


@pytest.mark.cases("name", list(CHANGES))
def test_an_in_place_change_counts(name):
    y = cg.tensor([2.0, 4.0])
    CHANGES[name][0](y)
    assert y._version == (2 if name in ("twice", "sqrt_ of a square") else 1)
    assert not y.requires_grad


def test_a_tensor_takes_on_the_history_of_the_added_one(x):
    y = cg.ones(2)
    y.add_(x)
    assert y.requires_grad
    assert not y.is_leaf
    assert y.grad_fn.name() == "AddBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_copy_passes_the_gradient_to_its_source(x):
    y = x * 2
    y.copy_(x * 3)
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_second_derivative_through_an_in_place_change(x):
    y = x * x
    y.mul_(x)
    (gradient,) = autograd.grad(y.sum(), x, create_graph=True)
    assert gradient.tolist() == [3, 12]
    assert autograd.grad(gradient.sum(), x)[0].tolist() == [6, 12]


# ----- Versions -----

VERSIONS = [
    (lambda n: n.add(1), 0),
    (lambda n: n.clone().add_(1), 0),
    (lambda n: n.requires_grad_(), 0),
    (lambda n: n.data.add_(1), 0),
    (lambda n: n.numpy().__setitem__(0, 3), 0),
    (lambda n: n.add_(1), 1),
    (lambda n: n.detach().add_(1), 1),
    (lambda n: n[0].add_(1), 1),
    (lambda n: n.reshape(2, 1).add_(1), 1),
    (lambda n: n.__setitem__(0, 3), 1),
    (lambda n: n.__setitem__(cg.tensor([0, 1]), 3), 1),
    (lambda n: n.__setitem__(n > 0, 3), 1),
    (lambda n: cg.add(n, n, out=n), 1),
    (lambda n: n.zero_().fill_(1), 2),
]


@pytest.mark.cases(("change", "version"), VERSIONS)
def test_versions(change, version):
    n = cg.ones(2)
    change(n)
    assert n._version == version


def test_a_view_shares_the_version():
    n = cg.ones(2)
    views = [n[0], n.detach(), n.reshape(1, 2), n.T]
    n.add_(1)
    assert [view._version for view in views] == [1] * len(views)


# ----- Saved tensors that were changed -----

BROKEN = {
    "operand of mul": (lambda y, n: y * n, "n", "is at version 1; expected version 0 instead"),
    "operand of div": (lambda y, n: y / n, "n", "is at version 1; expected version 0 instead"),
    "operand of matmul": (lambda y, n: y @ n, "n", "is at version 1; expected version 0 instead"),
    "base of pow": (lambda y, n: y**3, "y", "which is output 0 of Add"),
    "operand of sin": (lambda y, n: y.sin(), "y", "which is output 0 of Add"),
    "both operands": (lambda y, n: y * y, "y", "which is output 0 of Add"),
    "result of exp": (lambda y, n: y.exp(), "result", "which is output 0 of (Exp|Add)"),
    "result of tanh": (lambda y, n: y.tanh(), "result", "which is output 0 of (Tanh|Add)"),
    "result of sigmoid": (lambda y, n: y.sigmoid(), "result", "which is output 0 of (Sigmoid|Add)"),
    "result of relu": (lambda y, n: y.relu(), "result", "which is output 0 of (Relu|Add)"),
    "result of sqrt": (lambda y, n: y.sqrt(), "result", "which is output 0 of (Sqrt|Add)"),
    "operand of maximum": (lambda y, n: cg.maximum(y, n), "n", "is at version 1; expected version 0 instead"),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_changed_saved_tensor_is_found(x, name):
    function, which, message = BROKEN[name]
    y, n = x * 2, cg.ones(2)
    result = function(y, n)
    root = result * 1  # so that a changed result is not the root itself
    {"y": y, "n": n, "result": result}[which].add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED) as caught:
        root.sum().backward()
    assert "at version 1; expected version 0" in str(caught.value)
    caught.match(message)
    assert x.grad is None


def test_the_message_counts_versions(x):
    n = cg.ones(2)
    n.add_(1)
    y = x * n
    n.add_(1).add_(1)
    with pytest.raises(RuntimeError, match="is at version 3; expected version 1 instead"):
        y.sum().backward()


def test_a_change_through_detach_or_a_view_is_found(x):
    for change in (lambda n: n.detach().add_(1), lambda n: n[0].add_(1), lambda n: cg.add(n, 1, out=n)):
        n = cg.ones(2)
        y = x * n
        change(n)
        with pytest.raises(RuntimeError, match=MODIFIED):
            y.sum().backward()


@pytest.mark.parametrize("index", [cg.tensor([0, 0]), cg.tensor([True, False])], ids=["indices", "mask"])
@pytest.mark.parametrize("read", [lambda x, index: x[index], lambda x, index: (x * 1)[None][:, index]])
def test_a_change_of_a_saved_index_is_found_or_harmless(x, index, read):
    index = index.clone()
    (expected,) = autograd.grad(read(x, index).sum(), x)
    y = read(x, index)
    index[0] = 1
    index[1] = 1
    try:
        y.sum().backward()
    except RuntimeError as error:
        assert MODIFIED in str(error)
    else:
        assert x.grad.tolist() == expected.tolist()


def test_a_change_of_a_saved_condition_is_found_or_harmless(x):
    condition = cg.tensor([True, False])
    y = cg.where(condition, x, x * 3)
    condition[0] = False
    try:
        y.sum().backward()
    except RuntimeError as error:
        assert MODIFIED in str(error)
    else:
        assert x.grad.tolist() == [1, 3]


def test_a_change_of_a_leaf_without_grad_is_found(x):
    y = x * x
    with cg.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_an_operator_that_overwrites_its_saved_operand_is_right_or_refused(x):
    y = x * 2
    y.mul_(y)
    try:
        y.sum().backward()
    except RuntimeError as error:
        assert MODIFIED in str(error)
    else:
        assert x.grad.tolist() == [8, 16]


HARMLESS = {
    "operand of add": (lambda y: y + 1, [2, 2]),
    "operand of a product with a number": (lambda y: y * 3, [6, 6]),
    "operand of exp": (lambda y: y.exp() * 0 + y * 2, [4, 4]),
    "operand of sum": (lambda y: y.sum(), [2, 2]),
    "operand of reshape": (lambda y: y.reshape(2, 1).sum(), [2, 2]),
    "operand of relu": (lambda y: y.relu(), [2, 2]),
    "operand of indexing": (lambda y: y[cg.tensor([0, 1])], [2, 2]),
    "operand of cat": (lambda y: cg.cat([y, y]), [4, 4]),
}


@pytest.mark.parametrize("name", list(HARMLESS))
def test_a_change_of_an_operand_that_was_not_saved_is_harmless(x, name):
    function, gradient = HARMLESS[name]
    y = x * 2
    z = function(y)
    y.add_(1)
    z.sum().backward()
    assert x.grad.tolist() == gradient


def test_a_change_after_backward_is_harmless(x):
    n = cg.ones(2)
    (x * n).sum().backward()
    n.add_(1)
    assert x.grad.tolist() == [1, 1]


# ----- Leaves and views -----

LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
ON_A_LEAF = [
    lambda x: x.add_(1),
    lambda x: x.mul_(x),
    lambda x: x.zero_(),
    lambda x: x.copy_(cg.zeros(2)),
    lambda x: operator.iadd(x, 1),
]


@pytest.mark.parametrize("change", ON_A_LEAF)
def test_a_leaf_is_protected(x, change):
    with pytest.raises(RuntimeError, match=LEAF):
        change(x)
    assert x.tolist() == [1, 2]
    assert x._version == 0


@pytest.mark.parametrize("change", ON_A_LEAF)
def test_a_leaf_may_be_changed_without_grad(x, change):
    with cg.no_grad():
        assert change(x) is x
    assert x.is_leaf
    assert x.requires_grad
    assert x._version == 1


@pytest.mark.parametrize(
    "change", [lambda x: x[0].add_(1), lambda x: x.__setitem__(0, 5), lambda x: x.reshape(1, 2).zero_()]
)
def test_a_leaf_is_protected_through_its_views(x, change):
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"):
        change(x)
    assert x.tolist() == [1, 2]


def test_detach_in_place_cuts_the_history(x):
    y = x * 2
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad
    assert y.grad_fn is None


@pytest.mark.parametrize("changed", [lambda x: x.exp(), lambda x: x.tanh(), lambda x: x.sigmoid()])
def test_a_saved_result_that_is_detached_in_place_keeps_its_history(x, changed):
    """A saved operand is refused then (test_saved_tensors)."""
    recorded, detached = changed(x), changed(x)
    expected, total = recorded.sum(), detached.sum()
    detached.detach_()
    (first,), (second,) = (autograd.grad(y, x, create_graph=True) for y in (expected, total))
    assert first.tolist() == second.tolist()
    assert autograd.grad(first.sum(), x)[0].tolist() == autograd.grad(second.sum(), x, retain_graph=True)[0].tolist()
    detached.requires_grad_()
    assert autograd.grad(total, detached, allow_unused=True, retain_graph=True) == (None,)


def test_a_leaf_that_is_detached_in_place_gets_no_gradient(x):
    """As in torch, also where a node has saved it; it may become a leaf again."""
    y = (x * x).sum()
    x.detach_()
    y.backward(retain_graph=True)
    assert x.grad is None
    with pytest.raises(RuntimeError, match="does not require grad"):
        autograd.grad(y, x)
    x.requires_grad_()
    assert autograd.grad(y, x)[0].tolist() == [2, 4]


# ----- out= -----


def test_out_is_written_and_returned():
    out = cg.zeros(2)
    assert cg.add(cg.ones(2), 2, out=out) is out
    assert out.tolist() == [3, 3]
    assert out._version == 1


def test_out_may_be_an_operand():
    n = cg.tensor([1.0, 2.0])
    assert cg.mul(n, n, out=n) is n
    assert n.tolist() == [1, 4]


@pytest.mark.parametrize("function", [lambda a, out: cg.add(a, a, out=out), lambda a, out: cg.exp(a, out=out)])
def test_out_may_have_a_wider_dtype(function):
    out = cg.empty(2, dtype=cg.float64)
    assert function(cg.zeros(2), out) is out
    assert out.dtype == cg.float64


def test_out_may_be_strided():
    out = cg.zeros(2, 2)
    cg.add(cg.ones(2), 1, out=out.T[0])
    assert out.tolist() == [[2, 0], [2, 0]]


OUT_REFUSED = [
    (
        lambda x: cg.add(x, 1, out=cg.empty(2)),
        RuntimeError,
        "functions with out=... arguments don't support automatic diff",
    ),
    (
        lambda x: cg.add(cg.ones(2), 1, out=x),
        RuntimeError,
        "functions with out=... arguments don't support automatic diff",
    ),
    (
        lambda x: cg.add(cg.ones(2), 1, out=cg.empty(2, dtype=cg.int64)),
        RuntimeError,
        "result type .* can't be cast to the desired output type",
    ),
    (lambda x: cg.exp(cg.ones(2), out=3), TypeError, "out"),
]


@pytest.mark.parametrize(("call", "error", "message"), OUT_REFUSED)
def test_out_refused(x, call, error, message):
    with pytest.raises(error, match=message):
        call(x)
    assert x.tolist() == [1, 2]


def test_out_is_allowed_without_grad(x):
    out = cg.empty(2)
    with cg.no_grad():
        cg.add(x, 1, out=out)
    assert out.tolist() == [2, 3]
    assert not out.requires_grad


# ----- Dtypes and shapes -----

REFUSED = {
    "shape": (lambda n, i: n.add_(cg.ones(3)), "The size of tensor a .2. must match the size of tensor b .3."),
    "more dims": (
        lambda n, i: n.add_(cg.ones(3, 2)),
        r"output with shape \[2\] doesn't match the broadcast shape \[3, 2\]",
    ),
    "growing": (
        lambda n, i: n[:1].add_(cg.ones(2)),
        r"output with shape \[1\] doesn't match the broadcast shape \[2\]",
    ),
    "float number": (lambda n, i: i.add_(1.5), "result type .* can't be cast to the desired output type"),
    "float tensor": (lambda n, i: i.add_(n), "result type .* can't be cast to the desired output type"),
    "division": (lambda n, i: i.div_(2), "result type .* can't be cast to the desired output type"),
    "/=": (lambda n, i: operator.itruediv(i, 2), "result type .* can't be cast to the desired output type"),
    "exp_": (lambda n, i: i.exp_(), "result type .* can't be cast to the desired output type"),
    "int into bool": (lambda n, i: (n > 0).add_(1), "result type .* can't be cast to the desired output type"),
    "expanded": (
        lambda n, i: cg.ones(1).expand(3).add_(1),
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused(name):
    change, message = REFUSED[name]
    n, i = cg.ones(2), cg.ones(2, dtype=cg.int64)
    with pytest.raises(RuntimeError, match=message):
        change(n, i)
    assert n.tolist() == i.tolist() == [1, 1]


def test_an_integer_tensor_keeps_its_dtype():
    i = cg.ones(2, dtype=cg.uint8)
    i.add_(cg.tensor([2, 3]))
    assert i.dtype == cg.uint8
    assert i.tolist() == [3, 4]


def test_overlapping_memory_is_never_wrong():
    n = cg.arange(6.0)
    try:
        n[1:] += n[:-1]
    except RuntimeError as error:
        assert "refer to a single memory location" in str(error)
        assert n.tolist() == [0, 1, 2, 3, 4, 5]
    else:
        assert n.tolist() == [0, 1, 3, 5, 7, 9]
