"""Names of types of arguments, for annotations.

>>> from cygrad.typing import Dims
>>> def total(x, dim: Dims = None):
...     return x.sum(dim)
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypedDict, overload

import numpy as np

from cygrad._core.memory.formats import Layout, MemoryFormat
from cygrad._core.memory.storage import DType
from cygrad.device import device
from cygrad.tensor import Tensor

Real: TypeAlias = bool | int | float
Number: TypeAlias = Real | complex
Operand: TypeAlias = Tensor | np.ndarray | np.generic | Number
Ints: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
Dims: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
Pair: TypeAlias = tuple[Tensor, Tensor]
Item: TypeAlias = SupportsIndex | slice | EllipsisType | Tensor | np.ndarray | list[Any] | None
Index: TypeAlias = Item | tuple[Item, ...]
DTypeLike: TypeAlias = DType | type[bool] | type[int] | type[float] | type[np.generic] | np.dtype
# Sizes, strides and dtype of a whole and of a part of it, and from which byte of the whole on the part lies.
Geometry: TypeAlias = tuple[Sequence[int], Sequence[int], DType, Sequence[int], Sequence[int], DType, int]
Device: TypeAlias = device | str | None


class Factory(Protocol):
    """A function that takes sizes one by one or as one sequence."""

    @overload
    def __call__(
        self, *size: int, dtype: DTypeLike | None = None, device: Device = None, requires_grad: bool = False, out: Tensor | None = None,
        layout: Layout | None = None, pin_memory: bool = False, memory_format: MemoryFormat | None = None,
    ) -> Tensor: ...
    @overload
    def __call__(
        self, size: Sequence[int], *, dtype: DTypeLike | None = None, device: Device = None, requires_grad: bool = False,
        out: Tensor | None = None, layout: Layout | None = None, pin_memory: bool = False, memory_format: MemoryFormat | None = None,
    ) -> Tensor: ...


class Options(TypedDict, total=False):
    """The options of a new tensor."""

    dtype: DTypeLike | None
    device: Device
    layout: Layout | None
    requires_grad: bool
    pin_memory: bool
