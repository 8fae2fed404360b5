"""Hashes of the elements of a tensor, to compare tensors by one number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cygrad._core.operands.arrays import computed, to_array
from cygrad.operators._language.arguments import checked_operand, delivered, normalized_dims
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.tangents import constant
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import Dims


@operator(tangent=constant, batch=shifted("dim"), refuses={"c": NO_LOOP}, loop="xor_sum_cpu")
def hash_tensor(input: Tensor, dim: Dims = (), *, keepdim: bool = False, mode: int = 0, out: Tensor | None = None) -> Tensor:
    """Exclusive or of the bits of all elements, or of those along dims, as uint64: equal tensors have equal hashes.

    Bits are these of float64 or int64, to which elements are converted. There is one `mode`, 0.

    Raises:
        RuntimeError: another mode; no elements, and no dim.
        IndexError: a dim without elements.
        NotImplementedError: complex numbers.

    >>> import cygrad
    >>> cygrad.hash_tensor(cygrad.tensor([1, 2, 4])).item()
    7
    """
    if mode != 0:
        raise RuntimeError(f"Unknown {hash_tensor.__name__} mode: {mode}")
    dims = normalized_dims(dim, input.ndim)
    if input.ndim and not input.numel():
        if dim is None or dim == () or dim == []:
            raise RuntimeError(f"{hash_tensor.__name__}: Expected reduction dim to be specified for input.numel() == 0. Specify the "
                               f"reduction dim with the 'dim' argument, of shape {list(input.shape)}.")
        for each in dims:
            if not input.shape[each]:
                raise IndexError(f"{hash_tensor.__name__}: Expected reduction dim {each} to have non-zero size.")
    checked_operand(hash_tensor, input)
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"dim {max(dims, key=dims.count)} appears multiple times in the list of dims")
    kind = input.dtype.kind
    wide = input.detach().double() if kind == "f" else input.detach() if input.dtype.name == "uint64" else input.detach().long()
    bits = to_array(wide).view(np.uint64)
    along = dims if input.ndim else None
    result = np.bitwise_xor.reduce(bits, along, keepdims=True) if keepdim else np.bitwise_xor.reduce(bits, along)
    return delivered(computed(np.asarray(result)), out)
