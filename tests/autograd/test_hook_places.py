"""Where hooks run if a tensor is only an `inputs=` of backward or grad: every kind of hook on a leaf and on non-leaves.

The facts are torch 2.13's, but for one: torch refuses a multi-grad hook on a leaf whose gradient is returned by grad().
"""

import warnings

import pytest

import cygrad as cg
from cygrad.autograd import Function, grad
from cygrad.autograd.graph import get_gradient_edge, register_multi_grad_hook


def program(kinds):
    """Return the tensors of `x -> y -> z -> sum` by name, the sum, and the log of the hooks that hang on them."""
    x = cg.ones(2, requires_grad=True)
    _accumulator = get_gradient_edge(x).node    # the graph keeps an existing node, and its hooks
    y = x * 3
    z = y.exp()
    tensors, log = {"x": x, "y": y, "z": z}, []

    def note(entry):
        return lambda *_: log.append(entry)

    for name, tensor in tensors.items():
        node = get_gradient_edge(tensor).node
        if "tensor" in kinds:
            tensor.register_hook(note(f"{name} tensor"))
        if "retain" in kinds:
            tensor.retain_grad()
        if "node" in kinds:
            node.register_prehook(note(f"{name} pre"))
            node.register_hook(note(f"{name} post"))
    if "leaf" in kinds:
        x.register_post_accumulate_grad_hook(note("x accumulated"))
    if "several" in kinds:
        register_multi_grad_hook((x, y, z), lambda grads: log.append("all " + "".join("-" if g is None else "+" for g in grads)))
        register_multi_grad_hook((x, y, z), note("any"), mode="any")
        register_multi_grad_hook((y,), note("all of y"))
    return tensors, z.sum(), log


def ask(call, total, tensors, names):
    inputs = [tensors[name] for name in names]
    if call == "grad":
        grad(total, inputs)
    elif call == "grad of edges":
        grad(total, [get_gradient_edge(tensor) for tensor in inputs])
    else:
        total.backward(inputs=inputs or None)


# The first input in the order of the graph decides the nodes that run: the last node before it, or (in backward) its own.
TO_X, TO_Y, TO_Z = ("x", "xy", "xz", "xyz"), ("y", "yz"), ("z",)
BACKWARD = {
    TO_X + ("",): "z tensor, any, z pre, z post, y tensor, all of y, y pre, y post, x tensor, all +++, x pre, x accumulated, x post",
    TO_Y: "z tensor, any, z pre, z post, y tensor, all -++, all of y, y pre, y post",
    TO_Z: "z tensor, all --+, any, z pre, z post",
}
GRAD = {
    TO_X: "z tensor, any, z pre, z post, y tensor, all of y, y pre, y post, x tensor, all +++",
    TO_Y: "z tensor, any, z pre, z post, y tensor, all -++, all of y",
    TO_Z: "z tensor, all --+, any",
}
CASES = [(call, names, expected.split(", ")) for call, facts in (("backward", BACKWARD), ("grad", GRAD), ("grad of edges", GRAD))
         for group, expected in facts.items() for names in group]
KIND_OF = {"tensor": "tensor", "pre": "node", "post": "node", "accumulated": "leaf"}


@pytest.mark.cases(("call", "names", "expected"), CASES)
@pytest.mark.parametrize("kinds", [{"tensor"}, {"node"}, {"leaf"}, {"several"}, {"retain"}, {*KIND_OF.values(), "several", "retain"}])
def test_hooks_run_where_torch_runs_them(call, names, expected, kinds):
    tensors, total, log = program(kinds)
    ask(call, total, tensors, names)
    assert log == [entry for entry in expected if KIND_OF.get(entry.partition(" ")[2], "several") in kinds]
    retained = {name for name in "yz" if "retain" in kinds and f"{name} tensor" in expected}
    if call == "backward":
        retained |= {"x", *names} if "x accumulated" in expected else set(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # of a `.grad` that is not retained
        assert {name for name, tensor in tensors.items() if tensor.grad is not None} == retained


# ----- Hooks that replace gradients -----
def ten_times(grads, *_):
    return tuple(None if g is None else g * 10 for g in grads)


PLACES = {
    "x tensor": lambda x, y: x.register_hook(lambda g: g * 10), "y tensor": lambda x, y: y.register_hook(lambda g: g * 10),
    "x pre": lambda x, y: get_gradient_edge(x).node.register_prehook(ten_times),
    "y pre": lambda x, y: y.grad_fn.register_prehook(ten_times), "y post": lambda x, y: y.grad_fn.register_hook(ten_times),
}
# Of (x * 3)**2 at 1: the gradients 18 and 6 are ten times as large where a hook runs before grad() takes them.
CHANGED = {
    ("grad", "x"): {"x tensor": "x", "y tensor": "x", "y pre": "x", "y post": "x"},
    ("grad", "y"): {"y tensor": "y"},
    ("grad", "xy"): {"x tensor": "x", "y tensor": "x", "y pre": "x", "y post": "x"},      # y's is taken before its hooks run
    ("backward", "x"): {"x tensor": "x", "y tensor": "x", "x pre": "x", "y pre": "x", "y post": "x"},
    ("backward", "y"): {"y tensor": "y"},
    ("backward", "xy"): {"x tensor": "x", "y tensor": "xy", "x pre": "x", "y pre": "x", "y post": "x"},
}


@pytest.mark.cases("place", PLACES)
@pytest.mark.cases(("call", "names"), CHANGED)
def test_results_of_hooks_are_seen_where_torch_sees_them(call, names, place):
    x = cg.ones(2, requires_grad=True)
    accumulator = get_gradient_edge(x).node
    y = x * 3
    del accumulator
    tensors = {"x": x, "y": y}
    PLACES[place](x, y)
    inputs = [tensors[name] for name in names]
    if call == "grad":
        results = grad((y * y).sum(), inputs)
    else:
        (y * y).sum().backward(inputs=inputs)
        results = [tensor.grad for tensor in inputs]
    changed = CHANGED[call, names].get(place, "")
    for name, result in zip(names, results, strict=True):
        assert result.tolist() == [{"x": 18, "y": 6}[name] * (10 if name in changed else 1)] * 2


# ----- Hooks without a backward of their node -----
class Counted(Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Counted.calls += 1
        return g * 2


@pytest.mark.parametrize("function", [lambda x: x.exp(), lambda x: x[cg.tensor([0, 1])], lambda x: x.cumprod(0), Counted.apply])
def test_a_node_that_runs_only_for_its_hooks_computes_nothing_and_keeps_its_saved_tensors(function):
    """torch calls the backward of such a Function, drops its result, and frees the saved tensors."""
    x, log = cg.ones(2, requires_grad=True), []
    y = function(x * 1)
    y.grad_fn.register_hook(lambda *grads: log.append(grads))
    Counted.calls = 0
    y.sum().backward(inputs=[y])
    (inputs, outputs), = log
    assert set(inputs) == {None} and outputs[0].tolist() == y.grad.tolist() == [1, 1]
    assert Counted.calls == 0
    y.sum().backward()
    assert x.grad is not None
