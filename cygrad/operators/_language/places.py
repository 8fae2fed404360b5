"""Where operators read and write: index tensors, checked and as keys of NumPy's indexing.

Arguments are checked before anything is written, so that a refused call changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute.creation import scalar_tensor
from cygrad._core.compute.places import is_outside, names_elements
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.operands.arrays import first_outside, to_array

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import Number


def vector(array: np.ndarray) -> np.ndarray:
    """Return a scalar as a vector over the same memory."""
    return array.reshape(1) if array.ndim == 0 else array


def vector_of(tensor: Tensor) -> Tensor:
    """Return a tensor without a gradient; a 0-d one as a vector."""
    return tensor.detach().view(1) if tensor.ndim == 0 else tensor.detach()


def value_for(operator: Any, input: Tensor, value: Tensor | Number) -> Tensor:
    """Return a number, or a 0-d tensor, as a tensor of the dtype of the input."""
    if isinstance(value, TensorImpl) and value.ndim:
        raise RuntimeError(f"{operator.name}_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s).")
    return scalar_tensor(value, input.dtype)


# ----- Checks -----
def place_outside(index: Tensor, size: int, from_end: bool = False) -> int | None:
    """Return the first place that is outside of a dim, or None, which is a decision; `from_end`: places may count from the end."""
    return first_outside(to_array(index), -size if from_end else 0, size) if is_outside(index, size, from_end) else None


def check_bounds(index: Tensor, size: int, dim: int, error: type[Exception] = RuntimeError, prefix: str = "",
                 from_end: bool = False) -> None:
    """Refuse an index outside of a dim, naming the first such place; `from_end`: it may count from the end."""
    outside = place_outside(index, size, from_end)
    if outside is not None:
        raise error(f"{prefix}index {outside} is out of bounds for dimension {dim} with size {size}")


def length_of(input: Tensor, dim: int) -> int:
    """Return the size of a dim; of a 0-d tensor, which counts as a vector, 1."""
    return input.shape[dim] if input.ndim else 1


# ----- Keys -----
def elements_along(operator: Any, input: Tensor, dim: int, index: Tensor, own: str, src: Tensor | None = None) -> int:
    """Return the dim along which `index` names elements, each at its own place in the other dims; RuntimeError for sizes that differ.

    A source has as many dims as the index.
    """
    d = normalized_dim(dim, input.ndim)
    if index.numel() == 0 or names_elements(input, d, index, src):
        return d
    ndim, shape = input.ndim, index.shape
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{operator.name}(): Expected dtype int32/int64 for index, got {index.dtype}")
    if max(len(shape), 1) != max(ndim, 1):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {own} tensor: {len(shape)} and {ndim}")
    if src is not None and max(len(shape), 1) != max(src.ndim, 1):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as src tensor: {len(shape)} and {src.ndim}")
    for other, (count, size) in enumerate(zip(shape, input.shape, strict=False)):
        if count > size and other != d:
            shapes = f"expected index {list(shape)} to be no larger than self {list(input.shape)} apart from dimension {d}"
            raise RuntimeError(f"Size does not match at dimension {other} {shapes}" if own == "input" else shapes.capitalize())
    return d


def key_of(input: Tensor, index: Tensor, d: int) -> tuple[np.ndarray, ...]:
    """Return the key, for NumPy's indexing, of the elements that an index names along a dim; RuntimeError for one outside."""
    check_bounds(index, length_of(input, d), d)
    array = vector(to_array(index))
    last = array.ndim - 1
    return tuple([array if k == d else np.arange(size).reshape(-1, *(1,) * (last - k)) for k, size in enumerate(array.shape)])


def slices_along(operator: Any, input: Tensor, dim: int, index: Tensor, dtypes: tuple[str, ...], message: str,
                 error: type[Exception] = RuntimeError) -> int:
    """Return the dim along which a vector names slices; the message has places for the operator and a dtype it refuses."""
    d = normalized_dim(dim, input.ndim)
    if index.dtype.name not in dtypes:
        raise error(message.format(operator.name, index.dtype))
    return d


def check_flat_places(operator: Any, input: Tensor, index: Tensor) -> None:
    """Refuse places outside of the order of elements; they may count from the end."""
    check_flat_index(operator, index)
    count, name = input.numel(), operator.name
    if index.numel() and not count:
        raise IndexError(f"{name}(): tried to {name} {'from' if name == 'take' else 'into'} an empty tensor")
    outside = place_outside(index, count, True)
    if outside is not None:
        raise IndexError(f"out of range: tried to access index {outside} on a tensor of {count} elements.")


def check_flat_index(operator: Any, index: Tensor) -> None:
    if index.dtype.name != "int64":
        raise RuntimeError(f"{operator.name}(): Expected a long tensor for index, but got {index.dtype}")
