"""The deprecated functions of torch that return Jacobians; `gradcheck` compares them, and `autograd.functional.jacobian` computes one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad.autograd.gradcheck.analytical import gradients
from cygrad.autograd.gradcheck.case import Case, as_tuple
from cygrad.autograd.gradcheck.directions import parts_of, unit_vectors
from cygrad.autograd.gradcheck.numerical import numerical_jacobians
from cygrad.data.creation import from_numpy
from cygrad.tensor import Tensor


def _warn_and_check(name: str, grad_out: float) -> None:
    warnings.warn(f"`{name}` was part of PyTorch's private API and not meant to be exposed. It is deprecated: use gradcheck, or "
                  "autograd.functional.jacobian", FutureWarning, stacklevel=3)
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def _refuse_complex(name: str, output: Tensor) -> None:
    if output.is_complex():
        raise ValueError(f"Expected output to be non-complex. {name} no longer supports functions that return complex outputs.")


def get_numerical_jacobian(fn: Callable[[Any], Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
                           ) -> tuple[Tensor, ...]:
    """Return the Jacobian of the first result of `fn(inputs)` for each tensor of `target` (default: `inputs`) that requires a gradient.

    Each has the shape (elements of the tensor, elements of the result) and is made by central differences with the step `eps`; of a
    complex tensor it is the gradient, as `backward` gives it. Deprecated, as in torch: FutureWarning; ValueError for another `grad_out`.
    """
    _warn_and_check("get_numerical_jacobian", grad_out)
    case = Case(lambda *arguments: fn(arguments), as_tuple(inputs))
    _refuse_complex("get_numerical_jacobian", case.results[0])
    jacobians = []
    for tensor in as_tuple(inputs if target is None else target):
        if isinstance(tensor, Tensor) and tensor.requires_grad:
            (by_parts,) = numerical_jacobians(case, tensor, [0], eps)
            parts = parts_of(tensor)
            jacobians.append(from_numpy(sum(part * along for part, along in zip(parts, by_parts, strict=True))))
    return tuple(jacobians)


def get_analytical_jacobian(inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
                            ) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """Return (Jacobians, whether two backwards agree within `nondet_tol`, True, True): sizes and dtypes of gradients are always right here.

    There is a Jacobian of the shape (elements of the input, elements of `output`) for each tensor of `inputs` that requires a gradient.
    Deprecated, as in torch: FutureWarning; ValueError for another `grad_out` and for a complex output.
    """
    _warn_and_check("get_analytical_jacobian", grad_out)
    _refuse_complex("get_analytical_jacobian", output)
    case = Case(lambda *arguments: output, as_tuple(inputs))
    rows = gradients(case, 0, unit_vectors(output, 1), math.inf)
    is_reproduced = all(np.allclose(one, other, 0, nondet_tol) for one, other in
                        zip(rows, gradients(case, 0, unit_vectors(output, 1), math.inf), strict=True))
    return tuple(from_numpy(jacobian.T.copy()) for jacobian in rows), is_reproduced, True, True
