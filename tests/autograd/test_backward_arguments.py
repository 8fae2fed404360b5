"""Arguments of backward() and grad(), and writes to `.grad`: inputs, weights, batches, layouts, nesting, Variable."""

import signal
import subprocess
import sys
import textwrap
import threading
import types
import warnings

import numpy as np
import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import Function, Variable

ONES, EYE = cg.ones(2), cg.eye(2)


def other():
    return cg.ones(2, requires_grad=True)


# ----- Inputs -----
def test_a_dict_of_inputs(x):
    y = x * 2
    gradients = autograd.grad(y.sum(), {"x": x, "y": y, "other": other()}, allow_unused=True)
    assert {name: None if g is None else g.tolist() for name, g in gradients.items()} == {"x": [2, 2], "y": [1, 1], "other": None}
    (x * 3).sum().backward(inputs={"x": x})
    assert x.grad.tolist() == [3, 3]


def test_any_iterable_of_inputs(x):
    assert autograd.grad((x * 2).sum(), (tensor for tensor in [x]))[0].tolist() == [2, 2]


def test_backward_into_a_non_leaf_retains_its_gradient(x):
    y = x * 2
    (y * 3).sum().backward(inputs=[y], retain_graph=True)
    assert (y.retains_grad, y.grad.tolist(), x.grad) == (True, [3, 3], None)
    (y * 3).sum().backward()
    assert (y.grad.tolist(), x.grad.tolist()) == ([6, 6], [6, 6])


def test_zeros_of_unused_inputs_take_part_in_the_graph(x):
    y = (x * 2).sum()
    for create_graph in (False, True):
        zeros = autograd.grad(y, [x, other()], retain_graph=True, create_graph=create_graph, materialize_grads=True)[1]
        assert (zeros.tolist(), zeros.requires_grad) == ([0, 0], create_graph)


# ----- Weights -----
def test_a_weight_may_be_returned_as_it_is(x):
    weight = cg.ones(2)
    assert autograd.grad(x, x, weight)[0] is weight


@pytest.mark.parametrize("dtype", [cg.bool, cg.int32, cg.float64])
def test_weights_of_other_dtypes_are_converted(x, dtype):
    (gradient,) = autograd.grad(x * 2, x, ONES.to(dtype))
    assert (gradient.tolist(), gradient.dtype) == ([2, 2], cg.float32)


@pytest.mark.parametrize("weights", [ONES, [ONES], (ONES,), iter([ONES])], ids=["tensor", "list", "tuple", "iterator"])
def test_forms_of_weights(x, weights):
    (x * 2).backward(weights)
    assert x.grad.tolist() == [2, 2]


def test_weights_by_their_former_name(x):
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated. Use `grad_tensors` instead."):
        autograd.backward(x * 2, grad_variables=ONES)
    assert x.grad.tolist() == [2, 2]


# ----- Batches -----
BATCHES = {
    "identity": (lambda x, y: autograd.grad(y, x, EYE, is_grads_batched=True), [[[2, 0], [0, 2]]]),
    "two outputs": (
        lambda x, y: autograd.grad([y, y * 2], [x, y], [EYE, EYE], is_grads_batched=True),
        [[[6, 0], [0, 6]], [[3, 0], [0, 3]]],
    ),
    "unused": (lambda x, y: autograd.grad(y, [x, other()], EYE, is_grads_batched=True, allow_unused=True), [[[2, 0], [0, 2]], None]),
    "zeros": (lambda x, y: autograd.grad(y, [x, other()], EYE, is_grads_batched=True, materialize_grads=True), [[[2, 0], [0, 2]], [0, 0]]),
    "one row": (lambda x, y: autograd.grad(y, x, cg.ones(1, 2), is_grads_batched=True), [[[2, 2]]]),
}


@pytest.mark.parametrize("name", list(BATCHES))
def test_batched_weights(x, name):
    call, expected = BATCHES[name]
    assert [None if gradient is None else gradient.tolist() for gradient in call(x, x * 2)] == expected


def test_batches_with_create_graph_and_the_freed_graph(x):
    y = x * x
    (jacobian,) = autograd.grad(y, x, EYE, create_graph=True, is_grads_batched=True)
    assert autograd.grad(jacobian.sum(), x, retain_graph=True)[0].tolist() == [2, 2]
    autograd.grad(y, x, EYE, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        autograd.grad(y, x, EYE, is_grads_batched=True)


class Sometimes(Function):
    """Its backward reads the values of the weight."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g if g.sum() else None


def test_a_backward_that_reads_values_cannot_be_batched(x):
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        autograd.grad(Sometimes.apply(x), x, cg.tensor([[0.0, 0], [1, 2]]), is_grads_batched=True)
    assert autograd.grad(Sometimes.apply(x), x, cg.tensor([1.0, 2]))[0].tolist() == [1, 2]


# ----- Refusals, with torch's types -----
def batched(weight):
    return lambda x, y: autograd.grad(y, x, weight, is_grads_batched=True)


REFUSED = {
    "inputs an empty dict": (lambda x, y: autograd.grad(y.sum(), {}), RuntimeError, r"`inputs` argument to `grad\(\)` cannot be empty"),
    "inputs a mapping": (
        lambda x, y: y.sum().backward(inputs=types.MappingProxyType({"x": x})),
        TypeError,
        r"`inputs` argument to `backward\(\)` must be a dict, not mappingproxy",
    ),
    "inputs a number": (lambda x, y: autograd.grad(y.sum(), 5), TypeError, "'int' object is not iterable"),
    "an input None": (
        lambda x, y: autograd.grad(y.sum(), [None]),
        RuntimeError,
        "all inputs have to be Tensors or GradientEdges, but got NoneType",
    ),
    "an input of backward without gradient": (
        lambda x, y: y.sum().backward(inputs=[ONES]),
        RuntimeError,
        "can't retain_grad on Tensor that has requires_grad=False",
    ),
    "outputs a number": (lambda x, y: autograd.backward(5), TypeError, "'int' object is not iterable"),
    "an output a number": (lambda x, y: autograd.backward([5]), AssertionError, "Expected output to be a Tensor"),
    "no outputs": (lambda x, y: autograd.grad([], [x]), RuntimeError, "The differentiated Tensor at index 0 appears to not have been used"),
    "weights a number": (lambda x, y: autograd.backward(y, 1.0), TypeError, "'float' object is not iterable"),
    "a weight an array": (lambda x, y: autograd.grad(y, x, [np.ones(2)]), TypeError, "gradients can be either Tensors or None"),
    "too many weights": (lambda x, y: autograd.grad(y, x, [ONES, ONES]), RuntimeError, "got 1 tensors and 2 gradients"),
    "a weight that only broadcasts": (lambda x, y: y.backward(cg.ones(1)), RuntimeError, r"Mismatch in shape: grad_output\[0\]"),
    "second of two weights": (lambda x, y: autograd.grad([y, y], x, [ONES, EYE]), RuntimeError, r"Mismatch in shape: grad_output\[1\]"),
    "both names of weights": (
        lambda x, y: autograd.backward(y, ONES, grad_variables=ONES),
        RuntimeError,
        "`grad_tensors` and `grad_variables` .* both passed",
    ),
    "retain_graph a word": (lambda x, y: y.sum().backward(retain_graph="yes"), TypeError, "integer"),
    "create_graph a word": (lambda x, y: autograd.grad(y.sum(), x, create_graph="yes"), TypeError, "integer"),
    "batch of another shape": (batched(cg.ones(3, 3)), RuntimeError, "If `is_grads_batched=True`, we interpret the first dimension"),
    "batch of nothing": (batched(cg.ones(0, 2)), IndexError, "index 0 is out of bounds for dimension 0 with size 0"),
    "batch without a dim": (batched(cg.tensor(1.0)), IndexError, "invalid index of a 0-dim tensor"),
    "batch without weights": (
        lambda x, y: autograd.grad(y.sum(), x, is_grads_batched=True),
        ValueError,
        "Got in_dim=0 for some input, but that input is a Tensor of dimensionality 0",
    ),
    "batches of several sizes": (
        lambda x, y: autograd.grad([y, y], x, [cg.ones(3, 2), cg.ones(4, 2)], is_grads_batched=True),
        ValueError,
        r"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes \[3, 4\]",
    ),
    "batch and unused": (lambda x, y: autograd.grad(y, [x, other()], EYE, is_grads_batched=True), RuntimeError, "at index 1 appears"),
}


@pytest.mark.filterwarnings("ignore:`grad_variables` is deprecated")
@pytest.mark.parametrize("name", list(REFUSED))
def test_refused(x, name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call(x, x * 2)
    assert x.grad is None
    assert cg.is_grad_enabled()


# ----- Writes to .grad -----
def test_create_graph_warns_of_the_cycle(x):
    with pytest.warns(UserWarning, match=r"Using backward\(\) with create_graph=True will create a reference cycle between the parameter"):
        (x * x).sum().backward(create_graph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        autograd.grad((x * x).sum(), x, create_graph=True)


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_a_gradient_with_history_is_added_to_in_place(x):
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    x.sum().backward()
    assert x.grad is first
    assert (first.tolist(), first.grad_fn is not None) == ([3, 5], True)
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert (first.tolist(), x.grad.tolist()) == ([3, 5], [5, 9])
    assert autograd.grad(x.grad.sum(), x)[0].tolist() == [4, 4]


LEAVES = {
    "row-major": (lambda: cg.ones(2, 3), (3, 1)),
    "transposed": (lambda: cg.ones(3, 2).T, (1, 2)),
    "permuted": (lambda: cg.ones(4, 2, 3).permute(1, 2, 0), (3, 1, 6)),
    "with gaps": (lambda: cg.ones(2, 6)[:, ::2], (3, 1)),
    "expanded": (lambda: cg.ones(1, 3).expand(2, 3), (3, 1)),
}
USES = {
    "sum": lambda x: x.sum(),
    "product": lambda x: (x * x).sum(),
    "transposed": lambda x: (x.transpose(0, 1) * cg.ones_like(x.transpose(0, 1).contiguous())).sum(),
}


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
@pytest.mark.cases("create_graph", [False, True])
@pytest.mark.cases("use", list(USES))
@pytest.mark.cases("kind", list(LEAVES))
def test_gradients_have_the_strides_of_a_dense_leaf(kind, use, create_graph):
    make, strides = LEAVES[kind]
    leaf = make().detach().requires_grad_()
    USES[use](leaf).backward(create_graph=create_graph)
    assert leaf.grad.stride() == strides
    assert leaf.grad.tolist() == (make() * (2 if use == "product" else 1)).tolist()


def test_accumulation_keeps_the_strides_of_the_gradient(x):
    leaf = cg.ones(2, 3, requires_grad=True)
    leaf.grad = cg.zeros(3, 2).T
    leaf.sum().backward()
    assert leaf.grad.stride() == (1, 2)
    assert leaf.grad.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_a_gradient_that_shares_memory_is_added_to_right(x):
    memory = cg.ones(3)
    x.grad = memory[:2]
    x.backward(memory[1:])
    assert (x.grad.tolist(), memory.tolist()) == ([2, 2], [2, 2, 1])
    x.backward(x.grad)
    assert x.grad.tolist() == [4, 4]


def test_a_gradient_whose_elements_share_memory_is_refused(x):
    x.grad = cg.ones(1).expand(2)
    with pytest.raises(RuntimeError, match="unsupported operation: more than one element of the written-to tensor refers to a single"):
        x.sum().backward()


def test_a_leaf_that_needs_no_gradient_any_more_gets_none(x):
    root = (x * other()).sum()
    x.requires_grad_(False)
    root.backward()
    assert x.grad is None


ASSIGNED = [
    (5, TypeError, "assigned grad expected to be a Tensor or None but got grad of type int"),
    (cg.ones(3), RuntimeError, r"attempting to assign a gradient of size '\[3\]' to a tensor of size '\[2\]'"),
    (ONES.double(), RuntimeError, "attempting to assign a gradient with dtype 'float64' to a tensor with grad_dtype 'float32'"),
]


@pytest.mark.parametrize(("value", "error", "message"), ASSIGNED)
def test_assigned_gradients_are_checked(x, value, error, message):
    with pytest.raises(error, match=message):
        x.grad = value
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    assert x.grad is None
    x.grad = ONES
    assert x.grad is ONES
    del x.grad
    assert x.grad is None


SECOND = {
    "nothing saved": (lambda x: (x + x).sum(), True),
    "views": (lambda x: x.reshape(2, 1).T.sum(), True),
    "values saved": (lambda x: (x * x).sum(), False),
    "result saved": (lambda x: x.exp().sum(), False),
}


@pytest.mark.parametrize("name", list(SECOND))
def test_a_second_backward_needs_the_saved_values(x, name):
    make, works = SECOND[name]
    root = make(x)
    root.backward()
    if works:
        root.backward()
    else:
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            root.backward()


# ----- Nested -----
class Deep(Function):
    """Its backward starts another backward, until the depth is 0."""

    @staticmethod
    def forward(ctx, x):
        with cg.enable_grad():
            ctx.below = x.detach().requires_grad_() - 1
        return ctx.below.detach()

    @staticmethod
    def backward(ctx, g):
        if ctx.below < -1:
            raise LookupError("the end")
        if ctx.below < 0:
            return g
        with cg.enable_grad():
            Deep.apply(ctx.below).sum().backward()
        return g


def in_function(depth):
    x = cg.tensor(float(depth), requires_grad=True)
    Deep.apply(x).backward()
    return x.grad.item()


def in_hook(depth):
    calls = []

    def hook(gradient):
        calls.append(1)
        if len(calls) < depth:
            with cg.enable_grad():
                y = other() * 2
                y.register_hook(hook)
                y.sum().backward()

    y = other() * 2
    y.register_hook(hook)
    y.sum().backward()
    return len(calls) / depth


@pytest.mark.parametrize("stack_kib", [0, 256])
@pytest.mark.parametrize("nest", [in_function, in_hook])
def test_a_thousand_backwards_nest_on_any_stack(nest, stack_kib):
    outcome, threads = [], threading.active_count()
    before = threading.stack_size(stack_kib * 1024)
    try:
        thread = threading.Thread(target=lambda: outcome.append(nest(1000)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert outcome == [1]
    assert threading.active_count() == threads


def test_deep_nests_keep_the_saved_tensor_hooks_of_their_thread():
    threads, packed = set(), []

    def hook(gradient):
        threads.add(threading.current_thread())
        with cg.enable_grad():
            y = other() * 2
            y.exp()
            if len(packed) < 50:
                y.register_hook(hook)
                y.sum().backward()

    with cg.autograd.graph.saved_tensors_hooks(lambda tensor: packed.append(1) or tensor, lambda tensor: tensor):
        y = other() * 2
        y.register_hook(hook)
        y.sum().backward()
    assert len(threads) > 1
    assert len(packed) == 50


def test_an_exception_comes_out_of_deep_nests():
    x = cg.tensor(100.5, requires_grad=True)
    y = Deep.apply(x)
    with pytest.raises(LookupError, match="the end"):
        autograd.backward([y, Deep.apply(cg.tensor(-1.5, requires_grad=True))])
    with pytest.raises(LookupError, match="the end"):
        failing_at(100)
    assert cg.is_grad_enabled()
    assert in_function(50) == 1


def failing_at(depth):
    def hook(gradient):
        with cg.enable_grad():
            failing_at(depth - 1)

    if depth == 0:
        raise LookupError("the end")
    y = other() * 2
    y.register_hook(hook)
    y.sum().backward()


def test_ctrl_c_reaches_deep_nests():
    program = textwrap.dedent("""
        import signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import cygrad as cg
        def nest(depth):
            y = cg.ones(1, requires_grad=True) * 2
            y.register_hook(lambda gradient: inside(depth))
            y.backward()
        def inside(depth):
            with cg.enable_grad():
                if depth:
                    return nest(depth - 1)
                print("ready", flush=True)
                while True:
                    (cg.ones(1, requires_grad=True) * 2).backward()
        try:
            nest(50)
        except KeyboardInterrupt:
            (cg.ones(1, requires_grad=True) * 2).backward()
            print("stopped", cg.is_grad_enabled())
    """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[0] == "stopped True\n"
    finally:
        process.kill()


# ----- Variable -----
def test_variable_makes_a_leaf_over_the_same_memory(x):
    data = cg.ones(2)
    variable = Variable(data, requires_grad=True)
    assert variable is not data
    assert variable.data_ptr() == data.data_ptr()
    assert (variable.requires_grad, data.requires_grad) == (True, False)
    assert Variable(x * 2).grad_fn is None
    assert Variable().tolist() == []
    assert [isinstance(thing, Variable) for thing in (x, x * 2, 5, np.ones(2))] == [True, True, False, False]


def test_variable_refuses_and_warns():
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        Variable([1.0])
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        assert not Variable(ONES, volatile=True).requires_grad
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="Variable can't be volatile and require_grad at the same time!"):
        Variable(ONES, requires_grad=True, volatile=True)


def test_names_are_where_torch_has_them():
    for name in ("graph.Node", "graph.GradientEdge", "function.once_differentiable", "variable.Variable", "anomaly_mode.detect_anomaly",
                 "grad_mode.no_grad", "Variable", "detect_anomaly", "set_detect_anomaly"):
        thing = autograd
        for part in name.split("."):
            thing = getattr(thing, part)
        assert thing.__doc__
    assert "Variable" in dir(autograd)
    with pytest.raises(AttributeError, match=r"module 'cygrad\.autograd' has no attribute 'nothing'"):
        _ = autograd.nothing
