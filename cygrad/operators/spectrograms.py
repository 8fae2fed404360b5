"""Spectra of the windows of a signal, and the signal of which they are the spectra: composed of windows and transforms."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal, NamedTuple

from cygrad._core.memory.sizes import index_argument
from cygrad.operators._language.arguments import all_examples
from cygrad.operators._language.declaration import operator
from cygrad.operators.conjugation import view_as_real
from cygrad.operators.fourier import fft_fft, fft_ifft, fft_irfft, fft_rfft
from cygrad.operators.padding import constant_pad_nd, nn_functional_pad
from cygrad.ops.dtypes import DTYPES, NUMBER

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

LEAST_ENVELOPE = 1e-11      # torch's: below it, nothing is divided by a sum of squares


# ----- Arguments -----
class _Frames(NamedTuple):
    """Where the windows lie: their size, the distance of their beginnings, and the points of the window function in their middle."""

    size: int
    hop: int
    points: int

    @property
    def before(self) -> int:
        """The number of zeros before the window function, where it has fewer points than the transform."""
        return (self.size - self.points) // 2


def _frames(n_fft: int, hop_length: int | None, win_length: int | None) -> _Frames:
    size = index_argument(n_fft, "n_fft")
    return _Frames(size, size // 4 if hop_length is None else index_argument(hop_length, "hop_length"),
                   size if win_length is None else index_argument(win_length, "win_length"))


def _ones(frames: _Frames, like: Tensor) -> Tensor:
    return like.new_ones(frames.points, dtype=like.dtype.to_real())


def _spread_over(frames: _Frames, window: Tensor) -> Tensor:
    """Return the window function with zeros around it, as long as the transform."""
    missing = frames.size - frames.points
    return constant_pad_nd(window, (frames.before, missing - frames.before)) if missing else window


def _check_one_side(onesided: bool | None, is_complex: bool) -> bool:
    """Return whether half of each spectrum is the result: by default of real numbers."""
    if is_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return not is_complex if onesided is None else onesided


def _title(input: Tensor) -> str:
    """Return torch's name of a dtype in errors."""
    return DTYPES[NUMBER[input.dtype.name]].title


def _norm(normalized: bool) -> str:
    return "ortho" if normalized else "backward"


# ----- To spectra -----
def _check_dims(input: Tensor) -> None:
    if input.ndim not in (1, 2):
        raise RuntimeError(f"{stft.__name__}(): expected a 1D or 2D tensor, but got {input.ndim}D")


def _check_signal(input: Tensor, frames: _Frames, window: Tensor | None) -> None:
    size, hop, points = frames
    if not input.dtype.is_differentiable:
        raise RuntimeError(f"{stft.__name__}(): expected a tensor of floating point or complex values, but got {_title(input)}")
    if not 0 < size <= input.shape[-1]:
        raise RuntimeError(f"{stft.__name__}(): expected 0 < n_fft < {input.shape[-1]}, but got n_fft={size}")
    if hop <= 0:
        raise RuntimeError(f"{stft.__name__}(): expected hop_length > 0, but got hop_length={hop}")
    if not 0 < points <= size:
        raise RuntimeError(f"{stft.__name__}(): expected 0 < win_length <= n_fft, but got win_length={points}")
    if window is not None and tuple(window.shape) != (points,):
        raise RuntimeError(f"{stft.__name__}(): expected a 1D window tensor of size equal to win_length={points}, but got window with size "
                           f"{list(window.shape)}")


@operator
def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
         center: bool = True, pad_mode: Literal["constant", "reflect", "replicate", "circular"] = "reflect", normalized: bool = False,
         onesided: bool | None = None, return_complex: bool | None = None, align_to_window: bool | None = None) -> Tensor:
    """Spectra of the windows of a signal, (frequencies, windows): X[k, m] = sum over j of window[j] x[m hop + j] exp(-2 pi i jk / n_fft).

    The signal is 1-D, or 2-D for a batch. Windows have `n_fft` points, `hop_length` apart (default: n_fft // 4). `window` has `win_length`
    points (default: `n_fft`), with zeros around them up to `n_fft`; without it, they are ones. `center`: the middle of window m is at
    m hop, since the signal is padded by n_fft // 2 at both ends, as `pad_mode` says (`nn.functional.pad`). Without `center`, window m
    begins at m hop; with `align_to_window` its `win_length` points do, and the signal is padded for the zeros around them.

    `normalized` divides by sqrt(n_fft). `onesided` (default: if all is real) has the n_fft // 2 + 1 frequencies from 0 on.
    `return_complex=True` must be given for real numbers; False is deprecated, and has real and imaginary parts in a last dim.

    Raises:
        RuntimeError: a signal of another number of dims, of integers, or shorter than `n_fft`; a size that is no size; a window of
            another shape; half a spectrum of complex numbers; no `return_complex` for real ones.

    >>> import cygrad
    >>> x = cygrad.tensor([0., 1., 0., -1., 0., 1., 0., -1.])
    >>> cygrad.stft(x, 4, window=cygrad.ones(4), hop_length=2, center=False, return_complex=True)
    tensor([[0.+0.j, 0.+0.j, 0.+0.j],
            [0.-2.j, 0.+2.j, 0.-2.j],
            [0.+0.j, 0.+0.j, 0.+0.j]])
    """
    frames = _frames(n_fft, hop_length, win_length)
    is_complex = input.is_complex() or window is not None and window.is_complex()
    if center and align_to_window is not None:
        raise RuntimeError(f"stft align_to_window should only be set when center = false, but got center=True and {align_to_window=}")
    if return_complex is None and not is_complex:
        raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further require that "
                           "return_complex=True in a future PyTorch release.")
    _check_dims(input)
    if center and frames.size > 0:
        half = frames.size // 2
        input = nn_functional_pad(input.unsqueeze(-2), (half, half), pad_mode).squeeze(-2)
    _check_signal(input, frames, window)
    one_side = _check_one_side(onesided, is_complex)
    if align_to_window:
        input = constant_pad_nd(input, (frames.before, frames.size - frames.points - frames.before))
    pieces = input.unfold(-1, frames.size, frames.hop)
    if window is not None or frames.points < frames.size:
        pieces = pieces * _spread_over(frames, _ones(frames, input) if window is None else window)
    if pieces.dtype.loops is not pieces.dtype:
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {_title(pieces)}; convert it first, e.g. with .float()")
    result = (fft_rfft if one_side else fft_fft)(pieces, None, -1, _norm(normalized)).transpose(-1, -2)
    if return_complex is not False:
        return result
    if not is_complex:
        warnings.warn("stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for all "
                      "inputs, and return_complex=False will raise an error.", stacklevel=2)
    return view_as_real(result)


# ----- From spectra -----
def _check_spectra(input: Tensor, frames: _Frames, window: Tensor | None, onesided: bool | None) -> bool:
    """Return whether the spectra are halves: by default if they have another number of frequencies than the transform."""
    size, hop, points = frames
    if not input.is_complex():
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True, but got "
                           f"{_title(input)}")
    if input.ndim not in (2, 3):
        raise RuntimeError(f"{istft.__name__}(): expected a tensor with 3 or 4 dimensions, but got {input.ndim + 1}, of them one for "
                           "real and imaginary parts")
    if not input.numel():
        raise RuntimeError(f"{istft.__name__}(): input tensor cannot be empty, but got the shape {list(input.shape)}")
    one_side = input.shape[-2] != size if onesided is None else onesided
    if input.shape[-2] != (size // 2 + 1 if one_side else size):
        raise RuntimeError(f"{istft.__name__}(): expected the frequency dimension (3rd to the last) of the input tensor to match "
                           f"n_fft{' / 2 + 1' * one_side} when onesided={one_side}, but got {input.shape[-2]} for n_fft={size}")
    if not 0 < hop <= points:
        raise RuntimeError(f"{istft.__name__}(): expected 0 < hop_length <= win_length, but got hop_length={hop} and win_length={points}")
    if not 0 < points <= size:
        raise RuntimeError(f"{istft.__name__}(): expected 0 < win_length <= n_fft, but got win_length={points} and n_fft={size}")
    if window is not None and tuple(window.shape) != (points,):
        raise RuntimeError(f"{istft.__name__}(): Invalid window shape. window has to be 1D and length of `win_length`, but got "
                           f"{list(window.shape)} for win_length={points}")
    return one_side


def _overlapping(pieces: Tensor, span: int, frames: _Frames) -> Tensor:
    """Return the sum of windows, (..., windows, points), where they lie."""
    return pieces._sum_windows((*pieces.shape[:-2], span), pieces.ndim - 2, frames.size, frames.hop)


def _range(span: int, frames: _Frames, center: bool, length: int | None) -> tuple[int, int]:
    """Return the first point of the signal among the points of all windows, and the number of its points there."""
    start = frames.size // 2 if center else 0
    count = min(span - start, span - 2 * start if length is None else length)
    if count <= 0:
        raise RuntimeError(f"{istft.__name__}(): expected a signal of at least one point, but got {span} points of windows, {center=} "
                           f"and {length=}")
    return start, count


def _check_envelope(envelope: Tensor) -> None:
    least = all_examples(envelope).abs().min()
    if least < LEAST_ENVELOPE:
        raise RuntimeError(f"{istft.__name__}(): window overlap add min: expected squares of windows that add up to {LEAST_ENVELOPE} or "
                           f"more at every point, but got {least.item()}")


@operator
def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
          center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
          return_complex: bool = False) -> Tensor:
    """Signal whose `stft` with the same arguments is the nearest to the given one (Griffin and Lim 1984).

    Of the inverse transforms y[m], x[t] = sum over m of w[t - m hop] y[m, t - m hop] / sum over m of w[t - m hop]^2, with the window w.
    Where the second sum is 0, the signal is not determined: RuntimeError. Spectra are (frequencies, windows), a batch 3-D. With `center`,
    n_fft // 2 points are cut off at both ends, or only in front if there is a `length`; a longer one ends in zeros.

    `onesided` (default: if there are not `n_fft` frequencies): half of each spectrum is given. `return_complex`: the signal is complex.

    Raises:
        RuntimeError: spectra that are real, empty or of another size; a `hop_length` or `win_length` that is none; a window of another
            shape, or a complex one for a real signal; half of the spectrum of a complex one; a signal without points.

    >>> import cygrad
    >>> x, window = cygrad.arange(9.), cygrad.hann_window(4)
    >>> cygrad.istft(cygrad.stft(x, 4, window=window, return_complex=True), 4, window=window)
    tensor([0., 1., 2., 3., 4., 5., 6., 7., 8.])
    """
    frames = _frames(n_fft, hop_length, win_length)
    length = None if length is None else index_argument(length, "length")
    one_side = _check_spectra(input, frames, window, onesided)
    if return_complex:
        _check_one_side(one_side, True)
    elif window is not None and window.is_complex():
        raise RuntimeError(f"Complex windows are incompatible with return_complex=False, but got a window of {window.dtype}")
    span = frames.size + frames.hop * (input.shape[-1] - 1)
    start, count = _range(span, frames, center, length)
    if window is None:
        warnings.warn("A window was not provided. A rectangular window will be applied. Please provide the same window used by stft to "
                      "make the inversion lossless.", stacklevel=2)
        window = _ones(frames, input)
    factors = _spread_over(frames, window)
    envelope = _overlapping((factors * factors).expand(input.shape[-1], -1), span, frames).narrow(-1, start, count)
    _check_envelope(envelope)
    spectra, norm = input.transpose(-1, -2), _norm(normalized)
    pieces = fft_ifft(spectra, None, -1, norm) if return_complex else fft_irfft(spectra, frames.size, -1, norm)
    signal = _overlapping(pieces * factors, span, frames).narrow(-1, start, count) / envelope
    if length is None or length == count:
        return signal
    warnings.warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check "
                  "your center and hop_length settings.", stacklevel=2)
    return constant_pad_nd(signal, (0, length - count))
