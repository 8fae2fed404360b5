"""gradcheck and gradgradcheck: right gradients pass, effects of the arguments, bad input."""

import inspect
import subprocess
import sys
import types

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import Function, gradcheck, gradgradcheck
from cygrad.autograd.gradcheck import GradcheckError, get_analytical_jacobian, get_numerical_jacobian

CHECKS = [gradcheck, gradgradcheck]
MODES = [False, True]


def double(*shape):
    return (cg.arange(1.0, 1.0 + cg.zeros(shape).numel(), dtype=cg.float64) / 7).reshape(shape).requires_grad_()


def counted(function):
    """Return a function that counts its calls in `.calls`."""

    def call(*arguments):
        call.calls += 1
        return function(*arguments)

    call.calls = 0
    return call


# ----- Right gradients -----
SOUND = {
    "exp": (lambda x: x.exp(), lambda: [double(3)]),
    "identity": (lambda x: x, lambda: [double(3)]),
    "view of the input": (lambda x: x.reshape(-1), lambda: [double(2, 3)]),
    "matmul": (lambda a, b: a @ b, lambda: [double(2, 3), double(3, 2)]),
    "two outputs": (lambda a, b: (a * b, (a + b).sum()), lambda: [double(3), double(3)]),
    "list of outputs": (lambda a: [a * 2, a.exp()], lambda: [double(3)]),
    "one input without gradient": (lambda a, b: a * b, lambda: [double(3), double(3).detach()]),
    "integers among the inputs": (lambda i, x: x[i] ** 2, lambda: [cg.tensor([0, 2, 2]), double(3)]),
    "other things among the inputs": (lambda n, x, name: getattr(x, name)() ** n, lambda: [3, double(2), "exp"]),
    "one output without gradient": (lambda a: (a.detach()[:1] * 3, a * 2, a * a), lambda: [double(2)]),
    "integers among the outputs": (lambda x: (x.argmax(), x * x, x > 1), lambda: [double(3)]),
    "unused input": (lambda a, b: a * 2, lambda: [double(2), double(3)]),
    "the same input twice": (lambda a, b: a * b, lambda: [double(2)] * 2),
    "0-d": (lambda x: x * x, lambda: [double()]),
    "empty": (lambda x: x * x, lambda: [double(0)]),
    "empty output": (lambda x: x[:0] * 2, lambda: [double(3)]),
    "transposed": (lambda x: x * x, lambda: [double(3, 2).detach().T.requires_grad_()]),
    "steps over memory": (lambda x: x * x, lambda: [double(6).detach()[::2].requires_grad_()]),
    "interleaved": (lambda x: x * x, lambda: [double(9).detach().as_strided((2, 3), (3, 2)).requires_grad_()]),
    "one element expanded": (lambda x: x * x, lambda: [double(1).detach().expand(1, 1).requires_grad_()]),
    "non-leaf": (lambda x: x * x, lambda: [double(3) * 2]),
    "infinite but constant": (lambda x: x * 0 + 1, lambda: [double(3)]),
}


@pytest.mark.cases("fast_mode", MODES)
@pytest.mark.cases("check", CHECKS)
@pytest.mark.cases("name", list(SOUND))
def test_right_gradients_pass(check, name, fast_mode):
    function, make = SOUND[name]
    assert check(function, make(), check_grad_dtypes=True, fast_mode=fast_mode) is True


ARGUMENTS = {
    "eps": 1e-6, "atol": 1e-5, "rtol": 1e-3, "raise_exception": True, "nondet_tol": 0.0, "check_undefined_grad": True,
    "check_grad_dtypes": False, "check_batched_grad": False, "fast_mode": False, "progress": False,      # the last is not torch's
}
OF_ONE = {
    gradcheck: {"check_batched_forward_grad": False, "check_forward_ad": False, "check_backward_ad": True, "check_sparse_nnz": False,
                "masked": None},
    gradgradcheck: {"gen_non_contig_grad_outputs": False, "check_fwd_over_rev": False, "check_rev_over_rev": True, "masked": False},
}


@pytest.mark.parametrize("check", CHECKS)
def test_the_arguments_and_their_defaults(check):
    parameters = inspect.signature(check).parameters.values()
    positional = {one.name: one.default for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD}
    assert list(positional) == ["func", "inputs", *(["grad_outputs"] if check is gradgradcheck else [])]
    assert {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY} == ARGUMENTS | OF_ONE[check]


@pytest.mark.parametrize("check", CHECKS)
def test_a_lone_tensor_is_an_input(check):
    assert check(cg.exp, double(3)) is True


CONSTANT = [lambda x: cg.ones(3), lambda x: x.argmax(), lambda x: (), lambda x: (cg.ones(0), x > 0)]


@pytest.mark.cases("fast_mode", MODES)
@pytest.mark.parametrize("function", CONSTANT, ids=["constant", "integer", "no output", "empty"])
def test_a_function_without_gradient_must_be_constant(function, fast_mode):
    assert gradcheck(function, double(3), fast_mode=fast_mode) is True


def test_a_tensor_that_is_no_argument_is_not_checked():
    hidden = double(3)
    assert gradcheck(lambda x: x * hidden.exp().detach(), double(3)) is True
    assert gradcheck(lambda x: x * hidden, double(3)) is True
    assert hidden.grad is None


@pytest.mark.parametrize("fast_mode", MODES)
@pytest.mark.parametrize("check", CHECKS)
def test_inputs_come_back_unchanged(check, fast_mode):
    x = double(3)
    values, version = x.tolist(), x._version
    check(cg.exp, x, fast_mode=fast_mode)
    with pytest.raises(ZeroDivisionError):
        check(lambda x: x * (1 / (x[0].item() == values[0])), x, fast_mode=fast_mode)
    assert x.tolist() == values
    assert x._version == version
    assert x.grad is None


def test_random_numbers_are_left_alone():
    state = cg.get_rng_state().tolist()
    numpy_state = np.random.get_state()[1].tolist()
    assert gradgradcheck(cg.exp, double(3), fast_mode=True) is True
    assert cg.get_rng_state().tolist() == state
    assert np.random.get_state()[1].tolist() == numpy_state


# ----- Tolerances and steps -----
def test_eps_is_the_step():
    assert gradcheck(lambda x: x**3, double(3), eps=1e-3, atol=1e-5) is True
    assert gradcheck(lambda x: x**3, double(3), eps=0.1, atol=1e-5, rtol=1e-5, raise_exception=False) is False
    seen = set()
    gradcheck(lambda x: (seen.add(x[0].item()), x * 2)[1], double(2), eps=0.25)
    assert seen == {1 / 7, 1 / 7 - 0.25, 1 / 7 + 0.25}


def test_a_step_on_each_side_makes_squares_exact():
    assert gradcheck(lambda x: x * x, double(3), eps=1.0, atol=1e-12, rtol=0) is True


def test_float32_warns():
    with pytest.warns(UserWarning, match="Input #1 requires gradient and is not a double precision floating point or complex") as caught:
        gradcheck(lambda a, x: x * 2, (1, cg.ones(2, requires_grad=True)), eps=0.5)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning) as caught:
        gradgradcheck(lambda a, x: x * 2, (1, cg.ones(2, requires_grad=True)), double(2), eps=0.5)
    assert [str(warning.message)[:8] for warning in caught] == ["Input #1"]


def test_float32_is_not_precise_enough_for_the_default_step():
    with pytest.warns(UserWarning), pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(cg.exp, double(3).float().detach().requires_grad_())


# ----- gradgradcheck -----
@pytest.mark.parametrize("strided", [False, True])
def test_grad_outputs_are_drawn_or_passed(strided):
    assert gradgradcheck(lambda x: x.T.exp(), double(2, 3), gen_non_contig_grad_outputs=strided) is True
    assert gradgradcheck(lambda x: x.exp(), double(3), double(3)) is True
    assert gradgradcheck(lambda x: x.exp(), double(3), [double(3).detach()]) is True
    assert gradgradcheck(lambda x: (x.exp().sum(), x**3), double(3), (None, double(3))) is True


class ShowsWeights(Function):
    """The identity; it stores the gradients that arrive."""

    @staticmethod
    def forward(ctx, x, seen):
        ctx.seen = seen
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        ctx.seen.append(g)
        return g * 1, None


@pytest.mark.parametrize("strided", [False, True])
def test_grad_outputs_that_are_drawn(strided):
    seen, again = [], []
    for weights in (seen, again):
        gradgradcheck(lambda x: ShowsWeights.apply(x, weights), double(2, 3), gen_non_contig_grad_outputs=strided)  # noqa: B023
    drawn = next(weight for weight in seen if weight.requires_grad)
    assert drawn.shape == (2, 3) and drawn.dtype == cg.float64
    assert drawn.is_contiguous() is not strided
    assert len(np.unique(drawn.detach().numpy())) == 6
    assert (drawn.abs() <= 1).all() and (drawn < 0).any() and (drawn > 0).any()
    assert cg.equal(drawn, next(weight for weight in again if weight.requires_grad))


@pytest.mark.parametrize("fast_mode", MODES)
def test_tolerances_reach_the_second_derivative(fast_mode):
    options = {"fast_mode": fast_mode, "raise_exception": False}
    assert gradgradcheck(lambda x: x**5, double(3), eps=0.1, atol=0, rtol=1e-3, **options) is False
    assert gradgradcheck(lambda x: x**5, double(3), eps=0.1, atol=10, rtol=0, **options) is True
    assert gradgradcheck(lambda x: x**5, double(3), eps=0.1, atol=0, rtol=10, **options) is True


# ----- Refusals -----
class Sparse:
    """A tensor of another library, by its attributes."""

    is_sparse = True


def scipy_matrix():
    return type("csr_array", (), {"__module__": "scipy.sparse._csr"})()


def read_only():
    array = np.ones(2)
    array.flags.writeable = False
    return cg.from_numpy(array).requires_grad_()


def overlapping():
    return double(6).detach().as_strided((3, 3), (1, 1)).requires_grad_()


AT_LEAST_ONE = "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
BAD = {
    "no gradient required": (lambda: gradcheck(cg.exp, cg.ones(2)), ValueError, AT_LEAST_ONE),
    "no gradient required, second": (lambda: gradgradcheck(cg.exp, cg.ones(2)), ValueError, AT_LEAST_ONE),
    "no inputs": (lambda: gradcheck(lambda: 1, ()), ValueError, AT_LEAST_ONE),
    "nested inputs": (lambda: gradcheck(lambda pair: pair[0], ([double(1)],)), ValueError, AT_LEAST_ONE),
    "expanded": (
        lambda: gradcheck(cg.mul, (double(3), double(1).expand(3)), raise_exception=False),
        RuntimeError,
        "The 1th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping",
    ),
    "overlapping": (
        lambda: gradcheck(cg.exp, overlapping(), raise_exception=False),
        RuntimeError,
        "The 0th input has elements that share memory. gradcheck only supports inputs that are non-overlapping",
    ),
    "expanded grad_outputs": (
        lambda: gradgradcheck(cg.exp, double(3), cg.ones((), dtype=cg.float64).expand(3).requires_grad_()),
        RuntimeError,
        "The 1th input has a dimension with stride 0.",
    ),
    "read-only": (lambda: gradcheck(cg.exp, read_only()), RuntimeError, "The 0th input is read-only. .* call .clone()"),
    "neither direction": (
        lambda: gradcheck(cg.exp, double(1), check_backward_ad=False),
        AssertionError,
        "Expected at least one of check_forward_ad or check_backward_ad to be True",
    ),
    "batched without backward": (
        lambda: gradcheck(cg.exp, double(1), check_backward_ad=False, check_forward_ad=True, check_batched_grad=True),
        AssertionError,
        "Setting check_batched_grad=True requires check_backward_ad to be True",
    ),
    "batched without forward": (
        lambda: gradcheck(cg.exp, double(1), check_batched_forward_grad=True),
        AssertionError,
        "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
    ),
    "neither direction, second": (
        lambda: gradgradcheck(cg.exp, double(1), check_rev_over_rev=False),
        AssertionError,
        "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True",
    ),
    "undefined without backward, second": (
        lambda: gradgradcheck(cg.exp, double(1), check_rev_over_rev=False, check_fwd_over_rev=True),
        AssertionError,
        "Setting check_undefined_grad=True requires check_rev_over_rev to be True",
    ),
    "batched without backward, second": (
        lambda: gradgradcheck(cg.exp, double(1), check_rev_over_rev=False, check_fwd_over_rev=True, check_undefined_grad=False,
                              check_batched_grad=True),
        AssertionError,
        "Setting check_batched_grad=True requires check_rev_over_rev to be True",
    ),
    "positional": (lambda: gradcheck(cg.exp, double(1), 1e-6), TypeError, "takes 2 positional arguments but 3 were given"),
    "no function": (lambda: gradcheck(3, double(1)), TypeError, "'int' object is not callable"),
    "no result": (lambda: gradcheck(lambda x: None, double(1)), AttributeError, "'NoneType' object has no attribute 'requires_grad'"),
    "a number": (lambda: gradcheck(lambda x: x.item(), double(1)), AttributeError, "'float' object has no attribute 'requires_grad'"),
    "nested results": (
        lambda: gradcheck(lambda x: (x, (x * 2,)), double(1)),
        AttributeError,
        "'tuple' object has no attribute 'requires_grad': .* and result 1 is neither",
    ),
    "a number, second": (lambda: gradgradcheck(lambda x: x.item(), double(1)), AttributeError, "'float' object has no attribute"),
    "weights of another shape": (lambda: gradgradcheck(cg.exp, double(2), double(3)), RuntimeError, "Mismatch in shape: grad_output"),
    "too many weights": (lambda: gradgradcheck(cg.exp, double(2), [double(2)] * 2), RuntimeError, "got 1 tensors and 2 gradients"),
    "contradiction": (
        lambda: gradcheck(cg.exp, double(1), check_sparse_nnz=True, masked=False),
        ValueError,
        r"Expected specified check_sparse_nnz \(=True\) to be equal to masked \(=False\)",
    ),
    "sparse input": (
        lambda: gradcheck(lambda x, s: x, (double(1), Sparse()), check_sparse_nnz=True),
        ValueError,
        "gradcheck expects all tensor inputs are dense, or sparse tensors, but the 1th is of the sparse type Sparse",
    ),
    "SciPy's input": (
        lambda: gradcheck(lambda s, x: x, (scipy_matrix(), double(1)), masked=True),
        ValueError,
        "gradcheck expects all tensor inputs are dense, or sparse tensors, but the 0th is of the sparse type csr_array",
    ),
    "sparse input, second": (
        lambda: gradgradcheck(lambda x, s: x, (double(1), Sparse()), masked=True),
        ValueError,
        "gradcheck expects all tensor inputs are dense",
    ),
    "sparse output": (lambda: gradcheck(lambda x: Sparse(), double(1)), ValueError, "Sparse output is not supported at gradcheck yet."),
}


@pytest.mark.cases("name", list(BAD))
def test_bad_input(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()


OF_SPARSE_TENSORS = [{"check_sparse_nnz": True}, {"masked": True}, {"masked": False}, {"check_sparse_nnz": True, "masked": True}]


@pytest.mark.parametrize("options", OF_SPARSE_TENSORS)
def test_options_of_sparse_tensors_change_nothing_for_dense_ones(options):
    assert gradcheck(cg.exp, double(2), **options) is True
    assert gradcheck(lambda x: x * x.detach(), double(2), raise_exception=False, **options) is False
    assert gradcheck(lambda x, matrix: x * 2, (double(2), scipy_matrix())) is True, "other arguments are passed on"


@pytest.mark.parametrize("fast_mode", MODES)
@pytest.mark.parametrize("check", CHECKS)
def test_exceptions_of_the_function_pass_through(check, fast_mode):
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        check(fail, double(2), raise_exception=False, fast_mode=fast_mode)


# ----- The module -----
IMPORTS = [
    "from cygrad.autograd import gradcheck",
    "from cygrad.autograd.gradcheck import GradcheckError",
    "from cygrad.autograd.gradcheck import gradcheck",
    "from cygrad.autograd import gradgradcheck",
    "import cygrad.autograd.gradcheck",
    "import cygrad.autograd.gradcheck.numerical",
]


@pytest.mark.parametrize("statement", IMPORTS)
def test_the_function_wins_over_the_module_of_its_name(statement):
    program = f"{statement}\nimport cygrad as cg\nx = cg.ones(1, dtype=cg.float64, requires_grad=True)\n"
    program += "from cygrad.autograd import gradcheck\nprint(gradcheck(cg.exp, x), cg.autograd.gradcheck(cg.exp, x))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == "True True\n", run.stderr


def test_the_error_is_a_runtime_error():
    assert issubclass(GradcheckError, RuntimeError)
    assert isinstance(gradcheck, types.FunctionType)


# ----- Torch's deprecated functions -----
DEPRECATED = pytest.mark.filterwarnings("ignore:.*was part of PyTorch's private API:FutureWarning")


@DEPRECATED
def test_numerical_and_analytical_jacobians():
    x, y = (cg.tensor(values, dtype=cg.float64, requires_grad=True) for values in ([0.5, 1.0], [2.0]))
    numerical = get_numerical_jacobian(lambda inputs: (inputs[0] ** 2 * inputs[1], inputs[0]), (x, y), eps=1e-6)
    analytical, *flags = get_analytical_jacobian((x, y), x**2 * y)
    assert flags == [True, True, True]
    for one, other in zip(numerical, analytical, strict=True):
        assert one.allclose(other)
    assert [jacobian.tolist() for jacobian in analytical] == [[[2, 0], [0, 4]], [[0.25, 1]]]
    assert len(get_numerical_jacobian(lambda inputs: inputs[0] * y, (x,), target=y)) == 1


@DEPRECATED
def test_jacobians_of_complex_tensors_are_gradients():
    z = cg.tensor([1 + 2j], requires_grad=True, dtype=cg.complex128)
    (numerical,) = get_numerical_jacobian(lambda inputs: (inputs[0] ** 2).real, (z,))
    (analytical,) = get_analytical_jacobian((z,), (z**2).real)[0]
    for jacobian in (numerical, analytical):
        assert jacobian.allclose(cg.tensor([[2 - 4j]], dtype=cg.complex128))
    for call in (lambda: get_numerical_jacobian(lambda inputs: inputs[0], (z,)), lambda: get_analytical_jacobian((z,), z * 1)):
        with pytest.raises(ValueError, match="Expected output to be non-complex"):
            call()


@DEPRECATED
def test_analytical_jacobians_of_functions_that_differ_each_time():
    class Growing(cg.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            Growing.calls += 1
            return g * Growing.calls

    x = cg.ones(2, dtype=cg.float64, requires_grad=True)
    assert get_analytical_jacobian((x,), Growing.apply(x))[1:] == (False, True, True)
    assert get_analytical_jacobian((x,), Growing.apply(x), nondet_tol=100.0)[1:] == (True, True, True)


def test_the_deprecated_functions_warn_and_refuse_grad_out():
    x = cg.ones(2, dtype=cg.float64, requires_grad=True)
    for call in (lambda grad_out: get_numerical_jacobian(lambda inputs: inputs[0], (x,), grad_out=grad_out),
                 lambda grad_out: get_analytical_jacobian((x,), x * 1, grad_out=grad_out)):  # fmt: skip
        with pytest.warns(FutureWarning, match="was part of PyTorch's private API"):
            call(1.0)
        with pytest.warns(FutureWarning), pytest.raises(ValueError, match="Expected grad_out to be 1.0"):
            call(2.0)
