"""Discrete Fourier transforms, by NumPy's pocketfft or SciPy's.

All are made from three: complex numbers to complex ones (`_fft_c2c`), real numbers to half of their spectrum (`_fft_r2c`), and half of a
Hermitian spectrum to real numbers (`_fft_c2r`). The adjoint of a transform is a transform: in the other direction, with the same factor.
Half a spectrum stands for its conjugate other half, too: in the adjoint its inner frequencies count half, or twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute import matrices
from cygrad._core.compute.matrices import Transform, set_planner
from cygrad._core.graph.notes import fixed
from cygrad._core.memory.formats import check_layout
from cygrad._core.memory.sizes import index_argument, normalized_dim
from cygrad._core.memory.storage import get_default_dtype
from cygrad._core.operands.arrays import computed, to_array
from cygrad.data.creation import check_room, dtype_of_result, placed
from cygrad.device import resolve_device
from cygrad.operators._language.arguments import delivered, integers
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.tangents import linear
from cygrad.operators.joining import cat
from cygrad.ops.dtypes import DTYPES, NUMBER

if TYPE_CHECKING:
    from cygrad._core.memory.formats import Layout
    from cygrad._core.memory.storage import DType
    from cygrad.tensor import Tensor
    from cygrad.typing import Device, Dims, DTypeLike, Ints

# The same factor in the other direction: 1, one by the number of elements, or by its root.
OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


# ----- The library -----
Planner = Callable[[str, tuple[int, ...], tuple[int, ...], str, "DType", "int | None"], Any]


def set_fft_library(name: str, *, workers: int = 1) -> None:
    """Compute transforms by "numpy" (the default), or by "scipy", which can use several threads (`workers`) for many or large ones.

    ImportError where SciPy is not installed, ValueError for another name.

    >>> import cygrad
    >>> cygrad.config.set_fft_library("numpy")
    """
    if name == "numpy":
        set_planner(_by_loops if all(_loop(each, odd) is not None for each in FORMS for odd in (0, 1)) else by_functions(np.fft), 0)
    elif name == "scipy":
        try:
            import scipy.fft
        except ImportError as error:
            raise ImportError('set_fft_library("scipy") needs SciPy: pip install "cygrad[special]"') from error
        workers = index_argument(workers, "workers")
        set_planner(by_functions(scipy.fft, workers=workers), workers)
    else:
        raise ValueError(f'set_fft_library() takes "numpy" or "scipy", not {name!r}')


def by_functions(module: Any, **keywords: int) -> Planner:
    """Return the planner of a module's functions: the one for one dim, which is quicker, or the one for several, whose name ends in n."""
    def plan(name: str, shape: tuple[int, ...], dim: tuple[int, ...], norm: str, dtype: DType, size: int | None) -> Callable[[Any], Tensor]:
        if len(dim) == 1:
            return lambda x: computed(getattr(module, name)(to_array(x), size, dim[0], norm, **keywords))
        sizes = None if size is None else [*(shape[d] for d in dim[:-1]), size]
        return lambda x: computed(getattr(module, f"{name}n")(to_array(x), sizes, dim, norm, **keywords))

    return plan


# The loops of NumPy's functions are not public: where they are not of this form, the functions are called. Of an odd number of
# real numbers it is another one.
FORMS = {"fft": ("fft", "fft"), "ifft": ("ifft", "ifft"), "irfft": ("irfft", "irfft"), "rfft": ("rfft_n_even", "rfft_n_odd")}


def _loop(name: str, odd: int) -> Any:
    ufunc = getattr(getattr(np.fft, "_pocketfft_umath", None), FORMS[name][odd], None)
    return ufunc if isinstance(ufunc, np.ufunc) and (ufunc.nin, ufunc.nout) == (2, 1) and ufunc.signature else None


def _along_one(name: str, count: int, dim: int, norm: str, dtype: DType) -> Transform:
    """Return the transform of `count` numbers along a dim; of half a spectrum, to so many."""
    if count < 1:
        raise RuntimeError(f"a transform takes at least 1 number, not {count}")
    norm, real = OPPOSITE[norm] if name in ("ifft", "irfft") else norm, dtype.to_real().name
    divisor: Any = {"backward": 1, "forward": count, "ortho": np.sqrt(count, dtype=real)}[norm]
    factor = fixed(computed(np.asarray(np.reciprocal(divisor, dtype=real))))
    return Transform(_loop(name, count % 2), dtype, factor, dim, count // 2 + 1 if name == "rfft" else count)


@lru_cache(256)
def _by_loops(name: str, shape: tuple[int, ...], dim: tuple[int, ...], norm: str, dtype: DType, size: int | None) -> tuple[Transform, ...]:
    """Return transforms by NumPy's loops in the order of its functions: with half a spectrum it is the first, or the last one."""
    if not dim or not all(0 <= d < len(shape) for d in dim):
        raise IndexError(f"there are no transforms of {len(shape)} dims along {dim}")
    if not dtype.is_differentiable or dtype.loops is not dtype:
        raise RuntimeError(f"{name} takes no {dtype}")
    *others, last = dim
    full = "ifft" if name in ("ifft", "irfft") else "fft"
    whole = dtype.to_complex()
    ends = _along_one(name, shape[last] if size is None else size, last, norm, dtype if name == "rfft" else whole)
    inner = [_along_one(full, shape[d], d, norm, whole) for d in others]
    return (*inner, ends) if name == "irfft" else (ends, *reversed(inner))


set_fft_library("numpy")


# ----- The three transforms, along dims that are not negative -----
@lru_cache
def _weights(size: int, inner: float, dtype: DType, behind: int) -> Tensor:
    """Return weights for half a spectrum of `size` elements along a dim with some dims behind it: 1 for frequencies that are their own
    conjugates, `inner` for the others."""
    weights = np.full(size // 2 + 1, inner, dtype.name)
    weights[0] = 1
    if size % 2 == 0:
        weights[-1] = 1
    return fixed(computed(weights.reshape((-1,) + (1,) * behind)))


def _weighted(spectrum: Tensor, dim: int, size: int, inner: float) -> Tensor:
    """Return half a spectrum, of `size` elements along a dim, with its inner frequencies times a factor."""
    return spectrum * _weights(size, inner, spectrum.dtype, spectrum.ndim - 1 - dim)


@operator(matrices.fft_c2c, tangent=linear, batch=shifted("dim"), node="FftC2C",
          dinput=lambda g, input_dtype, dim, norm, forward: g._fft_c2c(dim, OPPOSITE[norm], not forward)._convert(input_dtype))
def _fft_c2c(input: Tensor, dim: tuple[int, ...], norm: str, forward: bool) -> Tensor:
    """Transform numbers, real ones too, to complex numbers: by exp(-2 pi i jk / n) forward, by exp(2 pi i jk / n) backward."""


@operator(matrices.fft_r2c, tangent=linear, batch=shifted("dim"), node="FftR2C",
          dinput=lambda g, dim, norm, size: _weighted(g, dim[-1], size, 0.5)._fft_c2r(dim, OPPOSITE[norm], size))
def _fft_r2c(input: Tensor, dim: tuple[int, ...], norm: str) -> Tensor:
    """Transform real numbers forward, to the first half of their spectrum along the last of the dims."""


@operator(matrices.fft_c2r, tangent=linear, batch=shifted("dim"), node="FftC2R",
          dinput=lambda g, input_dtype, dim, norm, last_dim_size: _weighted(
              g._fft_r2c(dim, OPPOSITE[norm]), dim[-1], last_dim_size, 2.0)._convert(input_dtype))
def _fft_c2r(input: Tensor, dim: tuple[int, ...], norm: str, last_dim_size: int) -> Tensor:
    """Transform the first half of a Hermitian spectrum backward, to real numbers, `last_dim_size` along the last of the dims."""


# ----- Arguments -----
def _checked_size(size: int) -> int:
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified; a transform takes at least 1")
    return size


def _checked_norm(operator: Any, norm: str | None) -> str:
    if norm is not None and not isinstance(norm, str):
        raise TypeError(f"{operator.name}(): argument 'norm' must be str, not {type(norm).__name__}")
    if norm is not None and norm not in OPPOSITE:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"; there are "backward", "ortho" and "forward"')
    return norm or "backward"


def _checked_numbers(operator: Any, x: Tensor, real: bool = False) -> Tensor:
    """Return the numbers to transform, integers and bools in the default dtype."""
    if real and x.is_complex():
        raise RuntimeError(f"{operator.name[4:]} expects a real input tensor, but got {DTYPES[NUMBER[x.dtype.name]].title}")
    if not x.dtype.is_differentiable:
        return x.to(get_default_dtype())
    if x.dtype.loops is not x.dtype:
        raise RuntimeError(f"Unsupported dtype {DTYPES[NUMBER[x.dtype.name]].title}; convert it first, e.g. with .float()")
    return x


# The dims of a transform, and its sizes along them, None where it takes the input's.
_Extent = tuple[tuple[int, ...], tuple[int | None, ...]]


def _dim_of(x: Tensor, dim: int) -> int:
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return normalized_dim(dim, x.ndim)


def _along(x: Tensor, n: int | None, dim: int) -> _Extent:
    return (_dim_of(x, dim),), (None if n is None else index_argument(n, "n"),)


def _across(operator: Any, x: Tensor, s: Ints | None, dim: Dims, least: int = 1) -> _Extent:
    """Read `s` and `dim`: without dims the last ones, as many as there are sizes, or all."""
    sizes = None if s is None else tuple([None if size == -1 else size for size in integers(s)])
    if dim is None:
        if sizes is not None and len(sizes) > x.ndim:
            raise RuntimeError(f"Got shape with {len(sizes)} values but input tensor only has {x.ndim} dimensions.")
        dims = tuple(range(x.ndim - (x.ndim if sizes is None else len(sizes)), x.ndim))
    else:
        dims = tuple([_dim_of(x, each) for each in integers(dim)])
    if len(set(dims)) < len(dims):
        raise RuntimeError("FFT dims must be unique")
    if sizes is not None and len(sizes) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    if len(dims) < least:
        raise RuntimeError(f"{operator.name[4:]} must transform at least one axis")
    return dims, (None,) * len(dims) if sizes is None else sizes


def _resized(x: Tensor, extent: _Extent) -> Tensor:
    """Return the first elements along the dims, with zeros behind them where there are too few."""
    dims, sizes = extent
    shape = x.shape
    if 0 not in shape and sizes.count(None) == len(sizes):
        return x
    lengths = [_checked_size(shape[d] if size is None else size) for d, size in zip(dims, sizes, strict=True)]
    for d, size in zip(dims, lengths, strict=True):
        missing = size - shape[d]
        if missing < 0:
            x = x.narrow(d, 0, shape[d] + missing)
        elif missing:
            x = cat((x, x.new_zeros([missing if k == d else length for k, length in enumerate(x.shape)])), d)
    return x


def _to_complex(operator: Any, x: Tensor, extent: _Extent, norm: str | None, forward: bool) -> Tensor:
    norm, x = _checked_norm(operator, norm), _resized(_checked_numbers(operator, x), extent)
    return x._fft_c2c(extent[0], norm, forward) if extent[0] else x.to(x.dtype.to_complex(), copy=True)


def _to_half(operator: Any, x: Tensor, extent: _Extent, norm: str | None, hermitian: bool = False) -> Tensor:
    """Return half of the spectrum of real numbers; `hermitian`: half of the Hermitian numbers of which they are the spectrum."""
    norm, x = _checked_norm(operator, norm), _resized(_checked_numbers(operator, x, real=True), extent)
    return x._fft_r2c(extent[0], OPPOSITE[norm]).conj() if hermitian else x._fft_r2c(extent[0], norm)


def _to_real(operator: Any, x: Tensor, extent: _Extent, norm: str | None, hermitian: bool = False) -> Tensor:
    """Return the real numbers of which half the spectrum is given; `hermitian`: the spectrum of numbers of which half is given."""
    norm, x = _checked_norm(operator, norm), _checked_numbers(operator, x)
    dims, (*others, last) = extent
    size = _checked_size(2 * (x.shape[dims[-1]] - 1) if last is None else last)
    x = _resized(x, (dims, (*others, None if last is None else size // 2 + 1)))
    return x.conj()._fft_c2r(dims, OPPOSITE[norm], size) if hermitian else x._fft_c2r(dims, norm, size)


# ----- Along one dim -----
@operator(method=False)
def fft_fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Spectrum along a dim: X[k] = sum over j of x[j] exp(-2 pi i jk / n) (Cooley and Tukey 1965).

    The input is cut to its first `n` elements along `dim`, or filled with zeros. `norm="backward"` (the default) has the factor 1/n in the
    inverse transforms, "forward" in these, "ortho" 1/sqrt(n) in both. Integers count as the default dtype.

    >>> import cygrad
    >>> cygrad.fft.fft(cygrad.tensor([1., 2., 3., 4.]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return delivered(_to_complex(fft_fft, input, _along(input, n, dim), norm, True), out)


@operator(method=False)
def fft_ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `fft`: x[j] = sum over k of X[k] exp(2 pi i jk / n) / n.

    >>> import cygrad
    >>> cygrad.fft.ifft(cygrad.tensor([10., 0., 0., 0.]))
    tensor([2.5000+0.j, 2.5000+0.j, 2.5000+0.j, 2.5000+0.j])
    """
    return delivered(_to_complex(fft_ifft, input, _along(input, n, dim), norm, False), out)


@operator(method=False)
def fft_rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """First half of the spectrum of real numbers along a dim, n // 2 + 1 frequencies: the others are their conjugates. See `fft`.

    >>> import cygrad
    >>> cygrad.fft.rfft(cygrad.tensor([1., 2., 3., 4.]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return delivered(_to_half(fft_rfft, input, _along(input, n, dim), norm), out)


@operator(method=False)
def fft_irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `rfft`: `n` real numbers, of which half the spectrum along a dim is given; by default an even number, 2 (size - 1).

    The imaginary parts of frequency 0 and n / 2 count as 0.

    >>> import cygrad
    >>> cygrad.fft.irfft(cygrad.tensor([10., -2 + 2j, -2.]))
    tensor([1., 2., 3., 4.])
    """
    return delivered(_to_real(fft_irfft, input, _along(input, n, dim), norm), out)


@operator(method=False)
def fft_hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Real spectrum of `n` Hermitian numbers (x[n - j] = conj(x[j])), of which the first half along a dim is given. See `fft` and `irfft`.

    >>> import cygrad
    >>> cygrad.fft.hfft(cygrad.tensor([1., 2j, 3.]))
    tensor([ 4.,  2.,  4., -6.])
    """
    return delivered(_to_real(fft_hfft, input, _along(input, n, dim), norm, hermitian=True), out)


@operator(method=False)
def fft_ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `hfft`: the first half of the Hermitian numbers of which the real spectrum along a dim is given.

    >>> import cygrad
    >>> cygrad.fft.ihfft(cygrad.tensor([4., 2., 4., -6.]))
    tensor([1.-0.j, 0.+2.j, 3.-0.j])
    """
    return delivered(_to_half(fft_ihfft, input, _along(input, n, dim), norm, hermitian=True), out)


# ----- Along several dims -----
@operator(method=False)
def fft_fftn(input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Spectrum along several dims. `s` has the sizes along them, -1 for the input's; without `dim`, of the last dims, or of all. See `fft`.

    >>> import cygrad
    >>> cygrad.fft.fftn(cygrad.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return delivered(_to_complex(fft_fftn, input, _across(fft_fftn, input, s, dim, least=0), norm, True), out)


@operator(method=False)
def fft_ifftn(input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `fftn`.

    >>> import cygrad
    >>> cygrad.fft.ifftn(cygrad.ones(2, 2))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return delivered(_to_complex(fft_ifftn, input, _across(fft_ifftn, input, s, dim, least=0), norm, False), out)


@operator(method=False)
def fft_rfftn(input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Spectrum of real numbers along several dims: along the last of them its first half. See `fftn` and `rfft`.

    >>> import cygrad
    >>> cygrad.fft.rfftn(cygrad.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return delivered(_to_half(fft_rfftn, input, _across(fft_rfftn, input, s, dim), norm), out)


@operator(method=False)
def fft_irfftn(input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `rfftn`: real numbers, along the last of the dims `s[-1]` of them. See `irfft`.

    >>> import cygrad
    >>> cygrad.fft.irfftn(cygrad.ones(2, 2))
    tensor([[1., 0.],
            [0., 0.]])
    """
    return delivered(_to_real(fft_irfftn, input, _across(fft_irfftn, input, s, dim), norm), out)


@operator(method=False)
def fft_hfftn(input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Real spectrum of Hermitian numbers along several dims; along the last of them half of the numbers is given. See `hfft`.

    >>> import cygrad
    >>> cygrad.fft.hfftn(cygrad.ones(2, 2))
    tensor([[4., 0.],
            [0., 0.]])
    """
    return delivered(_to_real(fft_hfftn, input, _across(fft_hfftn, input, s, dim), norm, hermitian=True), out)


@operator(method=False)
def fft_ihfftn(input: Tensor, s: Ints | None = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `hfftn`.

    >>> import cygrad
    >>> cygrad.fft.ihfftn(cygrad.ones(2, 2))
    tensor([[1.-0.j, 0.-0.j],
            [0.-0.j, 0.-0.j]])
    """
    return delivered(_to_half(fft_ihfftn, input, _across(fft_ihfftn, input, s, dim), norm, hermitian=True), out)


# ----- Along two dims -----
@operator(method=False)
def fft_fft2(input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """As `fftn`, along the last two dims by default.

    >>> import cygrad
    >>> cygrad.fft.fft2(cygrad.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return delivered(_to_complex(fft_fft2, input, _across(fft_fft2, input, s, dim, least=0), norm, True), out)


@operator(method=False)
def fft_ifft2(input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """As `ifftn`, along the last two dims by default.

    >>> import cygrad
    >>> cygrad.fft.ifft2(cygrad.ones(2, 2))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return delivered(_to_complex(fft_ifft2, input, _across(fft_ifft2, input, s, dim, least=0), norm, False), out)


@operator(method=False)
def fft_rfft2(input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """As `rfftn`, along the last two dims by default.

    >>> import cygrad
    >>> cygrad.fft.rfft2(cygrad.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return delivered(_to_half(fft_rfft2, input, _across(fft_rfft2, input, s, dim), norm), out)


@operator(method=False)
def fft_irfft2(input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """As `irfftn`, along the last two dims by default.

    >>> import cygrad
    >>> cygrad.fft.irfft2(cygrad.ones(2, 2))
    tensor([[1., 0.],
            [0., 0.]])
    """
    return delivered(_to_real(fft_irfft2, input, _across(fft_irfft2, input, s, dim), norm), out)


@operator(method=False)
def fft_hfft2(input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """As `hfftn`, along the last two dims by default.

    >>> import cygrad
    >>> cygrad.fft.hfft2(cygrad.ones(2, 2))
    tensor([[4., 0.],
            [0., 0.]])
    """
    return delivered(_to_real(fft_hfft2, input, _across(fft_hfft2, input, s, dim), norm, hermitian=True), out)


@operator(method=False)
def fft_ihfft2(input: Tensor, s: Ints | None = None, dim: Dims = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """As `ihfftn`, along the last two dims by default.

    >>> import cygrad
    >>> cygrad.fft.ihfft2(cygrad.ones(2, 2))
    tensor([[1.-0.j, 0.-0.j],
            [0.-0.j, 0.-0.j]])
    """
    return delivered(_to_half(fft_ihfft2, input, _across(fft_ihfft2, input, s, dim), norm, hermitian=True), out)


# ----- Frequencies and their order -----
def _halves(x: Tensor, dim: Dims, ceiling: bool) -> Tensor:
    dims = tuple(range(x.ndim)) if dim is None else tuple([normalized_dim(d, x.ndim) for d in integers(dim)])
    if not dims:
        return x.clone()
    return x.roll([(x.shape[d] + ceiling) // 2 for d in dims], dims)


@operator(method=False)
def fft_fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Spectrum in the order of frequencies, negative ones first, from the order of `fft`; along all dims by default.

    >>> import cygrad
    >>> cygrad.fft.fftshift(cygrad.tensor([0., 1., 2., -2., -1.]))
    tensor([-2., -1.,  0.,  1.,  2.])
    """
    return _halves(input, dim, False)


@operator(method=False)
def fft_ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Inverse of `fftshift`: a spectrum in the order of frequencies in the order of `fft`.

    >>> import cygrad
    >>> cygrad.fft.ifftshift(cygrad.tensor([-2., -1., 0., 1., 2.]))
    tensor([ 0.,  1.,  2., -2., -1.])
    """
    return _halves(input, dim, True)


def _frequencies(operator: Any, whole: bool, n: int, d: float, out: Tensor | None, dtype: DTypeLike | None, layout: Layout | None,
                 device: Device, requires_grad: bool) -> Tensor:
    """Return the frequencies of a spectrum of n elements, or of half of it."""
    n = index_argument(n, "n")
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    result_dtype = dtype_of_result(dtype, out, get_default_dtype())
    if not result_dtype.is_differentiable:
        raise RuntimeError(f"{operator.name[4:]} requires a floating point or complex dtype")
    resolve_device(device)
    check_layout(operator.name, layout)
    check_room(n)
    numbers = np.arange(n if whole else n // 2 + 1)
    if whole:
        numbers[(n + 1) // 2:] -= n
    with np.errstate(divide="ignore", invalid="ignore"):
        numbers = numbers * np.divide(1.0, n * d)
    return placed(computed(numbers).to(result_dtype), out, requires_grad)


@operator(method=False)
def fft_fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None,
                device: Device = None, requires_grad: bool = False) -> Tensor:
    """Frequencies of the spectrum of `n` samples at a distance of `d`, in the order of `fft`: 0, 1, ..., -2, -1 over n d.

    >>> import cygrad
    >>> cygrad.fft.fftfreq(5)
    tensor([ 0.0000,  0.2000,  0.4000, -0.4000, -0.2000])
    """
    return _frequencies(fft_fftfreq, True, n, d, out, dtype, layout, device, requires_grad)


@operator(method=False)
def fft_rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None,
                 device: Device = None, requires_grad: bool = False) -> Tensor:
    """Frequencies of the half spectrum of `n` samples at a distance of `d`: 0, 1, ..., n // 2 over n d.

    >>> import cygrad
    >>> cygrad.fft.rfftfreq(5)
    tensor([0.0000, 0.2000, 0.4000])
    """
    return _frequencies(fft_rfftfreq, False, n, d, out, dtype, layout, device, requires_grad)
