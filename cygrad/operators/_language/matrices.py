"""Matrices as arguments: the checks of all linear algebra, and the error of a matrix that an algorithm fails for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute.matrices import MatrixLoop, first_failure, first_nonfinite, is_matrix
from cygrad._core.graph.tensor import TensorImpl
from cygrad._kernels.matrices.loops import is_reduced
from cygrad.operators import public_name
from cygrad.operators._language.arguments import refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from cygrad.tensor import Tensor


class LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """A matrix is singular where it must not be, or an algorithm did not converge."""


LinAlgError.__module__ = "cygrad.linalg"


def check_dims(operator: Any, value: Any, argument: str = "A", *, square: bool = False) -> None:
    """Refuse a tensor that is not of (square) matrices in the last two dims."""
    if value.ndim < 2:
        raise RuntimeError(f"{public_name(operator.name)}: The input tensor {argument} must have at least 2 dimensions.")
    if square and value.shape[-1] != value.shape[-2]:
        raise RuntimeError(f"{public_name(operator.name)}: {argument} must be batches of square matrices, but they are "
                           f"{value.shape[-2]} by {value.shape[-1]} matrices")


def checked_matrix(operator: Any, value: Any, argument: str = "A", *, square: bool = False) -> Any:
    """Return a tensor of matrices in the last two dims, of a dtype that LAPACK computes in; RuntimeError where it is none."""
    if is_matrix(value, square):
        return value
    check_dims(operator, value, argument, square=square)
    raise refused(operator, value)


def numpys_loop(signature: str, name: str, otherwise: Any) -> MatrixLoop:
    """Return the inner loop of a function of numpy.linalg; where this NumPy has none of that name, the function itself."""
    return MatrixLoop(signature, getattr(getattr(np.linalg, "_umath_linalg", None), name, None), otherwise)


def by_size(small: Callable[[Tensor], Any], large: Callable[[Tensor], Any], reduced: Callable[[Tensor], Any] | None = None,
            routine: str = "") -> Callable[[Tensor], Any]:
    """Return a function that computes the spectra of small matrices by one function, of others by another.

    Small are those for which our loops are quicker than LAPACK, and decide as it does: up to 24 x 24, and not much longer than wide. Larger
    real ones are left to `reduced` where LAPACK has the routine for the reduced form.
    """
    def computed(A: Tensor) -> Any:
        *_, m, n = A.shape
        size, result = max(m, n), large
        if size < min(m, n) * 11 // 6:
            if size <= 24:
                result = small
            elif reduced is not None and not A.is_complex() and is_reduced(size, routine):
                result = reduced
        return result(A)

    return computed


def check_finite(operator: Any, matrices: Tensor, said: str) -> None:
    """Raise LinAlgError for the first matrix of a batch that is not finite: LAPACK need not end with it."""
    element = first_nonfinite(matrices)
    if element is not None:
        raise failure(operator, matrices.ndim - 2, element, said)


def check_converged(operator: Any, values: Tensor, said: str) -> None:
    """Raise LinAlgError for the first of several vectors that NumPy's loop has filled with NaN."""
    element = first_failure(values, 1)
    if element is not None:
        raise failure(operator, values.ndim - 1, element, said)


def failure(operator: Any, batch: int, element: int, said: str) -> LinAlgError:
    """Return the error for a matrix, which is named where there is a batch."""
    return LinAlgError(f"{public_name(operator.name)}: {f'(Batch element {element}): ' if batch else ''}{said}")


def check_info(operator: Any, info: Tensor, said: str) -> None:
    """Raise LinAlgError for the first matrix of a batch with an `info` other than 0, which `said` names as `{info}`."""
    element = first_failure(info)
    if element is not None:
        number = info.reshape(-1)[element].item()
        raise failure(operator, info.ndim, element, said.format(info=number))


def tolerance(operator: Any, matrices: Tensor, values: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Return the bound, with a dim for the values, up to which singular values count as 0: max(atol, rtol * the largest one).

    Without `rtol` that is the larger size times the dtype's precision, where `atol` is not larger than 0.
    """
    for word, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, TensorImpl) and value.dtype.is_complex:
            raise RuntimeError(f"{public_name(operator.name)}: {word} tensor of complex type is not supported.")
    absolute, relative = (values.new_tensor(value) if not isinstance(value, TensorImpl) else value.detach().to(values.dtype)
                          for value in (0.0 if atol is None else atol, 0.0 if rtol is None else rtol))
    if rtol is None:
        default = float(np.finfo(values.dtype.name).eps) * max(matrices.shape[-2:])
        relative = (absolute > 0).logical_not().to(values.dtype) * default
    largest = values.amax(-1) if values.shape[-1] else values.sum(-1)
    return absolute.maximum(relative * largest).unsqueeze(-1)
