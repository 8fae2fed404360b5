"""The reference documents' sentences on backward(), grad() and the layout of gradients, where no other test asserts them."""

import gc
import inspect
import operator
import weakref

import pytest

import cygrad as cg
from cygrad import autograd

# ----- The package -----

NAMES = {
    "autograd": "backward grad no_grad enable_grad set_grad_enabled inference_mode detect_anomaly set_detect_anomaly Variable Function",
    "autograd.function": "Function FunctionCtx",
    "autograd.Function": "forward backward apply",
    "autograd.function.FunctionCtx": "mark_dirty mark_non_differentiable save_for_backward",
    "Tensor": "grad requires_grad is_leaf backward detach detach_ register_hook retain_grad",
}


@pytest.mark.cases("name", [f"{where}.{name}" for where, names in NAMES.items() for name in names.split()])
def test_the_name_is_there(name):
    operator.attrgetter(name)(cg)


SIGNATURES = {
    "autograd.backward": "tensors grad_tensors=None retain_graph=None create_graph=False grad_variables=None inputs=None",
    "autograd.grad": "outputs inputs grad_outputs=None retain_graph=None create_graph=False only_inputs=True allow_unused=None",
    "Tensor.backward": "self gradient=None retain_graph=None create_graph=False inputs=None",
    "Tensor.register_hook": "self hook",
    "autograd.Function.backward": "ctx *grad_outputs",
    "autograd.set_grad_enabled": "mode",
    "autograd.inference_mode": "mode=True",
    "autograd.detect_anomaly": "check_nan=True",
    "autograd.set_detect_anomaly": "mode check_nan=True",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_arguments_have_the_documented_order_and_defaults(name):
    parameters = inspect.signature(operator.attrgetter(name)(cg)).parameters.values()
    shown = [str(parameter.replace(annotation=inspect.Parameter.empty)) for parameter in parameters]
    expected = SIGNATURES[name].split()
    assert shown[: len(expected)] == expected


def test_a_scalar_valued_function_with_any_python_in_it_is_differentiated():
    def function(x):
        total = x.sum() * 0
        for number in range(3):
            if x[number] > 1:
                total = total + x[number].sin() * x.prod()
        return total

    point = cg.tensor([0.5, 1.5, 2.5], dtype=cg.float64, requires_grad=True)
    (gradient,) = autograd.grad(function(point), point)
    step = 1e-6
    for number in range(3):
        moved = [cg.tensor([v + s * (i == number) for i, v in enumerate(point.tolist())], dtype=cg.float64) for s in (step, -step)]
        slope = (function(moved[0]) - function(moved[1])).item() / (2 * step)
        assert gradient[number].item() == pytest.approx(slope, rel=1e-7)


def test_declaring_requires_grad_is_all_that_changes():
    def program(x):
        return ((x @ x.T).exp().log1p() * x.mean()).sum()

    values = [[1.0, 0.5], [-0.25, 2.0]]
    declared = cg.tensor(values, requires_grad=True)
    result = program(declared)
    assert result.item() == program(cg.tensor(values)).item()
    result.backward()
    assert declared.grad.shape == declared.shape


@pytest.mark.parametrize("dtype", [cg.float16, cg.bfloat16, cg.float32, cg.float64, cg.complex64, cg.complex128])
def test_each_floating_dtype_has_gradients_of_its_own_dtype(dtype):
    x = cg.ones(2, dtype=dtype, requires_grad=True)
    (x * x).real.sum().backward()
    assert x.grad.dtype == dtype
    assert x.grad.tolist() == [2, 2]


# ----- backward -----


def test_a_vector_root_gives_the_product_of_its_weights_and_the_jacobian(x):
    weights = cg.tensor([10.0, 100.0])
    y = cg.stack([x[0] * x[1], x[0] * x[0] * x[1]])
    rows = [autograd.grad(y[number], x, retain_graph=True)[0] for number in range(2)]
    y.backward(weights)
    assert x.grad.tolist() == (weights[0] * rows[0] + weights[1] * rows[1]).tolist()


def test_none_is_a_weight_for_scalars(x):
    vector, scalar = x * 2, (x * 3).sum()
    autograd.backward([vector, scalar], [cg.ones(2), None])
    assert x.grad.tolist() == [5, 5]
    assert autograd.grad([x * 2, (x * 3).sum()], x, [cg.ones(2), None])[0].tolist() == [5, 5]


def test_weights_may_be_left_out_where_all_are_none(x):
    autograd.backward([(x * 2).sum(), (x * 3).sum()])
    assert x.grad.tolist() == [5, 5]
    assert autograd.grad([(x * 2).sum(), (x * 3).sum()], x)[0].tolist() == [5, 5]


FORMS = {
    "backward": lambda roots, weights, x: autograd.backward(roots, weights),
    "grad": lambda roots, weights, x: autograd.grad(roots, x, weights),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weight", [None, cg.ones(2)])
def test_a_root_that_needs_no_gradient_is_refused_for_any_weight(x, form, weight):
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad and does not have a grad_fn"):
        FORMS[form]([x * 2, cg.ones(2)], [cg.ones(2), weight], x)
    assert x.grad is None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 3])
def test_as_many_weights_as_roots(x, form, count):
    with pytest.raises(RuntimeError, match=f"got 2 tensors and {count} gradients"):
        FORMS[form]([x * 2, x * 3], [cg.ones(2)] * count, x)


def test_create_graph_in_backward_warns_and_recommends_grad(x):
    with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle .* We recommend using autograd.grad"):
        (x * x).sum().backward(create_graph=True)


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("reset", [True, False])
def test_resetting_grad_breaks_the_cycle_of_create_graph(reset):
    x = cg.ones(2, requires_grad=True)
    gc.disable()
    try:
        (x * x).sum().backward(create_graph=True)
        if reset:
            x.grad = None
        leaf = weakref.ref(x)
        del x
        assert (leaf() is None) is reset
    finally:
        gc.enable()


def test_grad_with_create_graph_makes_no_cycle_and_does_not_warn(recwarn):
    x = cg.ones(2, requires_grad=True)
    gc.disable()
    try:
        (gradient,) = autograd.grad((x * x).sum(), x, create_graph=True)
        leaf = weakref.ref(x)
        del x, gradient
        assert leaf() is None
    finally:
        gc.enable()
    assert not recwarn


def test_without_inputs_every_leaf_is_given_its_gradient(x):
    leaves = [x, cg.ones(2, requires_grad=True), cg.ones(2, requires_grad=True)]
    middle = leaves[0] * leaves[1]
    (middle * leaves[2]).sum().backward()
    assert [leaf.grad.tolist() for leaf in leaves] == [[1, 1], [1, 2], [1, 2]]


@pytest.mark.parametrize("method", [False, True])
def test_inputs_is_the_choice_of_leaves_of_backward(x, method):
    z = cg.ones(2, requires_grad=True)
    root = (x * z).sum()
    if method:
        root.backward(inputs=[x])
    else:
        autograd.backward(root, inputs=[x])
    assert x.grad.tolist() == [1, 1]
    assert z.grad is None


CALLS = {
    "method": lambda root, x, **options: root.backward(**options),
    "backward": lambda root, x, **options: autograd.backward(root, **options),
    "grad": autograd.grad,
}
OPTIONS = [
    ({}, False, False),
    ({"retain_graph": False}, False, False),
    ({"retain_graph": True}, True, False),
    ({"create_graph": True}, True, True),
    ({"retain_graph": False, "create_graph": True}, False, True),
]


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("options", "again", "history"), OPTIONS)
def test_retain_graph_and_create_graph_in_each_form(x, call, options, again, history):
    root = (x * x).sum()
    result = CALLS[call](root, x, **options)
    gradient = x.grad if result is None else result[0]
    assert gradient.requires_grad is history
    if again:
        CALLS[call](root, x)
    else:
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            CALLS[call](root, x)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_the_weight_of_backward_keeps_its_history_with_create_graph_only(x):
    weight = cg.ones(2, requires_grad=True)
    (x * 2).backward(weight)
    assert not x.grad.requires_grad
    x.grad = None
    (x * 2).backward(weight, create_graph=True)
    assert x.grad.requires_grad
    assert autograd.grad(x.grad.sum(), weight)[0].tolist() == [2, 2]


# ----- grad -----


def test_grad_sums_over_outputs_and_gives_one_gradient_for_each_input(x):
    z = cg.ones(2, requires_grad=True)
    gradients = autograd.grad([(x * z).sum(), (x * 3).sum()], [x, z])
    assert isinstance(gradients, tuple)
    assert [gradient.tolist() for gradient in gradients] == [[4, 4], [1, 2]]
    assert x.grad is None
    assert z.grad is None


def test_only_inputs_leaves_the_other_leaves_alone(x):
    z = cg.ones(2, requires_grad=True)
    autograd.grad((x * z).sum(), x, only_inputs=True)
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated and is ignored now"):
        autograd.grad((x * z).sum(), x, only_inputs=False)
    assert z.grad is None


@pytest.mark.parametrize("options", [{}, {"allow_unused": False}, {"allow_unused": None}])
def test_an_unused_input_is_an_error_unless_allowed(x, options):
    unused = cg.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used in the graph"):
        autograd.grad((x * 2).sum(), [x, unused], **options)
    assert autograd.grad((x * 2).sum(), [x, unused], allow_unused=True)[1] is None


# ----- Layouts of gradients -----


def dense():
    return cg.ones(3, 2)


def transposed():
    return cg.ones(2, 3).T


def permuted():
    return cg.ones(2, 3, 4).permute(2, 0, 1)


def with_gaps():
    return cg.ones(6, 2)[::2]


def transposed_with_gaps():
    return cg.ones(2, 6).T[::2]


def overlapping():
    return cg.ones(1, 2).expand(3, 2)


LAYOUTS = [(dense, (2, 1)), (transposed, (1, 3)), (permuted, (1, 12, 4)), (with_gaps, (2, 1)),
           (transposed_with_gaps, (2, 1)), (overlapping, (2, 1))]


@pytest.mark.cases(("make", "strides"), LAYOUTS)
@pytest.mark.cases("form", ["function", "method"])
def test_a_first_gradient_has_the_strides_of_a_dense_parameter_else_row_major_ones(make, strides, form):
    parameter = make().requires_grad_()
    root = (parameter * parameter).sum()
    root.backward() if form == "method" else autograd.backward(root)
    assert parameter.grad.stride() == strides
    assert parameter.grad.tolist() == (parameter * 2).tolist()


@pytest.mark.parametrize(("make", "present"), [(dense, transposed), (transposed, dense), (dense, dense)])
@pytest.mark.filterwarnings("ignore:grad and param do not obey")
def test_accumulation_in_place_keeps_the_strides_that_are_there(make, present):
    parameter = make().requires_grad_()
    parameter.grad = gradient = present()
    strides = gradient.stride()
    for _ in range(2):
        (parameter * 2).sum().backward()
    assert parameter.grad is gradient
    assert gradient.stride() == strides
    assert gradient.tolist() == [[5, 5]] * 3


@pytest.mark.parametrize("present", [transposed, dense])
@pytest.mark.filterwarnings("ignore:grad and param do not obey", "ignore:Using backward")
def test_accumulation_with_create_graph_replaces_and_matches_strides(present):
    parameter = dense().requires_grad_()
    parameter.grad = old = present()
    (parameter * parameter).sum().backward(create_graph=True)
    assert parameter.grad is not old
    assert parameter.grad.stride() == old.stride()
    assert parameter.grad.tolist() == [[3, 3]] * 3
    assert old.tolist() == [[1, 1]] * 3


@pytest.mark.parametrize("clear", [lambda parameter: parameter.grad.zero_(), lambda parameter: setattr(parameter, "grad", None)])
def test_clearing_in_place_or_by_none_gives_the_same_layout_again(clear):
    parameter = transposed().requires_grad_()
    for _ in range(2):
        (parameter * 2).sum().backward()
        assert parameter.grad.stride() == parameter.stride()
        assert parameter.grad.tolist() == [[2, 2]] * 3
        clear(parameter)
