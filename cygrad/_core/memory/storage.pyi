"""Types of the compiled module."""

from typing import Any, Literal, final

import numpy as np

@final
class DType:
    name: str
    number: int
    itemsize: int
    kind: Literal["b", "i", "u", "f", "c"]
    is_signed: bool
    is_differentiable: bool
    is_floating_point: bool
    is_complex: bool
    is_integer: bool
    loops: DType
    dtype: np.dtype[Any]
    def __getattr__(self, name: str) -> Any: ...
    def to_real(self) -> DType: ...
    def to_complex(self) -> DType: ...

# Values of `dtype=`: cygrad's dtypes, and Python's and NumPy's.
_DTypeLike = DType | type[bool] | type[int] | type[float] | type[np.generic] | np.dtype[Any]

class OutOfMemoryError(MemoryError, RuntimeError): ...

@final
class Storage:
    nbytes: int
    readonly: bool

dtype_by_name: dict[str, DType]

def dtype_named(name: str) -> DType: ...
def get_default_dtype() -> DType: ...
def set_default_dtype(dtype: DType) -> None: ...
def resolve_dtype(dtype: _DTypeLike) -> DType: ...
