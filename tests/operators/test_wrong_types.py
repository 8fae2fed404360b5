"""Errors of wrong calls in torch's words: the type, and the beginning of the message, as torch 2.13 has them."""

import re

import numpy as np
import pytest

import cygrad as cg
from cygrad.nn import functional as F
from cygrad.ops import ELEMENTWISE
from cygrad.ops.refusals import SEVERAL_FORMS
from cygrad.signatures import with_forms

X = cg.tensor([1.0, 2.0, 3.0])
BOTH = cg.ones(2, 2, 2)

# Of operators with several signatures torch lists these. Here the last line is the error of the wrong argument.
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
OF_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
CHEBYSHEV = tuple(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw")
OF_SPECIAL = ("xlog1py", "zeta", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
              *CHEBYSHEV)
OF_OPERANDS = (*COMPARISONS, *OF_BITS, "fmod", "remainder", "copysign", "pow", "float_power", "xlogy", "clamp_min", "clamp_max", "rsub",
               "max", "min")


@pytest.mark.parametrize("name", [*OF_OPERANDS, *(f"special.{name}" for name in OF_SPECIAL)])
@pytest.mark.parametrize(("operands", "types"), [((2, 3), "int, int"), (("a", X), "str, Tensor"), (((), None), "tuple, NoneType")])
def test_the_forms_are_listed(name, operands, types):
    space, _, short_name = name.rpartition(".")
    function = getattr(getattr(cg, space) if space else cg, short_name)
    with pytest.raises(TypeError) as caught:
        function(*operands)
    first, *forms, last = str(caught.value).split("\n")
    assert first == f"{name.replace('.', '_')}() received an invalid combination of arguments - got ({types}), but expected one of:"
    assert forms[0].startswith(" * (Tensor input") and len(set(forms)) == len(forms) > 1
    assert re.match(r"\w+\(\): argument '\w+' \(position 1\) must be Tensor( or Number)?, not (int|str|tuple)$", last), last


@pytest.mark.parametrize(("call", "lines"), [
    (lambda: cg.eq(X, other="a"), """\
eq() received an invalid combination of arguments - got (Tensor, str), but expected one of:
 * (Tensor input, Tensor other, *, Tensor out = None)
 * (Tensor input, Number other, *, Tensor out = None)
eq(): argument 'other' (position 2) must be Tensor, not str"""),
    (lambda: cg.hsplit(BOTH, "abc"), """\
hsplit() received an invalid combination of arguments - got (Tensor, str), but expected one of:
 * (Tensor input, int indices_or_sections = None, *, int sections = None, tuple of ints indices = None)
 * (Tensor input, tuple of ints indices_or_sections = None, *, int sections = None, tuple of ints indices = None)
hsplit(): argument 'indices_or_sections' (position 2) must be int or tuple of ints, not str"""),
    (lambda: cg.max(2, X), """\
max() received an invalid combination of arguments - got (int, Tensor), but expected one of:
 * (Tensor input, *, Tensor out = None)
 * (Tensor input, Tensor other, *, Tensor out = None)
 * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None, bool keepdims = False)
 * (Tensor input, *, int axis, bool keepdims = False, tuple of Tensors out = None)
max(): argument 'input' (position 1) must be Tensor, not int"""),
    (lambda: cg.rsub(2, other=X, alpha=3), """\
rsub() received an invalid combination of arguments - got (int, other=Tensor, alpha=int), but expected one of:
 * (Tensor input, Tensor other, *, Number alpha = 1)
 * (Tensor input, Number other, *, Number alpha = 1)
rsub(): argument 'input' (position 1) must be Tensor, not int"""),
])
def test_whole_messages(call, lines):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == lines


@pytest.mark.parametrize(("call", "opening"), [
    (lambda: cg.vsplit(BOTH, "abc"), "vsplit() received an invalid combination of arguments - got (Tensor, str)"),
    (lambda: cg.dsplit(BOTH, 1.5), "dsplit() received an invalid combination of arguments - got (Tensor, float)"),
    (lambda: cg.pow(X, []), "pow() received an invalid combination of arguments - got (Tensor, list)"),
    (lambda: cg.float_power(X, "a"), "float_power() received an invalid combination of arguments - got (Tensor, str)"),
    (lambda: cg.lerp(2, 3, 4), "lerp() received an invalid combination of arguments - got (int, int, int)"),
    (lambda: cg.clamp(2, 3, 4), "clamp() received an invalid combination of arguments - got (int, int, int)"),
    (lambda: cg.where(2, 3, 4), "where() received an invalid combination of arguments - got (int, int, int)"),
    (lambda: cg.linspace(0, 3, 1.0), "linspace() received an invalid combination of arguments - got (int, int, float)"),
    (lambda: cg.linspace("a", X, 2), "linspace() received an invalid combination of arguments - got (str, Tensor, int)"),
    (lambda: cg.logspace(0, 3, 1.0), "logspace() received an invalid combination of arguments - got (int, int, float)"),
    (lambda: cg.masked_fill(X, X > 2, "a"), "masked_fill() received an invalid combination of arguments - got (Tensor, Tensor, str)"),
    (lambda: cg.quantile(X, "a"), "quantile() received an invalid combination of arguments - got (Tensor, str)"),
    (lambda: cg.fill(X, "a"), "fill() received an invalid combination of arguments - got (Tensor, str)"),
    (lambda: cg.index_fill(X, 0, cg.tensor(0), "a"),
     "index_fill() received an invalid combination of arguments - got (Tensor, int, Tensor, str)"),
    (lambda: cg.tensor_split("a", 2), "tensor_split() received an invalid combination of arguments - got (str, int)"),
    (lambda: cg.searchsorted([1.0], 2.0), "searchsorted() received an invalid combination of arguments - got (list, float)"),
    # One signature: the argument is named. Numbers alone are no operands, however many an operator takes.
    (lambda: cg.atan2(2, 3), "atan2(): argument 'input' (position 1) must be Tensor, not int"),
    (lambda: cg.heaviside(2, 3), "heaviside(): argument 'input' (position 1) must be Tensor, not int"),
    (lambda: cg.addcmul(2, 3, 4), "addcmul(): argument 'input' (position 1) must be Tensor, not int"),
    (lambda: F.celu(2), "celu(): argument 'input' (position 1) must be Tensor, not int"),
    (lambda: F.threshold(2, 0, 1), "threshold(): argument 'input' (position 1) must be Tensor, not int"),
    (lambda: cg.special.entr(2), "special_entr(): argument 'input' (position 1) must be Tensor, not int"),
    (lambda: cg.special.i1e("a"), "special_i1e(): argument 'input' (position 1) must be Tensor, not str"),
    (lambda: cg.special.i0(2), "i0(): argument 'input' (position 1) must be Tensor, not int"),
])
def test_wrong_types(call, opening):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).startswith(opening)


@pytest.mark.parametrize(("call", "exception", "message"), [
    (lambda: cg.cat([]), ValueError, "cat(): expected a non-empty list of Tensors"),
    (lambda: F.hardtanh(X, 0.5, -0.5), ValueError, "min_val cannot be greater than max_val, but found min_val=0.5, max_val=-0.5"),
    (lambda: F.hardtanh(X, min_val=2), ValueError, "min_val cannot be greater than max_val, but found min_val=2, max_val=1.0"),
    (lambda: F.softshrink(X, -0.5), RuntimeError, "lambda must be in range [0, inf], but found lambd=-0.5"),
    (lambda: F.softshrink(X, float("nan")), RuntimeError, "lambda must be in range [0, inf], but found lambd=nan"),
    (lambda: F.softshrink(X, 1j), RuntimeError, "For non-complex input tensors, argument lambd must not be a complex number."),
    (lambda: F.gelu(X, approximate="a"), RuntimeError, "approximate argument must be either none or tanh but found 'a'"),
    (lambda: F.gaussian_nll_loss(X, X, X, reduction="abc"), ValueError, "abc is not valid; nn_functional_gaussian_nll_loss() takes 'none'"),
    (lambda: F.conv2d(cg.ones(1, 1, 4, 3), cg.ones(1, 2, 2)), RuntimeError,
     "Expected 3-dimensional input for 3-dimensional weight[1, 2, 2], but got 4-dimensional input of size [1, 1, 4, 3] instead"),
    (lambda: F.conv2d(cg.ones(1, 4, 3), cg.ones(1, 2, 2, 1, 1)), RuntimeError,
     "Expected 5-dimensional input for 5-dimensional weight[1, 2, 2, 1, 1], but got 4-dimensional input of size [1, 1, 4, 3] instead"),
    (lambda: cg.ormqr(cg.ones(5, 0).long(), cg.ones(5).long(), cg.ones(5, 5).long()), RuntimeError,
     "ormqr: tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])"),
    (lambda: cg.ormqr(cg.ones(5, 5).long(), cg.ones(5).long(), cg.ones(5, 5).long()), NotImplementedError,
     "\"ormqr_cpu\" not implemented for 'Long'"),
    *((lambda name=name: getattr(cg, name)(cg.ones(2, 2), 0, out=cg.zeros(2, dtype=cg.int32)), RuntimeError,
       "Expected the dtype for input and out to match, but got Float for input's dtype and Int for out's dtype")
      for name in ("amax", "amin")),
])
def test_wrong_values(call, exception, message):
    with pytest.raises(exception) as caught:
        call()
    assert type(caught.value) is exception
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("name", "operand"), [(name, operand) for name, row in ELEMENTWISE.items() for operand in row.tensors])
def test_operands_that_are_no_numbers(name, operand):
    """Torch's functions, methods and forms in place refuse a number there; NumPy's take it."""
    row = ELEMENTWISE[name]
    tensor, place = cg.tensor([1.0, 2.0], dtype=cg.float32 if "f" in row.kinds else cg.int64), row.operands.index(operand)
    operands, tensors = [tensor, tensor], [tensor, tensor]
    operands[place], tensors[place] = 2, tensor * 0 + 2
    calls = [lambda: getattr(cg, name)(*operands)]
    if place == 1:
        calls += [lambda: getattr(tensor, name)(2), lambda: getattr(tensor.clone(), name + "_")(2)]
    for call in calls:
        with pytest.raises(TypeError, match=rf"argument '\w+' \(position {place + 1}\) must be Tensor, not int"):
            call()
    if row.numpy:
        function = getattr(np, row.numpy)
        assert function(*operands).equal(function(*tensors))


def test_values_at_the_edge_are_taken():
    assert F.hardtanh(X, 1, 1).tolist() == [1, 1, 1]
    assert F.softshrink(X, 0).equal(X)
    assert F.softshrink(X, float("inf")).tolist() == [0, 0, 0]
    assert cg.amax(cg.ones(2, 2), 0, out=cg.zeros(2, dtype=cg.float64)).tolist() == [1, 1]


def test_other_errors_keep_their_words():
    """An error that is not of an argument's type gets no list of forms, nor one of an operator inside of another twice."""
    with pytest.raises(TypeError, match=r"^eq\(\) missing 1 required positional argument$"):
        cg.eq(X)
    with pytest.raises(TypeError) as caught:
        cg.pow("a", X)
    assert str(caught.value).count("received an invalid combination") == 1
    with pytest.raises(RuntimeError, match="must match"):
        cg.eq(X, cg.ones(2))


def test_every_operator_with_forms_has_several():
    for name in sorted(SEVERAL_FORMS):
        message = str(with_forms(name, TypeError("the error"), (), {}))
        assert message.count("\n * (") > 1 and message.endswith("\nthe error"), message


def test_a_class_that_overrides_is_asked_first():
    class Foreign:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func, len(args)

    assert cg.eq(Foreign(), X) == (cg.eq, 2)
    assert cg.lerp(1, 2, Foreign()) == (cg.lerp, 3)
