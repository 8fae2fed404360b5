"""Types of `cygrad.signal.windows`.

Written by hand down to the line that says so; `python -m building.operators` writes the lines below it.
"""

from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from collections.abc import Sequence

from cygrad._core.memory.formats import Layout
from cygrad.tensor import Tensor
from cygrad.typing import Device, DTypeLike

# ----- From the tables, by `python -m building.operators`: nothing below is written by hand -----
def bartlett(
    M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: Device = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def blackman(
    M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: Device = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def hann(
    M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: Device = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def hamming(
    M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: Device = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def nuttall(
    M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: Device = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def general_hamming(
    M: _int, *, alpha: _float = 0.54, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def general_cosine(
    M: _int, *, a: Sequence[_float], sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def cosine(
    M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: Device = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def gaussian(
    M: _int, *, std: _float = 1.0, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def kaiser(
    M: _int, *, beta: _float = 12.0, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def exponential(
    M: _int, *, center: _float | None = None, tau: _float = 1.0, sym: _bool = True, dtype: DTypeLike | None = None,
    layout: Layout | None = None, device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
