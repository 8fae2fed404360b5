"""Types of the compiled module."""

from collections.abc import Sequence

from cygrad._core.memory.formats import MemoryFormat
from cygrad._core.memory.storage import DType, _DTypeLike
from cygrad.tensor import Tensor
from cygrad.typing import Number, Operand, Real

def empty_tensor(sizes: int | Sequence[int], dtype: _DTypeLike, like: Tensor | None = None,
                 memory_format: MemoryFormat | None = None) -> Tensor: ...
def fill_value(tensor: Tensor, value: Number) -> Tensor: ...
def arange_into(tensor: Tensor, start: Real, step: Real) -> Tensor: ...
def scalar_tensor(number: Operand, dtype: DType) -> Tensor: ...
