"""backward() and autograd.grad(): results, accumulation, refusals, and the graph's attributes."""

import gc
import warnings
import weakref

import pytest

import cygrad as cg
from cygrad import autograd

ONES = cg.ones(2)


# ----- Accumulation -----

GRADIENTS = {
    "product": (lambda x: (x * 3).sum(), [3, 3]),
    "square": (lambda x: (x * x).sum(), [2, 4]),
    "used twice": (lambda x: (x * 3 + x * 4).sum(), [7, 7]),
    "diamond": (lambda x: ((y := x * 2) * y).sum(), [8, 16]),
    "deep": (lambda x: ((x * x) * (x * x)).sum(), [4, 32]),
    "mean": (lambda x: x.mean(), [0.5, 0.5]),
    "one element": (lambda x: x[0] * 3, [3, 0]),
    "both elements": (lambda x: x[0] * x[1], [2, 1]),
    "constant factor": (lambda x: (x * cg.tensor([5.0, 7.0])).sum(), [5, 7]),
    "broadcast": (lambda x: (x * cg.ones(3, 2)).sum(), [3, 3]),
    "0-d broadcast": (lambda x: (x.sum() * cg.ones(4)).sum(), [4, 4]),
    "detached factor": (lambda x: (x * x.detach()).sum(), [1, 2]),
    "leaf itself": (lambda x: x.sum(), [1, 1]),
}


@pytest.mark.parametrize("name", list(GRADIENTS))
def test_gradient_of_a_leaf(x, name):
    function, expected = GRADIENTS[name]
    function(x).backward()
    assert x.grad.tolist() == expected
    assert x.grad.dtype == x.dtype
    assert not x.grad.requires_grad


def test_gradients_accumulate_until_they_are_cleared(x):
    for times in (1, 2, 3):
        (x * 3).sum().backward()
        assert x.grad.tolist() == [3 * times] * 2
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_accumulation_happens_in_place(x):
    x.sum().backward()
    gradient = x.grad
    x.sum().backward()
    assert x.grad is gradient
    assert gradient.tolist() == [2, 2]


def test_accumulation_keeps_hands_off_the_tensor_the_user_gave(x):
    gradient = cg.ones(2)
    x.backward(gradient)
    x.backward(gradient)
    assert x.grad.tolist() == [2, 2]
    assert gradient.tolist() == [1, 1]


def test_two_leaves_do_not_share_their_gradient(x):
    z = cg.tensor([3.0, 4.0], requires_grad=True)
    (x + z).sum().backward()
    x.grad.zero_()
    assert z.grad.tolist() == [1, 1]


def test_create_graph_replaces_the_gradient(x):
    x.sum().backward()
    first = x.grad
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert first.tolist() == [1, 1]
    assert x.grad.tolist() == [3, 5]
    assert x.grad.requires_grad


def test_a_scalar_leaf_is_its_own_root():
    x = cg.tensor(3.0, requires_grad=True)
    x.backward()
    assert x.grad.item() == 1


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_element_counts_as_scalar(shape):
    x = cg.ones(shape, requires_grad=True)
    (x * 3).backward()
    assert x.grad.tolist() == (x * 3).tolist()
    assert tuple(x.grad.shape) == shape


@pytest.mark.parametrize("gradient_dtype", [cg.float32, cg.float64, cg.int64])
def test_a_gradient_of_another_dtype_is_converted(x, gradient_dtype):
    (x * 2).backward(cg.ones(2, dtype=gradient_dtype))
    assert x.grad.dtype == cg.float32
    assert x.grad.tolist() == [2, 2]


def test_gradients_pass_through_a_change_of_dtype(x):
    y = x.double() * 3
    y.sum().backward()
    assert x.grad.dtype == cg.float32
    assert x.grad.tolist() == [3, 3]


def test_several_roots(x):
    y = x * 2
    autograd.backward([y, y.sum()], [cg.ones(2), None], retain_graph=True)
    assert x.grad.tolist() == [4, 4]
    autograd.backward(y.sum(), retain_graph=True)
    assert x.grad.tolist() == [6, 6]
    autograd.backward([])
    autograd.backward([y, y], grad_tensors=(cg.ones(2), cg.ones(2)))
    assert x.grad.tolist() == [10, 10]


def test_inputs_prunes(x):
    z = cg.ones(2, requires_grad=True)
    (x * z).sum().backward(inputs=[x])
    assert x.grad.tolist() == [1, 1]
    assert z.grad is None
    (x * z).sum().backward(inputs=z)
    assert x.grad.tolist() == [1, 1]
    assert z.grad.tolist() == [1, 2]


def test_inputs_takes_a_non_leaf(x):
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward(inputs=[y])
    assert y.grad.tolist() == [3, 3]
    assert x.grad is None


def test_integer_and_bool_results_have_no_history(x):
    results = [x > 1, x.argmax(), x.long(), x.isnan(), x.max(dim=0).indices, x.sign() == x]
    assert [y.requires_grad for y in results] == [False] * len(results)


# ----- grad -----


def test_grad_returns_and_leaves_grad_alone(x):
    y = x * x
    (gradient,) = autograd.grad(y.sum(), x)
    assert gradient.tolist() == [2, 4]
    assert x.grad is None


GRAD = {
    "non-leaf": (lambda x, y: autograd.grad((y * y).sum(), y), [[4, 8]]),
    "leaf and non-leaf": (lambda x, y: autograd.grad((y * x).sum(), [x, y]), [[4, 8], [1, 2]]),
    "the output": (lambda x, y: autograd.grad(y.sum(), [y]), [[1, 1]]),
    "the root itself": (lambda x, y: autograd.grad(x, x, ONES), [[1, 1]]),
    "the same twice": (lambda x, y: autograd.grad(y.sum(), [x, x]), [[2, 2], [2, 2]]),
    "two outputs": (lambda x, y: autograd.grad([y, x * 5], x, [ONES, ONES]), [[7, 7]]),
    "one default grad_output": (lambda x, y: autograd.grad([y, x.sum()], x, [ONES, None]), [[3, 3]]),
    "weighted": (lambda x, y: autograd.grad(y, x, cg.tensor([1.0, 10.0])), [[2, 20]]),
    "keyword": (lambda x, y: autograd.grad(outputs=y, inputs=x, grad_outputs=ONES), [[2, 2]]),
}


@pytest.mark.parametrize("name", list(GRAD))
def test_grad(x, name):
    call, expected = GRAD[name]
    gradients = call(x, x * 2)
    assert isinstance(gradients, tuple)
    assert [gradient.tolist() for gradient in gradients] == expected


def test_grad_of_a_dict(x):
    gradients = autograd.grad((x * 2).sum(), {"x": x})
    assert list(gradients) == ["x"]
    assert gradients["x"].tolist() == [2, 2]


def test_unused_inputs(x):
    unused = cg.ones(3, requires_grad=True)
    y = (x * 2).sum()
    assert autograd.grad(y, [x, unused], allow_unused=True, retain_graph=True)[1] is None
    zeros = autograd.grad(y, [x, unused], materialize_grads=True)[1]
    assert zeros.tolist() == [0, 0, 0]


def test_grad_of_a_non_leaf_does_not_walk_below_it(x):
    y = x * 2
    assert autograd.grad((y * 3).sum(), y)[0].tolist() == [3, 3]
    assert autograd.grad(y.sum(), x)[0].tolist() == [2, 2]


def test_only_inputs_false_warns_and_is_ignored(x):
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated and is ignored now"):
        (gradient,) = autograd.grad((x * 2).sum(), x, only_inputs=False)
    assert gradient.tolist() == [2, 2]


# ----- create_graph and retain_graph -----


def test_second_and_third_derivative():
    x = cg.tensor([2.0], requires_grad=True)
    y = x * x * x * x
    values = []
    for _ in range(4):
        (y,) = autograd.grad(y, x, create_graph=True)
        values.append(y.item())
    assert values == [32, 48, 48, 24]


@pytest.mark.parametrize(("create_graph", "has_history"), [(True, True), (False, False)])
def test_create_graph_decides_on_history(x, create_graph, has_history):
    (gradient,) = autograd.grad((x * x).sum(), x, create_graph=create_graph)
    assert gradient.requires_grad is has_history
    assert (gradient.grad_fn is not None) is has_history


def test_derivative_with_respect_to_grad_outputs(x):
    weight = cg.ones(2, requires_grad=True)
    (gradient,) = autograd.grad(x * x, x, weight, create_graph=True)
    gradient.sum().backward()
    assert weight.grad.tolist() == [2, 4]
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("first", "again"),
    [({}, False), ({"retain_graph": False}, False), ({"retain_graph": True}, True), ({"create_graph": True}, True)],
    ids=str,
)
def test_the_graph_is_freed_unless_retained(x, first, again):
    y = (x * x).sum()
    autograd.grad(y, x, **first)
    if again:
        assert autograd.grad(y, x)[0].tolist() == [2, 4]
    else:
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            autograd.grad(y, x)


def test_a_shared_part_that_was_freed_is_refused(x):
    y = x * x
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        (y * 2).sum().backward()


def test_backward_frees_saved_tensors(x):
    y = x * 2
    z = y * y
    saved = weakref.ref(y)
    root = z.sum()
    del y, z
    root.backward()
    gc.collect()
    assert saved() is None


def test_a_cycle_made_by_create_graph_is_collectable():
    x = cg.ones(3, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x * x).sum().backward(create_graph=True)
    leaf = weakref.ref(x)
    del x
    gc.collect()
    assert leaf() is None


# ----- Refusals -----

REFUSED = {
    "vector root": (lambda x, y: y.backward(), RuntimeError, "grad can be implicitly created only for scalar outputs"),
    "vector root of grad": (
        lambda x, y: autograd.grad(y, x),
        RuntimeError,
        "grad can be implicitly created only for scalar outputs",
    ),
    "no history": (
        lambda x, y: ONES.sum().backward(),
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    "second root without history": (
        lambda x, y: autograd.backward([y.sum(), ONES.sum()]),
        RuntimeError,
        "element 1 of tensors does not require grad and does not have a grad_fn",
    ),
    "detached": (
        lambda x, y: y.detach().sum().backward(),
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    "gradient of another shape": (
        lambda x, y: y.backward(cg.ones(3)),
        RuntimeError,
        r"Mismatch in shape: grad_output\[0\] has a shape of .*\[3\].* and output\[0\] has a shape of .*\[2\]",
    ),
    "0-d gradient of a vector": (lambda x, y: y.backward(cg.tensor(1.0)), RuntimeError, "Mismatch in shape"),
    "vector gradient of a scalar": (lambda x, y: y.sum().backward(cg.ones(1)), RuntimeError, "Mismatch in shape"),
    "gradient a number": (
        lambda x, y: autograd.backward([y], [1.0]),
        TypeError,
        "gradients can be either Tensors or None",
    ),
    "too few gradients": (
        lambda x, y: autograd.grad((y, y), x, (ONES,)),
        RuntimeError,
        "got 2 tensors and 1 gradients",
    ),
    "input without gradient": (
        lambda x, y: autograd.grad(y.sum(), ONES),
        RuntimeError,
        "One of the differentiated Tensors does not require grad",
    ),
    "unused input": (
        lambda x, y: autograd.grad(y.sum(), [x, x.clone()]),
        RuntimeError,
        "The differentiated Tensor at index 1 appears to not have been used in the graph. Set allow_unused=True",
    ),
    "no inputs of grad": (
        lambda x, y: autograd.grad(y.sum(), []),
        RuntimeError,
        r"`inputs` argument to `grad\(\)` cannot be empty",
    ),
    "no inputs of backward": (
        lambda x, y: y.sum().backward(inputs=[]),
        RuntimeError,
        r"`inputs` argument to `backward\(\)` cannot be empty",
    ),
    "input not a tensor": (lambda x, y: autograd.grad(y.sum(), "a"), RuntimeError, "all inputs have to be Tensors"),
    "materialize without unused": (
        lambda x, y: autograd.grad(y.sum(), x, materialize_grads=True, allow_unused=False),
        ValueError,
        "Expected allow_unused to be True or not passed when materialize_grads=True",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused(x, name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call(x, x * 2)
    assert x.grad is None


# ----- Zero dimensions and empty tensors -----

EMPTY = [
    (lambda x: (x * 2).sum(), (0,)),
    (lambda x: x.mean(), (0,)),
    (lambda x: (x @ cg.ones(3, 2)).sum(), (0, 3)),
    (lambda x: (cg.ones(2, 0) @ x).sum(), (0, 3)),
    (lambda x: x.sum(dim=0).sum(), (0, 3)),
    (lambda x: x.reshape(3, 0).T.exp().sum(), (0, 3)),
]


@pytest.mark.parametrize(("function", "shape"), EMPTY)
def test_empty_tensors_have_empty_gradients(function, shape):
    x = cg.ones(shape, requires_grad=True)
    function(x).backward()
    assert tuple(x.grad.shape) == shape


def test_0d_tensors_all_the_way():
    x = cg.tensor(2.0, requires_grad=True)
    y = x * x
    y.backward()
    assert tuple(x.grad.shape) == ()
    assert x.grad.item() == 4


# ----- The graph as users see it -----


def test_grad_fn(x):
    y = x * 2
    assert x.grad_fn is None
    assert y.grad_fn.name() == "MulBackward0"
    assert repr(y.grad_fn).startswith("<MulBackward0")
    assert y.sum().grad_fn.name() == "SumBackward0"
    ((accumulate, number), *_) = y.grad_fn.next_functions
    assert number == 0
    assert accumulate.name().endswith("AccumulateGrad")
    assert accumulate.variable is x
    assert y.sum().grad_fn.next_functions[0][0] is y.grad_fn


def test_next_functions_are_none_for_constants(x):
    assert (cg.ones(2) * x).grad_fn.next_functions[0] == (None, 0)


def test_an_exception_in_backward_leaves_whole_gradients(x):
    z = cg.ones(2, requires_grad=True)
    bad = x * z

    def fail(_):
        raise KeyError("mine")

    bad.register_hook(fail)
    x.sum().backward()
    with pytest.raises(KeyError, match="mine"):
        bad.sum().backward()
    assert x.grad.tolist() == [1, 1]
    assert z.grad is None
    (x * z).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_backward_within_backward(x):
    inner = cg.tensor([3.0], requires_grad=True)

    def nested(gradient):
        with cg.enable_grad():
            (inner * inner).sum().backward()

    y = x * 2
    y.register_hook(nested)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert inner.grad.tolist() == [6]


def test_the_gradient_of_a_transposed_leaf_has_its_strides():
    x = cg.ones(3, 2).T.requires_grad_()
    (x * x).sum().backward()
    assert x.grad.stride() == x.stride()


def test_the_gradient_of_sum_is_expanded_by_grad_and_dense_in_grad(x):
    matrix = cg.ones(3, 2, requires_grad=True)
    (gradient,) = autograd.grad(matrix.sum(), matrix)
    assert gradient.stride() == (0, 0)
    matrix.sum().backward()
    assert matrix.grad.stride() == (2, 1)
