"""Matrices as arguments: what all of linear algebra checks of them, and the error of a matrix that an algorithm fails for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute.matrices import first_failure, is_matrix
from cygrad.operators import public_name
from cygrad.operators.arguments import checked_operand, checked_tensor

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


class LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """A matrix is singular where it must not be, or an algorithm did not converge."""


LinAlgError.__module__ = "cygrad.linalg"


def checked_matrix(name: str, value: Any, argument: str = "A", *, square: bool = False) -> Any:
    """Return a tensor of matrices in the last two dims, of a dtype that the operator takes; RuntimeError where it is none."""
    if is_matrix(value, square):
        return value
    ndim = checked_tensor(name, value, argument).ndim
    if ndim < 2:
        raise RuntimeError(f"{public_name(name)}: The input tensor {argument} must have at least 2 dimensions.")
    if square and value.shape[-1] != value.shape[-2]:
        raise RuntimeError(f"{public_name(name)}: {argument} must be batches of square matrices, but they are {value.shape[-2]} by "
                           f"{value.shape[-1]} matrices")
    return checked_operand(name, value, argument)


def check_info(name: str, info: Tensor, said: str) -> None:
    """Raise LinAlgError for the first matrix of a batch with an `info` other than 0, which `said` names as `{info}`."""
    element = first_failure(info)
    if element is not None:
        number = info.reshape(-1)[element].item()
        raise LinAlgError(f"{public_name(name)}: {f'(Batch element {element}): ' if info.ndim else ''}{said.format(info=number)}")
