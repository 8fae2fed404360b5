"""Tensor hooks: times, order, replaced gradients, removal; retain_grad among them."""

import gc
import weakref

import pytest

import cygrad as cg
from cygrad import autograd

TENSORS = {
    "leaf": lambda x: x,
    "non-leaf": lambda x: x * 2,
    "view": lambda x: x.reshape(2, 1),
    "sliced": lambda x: x[0],
}


@pytest.mark.parametrize("name", list(TENSORS))
def test_a_hook_sees_the_gradient(x, name):
    y = TENSORS[name](x)
    seen = []
    y.register_hook(lambda gradient: seen.append(gradient.tolist()))
    (y * 3).sum().backward()
    assert seen == [cg.full(tuple(y.shape), 3.0).tolist()]


def test_a_hook_sees_the_sum_of_all_uses_once(x):
    y = x * 1
    seen = []
    for tensor in (x, y):
        tensor.register_hook(lambda gradient: seen.append(gradient.tolist()))
    (y * 3 + y * y + x).sum().backward()
    assert seen == [[5, 7], [6, 8]]


@pytest.mark.parametrize("name", ["leaf", "non-leaf"])
def test_a_hook_replaces_the_gradient(x, name):
    y = TENSORS[name](x)
    y.register_hook(lambda gradient: gradient * 10)
    y.sum().backward()
    assert x.grad.tolist() == {"leaf": [10, 10], "non-leaf": [20, 20]}[name]


@pytest.mark.parametrize("name", ["leaf", "non-leaf"])
def test_hooks_run_in_the_order_of_registration_each_on_the_last_result(x, name):
    y = TENSORS[name](x)
    seen = []

    def plus(number):
        def hook(gradient):
            seen.append((number, gradient.tolist()))
            return gradient + number

        return hook

    y.register_hook(plus(1))
    y.register_hook(lambda gradient: seen.append("only looks"))
    y.register_hook(plus(5))
    y.sum().backward()
    assert seen == [(1, [1, 1]), "only looks", (5, [2, 2])]
    assert x.grad.tolist() == {"leaf": [7, 7], "non-leaf": [14, 14]}[name]


def test_hooks_run_from_the_root_to_the_leaves(x):
    y = x * 2
    z = y * y
    order = []
    for name, tensor in {"x": x, "y": y, "z": z}.items():
        tensor.register_hook(lambda gradient, name=name: order.append(name))
    z.sum().backward()
    assert order == ["z", "y", "x"]


def test_the_leaf_hook_runs_before_accumulation(x):
    x.sum().backward()
    seen = []
    x.register_hook(lambda gradient: seen.append((gradient.tolist(), x.grad.tolist())))
    (x * 3).sum().backward()
    assert seen == [([3, 3], [1, 1])]
    assert x.grad.tolist() == [4, 4]


def test_a_hook_runs_at_each_backward(x):
    calls = []
    x.register_hook(lambda gradient: calls.append(1))
    for _ in range(3):
        x.sum().backward()
    assert len(calls) == 3


@pytest.mark.parametrize("name", ["leaf", "non-leaf"])
def test_removed_hooks_do_not_run(x, name):
    y = TENSORS[name](x)
    seen = []
    handles = [y.register_hook(lambda gradient, number=number: seen.append(number)) for number in range(3)]
    handles[1].remove()
    handles[1].remove()
    y.sum().backward(retain_graph=True)
    assert seen == [0, 2]
    handles[0].remove()
    handles[2].remove()
    y.sum().backward()
    assert seen == [0, 2]


def test_a_handle_is_a_context_manager(x):
    seen = []
    with x.register_hook(lambda gradient: seen.append("inside")):
        x.sum().backward()
    x.sum().backward()
    assert seen == ["inside"]


def test_a_hook_may_remove_itself(x):
    seen = []

    def once(gradient):
        seen.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda gradient: seen.append("always"))
    x.sum().backward()
    x.sum().backward()
    assert seen == ["once", "always", "always"]


def test_a_handle_outlives_its_tensor(x):
    y = x * 2
    handle = y.register_hook(lambda gradient: None)
    del y
    gc.collect()
    handle.remove()


def test_the_hook_of_a_dead_non_leaf_still_runs(x):
    y = x * 2
    y.register_hook(lambda gradient: gradient * 10)
    z = y.sum()
    del y
    gc.collect()
    z.backward()
    assert x.grad.tolist() == [20, 20]


@pytest.mark.parametrize("registered_first", ["hook", "retain_grad"])
def test_retain_grad_keeps_the_result_of_the_last_hook(x, registered_first):
    y = x * 2
    register = {"hook": lambda: y.register_hook(lambda gradient: gradient * 10), "retain_grad": y.retain_grad}
    first, second = sorted(register, key=registered_first.__ne__)
    register[first]()
    register[second]()
    y.sum().backward()
    assert y.grad.tolist() == [10, 10]
    assert x.grad.tolist() == [20, 20]


@pytest.mark.parametrize("times", [1, 2])
def test_retain_grad_keeps_the_gradient_of_a_non_leaf(x, times):
    y = x * 2
    for _ in range(times):
        y.retain_grad()
    gradient = cg.ones(2)
    y.backward(gradient, retain_graph=True)
    first = y.grad
    assert (y.retains_grad, first.tolist()) == (True, [1, 1])
    assert first is not gradient
    y.backward(gradient)
    assert (first.tolist(), y.grad.tolist()) == ([1, 1], [2, 2])


def test_a_retained_gradient_is_dense_and_its_own(x):
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.stride() == (1,)
    y.grad.zero_()
    assert x.grad.tolist() == [2, 2]


def test_retain_grad_of_a_leaf_changes_nothing(x):
    x.retain_grad()
    x.sum().backward()
    assert (x.retains_grad, x.grad.tolist()) == (False, [1, 1])
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        cg.ones(2).retain_grad()


def test_a_retained_gradient_has_a_history_with_create_graph(x):
    y = x * x
    y.retain_grad()
    autograd.grad((y * y).sum(), x, create_graph=True)
    assert autograd.grad(y.grad.sum(), x)[0].tolist() == [4, 8]


def test_hooks_stay_with_the_old_value_and_retain_grad_follows_the_new_one(x):
    y = x * 2
    seen = []
    y.register_hook(lambda gradient: seen.append(("before", gradient.tolist())))
    y.retain_grad()
    y.mul_(5)
    y.register_hook(lambda gradient: seen.append(("after", gradient.tolist())))
    y.sum().backward()
    assert seen == [("after", [1, 1]), ("before", [5, 5])]
    assert (y.retains_grad, y.grad.tolist(), x.grad.tolist()) == (True, [1, 1], [10, 10])


def test_grad_of_a_non_leaf_between_is_taken_before_its_hooks(x):
    """As in torch: if the node has to run for another input, the gradient is taken before its hooks."""
    y = x * 2
    y.register_hook(lambda gradient: gradient * 10)
    assert [g.tolist() for g in autograd.grad((y * 3).sum(), [y, x])] == [[3, 3], [60, 60]]


def test_grad_returns_the_results_of_hooks(x):
    y = x * 2
    x.register_hook(lambda gradient: gradient + 1)
    y.register_hook(lambda gradient: gradient * 10)
    assert autograd.grad(y.sum(), y, retain_graph=True)[0].tolist() == [10, 10]
    assert autograd.grad(y.sum(), x)[0].tolist() == [21, 21]
    assert x.grad is None


def test_hooks_of_pruned_tensors_do_not_run(x):
    z = cg.ones(2, requires_grad=True)
    z.register_hook(lambda gradient: pytest.fail("z is no input"))
    seen = []
    x.register_hook(lambda gradient: seen.append(gradient.tolist()))
    (x * z).sum().backward(inputs=[x])
    assert seen == [[1, 1]]


def test_hooks_of_each_output_of_a_node(x):
    first, second = (x * 1).split(1)
    seen = []
    first.register_hook(lambda gradient: seen.append(("first", gradient.tolist())))
    second.register_hook(lambda gradient: seen.append(("second", gradient.tolist())))
    (first * 3 + second * 5).sum().backward()
    assert sorted(seen) == [("first", [3]), ("second", [5])]


def test_a_hook_is_differentiated_with_create_graph(x):
    y = x * x
    y.register_hook(lambda gradient: gradient * x)
    (gradient,) = autograd.grad(y.sum(), x, create_graph=True)
    assert gradient.tolist() == [2, 8]
    gradient.sum().backward()
    assert x.grad.tolist() == [4, 8]


def test_a_hook_runs_in_the_grad_mode_of_its_backward(x):
    modes = []
    x.register_hook(lambda gradient: modes.append(cg.is_grad_enabled()))
    autograd.grad((x * x).sum(), x)
    autograd.grad((x * x).sum(), x, create_graph=True)
    assert modes == [False, True]
    assert cg.is_grad_enabled()


def test_an_exception_in_a_hook_comes_out_as_it_is_and_the_next_backward_works(x):
    y = x * 2

    class Mine(Exception):
        pass

    error = Mine("stop")

    def fail(gradient):
        raise error

    handle = y.register_hook(fail)
    with pytest.raises(Mine) as caught:
        y.sum().backward(retain_graph=True)
    assert caught.value is error
    assert cg.is_grad_enabled()
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def leaf_in_a_cycle():
    x = cg.ones(2, requires_grad=True)
    x.register_hook(lambda gradient: gradient * x.detach())
    x.sum().backward()
    return weakref.ref(x)


def non_leaf_in_a_cycle():
    x = cg.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: gradient * y)
    return weakref.ref(y)


@pytest.mark.parametrize("make", [leaf_in_a_cycle, non_leaf_in_a_cycle])
def test_a_cycle_through_a_hook_is_collectable(make):
    tensor = make()
    gc.collect()
    assert tensor() is None


def test_hooks_die_with_the_graph(x):
    class Hook:
        def __call__(self, gradient):
            return None

    hook = Hook()
    dead = weakref.ref(hook)
    y = x * 2
    y.register_hook(hook)
    del hook
    y.sum().backward()
    assert dead() is not None
    del y
    gc.collect()
    assert dead() is None


def test_a_hook_may_remove_a_later_one_and_register_another(x):
    seen = []

    def first(gradient):
        seen.append("first")
        later.remove()
        x.register_hook(lambda gradient: seen.append("new"))

    x.register_hook(first)
    later = x.register_hook(lambda gradient: seen.append("later"))
    x.sum().backward()
    assert seen == ["first", "later"]
    x.sum().backward()
    assert seen == ["first", "later", "first", "new"]


def test_a_hook_must_be_callable(x):
    for tensor in (x, x * 2):
        with pytest.raises(TypeError, match="a hook must be callable, got int"):
            tensor.register_hook(5)


REFUSED = [
    (lambda gradient: cg.ones(3), RuntimeError, "has changed the size of value"),
    (lambda gradient: gradient.double(), RuntimeError, r"has changed the type of value \(was float32 got float64\)"),
    (lambda gradient: cg.ones(3, dtype=cg.float64), RuntimeError, "has changed the type of value"),
    (lambda gradient: 5, TypeError, "expected Variable, but hook returned 'int'"),
    (lambda gradient: (gradient,), TypeError, "expected Variable, but hook returned 'tuple'"),
    (lambda: None, TypeError, "positional argument"),
]


@pytest.mark.parametrize(("hook", "error", "message"), REFUSED)
def test_results_refused(x, hook, error, message):
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(error, match=message):
        y.sum().backward()
    assert x.grad is None


def test_a_hook_needs_a_tensor_that_requires_gradients():
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        cg.ones(2).register_hook(lambda gradient: None)
