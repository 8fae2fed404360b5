"""Types of `cygrad.fft`.

Written by hand down to the line that says so; `python -m building.operators` writes the lines below it.
"""

from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int

from cygrad._core.memory.formats import Layout
from cygrad.tensor import Tensor
from cygrad.typing import Device, Dims, DTypeLike, Ints

# ----- From the tables, by `python -m building.operators`: nothing below is written by hand -----
def fft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
    axis: _int = -1,
) -> Tensor: ...
def ifft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
    axis: _int = -1,
) -> Tensor: ...
def rfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
    axis: _int = -1,
) -> Tensor: ...
def irfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
    axis: _int = -1,
) -> Tensor: ...
def hfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
    axis: _int = -1,
) -> Tensor: ...
def ihfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
    axis: _int = -1,
) -> Tensor: ...
def fftn(
    input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = None,
) -> Tensor: ...
def ifftn(
    input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = None,
) -> Tensor: ...
def rfftn(
    input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = None,
) -> Tensor: ...
def irfftn(
    input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = None,
) -> Tensor: ...
def hfftn(
    input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = None,
) -> Tensor: ...
def ihfftn(
    input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = None,
) -> Tensor: ...
def fft2(
    input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = (-2, -1),
) -> Tensor: ...
def ifft2(
    input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = (-2, -1),
) -> Tensor: ...
def rfft2(
    input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = (-2, -1),
) -> Tensor: ...
def irfft2(
    input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = (-2, -1),
) -> Tensor: ...
def hfft2(
    input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = (-2, -1),
) -> Tensor: ...
def ihfft2(
    input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None,
    axis: Dims = (-2, -1),
) -> Tensor: ...
def fftshift(input: Tensor, dim: Dims = None, *, axis: Dims = None) -> Tensor: ...
def ifftshift(input: Tensor, dim: Dims = None, *, axis: Dims = None) -> Tensor: ...
def fftfreq(
    n: _int, d: _float = 1.0, *, out: Tensor | None = None, dtype: DTypeLike | None = None,
    layout: Layout | None = None, device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def rfftfreq(
    n: _int, d: _float = 1.0, *, out: Tensor | None = None, dtype: DTypeLike | None = None,
    layout: Layout | None = None, device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
