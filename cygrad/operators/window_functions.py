"""Window functions for spectra: numbers that fade a finite signal in and out.

Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform" (1978), has them all but the exponential one.
`signal.windows` has them symmetric by default, torch's older `*_window` periodic: without the last point of a symmetric one more. They are
computed in double precision, and rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.memory.formats import check_layout
from cygrad._core.memory.sizes import index_argument
from cygrad._core.memory.storage import dtype_by_name, get_default_dtype, resolve_dtype
from cygrad.data.creation import check_room, constant_tensor, finished
from cygrad.device import resolve_device
from cygrad.operators import public_name
from cygrad.operators._language.declaration import operator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cygrad._core.memory.formats import Layout
    from cygrad.tensor import Tensor
    from cygrad.typing import Device, DTypeLike

SINGLE_AND_DOUBLE = dtype_by_name["float32"], dtype_by_name["float64"]


# ----- Their values at points of time -----
def _cosines(*coefficients: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the window that sums cosines with alternating signs, over times from 0 to 1: a0 - a1 cos(2 pi t) + a2 cos(4 pi t) - ..."""
    return lambda t: sum((-1) ** k * a * np.cos(2 * np.pi * k * t) for k, a in enumerate(coefficients)) + np.zeros_like(t)


def _kaiser(beta: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda t: np.i0(beta * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(beta)


def _bartlett(t: np.ndarray) -> np.ndarray:
    return 1 - np.abs(2 * t - 1)


HANN, BLACKMAN = _cosines(0.5, 0.5), _cosines(0.42, 0.5, 0.08)


def _span(count: int, symmetric: bool) -> int:
    """Return how many steps there are from the first point to the end of the window."""
    return count - 1 if symmetric else count


def _window(values: Callable[[np.ndarray], np.ndarray], count: int, symmetric: bool) -> np.ndarray:
    """Return a function of times from 0 to 1 at the points of a window; one point is the middle."""
    return values(np.arange(count) / _span(count, symmetric)) if count > 1 else np.ones(count)


# ----- Arguments -----
def _delivered(values: np.ndarray, dtype: Any, device: Device, requires_grad: bool) -> Tensor:
    resolve_device(device)
    return finished(constant_tensor(values).to(dtype), requires_grad)


def _requested_dtype(dtype: DTypeLike | None) -> Any:
    return get_default_dtype() if dtype is None else resolve_dtype(dtype)


def _points(operator: Any, M: int, dtype: DTypeLike | None, layout: Layout | None) -> tuple[int, Any]:
    """Return the number of points of a window and its dtype, in the form of `signal.windows`.

    Errors of sums of cosines speak of `general_cosine`, as in torch.
    """
    name, count, requested = public_name(operator.name).rpartition(".")[2], index_argument(M, "M"), _requested_dtype(dtype)
    if count < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={count}")
    check_room(count)
    check_layout(name, layout, ValueError(f"{name} is implemented for strided tensors only, got: {layout}"))
    if requested not in SINGLE_AND_DOUBLE:
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {requested}")
    return count, requested


def _older(operator: Any, window_length: int, dtype: DTypeLike | None, layout: Layout | None) -> tuple[int, Any]:
    """Return the same in the form of `*_window`."""
    name, count, requested = operator.name, index_argument(window_length, "window_length"), _requested_dtype(dtype)
    if count < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={count}")
    check_room(count)
    check_layout(name, layout, RuntimeError(f"{name} is not implemented for sparse types, got: {layout}"))
    if not requested.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {requested}")
    return count, requested


# ----- signal.windows -----
@operator(method=False)
def signal_windows_bartlett(M: int, *, sym: bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
                            device: Device = None, requires_grad: bool = False) -> Tensor:
    """Triangle from 0 to 1 and back, with `M` points.

    >>> import cygrad
    >>> cygrad.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    count, requested = _points(signal_windows_bartlett, M, dtype, layout)
    return _delivered(_window(_bartlett, count, sym), requested, device, requires_grad)


@operator(method=False)
def signal_windows_blackman(M: int, *, sym: bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
                            device: Device = None, requires_grad: bool = False) -> Tensor:
    """Blackman's window: 0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t), t from 0 to 1.

    >>> import cygrad
    >>> cygrad.signal.windows.blackman(5)
    tensor([-1.3878e-17,  3.4000e-01,  1.0000e+00,  3.4000e-01, -1.3878e-17])
    """
    count, requested = _points(signal_windows_blackman, M, dtype, layout)
    return _delivered(_window(BLACKMAN, count, sym), requested, device, requires_grad)


@operator(method=False)
def signal_windows_hann(M: int, *, sym: bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
                        device: Device = None, requires_grad: bool = False) -> Tensor:
    """Hann's window: 0.5 - 0.5 cos(2 pi t), t from 0 to 1; `sym=False` for spectra.

    >>> import cygrad
    >>> cygrad.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    count, requested = _points(signal_windows_general_cosine, M, dtype, layout)
    return _delivered(_window(HANN, count, sym), requested, device, requires_grad)


@operator(method=False)
def signal_windows_hamming(M: int, *, sym: bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
                           device: Device = None, requires_grad: bool = False) -> Tensor:
    """Hamming's window: 0.54 - 0.46 cos(2 pi t), t from 0 to 1.

    >>> import cygrad
    >>> cygrad.signal.windows.hamming(5)
    tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    count, requested = _points(signal_windows_general_cosine, M, dtype, layout)
    return _delivered(_window(_cosines(0.54, 0.46), count, sym), requested, device, requires_grad)


@operator(method=False)
def signal_windows_nuttall(M: int, *, sym: bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
                           device: Device = None, requires_grad: bool = False) -> Tensor:
    """Nuttall's window of four cosines with the smallest sidelobes (1981).

    >>> import cygrad
    >>> cygrad.signal.windows.nuttall(5)
    tensor([3.6280e-04, 2.2698e-01, 1.0000e+00, 2.2698e-01, 3.6280e-04])
    """
    count, requested = _points(signal_windows_general_cosine, M, dtype, layout)
    return _delivered(_window(_cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411), count, sym), requested, device, requires_grad)


@operator(method=False)
def signal_windows_general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: DTypeLike | None = None,
                                   layout: Layout | None = None,
                                   device: Device = None, requires_grad: bool = False) -> Tensor:
    """Hamming's window with another share: alpha - (1 - alpha) cos(2 pi t).

    >>> import cygrad
    >>> cygrad.signal.windows.general_hamming(5, alpha=0.6)
    tensor([0.2000, 0.6000, 1.0000, 0.6000, 0.2000])
    """
    count, requested = _points(signal_windows_general_cosine, M, dtype, layout)
    return _delivered(_window(_cosines(alpha, 1 - alpha), count, sym), requested, device, requires_grad)


@operator(method=False)
def signal_windows_general_cosine(M: int, *, a: Sequence[float], sym: bool = True, dtype: DTypeLike | None = None,
                                  layout: Layout | None = None,
                                  device: Device = None, requires_grad: bool = False) -> Tensor:
    """Sum of cosines: a[0] - a[1] cos(2 pi t) + a[2] cos(4 pi t) - ..., t from 0 to 1.

    >>> import cygrad
    >>> cygrad.signal.windows.general_cosine(5, a=[0.5, 0.5])
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    count, requested = _points(signal_windows_general_cosine, M, dtype, layout)
    if not isinstance(a, (list, tuple)):
        raise TypeError(f"Coefficients must be a list/tuple, but argument 'a' is {type(a).__name__}")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _delivered(_window(_cosines(*a), count, sym), requested, device, requires_grad)


@operator(method=False)
def signal_windows_cosine(M: int, *, sym: bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
                          device: Device = None, requires_grad: bool = False) -> Tensor:
    """Half a wave of a sine, its points in the middles of `M` parts.

    >>> import cygrad
    >>> cygrad.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    count, requested = _points(signal_windows_cosine, M, dtype, layout)
    middles = (np.arange(count) + 0.5) / (_span(count, sym) + 1) if count > 1 else np.full(count, 0.5)
    return _delivered(np.sin(np.pi * middles), requested, device, requires_grad)


@operator(method=False)
def signal_windows_gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
                            device: Device = None, requires_grad: bool = False) -> Tensor:
    """Bell of standard deviation `std` points: exp(-(n / std)^2 / 2), n from the middle.

    >>> import cygrad
    >>> cygrad.signal.windows.gaussian(5)
    tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """
    count, requested = _points(signal_windows_gaussian, M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    deviations = (np.arange(count) - _span(count, sym) / 2) / std if count > 1 else np.zeros(count)
    return _delivered(np.exp(-(deviations ** 2) / 2), requested, device, requires_grad)


@operator(method=False)
def signal_windows_kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None,
                          device: Device = None, requires_grad: bool = False) -> Tensor:
    """Kaiser's window: I0(beta sqrt(1 - (2 t - 1)^2)) / I0(beta), t from 0 to 1.

    >>> import cygrad
    >>> cygrad.signal.windows.kaiser(5, beta=3.)
    tensor([0.2049, 0.7269, 1.0000, 0.7269, 0.2049])
    """
    count, requested = _points(signal_windows_kaiser, M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _delivered(_window(_kaiser(beta), count, sym), requested, device, requires_grad)


@operator(method=False)
def signal_windows_exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
                               dtype: DTypeLike | None = None, layout: Layout | None = None,
                               device: Device = None, requires_grad: bool = False) -> Tensor:
    """Decay to both sides: exp(-abs(n - center) / tau). A center beside the middle takes `sym=False`.

    >>> import cygrad
    >>> cygrad.signal.windows.exponential(5)
    tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """
    count, requested = _points(signal_windows_exponential, M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = _span(count, sym) / 2 if center is None else center
    distances = np.abs(np.arange(count) - middle) if count > 1 else np.zeros(count)
    return _delivered(np.exp(-distances / tau), requested, device, requires_grad)


# ----- torch's older forms, periodic by default; pinned memory has no meaning here -----
@operator(method=False)
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: DTypeLike | None = None,
                    layout: Layout | None = None, device: Device = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Triangle from 0 to 1 and back, with `window_length` points; periodic, it is one of a point more without the last.

    >>> import cygrad
    >>> cygrad.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    count, requested = _older(bartlett_window, window_length, dtype, layout)
    return _delivered(_window(_bartlett, count, not periodic), requested, device, requires_grad)


@operator(method=False)
def blackman_window(window_length: int, periodic: bool = True, *, dtype: DTypeLike | None = None,
                    layout: Layout | None = None, device: Device = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Blackman's window; see `signal.windows.blackman`.

    >>> import cygrad
    >>> cygrad.blackman_window(4)
    tensor([-1.3878e-17,  3.4000e-01,  1.0000e+00,  3.4000e-01])
    """
    count, requested = _older(blackman_window, window_length, dtype, layout)
    return _delivered(_window(BLACKMAN, count, not periodic), requested, device, requires_grad)


@operator(method=False)
def hann_window(window_length: int, periodic: bool = True, *, dtype: DTypeLike | None = None,
                layout: Layout | None = None, device: Device = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Hann's window; see `signal.windows.hann`.

    >>> import cygrad
    >>> cygrad.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    count, requested = _older(hann_window, window_length, dtype, layout)
    return _delivered(_window(HANN, count, not periodic), requested, device, requires_grad)


@operator(method=False)
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: DTypeLike | None = None,
                   layout: Layout | None = None, device: Device = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Hamming's window, alpha - beta cos(2 pi t).

    >>> import cygrad
    >>> cygrad.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    count, requested = _older(hamming_window, window_length, dtype, layout)
    return _delivered(_window(_cosines(alpha, beta), count, not periodic), requested, device, requires_grad)


@operator(method=False)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: DTypeLike | None = None,
                  layout: Layout | None = None, device: Device = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Kaiser's window; see `signal.windows.kaiser`.

    >>> import cygrad
    >>> cygrad.kaiser_window(4)
    tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01])
    """
    count, requested = _older(kaiser_window, window_length, dtype, layout)
    return _delivered(_window(_kaiser(beta), count, not periodic), requested, device, requires_grad)
