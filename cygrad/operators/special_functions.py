"""Special functions that are more than a row of the table: of a whole order, or sums of others."""

from __future__ import annotations

from math import log, pi
from typing import TYPE_CHECKING, Any

from cygrad._core.compute.dispatch import ops as rows
from cygrad._core.memory.sizes import index_argument
from cygrad._core.memory.storage import get_default_dtype
from cygrad.data.creation import arange
from cygrad.operators._language.arguments import delivered, refused
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import rounded_once

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


# ----- Gamma functions -----
def _floating(op: Any, input: Tensor) -> Tensor:
    """Return a tensor of floats."""
    if input.is_complex():
        raise refused(op, input)
    return input if input.is_floating_point() else input.to(get_default_dtype())


def _polygamma_method(self: Tensor, n: int) -> Tensor:
    """Derivative of digamma of order `n`; see `cygrad.polygamma`."""
    return polygamma(n, self)


@operator(method=_polygamma_method, aliases=("special_polygamma",))
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of digamma of order `n`, of each element: digamma itself for 0.

    By Hurwitz's zeta function from order 2 on (DLMF 25.11.12). At the poles 0, -1, -2, ... it is infinite, with the sign from the right.

    >>> import cygrad
    >>> cygrad.polygamma(1, cygrad.tensor([1., 0.5]))
    tensor([1.6449, 4.9348])
    """
    order = index_argument(n, "n")
    if order < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n. n is {order}")
    if order < 2:
        return rows["trigamma" if order else "digamma"](input, out=out)
    return rows["higher_polygamma"](_floating(polygamma, input), order, out=out)


@operator
def polygamma_(self: Tensor, n: int) -> Tensor:
    """Write the derivative of digamma of order `n` into its tensor."""
    return self.copy_(polygamma(n, self))


@rounded_once
def _multigammaln(x: Tensor, p: int) -> Tensor:
    return rows["lgamma"](x.unsqueeze(-1) - arange(p, dtype=x.dtype) / 2).sum(-1) + p * (p - 1) / 4 * log(pi)


@operator(aliases=("special_multigammaln",), in_place=True)
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension `p` (DLMF 35.3.4), for elements above (p - 1) / 2.

    The sum of lgamma(input - k / 2) for k < p, and p (p - 1) / 4 log(pi). Elements are not checked, as in torch: others than these give the
    sum of logarithms of absolute values.

    >>> import cygrad
    >>> cygrad.mvlgamma(cygrad.tensor([2., 3.]), 2)
    tensor([0.4516, 1.5502])
    """
    count = index_argument(p, "p")
    if count < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1, not {count}")
    return delivered(_multigammaln(_floating(rows["lgamma"], input), count), out)
