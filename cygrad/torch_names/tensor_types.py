"""Types of tensors by dtype, as torch had them before there were dtypes: `FloatTensor` and its like make tensors and are their types."""

from __future__ import annotations

from typing import Any

from cygrad._core.graph.tensor import TensorImpl, tensor_class
from cygrad._core.memory.storage import DType, dtype_by_name, resolve_dtype, set_default_dtype
from cygrad.copying import construct
from cygrad.device import resolve_device
from cygrad.ops.dtypes import DTYPES


class TensorType(type):
    """The class of these types: none has instances of its own, tensors of its dtype count as such."""

    dtype: DType

    def __call__(cls, *data: Any, device: Any = None) -> Any:
        return construct(tensor_class(), data, device, cls.dtype)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TensorImpl) and instance.dtype == cls.dtype


def _type_of(row: Any) -> TensorType:
    doc = (f"Type of the tensors of dtype {row.name}.\n\nCalled with sizes it makes a tensor that is not set, with a sequence one with a "
           "copy of the numbers,\nwith a tensor of this dtype another over the same memory.\n\n>>> import cygrad\n"
           f">>> cygrad.{row.tensors}([0, 1]).dtype\ncygrad.{row.name}\n")
    return TensorType(row.tensors, (), {"dtype": dtype_by_name[row.name], "__module__": "cygrad", "__doc__": doc})


TYPES = {row.tensors: _type_of(row) for row in DTYPES}
_NAMES = {dtype_by_name[row.name]: row.tensors for row in DTYPES}
globals().update(TYPES)


def type_name(dtype: DType) -> str:
    """Return the result of `Tensor.type()` for a dtype, such as "cygrad.FloatTensor"."""
    return f"cygrad.{_NAMES[dtype]}"


def dtype_of(kind: Any) -> DType:
    """Return the dtype of an argument of `Tensor.type`: a dtype, one of the types here, or its name, with torch's prefix or ours."""
    if isinstance(kind, TensorType):
        return kind.dtype
    if not isinstance(kind, str):
        return resolve_dtype(kind)
    package, _, name = kind.rpartition(".")
    if package.endswith(".cuda"):
        resolve_device("cuda")
    if package not in ("cygrad", "torch") or name not in TYPES:
        raise ValueError(f"invalid type: {kind!r}; choose one of {', '.join(map(type_name, _NAMES))}")
    return TYPES[name].dtype


def set_default_tensor_type(t: Any) -> None:
    """Set the dtype that Python floats become by a type of tensors, or its name; `set_default_dtype` is the present form.

    TypeError for a dtype that is not floating-point.

    >>> import cygrad
    >>> cygrad.set_default_tensor_type(cygrad.FloatTensor)
    """
    set_default_dtype(dtype_of(t))
