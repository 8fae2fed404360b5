"""autograd.functional: refusals in torch's words, strict mode, and inputs that stay unchanged."""

import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import functional
from cygrad.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

FORWARD = {"vectorize": True, "strategy": "forward-mode"}
OUTER_FORWARD = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
X, Y, ONE = cg.tensor([1.0, 2.0]), cg.tensor([3.0, 4.0]), cg.tensor(1.0)


def of(function, *arguments, **keywords):
    """Return a call; the test's name shows its arguments."""
    return lambda: function(*arguments, **keywords)


def identity(x, *others):
    return x


def total(x, *others):
    return x.sum()


def not_tensors(role, function, kind=""):
    """Return the start of the message for arguments or results that are no tensors."""
    return f"The {role} given to {function} must be either a Tensor or a tuple of Tensors but the {kind}"


OUTPUTS = "outputs of the user-provided function"
LIST_OF_INPUTS = "given inputs has type <class 'list'>."
LIST_OF_OUTPUTS = f"given {OUTPUTS} has type <class 'list'>."
SINGLE_OUTPUT = "The function given to {} should return a single Tensor"
SINGLE_ELEMENT = "The Tensor returned by the function given to {} should contain a single element"
NO_VECTOR = "The vector v can only be None if the {} a single Tensor with a single element."
NO_VECTOR_OF_OUTPUTS = NO_VECTOR.format("user-provided function returns")
NO_VECTOR_OF_INPUTS = NO_VECTOR.format("input to the user-provided function is")
NO_GRADIENT = "only Tensors of floating point dtype can require gradients"
STRATEGY = 'Expected strategy to be either "forward-mode" or "reverse-mode".'
HINT = (' Hint: If your function has more outputs than inputs, "forward-mode" tends to be more performant. '
        'Otherwise, prefer to use "reverse-mode".')
BY_COLUMNS = "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
TOGETHER = "torch.autograd.functional.jacobian: `{}=True` and `{}` are not supported together"
FORWARD_GRAPH = TOGETHER.format("create_graph", 'strategy="forward-mode"') + " (yet)."
FORWARD_STRICT = TOGETHER.format("strict", 'strategy="forward-mode"') + " (yet)."
BATCHED_STRICT = TOGETHER.format("strict", "vectorized=True") + "."

REFUSED = {
    # Structure
    "list of inputs": (of(jacobian, identity, [X]), TypeError, not_tensors("inputs", "jacobian", LIST_OF_INPUTS)),
    "the same in forward mode": (of(jacobian, identity, [X], **FORWARD), TypeError, not_tensors("inputs", "jacobian", LIST_OF_INPUTS)),
    "text among inputs": (of(hessian, total, (X, "1")), TypeError,
                            not_tensors("inputs", "hessian", "value at index 1 has type <class 'str'>.")),
    "no tensor to vjp": (of(vjp, identity, None, X), TypeError, not_tensors("inputs", "vjp")),
    "no tensor to jvp": (of(jvp, identity, "1", X), TypeError, not_tensors("inputs", "jvp")),
    "no tensor to vhp": (of(vhp, total, "1", X), TypeError, not_tensors("inputs", "vhp")),
    "no tensor to hvp": (of(hvp, total, "1", X), TypeError, not_tensors("inputs", "hvp")),
    "list of outputs": (of(jacobian, lambda x: [x], X), TypeError, not_tensors(OUTPUTS, "jacobian", LIST_OF_OUTPUTS)),
    "batched list of outputs": (of(jacobian, lambda x: [x], X, vectorize=True), TypeError, not_tensors(OUTPUTS, "jacobian")),
    "list of outputs in forward mode": (of(jacobian, lambda x: [x], X, **FORWARD), TypeError, not_tensors(OUTPUTS, "jacobian")),
    "list to hessian": (of(hessian, lambda x: [x], X), TypeError, not_tensors(OUTPUTS, "hessian", LIST_OF_OUTPUTS)),
    "list to hessian in forward mode": (of(hessian, lambda x: [x], X, **OUTER_FORWARD), TypeError, not_tensors(OUTPUTS, "hessian")),
    "number among outputs": (of(vjp, lambda x: (x, 1), X, X), TypeError,
                             not_tensors(OUTPUTS, "vjp", "value at index 1 has type <class 'int'>.")),
    "float to jvp": (of(jvp, lambda x: 1.0, X, X), TypeError, not_tensors(OUTPUTS, "jvp")),
    "float to vhp": (of(vhp, lambda x: 1.0, X, X), TypeError, not_tensors(OUTPUTS, "vhp")),
    "float to hvp": (of(hvp, lambda x: 1.0, X, X), TypeError, not_tensors(OUTPUTS, "hvp")),
    "tuple to hessian": (of(hessian, lambda x: (x.sum(),), X), RuntimeError, SINGLE_OUTPUT.format("hessian")),
    "tuple to vhp": (of(vhp, lambda x: (x.sum(),), X, X), RuntimeError, SINGLE_OUTPUT.format("vhp")),
    "tuple to hvp": (of(hvp, lambda x: (x.sum(),), X, X), RuntimeError, SINGLE_OUTPUT.format("hvp")),
    "vector to hessian": (of(hessian, identity, X), RuntimeError, SINGLE_ELEMENT.format("hessian")),
    "vector to hessian in forward mode": (of(hessian, identity, X, **OUTER_FORWARD), RuntimeError, SINGLE_ELEMENT.format("hessian")),
    "vector to vhp": (of(vhp, identity, X, X), RuntimeError, SINGLE_ELEMENT.format("vhp")),
    "vector to hvp": (of(hvp, identity, X, X), RuntimeError, SINGLE_ELEMENT.format("hvp")),
    # The vector
    "no tensor as v": (of(jvp, identity, X, "1"), TypeError, not_tensors("v", "jvp", "given v has type <class 'str'>.")),
    "list as v": (of(vjp, identity, X, [X]), TypeError, not_tensors("v", "vjp")),
    "text in v": (of(vhp, total, (X,), ("1",)), TypeError, not_tensors("v", "vhp", "value at index 0 has type <class 'str'>.")),
    "None in v": (of(hvp, total, (X,), (None,)), TypeError, not_tensors("v", "hvp")),
    "vjp of a vector without v": (of(vjp, identity, X), RuntimeError, NO_VECTOR_OF_OUTPUTS),
    "vjp of a tuple without v": (of(vjp, lambda x: (x, x), ONE), RuntimeError, NO_VECTOR_OF_OUTPUTS),
    "jvp at a vector without v": (of(jvp, total, X), RuntimeError, NO_VECTOR_OF_INPUTS),
    "jvp at a tuple without v": (of(jvp, total, (ONE, ONE)), RuntimeError, NO_VECTOR_OF_INPUTS),
    "vhp without v": (of(vhp, total, X), RuntimeError, NO_VECTOR_OF_INPUTS),
    "hvp without v": (of(hvp, total, X), RuntimeError, NO_VECTOR_OF_INPUTS),
    "tuple as v": (of(jvp, identity, X, (X, X)), RuntimeError, "The given v should contain a single Tensor."),
    "v too long": (of(vhp, total, (X, Y), (X, X, X)), RuntimeError, "v is a tuple of invalid length: should be 2 but got 3."),
    "v too short": (of(vjp, lambda x: (x, x), X, X), RuntimeError, "v is a tuple of invalid length: should be 2 but got 1."),
    "size of v": (of(jvp, identity, X, ONE), RuntimeError, "v has invalid size: should be cygrad.Size([2]) but got cygrad.Size([])."),
    "size in v": (of(hvp, total, (X, Y), (X, X[:1])), RuntimeError,
                  "Entry 1 in v has invalid size: should be cygrad.Size([2]) but got cygrad.Size([1])."),
    "broadcasting v": (of(vjp, identity, X, cg.ones(1, 2)), RuntimeError, "v has invalid size: should be cygrad.Size([2])"),
    # Numbers that have no gradient
    "integers": (of(jacobian, lambda x: x * 2.0, cg.tensor([1, 2])), RuntimeError, NO_GRADIENT),
    "integers in forward mode": (of(jacobian, lambda x: x * 2.0, cg.tensor([1, 2]), **FORWARD), ValueError,
                                 "Expected primal to be floating point or complex, but got: "),
    "integers to jvp": (of(jvp, lambda x: (x, x.argmax()), X, X), RuntimeError, NO_GRADIENT),
    # Modes
    "strategy": (of(jacobian, identity, X, strategy="backward"), AssertionError, STRATEGY + HINT),
    "outer strategy": (of(hessian, total, X, outer_jacobian_strategy=None), AssertionError, STRATEGY),
    "forward mode by columns": (of(jacobian, identity, X, strategy="forward-mode"), NotImplementedError, BY_COLUMNS),
    "the same of a hessian": (of(hessian, total, X, outer_jacobian_strategy="forward-mode"), NotImplementedError, BY_COLUMNS),
    "forward mode with create_graph": (of(jacobian, identity, X, create_graph=True, **FORWARD), NotImplementedError, FORWARD_GRAPH),
    "hessian in it": (of(hessian, total, X, create_graph=True, **OUTER_FORWARD), NotImplementedError, FORWARD_GRAPH),
    "forward mode with strict": (of(jacobian, identity, X, strict=True, **FORWARD), RuntimeError, FORWARD_STRICT),
    "strict hessian in it": (of(hessian, total, X, strict=True, **OUTER_FORWARD), RuntimeError, FORWARD_STRICT),
    "batched with strict": (of(jacobian, identity, X, strict=True, vectorize=True), RuntimeError, BATCHED_STRICT),
    "hessian batched with strict": (of(hessian, lambda x: (x**3).sum(), X, strict=True, vectorize=True), RuntimeError, BATCHED_STRICT),
    # The function
    "no function": (of(jacobian, 3, X), TypeError, "'int' object is not callable"),
    "too many inputs": (of(vjp, lambda x: x, (X, Y), X), TypeError, "<lambda>() takes 1 positional argument but 2 were given"),
}


@pytest.mark.cases("case", REFUSED)
def test_refused(case):
    call, kind, text = REFUSED[case]
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert str(caught.value).startswith(text)


def squares(*inputs):
    return sum(x * x for x in inputs)


# (function, the argument that holds the number, a call with a number)
WITH_NUMBERS = [
    (jacobian, "inputs", lambda number: jacobian(squares, (ONE, number))),
    (hessian, "inputs", lambda number: hessian(squares, (ONE, number))),
    (vjp, "inputs", lambda number: vjp(squares, (ONE, number))),
    (jvp, "inputs", lambda number: jvp(squares, (ONE, number), (ONE, ONE))),
    (vhp, "inputs", lambda number: vhp(squares, (ONE, number), (ONE, ONE))),
    (hvp, "inputs", lambda number: hvp(squares, (ONE, number), (ONE, ONE))),
    (vjp, "v", lambda number: vjp(lambda x: (x, x), ONE, (ONE, number))),
    (jvp, "v", lambda number: jvp(squares, (ONE, ONE), (ONE, number))),
    (vhp, "v", lambda number: vhp(squares, (ONE, ONE), (ONE, number))),
    (hvp, "v", lambda number: hvp(squares, (ONE, ONE), (ONE, number))),
]


@pytest.mark.cases("number", [1, True])
@pytest.mark.cases("function, role, call", WITH_NUMBERS)
def test_an_int_among_tensors_is_refused_where_a_float_is_taken(function, role, call, number):
    call(1.0)
    with pytest.raises(TypeError) as caught:
        call(number)
    refused = not_tensors(role, function.__name__, f"value at index 1 has type {type(number)}.")
    assert str(caught.value) == refused + " An integer has no derivative: convert it to a float."


# ----- Strict mode -----
FUNCTIONS = {
    "constant": lambda x, y: cg.ones(()),
    "no y": lambda x, y: (x**3).sum(),
    "linear": lambda x, y: (x + y).sum(),
    "linear in y": lambda x, y: (x**3).sum() + y.sum(),
    "separable": lambda x, y: (x**3 + y**3).sum(),
    "quadratic": lambda x, y: (x * x + y * y).sum(),
    "bilinear": lambda x, y: (x * y).sum(),
    "cubic": lambda x, y: (x * x * y + x * y * y).sum(),
}
DETACHED = ("Output 0 of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner "
            "from the input when running in strict mode.")
INDEPENDENT = "The output of the user-provided function is independent of input 1. This is not allowed in strict mode."
OUTPUT_INDEPENDENT = "Output 0 of the user-provided function is independent of input {}. This is not allowed in strict mode."
LINEAR = ("While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is independent of "
          "the input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and that the "
          "jacobian depends on the inputs (this would be violated by a linear function for example).")
CONSTANT = "The {} of the user-provided function is independent of input {}. This is not allowed in strict mode when create_graph=True."

# function, its name in FUNCTIONS, create_graph, error
STRICT = [
    *((name, "constant", False, DETACHED) for name in functional.__all__),
    *((name, "no y", False, INDEPENDENT) for name in ("vjp", "jvp", "vhp", "hvp")),
    ("jacobian", "no y", False, OUTPUT_INDEPENDENT.format(1)),
    ("hessian", "no y", False, LINEAR.format(1)),
    *((name, "linear", False, LINEAR.format(0)) for name in ("hessian", "vhp", "hvp")),
    *((name, "linear in y", False, LINEAR.format(1)) for name in ("hessian", "vhp", "hvp")),
    *((name, "linear", True, CONSTANT.format("jacobian", 0)) for name in ("vjp", "jvp")),
    ("jacobian", "linear", True, CONSTANT.format("jacobian", 0)),
    ("jacobian", "linear in y", True, CONSTANT.format("jacobian", 1)),
    ("vjp", "linear in y", True, CONSTANT.format("jacobian", 1)),
    *((name, "quadratic", True, CONSTANT.format("hessian", 0)) for name in ("vhp", "hvp")),
    ("hessian", "separable", False, OUTPUT_INDEPENDENT.format(1)),
    ("hessian", "bilinear", False, OUTPUT_INDEPENDENT.format(0)),
]
ACCEPTED = {"jacobian": "linear", "vjp": "linear", "jvp": "linear", "hessian": "cubic", "vhp": "bilinear", "hvp": "bilinear"}


def run(name, function, **keywords):
    vector = () if name in ("jacobian", "hessian", "vjp") else ((X, Y),)
    return getattr(functional, name)(function, (X, Y), *vector, **keywords)


@pytest.mark.cases(("name", "function", "create_graph", "text"), STRICT)
def test_strict_mode_refuses(name, function, create_graph, text):
    run(name, FUNCTIONS[function], create_graph=create_graph)
    with pytest.raises(RuntimeError) as caught:
        run(name, FUNCTIONS[function], create_graph=create_graph, strict=True)
    assert str(caught.value).startswith(text)


def flat(results):
    return [results.tolist()] if isinstance(results, cg.Tensor) else [number for result in results for number in flat(result)]


@pytest.mark.parametrize("name", ACCEPTED)
def test_strict_mode_gives_the_same_results(name):
    for function, create_graph in (ACCEPTED[name], False), ("cubic", True):
        strict = run(name, FUNCTIONS[function], create_graph=create_graph, strict=True)
        assert flat(strict) == flat(run(name, FUNCTIONS[function], create_graph=create_graph))


PARAMETER = cg.tensor([0.5, 0.5], requires_grad=True)


class Detached(autograd.Function):
    """The identity, whose backward has no derivative."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad.detach()


class Parametrized(Detached):
    """The identity, whose gradient depends on something else."""

    @staticmethod
    def backward(ctx, grad):
        return grad.detach() + PARAMETER


class Lopsided(autograd.Function):
    """A square of x, whose gradient by y is independent of both."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        return (x * x).sum()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x, PARAMETER.clone()


FORGOTTEN = {
    "gradient": (of(jvp, Detached.apply, X, X, strict=True),
                 "The gradient with respect to input 0 is independent of the inputs of the user-provided function. This is not allowed"),
    "weights": (of(jvp, Parametrized.apply, X, X, strict=True),
                "The gradient with respect to the input is independent of entry 0 in the grad_outputs when using the double backward"),
    "jacobian": (of(vhp, Lopsided.apply, (X, Y), (X, Y), strict=True),
                 "The jacobian of the user-provided function is independent of input 1. This is not allowed in strict mode."),
    "hessian": (of(hvp, Lopsided.apply, (X, Y), (X, Y), strict=True),
                "The hessian of the user-provided function is independent of entry 1 in the grad_jacobian. This is not allowed in strict"),
}


@pytest.mark.parametrize("case", FORGOTTEN)
def test_strict_mode_finds_derivatives_that_backward_leaves_out(case):
    call, text = FORGOTTEN[case]
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(text)


# ----- Inputs stay as they are -----
class Disturbance(Exception):
    pass


def disturbed(x):
    raise Disturbance


def in_place(x):
    return x.mul_(2).sum()


class Broken(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sum()

    @staticmethod
    def backward(ctx, grad):
        raise Disturbance


CALLS = {
    "jacobian": lambda function, x: jacobian(function, x),
    "jacobian batched": lambda function, x: jacobian(function, x, vectorize=True),
    "jacobian in forward mode": lambda function, x: jacobian(function, x, **FORWARD),
    "hessian": lambda function, x: hessian(function, x),
    "hessian batched": lambda function, x: hessian(function, x, vectorize=True),
    "hessian in forward mode": lambda function, x: hessian(function, x, **OUTER_FORWARD),
    "vjp": lambda function, x: vjp(function, x),
    "jvp": lambda function, x: jvp(function, x, x),
    "vhp": lambda function, x: vhp(function, x, x),
    "hvp": lambda function, x: hvp(function, x, x),
}
ENDS = {
    "a result": (lambda x: (x**3).sum(), None),
    "an error of the function": (disturbed, Disturbance),
    "an error in backward": (Broken.apply, Disturbance),
    "a wrong output": (lambda x: 3, TypeError),
}


def state(x):
    return x.requires_grad, x.grad, x.is_leaf, x._version, x.tolist()


@pytest.mark.cases("name", CALLS)
@pytest.mark.cases("end", ENDS)
@pytest.mark.cases("requires_grad", [False, True])
@pytest.mark.cases("grad_mode", [False, True])
def test_inputs_and_modes_are_left_as_they_were(name, end, requires_grad, grad_mode):
    function, error = ENDS[end]
    x = cg.tensor([1.0, 2.0], requires_grad=requires_grad)
    with cg.set_grad_enabled(grad_mode):
        before = state(x)
        if error is None:
            CALLS[name](function, x)
        else:
            with pytest.raises(error):
                CALLS[name](function, x)
        assert cg.is_grad_enabled() == grad_mode
        assert state(x) == before


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.cases("requires_grad", [False, True])
def test_a_function_that_writes_to_its_argument_does_not_write_to_the_input(name, requires_grad):
    """Only a Jacobian in forward mode has an argument that may be written to: elsewhere it requires a gradient."""
    x = cg.tensor([1.0, 2.0], requires_grad=requires_grad)
    before = state(x)
    if "forward mode" in name and (requires_grad or "jacobian" in name):
        CALLS[name](in_place, x)
    else:
        with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place operation"):
            CALLS[name](in_place, x)
    assert state(x) == before


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_is_no_input(name):
    """Changing its `.grad` or hooks does nothing to the input."""
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    seen = []

    def function(argument):
        assert argument is not x
        if argument.requires_grad:
            argument.register_hook(lambda grad: seen.append(grad))
        return (argument**3).sum()

    CALLS[name](function, x)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]
    calls = len(seen)
    (x * 2).sum().backward()
    assert len(seen) == calls
