"""Derivatives of complex numbers, of each row and of each other operator that takes them: against differences of both parts."""

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad.autograd import gradcheck, gradgradcheck
from cygrad.ops import ELEMENTWISE

ROWS = [row for row in ELEMENTWISE.values() if "c" in row.kinds and row.partials]
MODES = {
    "all": (gradcheck, {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}),
    "second": (gradgradcheck, {"fast_mode": True, "check_fwd_over_rev": True}),
}


def complex_operands(arrays, real=None):
    """Return arrays as complex leaves, of which one may stay real; masks stay as they are."""
    stream = np.random.default_rng(8)
    return [cg.tensor(array) if array.dtype.kind == "b" else
            cg.tensor(array if place == real else array + 1j * stream.uniform(0.3, 2, array.shape)).requires_grad_()
            for place, array in enumerate(arrays)]


@pytest.mark.cases("mode", MODES)
@pytest.mark.parametrize("row", samples.named(ROWS))
def test_rows(row, mode):
    check, options = MODES[mode]
    call, arrays = samples.function(row), samples.operands(row, "float64", ((2,), (1, 2), ()))
    for real in (None, *(range(len(arrays)) if len(arrays) > 1 else ())):
        assert check(call, complex_operands(arrays, real), **options)
