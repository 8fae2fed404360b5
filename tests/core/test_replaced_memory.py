"""Tensors that get other memory or another size: `.data =`, set_, resize_."""

import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad.ops import dtypes

CHANGED = "modified by an inplace operation"


def test_data_is_assigned_with_any_shape_and_shares_memory():
    x = cg.ones(2, requires_grad=True)
    new = cg.zeros(3)
    x.data = new
    assert x.tolist() == [0, 0, 0]
    assert (x.requires_grad, x.is_leaf) == (True, True)
    new[0] = 5
    assert x.tolist() == [5, 0, 0]
    assert new._version == 1
    x.sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_a_tensor_saved_before_counts_as_changed():
    for change in (lambda t: setattr(t, "data", cg.zeros(2)), lambda t: t.detach().resize_(2)):
        x = cg.ones(2, requires_grad=True)
        y = (x * x).sum()
        change(x)
        if x._version:
            with pytest.raises(RuntimeError, match=CHANGED):
                y.backward()


@pytest.mark.parametrize("value", [3, None, [1.0]])
def test_data_that_is_no_tensor_is_refused(value):
    x = cg.ones(2)
    with pytest.raises(TypeError, match="Variable data has to be a tensor"):
        x.data = value
    assert x.tolist() == [1, 1]


# ----- `.data =` of another dtype -----
DTYPES = [getattr(cg, row.name) for row in dtypes.DTYPES if row.kind != "u"]      # unsigned integers have no sum


@pytest.mark.cases("new", DTYPES)
@pytest.mark.cases("old", DTYPES)
def test_data_may_be_of_another_dtype(old, new):
    """All attributes of the tensor are of the new dtype; views and aliases keep the old memory, and read it as before."""
    x = cg.arange(6).to(old).reshape(2, 3)
    view, alias, expected = x[1:], x.detach(), x[1:].tolist()
    x.data = value = cg.arange(12).to(new)[::2]
    assert (x.dtype, x.shape, x.stride(), x.storage_offset(), x.itemsize) == (new, (6,), (2,), 0, new.itemsize)
    assert x.tolist() == (x + cg.zeros(6, dtype=new)).tolist() == x.numpy().tolist() == value.tolist()
    assert (view.dtype, view.tolist(), alias[1:].tolist(), (view + view).dtype) == (old, expected, expected, old)
    x.zero_()
    assert not value.any()
    assert view.tolist() == expected


@pytest.mark.cases("new", DTYPES)
@pytest.mark.cases("make", [lambda x: x, lambda x: x * 2, lambda x: x[1:]])
def test_data_of_a_tensor_that_requires_a_gradient_stays_floating_point(make, new):
    tensor = make(cg.ones(3, requires_grad=True))
    if new.is_differentiable:
        tensor.data = cg.ones(2, dtype=new)
        assert (tensor.dtype, tensor.requires_grad) == (new, True)
    else:
        with pytest.raises(RuntimeError, match="data set to a tensor that requires gradients must be floating point or complex dtype"):
            tensor.data = cg.ones(2, dtype=new)
        assert tensor.dtype is cg.float32


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("size", [3, 300_000])
def test_gradients_of_before_and_after_another_dtype_add_up(size, create_graph):
    x, weight = cg.ones(size, requires_grad=True), cg.full((size,), 2.0)
    before = (x * weight).sum()
    x.data = cg.full((size,), 3.0, dtype=cg.float64)
    before.backward(create_graph=create_graph)
    assert (x.grad.dtype, set(x.grad.tolist())) == (cg.float64, {2})
    (x * weight).sum().backward(create_graph=create_graph)
    assert (x.grad.dtype, set(x.grad.tolist())) == (cg.float64, {4})


def test_a_gradient_from_before_another_dtype_keeps_its_own():
    x = cg.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    x.data = cg.ones(3, dtype=cg.float64)
    (x * x).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (cg.float32, [4, 4, 4])


def test_results_of_another_dtype_have_the_history_they_had():
    x = cg.ones(3, requires_grad=True)
    y, z = x * 2, x.exp()
    whole = (y.sum(), z.sum())
    y.data = z.data = cg.full((3,), 5.0, dtype=cg.float64)
    assert cg.autograd.grad(whole[1], x)[0].tolist() == pytest.approx(np.exp([1.0] * 3))     # z has saved its old value
    gradient, = cg.autograd.grad((y * y).sum(), x)
    assert (gradient.dtype, gradient.tolist()) == (cg.float32, [20, 20, 20])


def test_a_tensor_saved_before_another_dtype_counts_as_changed():
    x, saved = cg.ones(3, requires_grad=True), cg.ones(3)
    y, of_view = (x * saved).sum(), (x[1:] * saved[1:]).sum()
    saved.data = cg.ones(3, dtype=cg.float64)
    with pytest.raises(RuntimeError, match=CHANGED):
        y.backward()
    of_view.backward()
    assert x.grad.tolist() == [0, 1, 1]


def test_resize():
    x = cg.arange(6)
    assert x.resize_(2, 2) is x
    assert x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_((6,)).tolist() == [0, 1, 2, 3, 4, 5]
    assert x.resize_(10)[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert x.resize_(0).shape == (0,)
    assert x.resize_as_(cg.ones(2, 3)).shape == (2, 3)
    assert cg.ones(2).resize_(*[1] * 12).ndim == 12


@pytest.mark.parametrize(("change", "version"), [     # as torch 2.13 counts
    (lambda t: t.resize_(4), 0), (lambda t: t.resize_(2), 1), (lambda t: t.resize_(2, 2), 1), (lambda t: t.resize_(9), 1),
    (lambda t: t.resize_as_(cg.ones(4)), 0), (lambda t: t.resize_as_(cg.ones(5)), 1), (lambda t: t.resize_(2).resize_(2), 1),
    (lambda t: t.set_(cg.ones(4)), 1), (lambda t: t.t_(), 1), (lambda t: t.unsqueeze_(0), 1), (lambda t: t.squeeze_(), 1),
])
def test_a_new_layout_counts_as_a_change_and_the_same_layout_does_not(change, version):
    x, saved = cg.ones(4, requires_grad=True), cg.ones(4)
    y = (x * saved).sum()
    change(saved)
    assert saved._version == version
    if version:
        with pytest.raises(RuntimeError, match=CHANGED):
            y.backward()
    else:
        y.backward()
        assert x.grad.tolist() == [1, 1, 1, 1]


def test_set_to_the_memory_of_a_tensor_does_not_change_it():
    x, saved = cg.ones(4, requires_grad=True), cg.ones(4)
    y = (x * saved).sum()
    other = cg.ones(0).add_(1).set_(saved)
    y.backward(retain_graph=True)
    other[2] = 5
    with pytest.raises(RuntimeError, match=CHANGED):
        y.backward()


def test_a_resized_tensor_leaves_its_aliases_their_memory():
    array = np.arange(4.0)
    x = cg.from_numpy(array)
    view, alias = x[1:], x.detach()
    x.resize_(1000)
    x.fill_(7)
    assert array.tolist() == view._base.numpy()[:0].tolist() + [0, 1, 2, 3]
    assert view.tolist() == [1, 2, 3]
    assert alias.tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="was given other memory since"):
        view.mul_(cg.ones(3, requires_grad=True))


@pytest.mark.parametrize("call", [
    lambda x: x.resize_(3), lambda x: (x * 1).resize_(3), lambda x: x.set_(cg.ones(2)), lambda x: cg.ones(2).set_(x),
    lambda x: cg.ones(2).set_(cg.ones(2, dtype=cg.int64)), lambda x: cg.ones(2).resize_(-1), lambda x: cg.ones(2).resize_(2**40, 2**40),
    lambda x: cg.ones(2).set_(cg.ones(4), 3, (2,)), lambda x: cg.ones(2).set_(cg.ones(4), 0, (2,), (-1,)),
])
def test_refused(call):
    x = cg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        call(x)
    assert x.tolist() == [1, 1]


def test_set_shares_memory_and_each_counts_its_own_changes():
    x, source = cg.ones(2), cg.arange(6.0)
    source.add_(0)
    assert x.set_(source, 1, (2, 2), (3, 1)) is x
    assert x.tolist() == [[1, 2], [4, 5]]
    x[0, 0] = 9
    assert source[1].item() == 9
    assert (x._version, source._version) == (2, 1)
    assert x.set_(source, 0, (3,)).tolist() == [0, 9, 2]
    assert x.set_().shape == (0,)
    with pytest.raises(TypeError):
        x.set_(3)


def test_a_leaf_takes_other_memory_where_nothing_is_recorded():
    x = cg.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.set_(cg.ones(2))
    before = (x * x).sum()
    with cg.no_grad():
        x.set_(cg.full((2,), 3.0))
    assert x.requires_grad and x.is_leaf and x._version == 1
    (x * x).sum().backward()
    assert x.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        before.backward()


def test_memory_is_replaced_while_another_thread_reads_it():
    x, total = cg.ones(400_000), []
    stop = threading.Event()

    def replace():
        while not stop.is_set():
            x.data = cg.ones(400_000)
            x.resize_(300_000)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(100):
            total.append(float((x.detach() * 2).max()))
            x.sum()
            x.clone()
    finally:
        stop.set()
        thread.join()
    assert set(total) == {2.0}


# ----- The graph of a tensor that was given other memory -----
def test_set_in_no_grad_cuts_a_leaf_from_the_graph():
    """Each piece of the graph ends at the accumulator that the leaf had; edges from before reach it, the leaf does not."""
    x = cg.ones(2, requires_grad=True)
    pieces, edges = [], []
    for factor in (3, 5, 7):
        pieces.append((x * factor).sum())
        edges.append(cg.autograd.graph.get_gradient_edge(x))
        with cg.no_grad():
            x.set_(cg.ones(2))
    total = sum(pieces)
    for edge, factor in zip(edges, (3, 5, 7), strict=True):
        assert cg.autograd.grad(total, edge, retain_graph=True)[0].tolist() == [factor] * 2
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        cg.autograd.grad(total, x)
    assert (x.requires_grad, x.is_leaf) == (True, True)
    (gradient,) = cg.autograd.grad((x * 2).sum() + total, x)
    assert gradient.tolist() == [2, 2]


@pytest.mark.parametrize("edge_first", [False, True])
def test_an_edge_from_before_works_for_any_new_shape(edge_first):
    x = cg.ones(2, requires_grad=True)
    edge = cg.autograd.graph.get_gradient_edge(x) if edge_first else None
    out = (x * 3).sum()
    edge = edge or cg.autograd.graph.get_gradient_edge(x)
    with cg.no_grad():
        x.set_(cg.zeros(3))
    assert cg.autograd.grad(out, edge, retain_graph=True)[0].tolist() == [3, 3]
    with pytest.raises(RuntimeError, match=r"a gradient of shape \[2\].*arrived at a leaf of shape \[3\]"):
        out.backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_inference_tensors_that_require_a_gradient_are_resized_in_inference_mode():
    with cg.inference_mode():
        x = cg.ones(2, requires_grad=True)
        assert x.resize_(3).shape == (3,)
        assert x.resize_as_(cg.ones(2, 2)).shape == (2, 2)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        cg.ones(2, requires_grad=True).resize_(3)


# ----- Other sizes of memory that elements share -----
REARRANGED = {
    "unsqueeze_": ((0,), (1, 1, 3)), "squeeze_": ((), (3,)), "t_": ((), (3, 1)), "transpose_": ((0, 1), (3, 1)),
    "swapaxes_": ((0, 1), (3, 1)), "swapdims_": ((0, 1), (3, 1)), "as_strided_": (((2,), (0,)), (2,)),
}  # fmt: skip


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", list(REARRANGED))
def test_expanded_tensors_are_rearranged_in_place(name, recorded):
    """No element is written, so elements may share memory, and memory may be read-only."""
    arguments, shape = REARRANGED[name]
    leaf = cg.full((1, 1), 2.0, requires_grad=recorded)
    x = (leaf * 1).expand(1, 3)
    assert getattr(x, name)(*arguments) is x
    assert x.shape == shape
    if recorded:
        x.sum().backward()
        assert leaf.grad.tolist() == [[x.numel()]]
    array = np.ones((1, 3), np.float32)
    array.flags.writeable = False
    constant = cg.from_numpy(array)
    getattr(constant, name)(*((2,), (1,)) if name == "as_strided_" else arguments)
    assert constant.shape == shape


def test_every_rearranging_method_is_tested():
    names = {name for name in dir(cg.Tensor) if name.endswith("_") and not name.startswith("_")
             and "takes on the view's sizes, strides and history" in (getattr(cg.Tensor, name).__doc__ or "")}
    assert names == {*REARRANGED}


@pytest.mark.parametrize("change", [lambda x: x.resize_(2), lambda x: x.resize_as_(cg.ones(2)), lambda x: x.set_(cg.ones(2))])
def test_expanded_tensors_are_resized_and_laid_over_other_memory(change):
    x = cg.ones(1, 1).expand(1, 3)
    assert change(x).shape == (2,)
