"""Discrete Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.memory.storage import DType
from cygrad.array_api.elementwise import checked
from cygrad.operators import fourier

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the transform along a dim."""
    return fourier.fft_fft(checked("fft", x), n, axis, norm)


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the inverse of `fft`."""
    return fourier.fft_ifft(checked("ifft", x), n, axis, norm)


def fftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Return the transform along several dims."""
    return fourier.fft_fftn(checked("fftn", x), s, axes, norm)


def ifftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Return the inverse of `fftn`."""
    return fourier.fft_ifftn(checked("ifftn", x), s, axes, norm)


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return half of the transform of real numbers along a dim."""
    return fourier.fft_rfft(checked("rfft", x), n, axis, norm)


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the inverse of `rfft`."""
    return fourier.fft_irfft(checked("irfft", x), n, axis, norm)


def rfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Return half of the transform of real numbers along several dims."""
    return fourier.fft_rfftn(checked("rfftn", x), s, axes, norm)


def irfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Return the inverse of `rfftn`."""
    return fourier.fft_irfftn(checked("irfftn", x), s, axes, norm)


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the transform, which is real, of half a Hermitian signal."""
    return fourier.fft_hfft(checked("hfft", x), n, axis, norm)


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the inverse of `hfft`."""
    return fourier.fft_ihfft(checked("ihfft", x), n, axis, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return the frequencies of a transform of `n` samples."""
    return fourier.fft_fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return the frequencies of half a transform of `n` samples."""
    return fourier.fft_rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """Return a spectrum with the negative frequencies first."""
    return fourier.fft_fftshift(checked("fftshift", x), axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """Return the inverse of `fftshift`."""
    return fourier.fft_ifftshift(checked("ifftshift", x), axes)
