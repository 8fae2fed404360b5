"""Conjugates, and the parts of complex numbers: views of their memory. A tensor of real numbers is its own conjugate, and its real part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cygrad._core.compute import dtype_views
from cygrad._core.operands.operands import broadcast_shape
from cygrad.operators._language.arguments import delivered
from cygrad.operators._language.batches import same, vectors
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.tangents import linear
from cygrad.operators.joining import stack
from cygrad.ops.dtypes import DTYPES, NUMBER

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


# ----- Conjugates, which are computed at once -----
@operator
def conj(input: Tensor) -> Tensor:
    """Conjugate of each element: the tensor itself where it is real, else a new one.

    >>> import cygrad
    >>> cygrad.conj(cygrad.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return input.conj_physical() if input.is_complex() else input


@operator
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: no conjugation is pending, ever.

    >>> import cygrad
    >>> cygrad.resolve_conj(cygrad.tensor([1., 2.]))
    tensor([1., 2.])
    """
    return input


@operator
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: no negation is pending, ever."""
    return input


@operator
def is_conj(input: Tensor) -> bool:
    """False: a conjugate is computed at once.

    >>> import cygrad
    >>> cygrad.tensor([1j]).conj().is_conj()
    False
    """
    return False


@operator
def is_neg(input: Tensor) -> bool:
    """False: a negative is computed at once."""
    return False


# ----- Parts -----
@operator(dtype_views.view_as_real, dinput=lambda g: g.contiguous().view_as_complex(), tangent=linear, batch=same, copy=True)
def view_as_real(input: Tensor) -> Tensor:
    """View of complex numbers as pairs of their real and imaginary parts, which are a last dim of size 2.

    >>> import cygrad
    >>> cygrad.view_as_real(cygrad.tensor([1 + 2j, 3j]))
    tensor([[1., 2.],
            [0., 3.]])
    """


@operator(dtype_views.view_as_complex, dinput=lambda g: g.view_as_real(), tangent=linear, batch=vectors, copy=True)
def view_as_complex(input: Tensor) -> Tensor:
    """View of pairs of real numbers, which lie one behind the other along the last dim, as complex numbers.

    >>> import cygrad
    >>> cygrad.view_as_complex(cygrad.tensor([[1., 2.], [0., 3.]]))
    tensor([1.+2.j, 0.+3.j])
    """


@operator(method=False)
def real(input: Tensor) -> Tensor:
    """View of the real parts; a tensor of real numbers itself.

    >>> import cygrad
    >>> cygrad.real(cygrad.tensor([1 + 2j, 3j]))
    tensor([1., 0.])
    """
    return input.real


@operator(method=False)
def imag(input: Tensor) -> Tensor:
    """View of the imaginary parts of complex numbers; RuntimeError for others, which have none to view.

    >>> import cygrad
    >>> cygrad.imag(cygrad.tensor([1 + 2j, 3j]))
    tensor([2., 3.])
    """
    return input.imag


# ----- From parts -----
@operator(method=False)
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers of given real and imaginary parts, which are tensors of one floating-point dtype.

    >>> import cygrad
    >>> cygrad.complex(cygrad.tensor([1., 0.]), cygrad.tensor([2., 3.]))
    tensor([1.+2.j, 0.+3.j])
    """
    _check_parts(real, imag)
    return delivered(_of_parts(real, imag), out)


@operator(method=False)
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers of given absolute values and angles in radians.

    >>> import cygrad
    >>> cygrad.polar(cygrad.tensor([2.]), cygrad.tensor([0.]))
    tensor([2.+0.j])
    """
    _check_parts(abs, angle)
    return delivered(_of_parts(abs * angle.cos(), abs * angle.sin()), out)


def _check_parts(first: Tensor, second: Tensor) -> None:
    one, other = (DTYPES[NUMBER[part.dtype.name]] for part in (first, second))
    if any(not row.is_floating_point or row.name == "bfloat16" for row in (one, other)):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {one.title} and {other.title}")
    if one is not other:
        raise RuntimeError(f"Expected object of scalar type {one.title} but got scalar type {other.title} for second argument")


def _of_parts(real: Tensor, imag: Tensor) -> Tensor:
    shape = broadcast_shape(real, imag)
    return stack((real.expand(shape), imag.expand(shape)), -1).view_as_complex()
