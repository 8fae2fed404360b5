"""Saved tensors: hooks, names, files, clones on mutation, and their release during backward."""

import contextlib
import gc
import math
import os
import threading
import weakref

import numpy as np
import pytest

import cygrad as cg
from cygrad._core.compute.dispatch import ops
from cygrad._testing import live_bytes
from cygrad.autograd import Function, grad
from cygrad.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    save_on_disk,
    saved_tensors_hooks,
)
from cygrad.ops import ELEMENTWISE


class Product(Function):
    """Save both inputs, the output and None."""

    @staticmethod
    def forward(ctx, a, b):
        y = a * b
        ctx.save_for_backward(a, b, y, None)
        return y

    @staticmethod
    def backward(ctx, g):
        a, b, y, nothing = ctx.saved_tensors
        assert nothing is None
        return g * y / a, g * a


def leaf(*values):
    return cg.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def numpy_hooks():
    return saved_tensors_hooks(lambda t: t.numpy(force=True).copy(), cg.from_numpy)


# Functions whose nodes save operands, a result, both, a mask, a scalar beside a tensor; by rows, rules and user Functions.
FUNCTIONS = {
    "operands": lambda x: x * x,
    "result": lambda x: x.exp(),
    "operand and result": lambda x: x ** (x + 1),
    "scalar": lambda x: x**3,
    "broadcast": lambda x: x.reshape(3, 1) * x,
    "mask": lambda x: cg.where(x > 1.5, x * x, x),
    "rule": lambda x: x.softmax(0) * x.reshape(1, 3).matmul(x.reshape(3, 1)),
    "reduction": lambda x: x.prod() + x.std() + x.logsumexp(0) + x.amax(),
    "Function": lambda x: Product.apply(x, x.exp()),
    "in place": lambda x: (x * x).sin_().mul_(x),
    "view": lambda x: x[1:].tanh() * x[:-1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("hooks", [numpy_hooks, save_on_cpu, lambda: save_on_cpu(pin_memory=True), None],
                         ids=["copy", "cpu", "pinned", "disk"])
def test_hooks_keep_gradients(name, hooks, tmp_path):
    """First and second derivatives have the same bits: an unpacked tensor has the history of the saved one."""
    hooks = hooks or (lambda: save_on_disk(tmp_path, min_bytes=0))
    function = FUNCTIONS[name]

    def derivatives(context):
        x = cg.tensor([1.0, 2.0, 3.0], dtype=cg.float64, requires_grad=True)
        with context:
            y = function(x).sum()
        (first,) = grad(y, x, create_graph=True)
        (second,) = grad((first * first).sum(), x)
        return first.tolist(), second.tolist()

    assert derivatives(hooks()) == derivatives(cg.enable_grad())


def test_hooks_get_the_tensors_that_torch_shows():
    """A leaf itself, a result with its own node, history of operands; not recorded; unpacked with the history again."""
    seen = []

    def note(kind):
        def hook(t):
            seen.append((kind, t.requires_grad, t.is_leaf, str(t.grad_fn), cg.is_grad_enabled()))
            return t
        return hook

    x = leaf()
    with saved_tensors_hooks(lambda t: seen.append(t is x) or note("pack")(t), note("unpack")):
        y = x * x
        z = y.exp()
    assert seen[::2] == [True, True, False]
    assert seen[1::2] == [("pack", True, True, "None", False)] * 2 + [("pack", True, False, "<ExpBackward0>", False)]
    assert (z.grad_fn._saved_result.grad_fn is z.grad_fn, y.grad_fn._saved_self.is_leaf) == (True, True)
    assert y.grad_fn._saved_self.requires_grad
    seen.clear()
    grad(z.sum(), x, create_graph=True)
    assert [kind for kind, *_ in seen] == ["unpack"] * 3
    assert all(enabled for *_, enabled in seen)


def test_the_innermost_pair_applies_in_this_thread_only():
    calls = []

    def noting(name):
        return saved_tensors_hooks(lambda t: calls.append(name) or t.detach(), lambda t: t)

    x = leaf()
    with noting("outer"):
        x.exp()
        with noting("inner"):
            x.exp()
            thread = threading.Thread(target=x.exp)
            thread.start()
            thread.join()
        x.exp()
    x.exp()
    assert calls == ["outer", "inner", "outer"]


def identity(t):
    return t


def raising(t):
    raise KeyError("mine")


def push(pack, unpack):
    def use():
        x = leaf()
        with saved_tensors_hooks(pack, unpack):
            y = x * x
        y.sum().backward()
    return use


def disabled(inner):
    def use():
        with disable_saved_tensors_hooks("not here"), inner():
            pass
    return use


def register(make, *hooks):
    def use():
        saved = make()
        for pack, unpack in hooks:
            saved.register_hooks(pack, unpack)
    return use


def result_of_exp():
    return leaf().exp().grad_fn._raw_saved_result


def freed():
    y = leaf().exp()
    saved = y.grad_fn._raw_saved_result
    y.sum().backward()
    return saved


def changed():
    a = leaf() * 1
    y = a * a
    with cg.no_grad():
        a.mul_(2)
    return y.grad_fn._raw_saved_self


def outlived():
    with allow_mutation_on_saved_tensors():
        y = leaf().exp().sum()
    y.backward()


def nested_mutation():
    with allow_mutation_on_saved_tensors(), allow_mutation_on_saved_tensors():
        pass


def changed_after_packing():
    x = leaf()
    with saved_tensors_hooks(identity, identity):
        a = x * 1
        y = a * a
    with cg.no_grad():
        a.mul_(2)
    y.sum().backward()


def left_without_entering():
    saved_tensors_hooks(identity, identity).__exit__(None, None, None)


BAD_USES = {
    "not callable": (push(1, 2), TypeError, "incompatible function arguments.*got int and int"),
    "no tensor unpacked": (push(identity, lambda t: 1), TypeError,
                           "Output of saved tensor unpack_hook expected to be a Tensor but got result of type int"),
    "changed by pack": (push(lambda t: t.detach().mul_(2), identity), RuntimeError,
                        "A saved tensor pack hook is modifying its input in place."),
    "pack raises": (push(raising, identity), KeyError, "mine"),
    "unpack raises": (push(identity, raising), KeyError, "mine"),
    "wrong shape": (push(identity, lambda t: t[:2]), RuntimeError, "The size of tensor a"),
    "changed after packing": (changed_after_packing, RuntimeError,
                              "modified by an inplace operation.*output 0 of MulBackward0, is at version 1"),
    "disabled": (disabled(numpy_hooks), RuntimeError, "^not here$"),
    "disabled save_on_cpu": (disabled(save_on_cpu), RuntimeError, "^not here$"),
    "disabling active hooks": (lambda: numpy_hooks().__enter__() or disabled(numpy_hooks)(), RuntimeError, "^not here$"),
    "left without entering": (left_without_entering, RuntimeError, "no pair of hooks is active"),
    "hooks twice": (register(result_of_exp, (identity, identity), (identity, identity)), RuntimeError,
                    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair"),
    "hooks on None": (register(lambda: (leaf() * 2).grad_fn._raw_saved_self, (identity, identity)), RuntimeError,
                      "Calling register_hooks on a saved tensor with value None is forbidden"),
    "hooks on freed": (register(freed, (identity, identity)), RuntimeError,
                       "Calling register_hooks on a saved tensor after it has been freed"),
    "hooks on changed": (register(changed, (identity, identity)), RuntimeError, "modified by an inplace operation"),
    "register not callable": (register(result_of_exp, (1, 2)), TypeError, "incompatible function arguments"),
    "made in Python": (lambda: type(result_of_exp())(), RuntimeError, "Trying to create a SavedTensor object from Python is forbidden"),
    "no such directory": (lambda: save_on_disk("/nowhere/at/all"), NotADirectoryError, "is not a directory"),
    "backward outside": (outlived, AssertionError,
                         "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"),
    "nested mutation": (nested_mutation, RuntimeError, "allow_mutation_on_saved_tensors contexts cannot be nested"),
}


@pytest.mark.cases("name", BAD_USES)
def test_bad_use(name):
    use, error, message = BAD_USES[name]
    try:
        with pytest.raises(error, match=message):
            use()
    finally:
        if name == "disabling active hooks":
            numpy_hooks().__exit__()
    push(identity, identity)()      # no pair is left behind, nothing is disabled


def test_a_pack_hook_that_raises_leaves_the_graph_as_it_was():
    x = leaf()
    y = x * 2
    with pytest.raises(KeyError), saved_tensors_hooks(raising, identity):
        y.exp()
    saved = y.exp().grad_fn._raw_saved_result
    with pytest.raises(KeyError):
        saved.register_hooks(raising, identity)
    assert saved.unpack_hook is None
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


# ----- Names -----
SAVED = {
    "exp": (lambda x: x.exp(), {"result": "y"}),
    "mul": (lambda x: x * x, {"self": "x", "other": "x"}),
    "mul by a number": (lambda x: x * 2.5, {"self": None, "other": 2.5}),
    "mul by data": (lambda x: x * cg.ones(3), {"self": None, "other": [1.0] * 3}),
    "where": (lambda x: cg.where(x > 1, x, 0.0), {"condition": [False, True, True]}),
    "clamp": (lambda x: x.clamp(0, 2), {"self": "x", "min": 0.0, "max": 2.0}),
    "add": (lambda x: cg.add(x, x, alpha=0.5), {"alpha": 0.5}),
    "softmax": (lambda x: x.softmax(0), {"result": "y", "dim": 0}),
    "transpose": (lambda x: x.reshape(1, 3).transpose(0, 1), {"dim0": 0, "dim1": 1}),
    "sum": (lambda x: x.sum(0), {"dim": (0,)}),
}


@pytest.mark.parametrize("name", SAVED)
def test_saved_values_have_torchs_names(name):
    function, expected = SAVED[name]
    x = leaf()
    y = function(x)
    for field, value in expected.items():
        result = getattr(y.grad_fn, f"_saved_{field}")
        assert f"_saved_{field}" in dir(y.grad_fn)
        if value == "x":
            assert result is x
        elif value == "y":
            assert (result.grad_fn is y.grad_fn, result.tolist()) == (True, y.tolist())
        else:
            assert (result.tolist() if isinstance(result, cg.Tensor) else result) == value
    with pytest.raises(AttributeError, match=f"'{y.grad_fn.name()}' object has no attribute '_saved_nothing'"):
        y.grad_fn._saved_nothing  # noqa: B018


def test_names_after_backward():
    x = leaf()
    y = x.exp()
    handle = y.grad_fn._raw_saved_result
    assert handle is y.grad_fn._raw_saved_result
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.grad_fn._saved_result  # noqa: B018
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        handle.unpack()
    assert handle.data is None


def test_hooks_on_one_saved_tensor():
    x = leaf()
    y = x * x
    saved = y.grad_fn._raw_saved_self
    seen = []
    saved.register_hooks(lambda t: seen.append((t.requires_grad, t.is_leaf)) or [t * 10], lambda packed: packed[0])
    assert (seen, saved.data[0].tolist()) == ([(False, True)], [10.0, 20.0, 30.0])
    assert y.grad_fn._saved_self.requires_grad
    assert y.grad_fn._saved_other is x
    y.sum().backward()
    assert x.grad.tolist() == [11.0, 22.0, 33.0]


def test_a_user_functions_saved_tensors():
    x, w = leaf(), leaf(4.0, 5.0, 6.0)
    y = Product.apply(x, w)
    a, b, out, nothing = y.grad_fn._raw_saved_tensors
    assert y.grad_fn.saved_tensors[0] is x
    assert y.grad_fn.saved_tensors[2].grad_fn is y.grad_fn
    for saved in (a, b, out):
        saved.register_hooks(lambda t: t.tolist(), cg.tensor)
    with pytest.raises(RuntimeError, match="value None is forbidden"):
        nothing.register_hooks(identity, identity)
    y.sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == (w.tolist(), x.tolist())
    with pytest.raises(RuntimeError, match="a second time"):
        y.grad_fn._raw_saved_tensors  # noqa: B018
    assert out.data is None


def test_an_unpack_hook_may_run_a_backward_over_the_same_graph():
    """The inner backward frees the unpacked tensors of the running node."""
    x, w = leaf(), leaf(4.0, 5.0, 6.0)
    a, b = x * 1, w * 1
    y = (a * b).sum()
    node = y.grad_fn.next_functions[0][0]

    def unpack(t):
        if x.grad is None:
            x.grad = cg.zeros(3)
            y.backward()
        return t

    node._raw_saved_other.register_hooks(lambda t: t.clone(), unpack)
    del a, b
    y.backward()
    assert x.grad.tolist() == (2 * w).tolist()


# ----- On disk -----
def open_files():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_files_have_no_names_and_go_with_the_graph(tmp_path, monkeypatch):
    monkeypatch.setattr("cygrad.autograd.saved_tensors.SEGMENT_BYTES", 1 << 16)
    before, files = live_bytes(), open_files()
    x = cg.rand(1 << 14, requires_grad=True)
    expected = grad(x.exp().tanh().sigmoid().sum(), x)[0]
    with save_on_disk(tmp_path):
        y = x.exp().tanh().sigmoid().sum()
    assert os.listdir(tmp_path) == []
    assert files < open_files() <= files + 3
    assert live_bytes() - before < 3 * x.nbytes     # x, expected, scalars: the saved results are elsewhere
    y.backward()
    assert x.grad.tolist() == expected.tolist()
    assert open_files() == files


def test_a_result_is_written_once(tmp_path):
    x = cg.rand(1 << 14, requires_grad=True)
    hooks = save_on_disk(tmp_path)
    with hooks:
        y = x.exp()
        z = y * y
    assert hooks._written_bytes == x.nbytes
    z.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2 * x.detach().numpy()), rtol=1e-5)


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    gc.collect()        # garbage of earlier tests
    before, files = live_bytes(), open_files()
    x = cg.rand(1 << 14, requires_grad=True)
    with pytest.raises(OSError, match="No space left"), save_on_disk(tmp_path):
        x.exp()
    del x
    assert (os.listdir(tmp_path), live_bytes(), open_files()) == ([], before, files)


# ----- Mutation -----
def test_a_saved_tensor_is_cloned_when_it_changes():
    a = leaf()
    with allow_mutation_on_saved_tensors() as context:
        b = a.clone()
        y = (b * b).sum() + (b**2).sum()
        assert (len(context.original), len(context.cloned)) == (1, 0)
        b.mul_(10)
        b[0] = 7
        assert (len(context.original), len(context.cloned)) == (0, 1)
        y.backward()
    assert a.grad.tolist() == [4.0, 8.0, 12.0]


MUTATIONS = {
    "sin_": lambda t: t.sin_(),
    "view": lambda t: t.data[1:].zero_(),
    "data": lambda t: t.data.zero_(),
    "copy_": lambda t: t.copy_(cg.zeros(3)),
    "fill_": lambda t: t.fill_(0),
    "setitem": lambda t: t.__setitem__(0, 0.0),
    "out": lambda t: cg.exp(cg.zeros(3), out=t.detach()),
    "masked_fill_": lambda t: t.masked_fill_(t > 0, 0.0),
    "increment": lambda t: t.__iadd__(1),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_route_of_mutation_is_seen(name):
    a = leaf()
    with allow_mutation_on_saved_tensors():
        b = a * 1
        y = b.exp()
        z = (y * b).sum()
        MUTATIONS[name](y)
        MUTATIONS[name](b)
        z.backward()
    x = leaf()
    assert a.grad.tolist() == grad((x.exp() * x).sum(), x)[0].tolist()


# ----- Memory -----
def test_backward_frees_as_it_proceeds(usual_sizes):
    """Half-way through a chain half of its saved tensors are free."""
    x = cg.rand(1 << 16, requires_grad=True)
    samples = []
    y = x
    for _ in range(16):
        y = y.sin()
        y.register_hook(lambda g: samples.append(live_bytes()))
    total = y.sum()
    del y
    total.backward()
    falls = [(before - after) / x.nbytes for before, after in zip(samples, samples[1:], strict=False)]
    assert min(falls[1:]) > 0.9
    gc.collect()


def test_peak_of_a_chain():
    """The saved tensors and two gradients: as much as in torch, whose `exp` saves its result."""
    x = cg.rand(1 << 16, requires_grad=True)
    before, peak = live_bytes(), 0

    def sample(g):
        nonlocal peak
        peak = max(peak, live_bytes())

    y = x
    for _ in range(16):
        y = (y * 0.5).exp()
        y.register_hook(sample)
    total = y.sum()
    del y
    saved = live_bytes() - before
    total.backward()
    assert saved <= 16.5 * x.nbytes
    assert peak - before <= 18.5 * x.nbytes


@pytest.mark.parametrize("name", [name for name, row in ELEMENTWISE.items() if len(row.operands) == 2 and row.partials])
def test_hooks_see_no_constants_in_a_second_derivative(name):
    """Tensors saved by a formula with a number have the shape of the operand: numbers stay numbers."""
    x, seen = cg.full((3,), 1.5, requires_grad=True), []
    y = ops[name](x, 2.5)
    with cg.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.shape) or t, lambda t: t):
        g, = cg.autograd.grad(y.sum(), x, create_graph=True)
    assert set(seen) <= {(3,)}


# ----- Tensors that were detached in place -----
DETACHED = "Trying to use a saved tensor that has been detached in-place"
USES = [lambda b: b * b, lambda b: b.sin(), lambda b: cg.addcmul(b, b, b), lambda b: b.var()]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("use", USES)
def test_a_saved_operand_that_was_detached_in_place_is_refused(use, create_graph):
    a = cg.tensor([1.0, 2.0], requires_grad=True)
    b = a * 1
    c = use(b)
    b.detach_()
    with pytest.raises(RuntimeError, match=DETACHED):
        cg.autograd.grad(c.sum(), a, create_graph=create_graph)


def test_saved_results_leaves_and_constants_may_be_detached_in_place():
    a = cg.ones(2, requires_grad=True)
    b, constant = a.exp(), cg.ones(2)
    c, total = b * constant, b.sum()
    b.detach_()
    constant.detach_()
    a.detach_()
    for out in (total, c.sum()):
        assert cg.autograd.grad(out, a.requires_grad_(), retain_graph=True)[0].allclose(cg.full((2,), math.e))


# ----- Hooks entered and left while a hook unpacks -----
def test_hooks_entered_and_left_within_unpack_leave_no_trace():
    packed = []

    def unpack(x):
        with saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
            pass
        return x

    a = cg.ones(2, requires_grad=True)
    with saved_tensors_hooks(lambda x: x, unpack):
        b = a * a
    b.sum().backward()
    assert a.grad.tolist() == [2, 2]
    (a * a).sum()
    assert packed == []


@pytest.mark.parametrize("ends_by", ["the last node", "an error"])
def test_hooks_entered_within_unpack_end_with_the_backward(ends_by):
    """Nothing of them is left, not even in memory."""
    def scope():
        def unpack(x):
            hooks_reference().__enter__()
            if ends_by == "an error":
                raise KeyError("of a hook")
            return x

        hooks = saved_tensors_hooks(lambda x: x, unpack)
        hooks_reference = weakref.ref(hooks)
        a = cg.ones(2, requires_grad=True)
        with hooks, contextlib.suppress(KeyError):
            a.sin().cos().sum().backward()
        return weakref.ref(unpack)

    gc.disable()
    try:
        assert scope()() is None
    finally:
        gc.enable()
    b = cg.ones(2, requires_grad=True)
    assert (b * b).grad_fn._saved_self is b
    (b * b).grad_fn._raw_saved_self.register_hooks(lambda x: x, lambda x: x)


def test_hooks_left_within_unpack_are_there_again_after_the_node():
    """So a backward through several nodes leaves them once at each, and the block around it once more."""
    packed = []

    def unpack(x):
        hooks.__exit__()
        return x

    hooks = saved_tensors_hooks(lambda x: packed.append(x) or x, unpack)
    a = cg.ones(2, requires_grad=True)
    for _ in range(3):
        with hooks:
            a.sin().cos().sum().backward()
            count = len(packed)
            a.sin()
            assert len(packed) == count + 1
    a.sin()
    assert len(packed) == count + 1
    with pytest.raises(RuntimeError, match="no pair of hooks is active in this thread"):
        hooks.__exit__()


def test_hooks_disabled_within_unpack_are_allowed_again_after_the_node():
    refused = []

    def unpack(x):
        block = disable_saved_tensors_hooks("not here")
        block.__enter__()
        refused.append(block)       # which stays open
        return x

    a = cg.ones(2, requires_grad=True)
    with saved_tensors_hooks(lambda x: x, unpack):
        b = a.sin().cos().sum()
    b.backward()
    assert len(refused) == 2
    with saved_tensors_hooks(lambda x: x, lambda x: x):
        a.sin()
