"""A 0-d tensor as an argument that is a number: the same result or refusal as for the number, in every public operator."""

import inspect
import math
import warnings

import pytest

import calls
import cygrad as cg
import public
from cygrad.func import vmap
from cygrad.ops import elementwise

NUMBERS = [True, 300, -1, -300, 2**40, -(2**63), 2.5, 300.5, math.nan, math.inf, 70000.0, 1e39, 1e300, 1j, 1 + 0j, complex(1e300, 0)]
DTYPES = [cg.bool, cg.uint8, cg.int8, cg.int64, cg.uint64, cg.float16, cg.bfloat16, cg.float32, cg.float64, cg.complex64]
WIDEST = {bool: cg.bool, int: cg.int64, float: cg.float64, complex: cg.complex128}
OPERANDS = {"self", "src", "element", "elements", "test_element", "test_elements"}     # their dtype counts


def number_tensor(number):
    return cg.tensor(number, dtype=WIDEST[type(number)])


def outcome(call, dtype, number):
    """Return the dtypes and values of the results; None if the number is refused."""
    try:
        results = call(dtype, number)
    except calls.ERRORS:
        return None
    return [(x.dtype, repr(x.tolist())) for x in (results if isinstance(results, tuple) else (results,))]


def number_parameters(function):
    """Return the parameters that are declared to be numbers."""
    return [name for name, parameter in inspect.signature(function).parameters.items()
            if "Number" in str(parameter.annotation) and name not in OPERANDS]


def sample_calls():
    """Return {(operator, parameter): (function of a dtype and a number)} for each parameter in the samples' calls that takes a number."""
    result = {}
    for owner, name, arguments, keywords in calls.recorded_calls():
        function = getattr(owner, name)
        bound = inspect.signature(function).bind(*arguments, **keywords).arguments
        for parameter in number_parameters(function):
            def call(dtype, number, function=function, bound=bound, parameter=parameter):
                of_dtype = {each: value.to(dtype) if isinstance(value, cg.Tensor) and value.is_floating_point() else value
                            for each, value in bound.items()}
                return function(**(calls.copied(of_dtype) | {parameter: number}))

            result[public.declared_name(owner, name), parameter] = call
    return result


def is_flag(name, parameter):
    declared = inspect.signature(public.function(name)).parameters.get(parameter)
    return declared is not None and declared.annotation == "bool"


def row_calls():
    """Return the same for rows of formulas: for their parameters that are no flags."""
    def called(row, parameter):
        return lambda dtype, number: getattr(cg, row.name)(*[cg.ones(2, dtype=dtype) for _ in row.operands], **{parameter: number})

    return {(row.name, parameter): called(row, parameter) for row in elementwise.ELEMENTWISE.values() if hasattr(cg, row.name)
            for parameter in row.params if not is_flag(row.name, parameter)}


def new_tensor_calls():
    return {("full", "fill_value"): lambda dtype, number: cg.full((2,), number, dtype=dtype),
            ("full", "out"): lambda dtype, number: cg.full((2,), number, out=cg.zeros(2, dtype=dtype)),
            ("arange", "end"): lambda dtype, number: cg.arange(0, number, number, dtype=dtype),
            ("linspace", "end"): lambda dtype, number: cg.linspace(0, number, 3, dtype=dtype)}


def at(index):
    """Return the call that writes a number at an index with arrays: at other indices a view would be copied to, as by `copy_`."""
    def call(dtype, number):
        zeros = cg.zeros(2, 2, dtype=dtype)
        zeros[index] = number
        return zeros

    return call


PLACES = {("x[index]", "value"): at(cg.tensor([0])), ("x[mask]", "value"): at(cg.tensor([True, False])),
          ("x[mask, 0]", "value"): at((cg.tensor([True, False]), 0))}  # fmt: skip
TABLES = {"samples": sample_calls, "rows": row_calls, "new tensors": new_tensor_calls, "places": lambda: PLACES}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.cases("dtype", DTYPES)
def test_a_tensor_is_taken_for_its_number(table, dtype):
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)     # NumPy warns of infinities
        for (name, parameter), call in TABLES[table]().items():
            for number in NUMBERS:
                expected, result = outcome(call, dtype, number), outcome(call, dtype, number_tensor(number))
                if expected != result:
                    wrong.append(f"{name}({parameter}={number!r}) {expected}, of a tensor {result}")
    assert not wrong, "\n".join(wrong)


def test_every_operator_with_a_number_has_a_call():
    names = {name.rstrip("_") for name, _ in sample_calls()}
    declared = {name.rstrip("_") for name, operator in public.operators() if number_parameters(operator)}
    assert declared and declared <= names


WRITERS = {
    "masked_fill": lambda x, value: x.masked_fill(cg.tensor([True, False]), value),
    "index_fill": lambda x, value: x.index_fill(0, cg.tensor([0]), value),
    "scatter": lambda x, value: x.scatter(0, cg.tensor([0]), value=value),
    "at an index": lambda x, value: x.clone().__setitem__(cg.tensor([0]), value),
    "at a mask": lambda x, value: x.clone().__setitem__(cg.tensor([True, False]), value),
}


@pytest.mark.cases("writer", WRITERS)
def test_the_number_of_each_example_is_checked(writer):
    x, write = cg.zeros(2, 2, dtype=cg.uint8), WRITERS[writer]
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow: 300 is outside"):
        vmap(lambda row, value: write(row, value))(x, cg.tensor([1, 300]))
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        vmap(vmap(lambda row, value: write(row, value)))(x.expand(2, 2, 2), cg.tensor([[1, 2], [3, 300]]))


@pytest.mark.cases("writer", WRITERS)
def test_refused_numbers_change_nothing(writer):
    x = cg.zeros(2, dtype=cg.uint8)
    before = x._version
    for call in (lambda: WRITERS[writer](x, cg.tensor(300)), lambda: x.masked_fill_(cg.tensor([True, True]), cg.tensor(300.0)),
                 lambda: x.index_fill_(0, cg.tensor([0]), cg.tensor(math.nan)), lambda: x.__setitem__(cg.tensor([0]), cg.tensor(1j))):
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            call()
    assert x.tolist() == [0, 0] and x._version == before


def test_values_that_are_held_keep_their_gradients():
    value = cg.tensor(2.0, dtype=cg.float64, requires_grad=True)
    x = cg.ones(3, requires_grad=True)
    y = x * 1
    y[cg.tensor([0, 2])] = value
    total = y.sum() + x.masked_fill(cg.tensor([True, True, False]), value).sum() + x.index_fill(0, cg.tensor([1]), value).sum()
    total.backward()
    assert value.grad.item() == 5 and value.grad.dtype == cg.float64
    assert x.grad.tolist() == [1.0, 1.0, 2.0]


@pytest.mark.cases("name", ["addmm", "addmv", "addr", "addbmm", "baddbmm", "index_add"])
def test_a_factor_with_a_gradient_is_refused(name):
    arguments = next(arguments for owner, each, arguments, _ in calls.recorded_calls() if each == name and owner is not cg)
    for factor in (cg.tensor(2.0, requires_grad=True), cg.ones(1), "a"):
        with pytest.raises(TypeError, match=rf"{name}\(\): argument 'alpha' must be Number, not "):
            getattr(cg, name)(*arguments, alpha=factor)
