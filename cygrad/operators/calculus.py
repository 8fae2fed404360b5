"""Integrals and derivatives of functions that are given by samples along dims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import dtype_by_name
from cygrad.operators._language.arguments import distinct_dims, integers
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.joining import cat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Dims

INT64 = dtype_by_name["int64"]


# ----- Integrals, by the trapezoidal rule -----
@rounded_once
def _integral(y: Tensor, x: Tensor | None, dx: Any, dim: int, function: Any) -> Tensor:
    """Return the sum of the areas below the lines between samples, or all sums up to one."""
    areas = _areas(y, x, dx, dim, function)
    return areas.sum(dim) if function is trapezoid else areas.cumsum(dim)


def _wide(x: Tensor) -> Tensor:
    """Return integers in int64, where sums and differences of two narrower ones exist."""
    return x.to(INT64) if x.dtype.kind in "iu" else x


def _areas(y: Tensor, x: Tensor | None, dx: Any, dim: int, function: Any) -> Tensor:
    """Return the areas, of which there is one less than samples along the dim."""
    if not y.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if y.dtype.kind == "b" or x is not None and x.dtype.kind == "b":
        raise RuntimeError(f"{function.name}: received a bool input for {'`y`' if x is None else '`x` or `y`'}, but bool is not supported")
    if x is not None and dx is not None:
        raise TypeError(f"{function.name}() takes x, the positions of samples, or dx, their distance, not both")
    d = normalized_dim(dim, y.ndim)
    samples, in_front = _wide(y), (slice(None),) * d
    means = (samples[(*in_front, slice(1, None))] + samples[(*in_front, slice(None, -1))]) / 2
    if x is None:
        return means if dx is None else means * dx
    if not x.ndim or x.ndim == 1 and len(x) != y.shape[d]:
        raise RuntimeError(f"{function.name}: There must be one `x` value for each sample point")
    positions = _wide(x)
    if x.ndim == 1:
        return positions.diff()[(slice(None), *(None,) * (y.ndim - 1 - d))] * means
    return positions[(None,) * (y.ndim - x.ndim)].diff(dim=d) * means


@operator(method=False, aliases=("trapz",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Integral of samples `y` along `dim` by the trapezoidal rule, at the positions `x`, or at a distance of `dx` (default 1).

    >>> import cygrad
    >>> cygrad.trapezoid(cygrad.tensor([1., 5., 10.]))
    tensor(10.5000)
    """
    return _integral(y, x, dx, dim, trapezoid)


@operator(method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Integrals of samples from the first one to each other by the trapezoidal rule; see `trapezoid`.

    >>> import cygrad
    >>> cygrad.cumulative_trapezoid(cygrad.tensor([1., 5., 10.]))
    tensor([ 3.0000, 10.5000])
    """
    return _integral(y, x, dx, dim, cumulative_trapezoid)


# ----- Derivatives, by differences -----
def _spacings(spacing: Any, dims: tuple[int, ...], ndim: int, all_dims: bool) -> list[Any]:
    """Return the distance of samples along each dim, a number, or a vector of their positions."""
    several = list(spacing) if isinstance(spacing, (tuple, list)) else None
    if several is None and isinstance(spacing, TensorImpl) and spacing.ndim:
        raise TypeError(f"{gradient.__name__}(): argument 'spacing' must be a number, or a sequence of numbers or tensors")
    if several is not None and len(several) != len(dims):
        expected = f"'self.dim() = {ndim}', since dim argument was not given" if all_dims else f"{len(dims)}, as dim has"
        raise RuntimeError("torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                           f"{expected}, but got a list of length {len(several)}")
    return [1 if spacing is None else spacing] * len(dims) if several is None else several


def _check_positions(positions: Tensor, size: int) -> None:
    if positions.ndim != 1 or len(positions) != size:
        raise RuntimeError(f"torch.gradient expected each tensor of spacing to have one position for each of {size} samples, got the shape "
                           f"{list(positions.shape)}")


def _slope_at_end(samples: Sequence[Tensor], first: Any, second: Any, edge_order: int) -> Tensor:
    """Return the slope at the first of three samples; `first`, `second`: the distances to the next, and from there on."""
    if edge_order == 1:
        return (samples[1] - samples[0]) / first
    whole = first + second
    return samples[0] * (-(first + whole) / (first * whole)) + samples[1] * (whole / (first * second)) - samples[2] * (
        first / (second * whole))


@rounded_once
def _derivative(input: Tensor, d: int, spacing: Any, edge_order: int) -> Tensor:
    """Return the derivative along a dim: of parabolas through three samples inside, from one side at both ends."""
    y = input.movedim(d, -1)
    if isinstance(spacing, TensorImpl) and spacing.ndim:
        _check_positions(spacing, y.shape[-1])
        steps = spacing.diff()
        left, right = steps[:-1], steps[1:]
        inner = (y[..., 2:] * (left / (right * (left + right))) + y[..., 1:-1] * ((right - left) / (left * right))
                 - y[..., :-2] * (right / (left * (left + right))))
        near, far = (steps[0], steps[min(1, len(steps) - 1)]), (steps[-1], steps[max(-2, -len(steps))])
    else:
        inner = (y[..., 2:] - y[..., :-2]) / (2 * spacing)
        near = far = (spacing, spacing)
    count = edge_order + 1
    begin = _slope_at_end([y[..., k] for k in range(count)], *near, edge_order)
    end = -_slope_at_end([y[..., -1 - k] for k in range(count)], *far, edge_order)
    return cat((begin.unsqueeze(-1), inner, end.unsqueeze(-1)), -1).movedim(-1, d).contiguous()


@operator(method=False)
def gradient(input: Tensor, *, spacing: Any = None, dim: Dims = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Derivatives along dims of a function that is sampled, one tensor a dim.

    Of second order inside (by the parabola through three samples), of order `edge_order`, 1 or 2, at both ends. `spacing` is the distance
    of samples (default 1), or has for each dim one, or a vector of their positions. Fornberg, "Generation of finite difference formulas on
    arbitrarily spaced grids" (1988).

    >>> import cygrad
    >>> cygrad.gradient(cygrad.tensor([1., 4., 9., 16.]))
    (tensor([3., 4., 6., 7.]),)
    """
    dims = tuple(range(input.ndim)) if dim is None else distinct_dims(integers(dim), input.ndim)
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2, got {edge_order}.")
    if input.dtype.name == "uint8":
        raise RuntimeError("torch.gradient does not support uint8 input.")
    spacings = _spacings(spacing, dims, input.ndim, dim is None)
    if any(input.shape[d] < edge_order + 1 for d in dims):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_derivative(input, d, each, edge_order) for d, each in zip(dims, spacings, strict=True))
