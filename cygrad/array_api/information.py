"""The answers of `__array_namespace_info__()`: capabilities, devices, dtypes."""

from __future__ import annotations

from typing import Any

from cygrad._core.memory.storage import DType, dtype_by_name, get_default_dtype
from cygrad.array_api.dtypes import isdtype
from cygrad.device import CPU, resolve_device
from cygrad.device import device as Device
from cygrad.ops.dtypes import DTYPES


class Information:
    """The capabilities of the namespace, by the methods of the standard."""

    def capabilities(self) -> dict[str, Any]:
        """Return that results may have a shape that depends on values, and tensors up to 64 dims."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the CPU."""
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Return the dtypes of new tensors: of real and complex numbers, of integers and of indices."""
        resolve_device(device)
        real = get_default_dtype()
        return {"real floating": real, "complex floating": dtype_by_name["complex128" if real.itemsize == 8 else "complex64"],
                "integral": dtype_by_name["int64"], "indexing": dtype_by_name["int64"]}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """Return the dtypes of the standard by name, of one kind or of several if given."""
        resolve_device(device)
        standard = [dtype_by_name[row.name] for row in DTYPES if row.loops is None or not row.is_floating_point]
        return {dtype.name: dtype for dtype in standard if kind is None or isdtype(dtype, kind)}

    def devices(self) -> tuple[Device]:
        """Return the CPU."""
        return (CPU,)


INFORMATION = Information()
