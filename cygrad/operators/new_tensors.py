"""New tensors of the dtype, or also of the shape and layout, of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, overload

from cygrad._core.compute.creation import empty_tensor, fill_value
from cygrad._core.memory.formats import check_layout
from cygrad._core.memory.storage import resolve_dtype
from cygrad.data import creation
from cygrad.data.creation import finished
from cygrad.device import resolve_device
from cygrad.operators._language.batches import in_any_order, sizes_of
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.tangents import constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad._core.memory.formats import Layout, MemoryFormat
    from cygrad.tensor import Tensor
    from cygrad.typing import Device, DTypeLike, Number, Options


# ----- Of shape, dtype and layout -----
def _like(operator: Any, input: Tensor, value: float | None, dtype: DTypeLike | None, device: Device, requires_grad: bool,
          layout: Layout | None, memory_format: MemoryFormat | None) -> Tensor:
    if device is not None:
        resolve_device(device)
    if layout is not None:
        check_layout(operator, layout)
    result = empty_tensor(input.shape, input.dtype if dtype is None else resolve_dtype(dtype), input, memory_format)
    return finished(result if value is None else fill_value(result, value), requires_grad)


@operator(tangent=constant, batch=in_any_order, method=False)
def empty_like(input: Tensor, *, dtype: DTypeLike | None = None, device: Device = None, requires_grad: bool = False,
               layout: Layout | None = None, memory_format: MemoryFormat | None = None, pin_memory: bool = False) -> Tensor:
    """Unset tensor of the shape, dtype and layout of another.

    >>> import cygrad
    >>> cygrad.empty_like(cygrad.zeros(2)).shape
    cygrad.Size([2])
    """
    return _like(empty_like, input, None, dtype, device, requires_grad, layout, memory_format)


@operator(tangent=constant, batch=in_any_order, method=False)
def zeros_like(input: Tensor, *, dtype: DTypeLike | None = None, device: Device = None, requires_grad: bool = False,
               layout: Layout | None = None, memory_format: MemoryFormat | None = None, pin_memory: bool = False) -> Tensor:
    """Zeros of the shape, dtype and layout of another tensor.

    >>> import cygrad
    >>> cygrad.zeros_like(cygrad.ones(2))
    tensor([0., 0.])
    """
    return _like(zeros_like, input, 0, dtype, device, requires_grad, layout, memory_format)


@operator(tangent=constant, batch=in_any_order, method=False)
def ones_like(input: Tensor, *, dtype: DTypeLike | None = None, device: Device = None, requires_grad: bool = False,
              layout: Layout | None = None, memory_format: MemoryFormat | None = None, pin_memory: bool = False) -> Tensor:
    """Ones of the shape, dtype and layout of another tensor.

    >>> import cygrad
    >>> cygrad.ones_like(cygrad.zeros(2))
    tensor([1., 1.])
    """
    return _like(ones_like, input, 1, dtype, device, requires_grad, layout, memory_format)


@operator(method=False)
def full_like(input: Tensor, fill_value: Tensor | Number, *, dtype: DTypeLike | None = None, device: Device = None,
              requires_grad: bool = False, layout: Layout | None = None, memory_format: MemoryFormat | None = None,
              pin_memory: bool = False) -> Tensor:
    """Tensor full of one number, of the shape, dtype and layout of another.

    >>> import cygrad
    >>> cygrad.full_like(cygrad.zeros(2), 7)
    tensor([7., 7.])
    """
    result = empty_like(input, dtype=dtype, device=device, layout=layout, memory_format=memory_format)
    return finished(creation.filled(result, fill_value), requires_grad)


# ----- Of dtype -----
def _new_examples(level: Any, operator: Any, x: Tensor, *size: Any, **options: Any) -> Tensor:
    size = size or (options.pop("size"),)
    return level.leave(operator(level.enter(x), (level.size, *sizes_of(size, {})), **options))


@overload
def new_empty(self: Tensor, *size: int, **options: Unpack[Options]) -> Tensor: ...
@overload
def new_empty(self: Tensor, size: Sequence[int], **options: Unpack[Options]) -> Tensor: ...
@operator(tangent=constant, batch=_new_examples, function=False)
def new_empty(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Unset tensor of sizes, in the dtype of this tensor unless another is given; see `empty`.

    >>> import cygrad
    >>> cygrad.ones(2).new_empty(2, 3).shape
    cygrad.Size([2, 3])
    """
    return creation.empty(*size, **{"dtype": self.dtype, **options})


def _new_strided_examples(level: Any, operator: Any, x: Tensor, size: Any, stride: Any, **options: Any) -> Tensor:
    step = 1 + sum((length - 1) * step for length, step in zip(size, stride, strict=False))
    return level.leave(operator(level.enter(x), (level.size, *size), (step, *stride), **options))


@operator(tangent=constant, batch=_new_strided_examples, function=False)
def new_empty_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], **options: Unpack[Options]) -> Tensor:
    """Unset tensor of sizes and strides, in the dtype of this tensor unless another is given; see `empty_strided`.

    >>> import cygrad
    >>> cygrad.ones(1).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    own: Options = {"dtype": self.dtype}
    return creation.empty_strided(size, stride, **(own | options))


@overload
def new_zeros(self: Tensor, *size: int, **options: Unpack[Options]) -> Tensor: ...
@overload
def new_zeros(self: Tensor, size: Sequence[int], **options: Unpack[Options]) -> Tensor: ...
@operator(tangent=constant, batch=_new_examples, function=False)
def new_zeros(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Zeros of sizes, in the dtype of this tensor unless another is given; see `zeros`.

    >>> import cygrad
    >>> cygrad.ones(1, dtype=cygrad.int64).new_zeros(2)
    tensor([0, 0])
    """
    return creation.zeros(*size, **{"dtype": self.dtype, **options})


@overload
def new_ones(self: Tensor, *size: int, **options: Unpack[Options]) -> Tensor: ...
@overload
def new_ones(self: Tensor, size: Sequence[int], **options: Unpack[Options]) -> Tensor: ...
@operator(tangent=constant, batch=_new_examples, function=False)
def new_ones(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Ones of sizes, in the dtype of this tensor unless another is given; see `ones`.

    >>> import cygrad
    >>> cygrad.zeros(1, dtype=cygrad.int64).new_ones(2)
    tensor([1, 1])
    """
    return creation.ones(*size, **{"dtype": self.dtype, **options})


@operator(function=False)
def new_full(self: Tensor, size: Sequence[int], fill_value: Tensor | Number, **options: Unpack[Options]) -> Tensor:
    """Tensor of sizes full of one number, in the dtype of this tensor unless another is given; see `full`.

    >>> import cygrad
    >>> cygrad.ones(1, dtype=cygrad.int64).new_full((2,), 7)
    tensor([7, 7])
    """
    requires_grad = options.pop("requires_grad", False)
    return finished(creation.filled(self.new_empty(size, **options), fill_value), requires_grad)
