"""Errors of operators for dtypes that they do not take: torch's type of exception, and the first clause of its message.

`torch_refusals.csv` has torch 2.13's. Where torch only has no loop for real numbers, the operator may compute instead.
"""

import re

import pytest

import cygrad as cg
import samples
import torch_refusals
from cygrad.ops import ELEMENTWISE
from cygrad.ops.dtypes import DTYPES, NUMBER
from torch_refusals import calls_of, tensor_of


@pytest.mark.cases("name, numbers, dtype, exception, clause", torch_refusals.read)
def test_refused_dtypes(name, numbers, dtype, exception, clause):
    row = DTYPES[NUMBER[dtype]]
    clause = clause.replace("{dtype}", row.title)
    for number, call, arrays in calls_of(name):
        if numbers and number not in numbers:
            continue
        otherwise = name not in ELEMENTWISE and "refusals" in (samples.SAMPLES | samples.PLAIN)[name][number].exempt
        tensors = [tensor_of(cg, array, dtype) for array in arrays]
        try:
            call(*tensors)
        except RuntimeError as error:
            if row.kind == "u" and name not in ELEMENTWISE or otherwise:
                continue
            assert type(error).__name__ == exception, error
            # One loop here may have several names in torch.
            message, expected = (re.sub(r'^"\w+"', "", text) if numbers else text for text in (str(error), clause))
            assert message.startswith(expected), error
        else:
            assert otherwise or not row.real and "not implemented for" in clause, "computed"


@pytest.mark.parametrize(("call", "exception", "message"), [
    (lambda x: x.max(), NotImplementedError, r"\"max_all\" not implemented for 'ComplexFloat'"),
    (lambda x: cg.min(x), NotImplementedError, r"\"min_all\" not implemented for 'ComplexFloat'"),
    (lambda x: x.clamp(0), NotImplementedError, "clamp is not supported for complex types"),
    (lambda x: x.clamp_(max=0), NotImplementedError, "clamp is not supported for complex types"),
    (lambda x: ~x, TypeError, r"~ \(operator.invert\) is only implemented on integer and Boolean-type tensors"),
    (lambda x: ~x.real, TypeError, r"~ \(operator.invert\) is only implemented on integer and Boolean-type tensors"),
], ids=["max", "min", "clamp", "clamp_", "invert", "invert of real numbers"])
def test_one_form_of_several(call, exception, message):
    with pytest.raises(exception, match=f"^{message}"):
        call(cg.tensor([1j, 2]))


M, V = cg.ones(2, 2, dtype=cg.float64), cg.ones(2, dtype=cg.float64)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: V @ V.half(), "dot : expected both vectors to have same dtype, but found Double and Half"),
    (lambda: cg.dot(V, V.int()), "dot : expected both vectors to have same dtype, but found Double and Int"),
    (lambda: M @ V.int(), "addmv input tensors must have the same dtype, but got Int, Double, and Int"),
    (lambda: cg.mv(M, V.bfloat16()), "addmv input tensors must have the same dtype, but got BFloat16, Double, and BFloat16"),
    (lambda: V @ M.float(), "expected m1 and m2 to have the same dtype, but got: double != float"),
    (lambda: M.half() @ M.cfloat(), "expected m1 and m2 to have the same dtype, but got: c10::Half != c10::complex<float>"),
    (lambda: cg.bmm(M[None], M[None].int()), "expected scalar type Double but found Int"),
    (lambda: M @ M.cdouble()[None], "expected scalar type Double but found ComplexDouble"),
    (lambda: cg.ones(2, 3) @ cg.ones(2, 2).int(), "mat1 and mat2 shapes cannot be multiplied"),
    (lambda: cg.complex(V.bfloat16(), V.bfloat16()), "Expected both inputs to be Half, Float or Double tensors but got BFloat16"),
])
def test_unlike_operands_of_products(call, message):
    with pytest.raises(RuntimeError, match=f"^{re.escape(message)}"):
        call()


@pytest.mark.cases("dtype", ["bool", "int64", "float16", "float64"])
@pytest.mark.parametrize("name", ["atan2", "bitwise_or", "copysign", "floor_divide", "fmod", "remainder", "xlogy"])
def test_a_target_of_a_lower_kind_is_refused_before_a_missing_loop(name, dtype):
    """As in torch, which checks the target before it looks for a loop."""
    low, high = cg.ones(2, dtype=getattr(cg, dtype)), cg.ones(2, dtype=cg.complex64)
    for call in (lambda: getattr(low, f"{name}_")(high), lambda: getattr(cg, name)(low, high, out=low.clone())):
        with pytest.raises(RuntimeError, match=r"^result type complex\d+ can't be cast to the desired output type") as raised:
            call()
        assert raised.type is RuntimeError
    with pytest.raises(NotImplementedError, match="not implemented for 'Complex"):
        low.lt_(high)       # gives bools, which go anywhere
