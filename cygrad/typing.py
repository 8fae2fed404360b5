"""Names of types of arguments, for annotations.

>>> from cygrad.typing import Dims
>>> def total(x, dim: Dims = None):
...     return x.sum(dim)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from cygrad._core.memory.storage import DType
from cygrad.tensor import Tensor

Number = bool | int | float
Operand = Tensor | np.ndarray | np.generic | Number
Ints = SupportsIndex | Sequence[SupportsIndex]
Dims = SupportsIndex | Sequence[SupportsIndex] | None
Pair = tuple[Tensor, Tensor]
DTypeLike = DType | type[bool] | type[int] | type[float] | type[np.generic] | np.dtype
# Sizes and strides of a whole and of a part of it, and the place of the part in the whole.
Geometry = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int], int]
