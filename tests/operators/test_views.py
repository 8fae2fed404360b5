"""In-place changes of bases and views: gradients, histories that follow, and refusals, as in torch."""

import gc
import weakref

import numpy as np
import pytest

import cygrad as cg
from cygrad import autograd
from cygrad._testing import live_bytes

# Programs that change a copy of x in place (w: another leaf), each compared with central differences, twice over.
PROGRAMS = {
    "view of base": lambda y, w: y[:2].mul_(w[:2]),
    "two views": lambda y, w: (y[:2].mul_(w[:2]), y[1:].add_(w[1:])),
    "view of a view": lambda y, w: y.reshape(2, 2)[1].mul_(w[2:]),
    "transposed view": lambda y, w: y.view(2, 2).T[0].mul_(w[:2]),
    "stepped view": lambda y, w: y[::2].exp_(),
    "base, then view": lambda y, w: (y.mul_(w), y[0].sin_()),
    "view kept over a change of its base": lambda y, w: [v := y[1:], y.mul_(w), v.mul_(2.0), y.add_(v.sum())],
    "sibling view read after a change": lambda y, w: [a := y[:2], b := y[1:3], a.mul_(w[:2]), y[3:].add_(b.sum())],
    "view times another part of the base": lambda y, w: y[0].mul_(y[1].clone()),
    "broadcast into a view": lambda y, w: y.view(2, 2).add_(w[:2]),
    "scalar written": lambda y, w: y.__setitem__(1, 3.0),
    "part written": lambda y, w: y.__setitem__(slice(1, 3), w[:2] * y[0].clone()),
    "index array written": lambda y, w: y.__setitem__(cg.tensor([3, 0]), w[:2]),
    "index array written through a view": lambda y, w: y[1:].__setitem__(cg.tensor([2, 0]), w[:2]),
    "mask written": lambda y, w: y.__setitem__(cg.tensor([True, False, False, True]), w[0]),
    "copied into a view": lambda y, w: y[1:3].copy_(w[2:]),
    "view filled": lambda y, w: y[1:].fill_(0.5),
    "view zeroed": lambda y, w: y.view(2, 2)[:, 1].zero_(),
    "not differentiable": lambda y, w: y[:2].copy_(y[:2].detach() > 0),
    "clamped": lambda y, w: y[1:].clamp_(-0.4, 0.9),
    "accumulated": lambda y, w: [y[k].add_(y[k - 1].clone() * w[k]) for k in range(1, 4)],
    "a view of a view that was changed": lambda y, w: [a := y.view(2, 2), b := a[0], a.mul_(w.view(2, 2)), b.mul_(w[:2])],
    "unsqueezed": lambda y, w: y.unsqueeze(0).mul_(w),
    "as_strided": lambda y, w: y.as_strided((2,), (2,), 1).mul_(w[:2]),
    "saved result of a view": lambda y, w: (y.mul_(w), y[1:3].exp_()),
    "saved result of a view that is read": lambda y, w: [v := y[1:3], y.mul_(w), v.tanh_()],
    "diagonal of a matrix": lambda y, w: y.view(2, 2).as_strided((2,), (3,)).mul_(w[:2]),
}


@pytest.mark.cases("name", PROGRAMS)
@pytest.mark.cases("layout", ["dense", "stepped", "plain"])
def test_gradients(name, layout):
    def run(x, w):
        y = x * 1 if layout == "dense" else cg.from_numpy(np.zeros(8)[::2]) if layout == "stepped" else x.detach().clone()
        if layout == "stepped":
            y.copy_(x)
        results = PROGRAMS[name](y, w)
        views = [v for v in results if isinstance(v, cg.Tensor)] if isinstance(results, list | tuple) else []
        return [t for t in (y * 1, *(v * 1 for v in views)) if t.requires_grad]

    x = cg.tensor([0.3, -0.7, 1.1, 0.5], dtype=cg.float64, requires_grad=True)
    w = cg.tensor([1.5, 0.4, -0.8, 0.9], dtype=cg.float64, requires_grad=True)
    if not run(x, w):
        assert layout == "plain"
        return
    leaves = (x, w) if layout != "plain" else (w,)
    function = run if layout != "plain" else lambda w: run(x, w)
    assert autograd.gradcheck(function, leaves)
    assert autograd.gradgradcheck(function, leaves)


@pytest.fixture
def x():
    return cg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)


# ----- Histories -----
def test_a_plain_base_takes_on_the_history_of_its_view():
    base, w = cg.ones(4), cg.tensor([2.0, 3.0], requires_grad=True)
    view, sibling = base[:2], base[2:]
    view.mul_(w)
    assert base.requires_grad
    assert not base.is_leaf
    assert base.grad_fn.name() == "CopySlices"
    assert [node and node.name() for node, _ in base.grad_fn.next_functions] == [None, "AccumulateGrad"]
    assert view.grad_fn.name() == sibling.grad_fn.name() == "AsStridedBackward0"
    assert view.grad_fn.next_functions == sibling.grad_fn.next_functions == ((base.grad_fn, 0),)
    assert sibling.requires_grad
    assert not sibling.is_leaf
    (base * cg.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    assert w.grad.tolist() == [1, 10]


def test_the_node_of_a_view_stays_while_nothing_changes(x):
    y = x * 1
    view = y[1:]
    node = view.grad_fn
    assert node.name() == "SliceBackward0"
    assert view.grad_fn is node
    y.detach().numpy()[0] = 7  # not noticed, as documented
    assert view.grad_fn is node
    y.mul_(2)
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert view.grad_fn is view.grad_fn


def test_names_of_nodes_that_write(x):
    y = x * 1
    y.copy_(x)
    assert y.grad_fn.name() == "CopyBackwards"
    assert [node.name() for node, _ in y.grad_fn.next_functions] == ["MulBackward0", "AccumulateGrad"]
    y.zero_()
    assert y.grad_fn.name() == "ZeroBackward0"
    y.fill_(1)
    assert y.grad_fn.name() == "FillBackward0"
    y[cg.tensor([0, 1])] = 5.0
    assert y.grad_fn.name() == "IndexPutBackward0"
    y[0] = 1.0
    assert y.grad_fn.name() == "CopySlices"


def test_many_parts_of_one_base_cost_no_copies_of_the_base(x):
    parts = 200
    base = cg.zeros(parts, 1000)
    scale = cg.ones(1, requires_grad=True)
    for k in range(parts):
        base[k] = scale * k
    before = live_bytes()
    peak = 0

    def watch(gradient):
        nonlocal peak
        peak = max(peak, live_bytes() - before)

    scale.register_hook(watch)
    base.sum().backward()
    assert scale.grad.item() == 1000 * sum(range(parts))
    assert peak < 3 * base.nbytes


def test_retain_grad_moves_to_the_new_history(x):
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1, 1, 1, 1]
    assert x.grad.tolist() == [6, 6, 6, 6]


def test_a_hook_stays_with_the_history_of_its_time(x):
    seen = []
    y = x * 2
    y.register_hook(lambda gradient: seen.append(gradient.tolist()))
    y.mul_(3)
    y.register_hook(lambda gradient: seen.append(gradient.tolist()))
    y.sum().backward()
    assert seen == [[1, 1, 1, 1], [3, 3, 3, 3]]


def test_an_operator_without_gradient_cuts_the_history(x):
    y = x * 1
    y.gt_(2)
    y.sum().backward()
    assert y.tolist() == [0, 0, 1, 1]
    assert x.grad.tolist() == [0, 0, 0, 0]


def test_versions_are_shared_and_detached_tensors_are_no_views(x):
    y = x * 1
    view, detached, data = y[1:], y.detach(), y.data
    assert (view._is_view(), detached._is_view(), data._is_view()) == (True, False, False)
    assert view._base is y
    assert view[1:]._base is y
    assert detached._base is None
    detached.mul_(2)
    assert (y._version, view._version, data._version) == (1, 1, 0)
    data.mul_(2)
    assert (y._version, data._version) == (1, 1)


@pytest.mark.parametrize("change", [lambda y: y[1:].mul_(2), lambda y: y.mul_(2), lambda y: y.detach().mul_(2),
                                    lambda y: y.view(2, 2).zero_(), lambda y: y.__setitem__(0, 1.0)])
def test_a_saved_tensor_that_was_changed_by_any_route_is_an_error(x, change):
    y = x * 1
    z = y.exp().sum() + (y * y).sum()
    change(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*is at version 1; expected version 0 instead"):
        z.backward()


@pytest.mark.parametrize("change", [lambda y: y.data.mul_(2), lambda y: y.data[1:].zero_(), lambda y: y.data.data.add_(1),
                                    lambda y: y.detach().data.mul_(2), lambda y: setattr(y, "data", cg.zeros(4))])
def test_a_change_through_data_is_found_too(x, change):
    """Torch would give a wrong gradient in silence."""
    y = x * 1
    data, before = y.data, y._version
    z = y.exp().sum() + (y * y).sum()
    change(y)
    assert data._version == 0
    assert y._version in (before, before + 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_a_saved_alias_notices_changes_of_its_memory(x):
    y = cg.ones(4)
    z = (x * y.data).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


# ----- Refusals -----
LEAF = "a leaf Variable that requires grad is being used in an in-place operation"
VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation"
NO_GRAD = "A view was created in no_grad mode and {} modified inplace with grad mode enabled. Given that this use case is ambiguous"
SEVERAL = "Output 0 of {} is a view and {} modified inplace. This view is the output of a function that returns multiple views"


def viewed_without_grad(y):
    with cg.no_grad():
        return y[1:]


@pytest.mark.parametrize(("change", "message"), [
    (lambda x, y: x.mul_(2), LEAF),
    (lambda x, y: x.zero_(), LEAF),
    (lambda x, y: x[0].mul_(2), VIEW_OF_LEAF),
    (lambda x, y: x.__setitem__(0, 2), VIEW_OF_LEAF),
    (lambda x, y: x.view(2, 2).T.zero_(), VIEW_OF_LEAF),
    (lambda x, y: viewed_without_grad(y).mul_(2), NO_GRAD.format("is being")),
    (lambda x, y: viewed_without_grad(y)[0].mul_(2), NO_GRAD.format("is being")),
    (lambda x, y: viewed_without_grad(x).mul_(2), NO_GRAD.format("is being")),
    (lambda x, y: y.split(2)[0].mul_(2), SEVERAL.format("Split", "is being")),
    (lambda x, y: y.split([1, 3])[0].mul_(2), SEVERAL.format("SplitWithSizes", "is being")),
    (lambda x, y: y.chunk(2)[0].zero_(), SEVERAL.format("Split", "is being")),
    (lambda x, y: y.unbind()[0].mul_(2), SEVERAL.format("Unbind", "is being")),
    (lambda x, y: next(iter(y)).mul_(2), SEVERAL.format("Unbind", "is being")),
    (lambda x, y: y.expand(2, 4).mul_(2), "more than one element of the written-to tensor refers to a single memory location"),
    (lambda x, y: y.as_strided((3, 2), (1, 1)).mul_(2), "more than one element of the written-to tensor"),
    (lambda x, y: y[:2].detach_(), "Can't detach views in-place. Use detach() instead"),
    (lambda x, y: y.requires_grad_(False), "you can only change requires_grad flags of leaf variables"),
    (lambda x, y: y[:2].requires_grad_(False), "you can only change requires_grad flags of leaf variables"),
])
def test_refused(x, change, message):
    y = x * 1
    with pytest.raises(RuntimeError) as error:
        change(x, y)
    assert message in str(error.value)
    assert y.tolist() == x.tolist() == [1, 2, 3, 4]
    assert (x._version, y._version) == (0, 0)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(("view", "message"), [
    (lambda y: y.split(2)[0], SEVERAL.format("Split", "its base or another view of its base has been")),
    (lambda y: y.unbind()[0], SEVERAL.format("Unbind", "its base or another view of its base has been")),
    (viewed_without_grad, NO_GRAD.format("its base or another view of its base has been")),
])
def test_a_view_that_cannot_follow_its_base_is_refused_when_it_is_read(x, view, message):
    y = x * 1
    v = view(y)
    y.mul_(2)
    for read in (lambda: v.grad_fn, lambda: v * 2, lambda: v.is_leaf):
        with pytest.raises(RuntimeError) as error:
            read()
        assert message in str(error.value)
    assert v.detach().tolist() is not None
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2, 2]


def test_views_made_without_grad_follow_their_base(x):
    view = viewed_without_grad(x)
    assert view.requires_grad  # since its base does; it leads nowhere, as in torch
    assert view.grad_fn is None
    with cg.no_grad():
        view.mul_(2)
    assert x.tolist() == [1, 4, 6, 8]


def test_plain_views_of_several_may_be_changed_where_nothing_is_recorded():
    base = cg.ones(4)
    first, second = base.split(2)
    first.mul_(2)
    assert base.tolist() == [2, 2, 1, 1]
    with pytest.raises(RuntimeError, match="the output of a function that returns multiple views"):
        second.mul_(cg.ones(2, requires_grad=True))


def test_a_view_of_a_base_that_becomes_a_leaf():
    base = cg.ones(4)
    view = base[:2]
    base.requires_grad_()
    assert view.requires_grad
    with pytest.raises(RuntimeError, match=VIEW_OF_LEAF):
        view.mul_(2)


def test_a_base_that_was_detached(x):
    y = x * 1
    view = y[:2]
    y.detach_()
    assert view.grad_fn.name() == "SliceBackward0"
    view.sum().backward()
    assert x.grad.tolist() == [1, 1, 0, 0]


# ----- Views that were made without a history -----
def without_history(how):
    x = cg.arange(1.0, 5.0).requires_grad_()
    if how == "before the base required a gradient":
        base = cg.arange(1.0, 5.0)
        view = base[1:3]
        return base.requires_grad_(), base, view
    base = x if how == "of a leaf" else x * 2
    with cg.inference_mode() if how == "in inference mode" else cg.no_grad():
        return x, base, base[1:3]


@pytest.mark.parametrize("how", ["of a leaf", "of a result", "in inference mode", "before the base required a gradient"])
def test_a_view_that_was_made_without_a_history_is_reached_by_no_gradient(how):
    """It requires a gradient, since its base does, and is a leaf, as in torch 2.13."""
    x, base, view = without_history(how)
    assert (view.requires_grad, view.is_leaf, view.grad_fn, view.retain_grad()) == (True, True, None, None)
    calls = []
    view.register_hook(calls.append)
    y = (base * base).sum() if how == "in inference mode" else (base * base).sum() + (view * 3).sum()
    assert cg.autograd.grad(y, [view], allow_unused=True, retain_graph=True) == (None,)
    of_x, of_view = cg.autograd.grad(y, [x, view], allow_unused=True, retain_graph=True)
    assert of_view is None
    assert of_x.tolist() == cg.autograd.grad(y, x, retain_graph=True)[0].tolist()
    assert cg.autograd.grad(y, view, materialize_grads=True, retain_graph=True)[0].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 0 appears to not have been used in the graph"):
        cg.autograd.grad(y, view, retain_graph=True)
    y.backward(inputs=[view])
    assert view.grad is None
    assert x.grad is None
    assert calls == []


# ----- Memory -----
def test_a_cycle_through_a_changed_base_is_collected():
    def make(how):
        y = cg.ones(4, requires_grad=True) * 1
        how(y)
        return weakref.ref(y)

    gc.collect()
    for how in (lambda y: y[0].mul_(y[1]), lambda y: y.mul_(y[0]), lambda y: y.add_(y * cg.ones(4, requires_grad=True)),
                lambda y: y[:2].add_(y[2:] * cg.ones(2, requires_grad=True))):
        reference = make(how)
        gc.collect()
        assert reference() is None


# ----- Views of several outputs -----
def test_gradients_of_parts_that_are_not_used_are_zero(x):
    first, _, third = x.split([1, 2, 1])
    (first * 2 + third * 3).sum().backward()
    assert x.grad.tolist() == [2, 0, 0, 3]


def test_numbers_of_outputs(x):
    parts = (x * 1).unbind()
    assert [part.output_nr for part in parts] == [0, 1, 2, 3]
    assert len({part.grad_fn for part in parts}) == 1
    assert cg.ones(0, 3).unbind() == ()
    assert [part.shape for part in cg.ones(2, 0).unbind()] == [(0,), (0,)]
    assert [part.shape for part in cg.ones(0, 3).chunk(2)] == [(0, 3), (0, 3)]
    assert [len(part) for part in cg.ones(10).chunk(4)] == [3, 3, 3, 1]


# ----- NumPy's transpose -----
ORDERED = [
    (lambda x: x.transpose(), (2, 1, 0)),
    (lambda x: x.transpose(None), (2, 1, 0)),
    (lambda x: x.transpose(axes=None), (2, 1, 0)),
    (lambda x: x.transpose(1, 0, 2), (1, 0, 2)),
    (lambda x: x.transpose((2, 0, 1)), (2, 0, 1)),
    (lambda x: x.transpose([0, -1, 1]), (0, 2, 1)),
    (lambda x: cg.transpose(x, (1, 0, 2)), (1, 0, 2)),
    (lambda x: cg.transpose(x, axes=[1, 0, 2]), (1, 0, 2)),
    (lambda x: x.clone().transpose_((2, 0, 1)), (2, 0, 1)),
    (lambda x: np.transpose(x, (1, 0, 2)), (1, 0, 2)),
    (lambda x: x.transpose(1, 0), (1, 0, 2)),       # two dims are exchanged, as in torch
    (lambda x: x.transpose(0, 1), (1, 0, 2)),
    (lambda x: x.transpose(dim0=0, dim1=-1), (2, 1, 0)),
]


@pytest.mark.cases("transpose, order", ORDERED)
def test_transpose_takes_the_order_of_all_dims_where_two_would_be_missing(transpose, order):
    array = np.arange(24.0).reshape(2, 3, 4)
    expected = array.transpose(order)
    x = cg.tensor(array, requires_grad=True)
    result = transpose(x)
    assert result.tolist() == expected.tolist()
    assert cg.autograd.grad(result, x, result.detach())[0].tolist() == array.tolist()
    assert cg.func.jvp(transpose, (x.detach(),), (x.detach(),))[1].tolist() == expected.tolist()
    assert cg.vmap(transpose)(cg.tensor(np.stack([array, -array]))).tolist() == [expected.tolist(), (-expected).tolist()]


ORDER_REFUSED = [
    (lambda x: x.transpose(0), TypeError, 'missing 1 required positional argument: "dim1"'),
    (lambda x: x.transpose((0, 1)), RuntimeError, "number of dimensions in the tensor input does not match"),
    (lambda x: x.transpose(0, 0, 1), RuntimeError, "duplicate dims are not allowed"),
    (lambda x: x.transpose(0, 1, axes=(0, 1, 2)), TypeError, "the order of dims was given twice"),
    (lambda x: x.transpose((0, 1, 3)), IndexError, "Dimension out of range"),
    (lambda x: x.transpose("ab"), TypeError, "transpose"),
]


@pytest.mark.cases("call, kind, message", ORDER_REFUSED)
def test_no_order_of_all_dims(call, kind, message):
    with pytest.raises(kind, match=message):
        call(cg.ones(2, 3, 4))
