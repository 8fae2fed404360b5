"""Shapes: joining, splitting, rearranging."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from cygrad._core.graph.tensor import TensorImpl
from cygrad.array_api.elementwise import checked
from cygrad.array_api.promotion import tensors_of
from cygrad.operators import joining, shapes

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat",
    "reshape", "roll", "squeeze", "stack", "tile", "unstack",
]


def _several(value: Any) -> tuple[int, ...]:
    return tuple(map(index, value)) if isinstance(value, (tuple, list)) else (index(value),)


def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Return tensors as views of their common shape."""
    return tuple(shapes.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_shapes(*shapes_: Any) -> tuple[int, ...]:
    """Return the common shape of shapes; ValueError where there is none."""
    try:
        return tuple(shapes.broadcast_shapes(*shapes_))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    """Return a view of another shape, to which the tensor broadcasts."""
    return checked("broadcast_to", x).broadcast_to(tuple(shape))


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Return tensors joined along a dim; None: one after another, flattened."""
    parts = tensors_of("concat", *arrays)
    return joining.cat([part.reshape(-1) for part in parts] if axis is None else parts, 0 if axis is None else axis)


def expand_dims(x: Any, /, axis: Any) -> Tensor:
    """Return a view with dims of size 1 at places of the result."""
    places = _several(axis)
    ndim = checked("expand_dims", x).ndim + len(places)
    for place in places:
        if not -ndim <= place < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {place})")
    places = tuple(place % ndim for place in places)
    if len(set(places)) < len(places):
        raise ValueError(f"expand_dims(): the places {axis} are not distinct")
    for place in sorted(places):
        x = x.unsqueeze(place)
    return x


def flip(x: Any, /, *, axis: Any = None) -> Tensor:
    """Return the elements in the opposite order along dims; None: along all."""
    return checked("flip", x).flip(tuple(range(x.ndim)) if axis is None else _several(axis))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """Return a view with dims at other places."""
    return checked("moveaxis", x).movedim(source, destination)


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Tensor:
    """Return a view with the dims in another order."""
    return checked("permute_dims", x).permute(tuple(axes))


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Return each element, or each part along a dim, several times: one number of times for all, or one for each."""
    if isinstance(repeats, TensorImpl):
        repeats = repeats.long()
    return checked("repeat", x).repeat_interleave(repeats, axis)


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Return the elements in another shape: a view where that is possible, which `copy=False` insists on."""
    if copy is False:
        try:
            return checked("reshape", x).view(tuple(shape))
        except RuntimeError as error:
            raise ValueError(f"reshape(copy=False): {error}") from None
    return (checked("reshape", x).clone() if copy else x).reshape(tuple(shape))


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Return the elements shifted along dims; None: of the flattened tensor."""
    if axis is None:
        return checked("roll", x).roll(shift)
    axes, shifts = _several(axis), _several(shift)
    return checked("roll", x).roll(shifts * len(axes) if len(shifts) == 1 else shifts, axes)


def squeeze(x: Any, /, axis: Any) -> Tensor:
    """Return a view without dims of size 1; ValueError for a dim of another size."""
    for place in _several(axis):
        if checked("squeeze", x).shape[place] != 1:
            raise ValueError(f"squeeze(): dim {place} has size {x.shape[place]}, not 1")
    return x.squeeze(_several(axis))


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Return tensors of one shape joined along a new dim."""
    return joining.stack(tensors_of("stack", *arrays), axis)


def tile(x: Any, repetitions: tuple[int, ...], /) -> Tensor:
    """Return copies of a tensor side by side."""
    return checked("tile", x).tile(tuple(repetitions))


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the parts along a dim."""
    return tuple(checked("unstack", x).unbind(axis))
