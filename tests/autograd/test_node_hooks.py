"""Hooks on nodes, after accumulation and on several tensors; callbacks; the order of all of them; handles."""

import gc
import weakref

import numpy as np
import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import Function, Variable
from cygrad.autograd.graph import register_multi_grad_hook

queue_callback = Variable._execution_engine.queue_callback


class Undefined(Function):
    """Gives its input no gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return None


def accumulator(leaf):
    return leaf.view_as(leaf).grad_fn.next_functions[0][0]


def test_all_hooks_run_in_the_order_of_the_reference(x):
    y = x * 3
    node = accumulator(x)
    order = []

    def note(name):
        return lambda *_: order.append(name)

    node.register_hook(note("AccumulateGrad post-hook"))
    x.register_post_accumulate_grad_hook(lambda leaf: order.append(f"post-accumulate hook, {leaf.grad.tolist()}"))
    node.register_prehook(lambda _: order.append(f"AccumulateGrad pre-hook, {x.grad}"))
    y.grad_fn.register_hook(note("MulBackward post-hook"))
    y.grad_fn.register_prehook(note("MulBackward pre-hook"))
    for tensor, name in ((y, "y"), (x, "x")):
        tensor.register_hook(note(f"tensor pre-hook of {name}"))
    register_multi_grad_hook((x, y), note("multi-grad hook, any"), mode="any")
    register_multi_grad_hook((x, y), note("multi-grad hook, all"), mode="all")
    y.sum().backward()
    assert order == [
        "tensor pre-hook of y",
        "multi-grad hook, any",
        "MulBackward pre-hook",
        "MulBackward post-hook",
        "tensor pre-hook of x",
        "multi-grad hook, all",
        "AccumulateGrad pre-hook, None",
        "post-accumulate hook, [3.0, 3.0]",
        "AccumulateGrad post-hook",
    ]


# ----- Nodes -----
def run_with(register, hook):
    x, z = cg.tensor([1.0, 2.0], requires_grad=True), cg.tensor([3.0, 4.0], requires_grad=True)
    y = x * z
    getattr(y.grad_fn, register)(hook)
    y.sum().backward()
    return [None if leaf.grad is None else leaf.grad.tolist() for leaf in (x, z)]


SEVENS = cg.full((2,), 7.0)
REPLACED = {
    "pre-hook looks": ("register_prehook", lambda outputs: None, [[3, 4], [1, 2]]),
    "pre-hook replaces": ("register_prehook", lambda outputs: (SEVENS,), [[21, 28], [7, 14]]),
    "pre-hook undefines": ("register_prehook", lambda outputs: (None,), [None, None]),
    "post-hook looks": ("register_hook", lambda inputs, outputs: None, [[3, 4], [1, 2]]),
    "post-hook replaces": ("register_hook", lambda inputs, outputs: (inputs[0], SEVENS), [[3, 4], [7, 7]]),
    "post-hook undefines": ("register_hook", lambda inputs, outputs: (None, inputs[1]), [None, [1, 2]]),
    "post-hook sees both": ("register_hook", lambda inputs, outputs: (inputs[0] + outputs[0], inputs[1]), [[4, 5], [1, 2]]),
}


@pytest.mark.parametrize("name", list(REPLACED))
def test_node_hooks(name):
    register, hook, expected = REPLACED[name]
    assert run_with(register, hook) == expected


REFUSED = {
    "tensor": (lambda *all: SEVENS, TypeError, "expected tuple, but hook returned 'Tensor'"),
    "list": (lambda *all: [SEVENS], TypeError, "expected tuple, but hook returned 'list'"),
    "number": (lambda *all: (5,) * len(all[0]), TypeError, "expected Variable, but hook returned 'int'"),
    "count": (lambda *all: (SEVENS,) * 3, RuntimeError, r"has returned an incorrect number of values \(got 3, but expected"),
    "shape": (lambda *all: (cg.ones(3),) * len(all[0]), RuntimeError, "has changed the size of value"),
    "dtype": (lambda *all: (SEVENS.double(),) * len(all[0]), RuntimeError, r"has changed the type of value \(was float32 got float64\)"),
}


@pytest.mark.cases("name", list(REFUSED))
@pytest.mark.cases("register", ["register_hook", "register_prehook"])
def test_results_of_node_hooks_refused(register, name):
    hook, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        run_with(register, hook)


def test_a_none_gradient_is_not_replaced(x):
    y = x * cg.ones(2)
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0], SEVENS))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        y.sum().backward()


def test_hooks_get_none_for_an_undefined_gradient(x):
    seen = []
    y = x * 2
    for tensor in (x, y):
        tensor.register_hook(lambda gradient: seen.append(gradient))
    y.grad_fn.register_prehook(lambda outputs: seen.append(outputs))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad))
    Undefined.apply(y).sum().backward()
    assert seen == [None, (None,), ((None, None), (None,)), None, None]
    assert x.grad is None


def test_node_hooks_run_one_after_the_other_each_on_the_last_result(x):
    y = x * 2
    for factor in (3, 5):
        y.grad_fn.register_prehook(lambda outputs, factor=factor: (outputs[0] + factor,))
        y.grad_fn.register_hook(lambda inputs, outputs, factor=factor: (inputs[0] * factor, *inputs[1:]))
    y.sum().backward()
    assert x.grad.tolist() == [9 * 2 * 15] * 2


def test_hooks_of_a_user_function(x):
    y = Undefined.apply(x)
    seen = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs, outputs[0].tolist())))
    y.sum().backward()
    assert seen == [((None,), [1, 1])]


@pytest.mark.parametrize("register", ["register_hook", "register_prehook"])
def test_node_hooks_are_recorded_with_create_graph(x, register):
    y = x * x
    place = slice(None) if register == "register_prehook" else slice(0, 1)
    getattr(y.grad_fn, register)(lambda *grads: tuple(None if g is None else g * x for g in grads[0][place]) + grads[0][1:])
    (gradient,) = autograd.grad(y.sum(), x, create_graph=True)
    (second,) = autograd.grad(gradient.sum(), x)
    assert gradient.tolist() == ([2, 8] if register == "register_prehook" else [2, 6])
    assert second.tolist() == ([4, 8] if register == "register_prehook" else [3, 5])


# ----- After accumulation -----
def test_a_post_accumulate_hook_may_use_up_the_gradient(x):
    def step(leaf):
        with cg.no_grad():
            leaf -= leaf.grad
        leaf.grad = None

    with x.register_post_accumulate_grad_hook(step):
        (x * 3).sum().backward()
    assert x.grad is None
    assert x.tolist() == [-2, -1]
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


REFUSED_LEAVES = {
    "non-leaf": (lambda x: x * 2, "post accumulate grad hooks cannot be registered on non-leaf tensors"),
    "no gradient": (lambda x: cg.ones(2), "cannot register a hook on a tensor that doesn't require gradient"),
}


@pytest.mark.parametrize("name", list(REFUSED_LEAVES))
def test_post_accumulate_hooks_are_for_leaves(x, name):
    make, message = REFUSED_LEAVES[name]
    with pytest.raises(RuntimeError, match=message):
        make(x).register_post_accumulate_grad_hook(print)


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (cg.ones(2), RuntimeError, r"Tensor post accumulate grad hooks should return None\."),
        (5, TypeError, "expected Variable, but hook returned 'int'"),
    ],
)
def test_post_accumulate_hooks_return_nothing(x, result, error, message):
    x.register_post_accumulate_grad_hook(lambda leaf: result)
    with pytest.raises(error, match=message):
        x.sum().backward()


# ----- Several tensors -----
def graph_of(names):
    """Return tensors a, b (leaves), c = a * b, d = a * b by name, and a list of the named ones."""
    a, b = cg.ones(2, requires_grad=True), cg.ones(2, requires_grad=True)
    tensors = {"a": a, "b": b, "c": a * b, "d": a * b}
    return tensors, [tensors[name] for name in names]


SEEN_BY_ALL = [("c", None, "abc"), ("d", None, "abd"), ("c", "a", "ac"), ("d", "c", "")]


@pytest.mark.parametrize(("root", "inputs", "expected"), SEEN_BY_ALL)
def test_all_waits_for_the_tensors_that_the_backward_reaches(root, inputs, expected):
    tensors, watched = graph_of("abcd")
    seen = []
    register_multi_grad_hook(watched, lambda grads: seen.append("".join(n for n, g in zip("abcd", grads, strict=True) if g is not None)))
    tensors[root].sum().backward(inputs=None if inputs is None else tensors[inputs])
    assert seen == ([expected] if expected else [])


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_multi_grad_hook_runs_once_in_each_backward(mode):
    tensors, watched = graph_of("abc")
    calls = []
    handle = register_multi_grad_hook(watched, calls.append, mode=mode)
    for _ in range(2):
        tensors["c"].sum().backward(retain_graph=True)
    assert len(calls) == 2
    handle.remove()
    tensors["c"].sum().backward()
    assert len(calls) == 2


def test_any_gets_the_first_gradient(x):
    y = x * 3
    seen = []
    register_multi_grad_hook([x, y, cg.ones(2)], lambda gradient: seen.append(gradient.tolist()), mode="any")
    (y * 5).sum().backward()
    assert seen == [[5, 5]]


def test_multi_grad_hooks_with_autograd_grad(x):
    y = x * 3
    seen = []
    register_multi_grad_hook([x, y], lambda grads: seen.append([gradient.tolist() for gradient in grads]))
    autograd.grad(y.sum(), x)
    assert seen == [[[3, 3], [1, 1]]]


def test_multi_grad_hooks_in_nested_backwards(x):
    y = x * 3
    seen = []

    def again(gradient):
        if not seen:
            seen.append("nested")
            with cg.enable_grad():
                (x * 5).sum().backward()

    register_multi_grad_hook([x, y], lambda grads: seen.append([None if g is None else g.tolist() for g in grads]))
    y.register_hook(again)
    y.sum().backward()
    assert seen == ["nested", [[5, 5], None], [[3, 3], [1, 1]]]


def test_multi_grad_hooks_refuse_other_modes_and_tensors(x):
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got most"):
        register_multi_grad_hook([x], print, mode="most")
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        register_multi_grad_hook([x, cg.ones(2)], print)


def test_a_failed_backward_leaves_no_half_gathered_gradients(x):
    y = x * 3
    seen = []
    register_multi_grad_hook([x, y], lambda grads: seen.append(len(grads)))
    with y.grad_fn.register_hook(lambda inputs, outputs: 1 / 0), pytest.raises(ZeroDivisionError):
        y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen == [2]


# ----- Callbacks -----
def test_callbacks_run_at_the_end_in_order(x):
    seen = []

    def hook(gradient):
        queue_callback(lambda: seen.append(("first", x.grad.tolist())))
        queue_callback(lambda: queue_callback(lambda: seen.append("queued by a callback")))
        seen.append("hook")

    x.register_hook(hook)
    x.sum().backward()
    x.grad = None
    assert seen == ["hook", ("first", [1, 1]), "queued by a callback"]


def test_callbacks_belong_to_their_own_backward(x):
    z = cg.ones(2, requires_grad=True)
    seen = []

    def nested(gradient):
        with cg.enable_grad(), z.register_hook(lambda _: queue_callback(lambda: seen.append("inner"))):
            z.sum().backward()
        seen.append("hook")
        queue_callback(lambda: seen.append("outer"))

    x.register_hook(nested)
    x.sum().backward()
    assert seen == ["inner", "hook", "outer"]


@pytest.mark.parametrize("create_graph", [False, True])
def test_callbacks_have_the_grad_mode_of_the_backward(x, create_graph):
    modes = []
    x.register_hook(lambda gradient: queue_callback(lambda: modes.append(cg.is_grad_enabled())))
    autograd.grad((x * x).sum(), x, create_graph=create_graph)
    assert modes == [create_graph]


def test_callbacks_do_not_run_after_an_error(x):
    seen = []
    y = x * 2
    y.register_hook(lambda gradient: queue_callback(lambda: seen.append("ran")))
    with x.register_hook(lambda gradient: 1 / 0), pytest.raises(ZeroDivisionError):
        y.sum().backward()
    x.sum().backward()
    assert seen == []


def test_callbacks_need_a_backward():
    with pytest.raises(RuntimeError, match=r"Final callbacks can only be installed during backward pass\."):
        queue_callback(print)


def test_an_error_in_a_callback_comes_out(x):
    x.register_hook(lambda gradient: queue_callback(lambda: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        x.sum().backward()
    assert cg.is_grad_enabled()


# ----- Handles -----
REGISTER = {
    "leaf": lambda x, y, hook: x.register_hook(hook),
    "non-leaf": lambda x, y, hook: y.register_hook(hook),
    "node": lambda x, y, hook: y.grad_fn.register_hook(hook),
    "node, before": lambda x, y, hook: y.grad_fn.register_prehook(hook),
    "accumulated": lambda x, y, hook: x.register_post_accumulate_grad_hook(hook),
    "several": lambda x, y, hook: register_multi_grad_hook([x, y], hook),
}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("kind", list(REGISTER))
def test_handles_are_removed_in_any_order(x, kind, order):
    y = x * 2
    seen = []
    handles = [REGISTER[kind](x, y, lambda *_, number=number: seen.append(number)) for number in range(3)]
    left = [0, 1, 2]
    for number in order:
        seen.clear()
        y.sum().backward(retain_graph=True)
        assert seen == left
        handles[number].remove()
        left.remove(number)
    seen.clear()
    y.sum().backward()
    assert seen == []


@pytest.mark.parametrize("kind", list(REGISTER))
def test_a_handle_keeps_nothing_alive(kind):
    class Hook:
        def __call__(self, *_):
            return None

    x = cg.ones(2, requires_grad=True)
    hook, other = Hook(), Hook()
    y = x * 2
    handle = REGISTER[kind](x, y, hook)
    REGISTER[kind](x, y, other)
    alive = [weakref.ref(thing) for thing in (x, hook, other)]
    del x, y, hook, other
    gc.collect()
    assert [reference() for reference in alive] == [None] * 3
    handle.remove()


@pytest.mark.parametrize("kind", list(REGISTER))
def test_a_cycle_through_results_made_before_the_hook_is_collected(kind):
    x = cg.ones(2, requires_grad=True)
    y = x * 2
    z = y * 3
    REGISTER[kind](x, y, lambda *_, result=z: None)
    alive = [weakref.ref(tensor) for tensor in (x, z)]
    del x, y, z
    gc.collect()
    assert [reference() for reference in alive] == [None, None]


@pytest.mark.parametrize("seed", range(20))
def test_bits_do_not_depend_on_hooks_that_keep_gradients(seed):
    """Two gradients of different strides are added: the sum has the same strides if other code refers to one of them."""
    def gradient(hook):
        w, transposed, v = (cg.tensor(numbers.uniform(0.3, 0.9, shape)) for shape in ((7, 5), (5, 7), (7, 5)))
        x = cg.tensor(0.7, dtype=cg.float64, requires_grad=True)
        y = w * x
        parts = [y * transposed.T, y * v]
        if hook is not None:
            parts[1].grad_fn.register_hook(hook)
        return autograd.grad([part.sum() for part in parts], x)[0].item()

    gradients, references = [], []
    for hook in (None, lambda inputs, outputs: references.append(inputs)):
        numbers = np.random.default_rng(seed)
        gradients.append(gradient(hook))
    assert gradients[0] == gradients[1]
