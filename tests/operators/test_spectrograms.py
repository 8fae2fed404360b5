"""Spectra of windows, and signals from them: against sums by hand, round trips, dtypes, empty batches, vmap, refusals and warnings."""

import itertools
import warnings

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import vmap
from samples import array_of

pytestmark = pytest.mark.filterwarnings("ignore:A window was not provided")

RNG = np.random.default_rng(4)


def numbers(is_complex, *shape):
    return RNG.standard_normal(shape) + (1j * RNG.standard_normal(shape) if is_complex else 0)


def by_hand(x, size, hop, window, offset):
    """Return the sums of the definition: window m begins at m hop - offset; the signal is 0 outside."""
    count = 1 + (len(x) + 2 * offset - size) // hop
    spectra = np.zeros((size, count), complex)
    for k, m, j in itertools.product(range(size), range(count), range(size)):
        place = m * hop + j - offset
        if 0 <= place < len(x):
            spectra[k, m] += window[j] * x[place] * np.exp(-2j * np.pi * j * k / size)
    return spectra


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.cases("size, hop, points, center", [(6, 2, 6, True), (6, 4, 3, False), (5, 1, 4, True), (1, 1, 1, False), (7, 9, 2, False)])
def test_spectra_are_the_sums_of_the_definition(size, hop, points, center, is_complex):
    x, window = numbers(is_complex, 19), numbers(False, points)
    before = (size - points) // 2
    expected = by_hand(x, size, hop, np.pad(window, (before, size - points - before)), size // 2 if center else 0)
    result = cg.stft(cg.tensor(x), size, hop, points, cg.tensor(window), center, "constant", return_complex=True)
    np.testing.assert_allclose(array_of(result), expected if is_complex else expected[:size // 2 + 1], atol=1e-12)
    whole = cg.tensor(x).stft(size, hop, points, cg.tensor(window), center, "constant", True, False, return_complex=True)
    np.testing.assert_allclose(array_of(whole) * size**0.5, expected, atol=1e-12)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_modes_of_padding(mode):
    x = cg.tensor(numbers(False, 2, 9))
    padded = cg.nn.functional.pad(x, (3, 3), mode)
    assert cg.equal(cg.stft(x, 6, 2, pad_mode=mode, return_complex=True), cg.stft(padded, 6, 2, center=False, return_complex=True))


@pytest.mark.cases("size, points", [(8, 4), (7, 4), (5, 2)])
def test_windows_aligned_at_their_points(size, points):
    """The first window takes the first points of the signal, where otherwise the zeros around it do."""
    x, window = cg.tensor(numbers(False, 20)), cg.tensor(numbers(False, points))
    before = (size - points) // 2
    shifted = cg.nn.functional.pad(x, (before, size - points - before))
    aligned = cg.stft(x, size, 2, points, window, center=False, align_to_window=True, return_complex=True)
    assert aligned.shape[1] == 1 + (20 - points) // 2
    assert cg.equal(aligned, cg.stft(shifted, size, 2, points, window, center=False, return_complex=True))


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.cases("size, hop, points", [(8, 2, 8), (8, 3, 6), (7, 3, 7), (2, 1, 1)])
@pytest.mark.cases("shape", [(25,), (2, 25)])
@pytest.mark.cases("normalized, one_side", [(False, None), (True, False)])
def test_signals_come_back(size, hop, points, shape, is_complex, normalized, one_side):
    x, window = numbers(is_complex, *shape), cg.hann_window(points, periodic=False, dtype=cg.float64) + 0.1
    spectra = cg.tensor(x).stft(size, hop, points, window, True, "constant", normalized, one_side, return_complex=True)
    back = spectra.istft(size, hop, points, window, True, normalized, one_side, length=20, return_complex=is_complex)
    np.testing.assert_allclose(array_of(back), x[..., :20], atol=1e-13)
    if size == points:
        spectra = cg.tensor(x).stft(size, hop, points, window, False, "constant", normalized, one_side, return_complex=True)
        back = spectra.istft(size, hop, points, window, False, normalized, one_side, return_complex=is_complex)
        assert back.shape[-1] == size + hop * ((25 - size) // hop)
        np.testing.assert_allclose(array_of(back), x[..., :back.shape[-1]], atol=1e-13)


def test_the_signal_is_the_nearest_in_least_squares():
    """Of spectra that are no signal's: the gradient of the distance to them is 0."""
    window, spectra = cg.hamming_window(6, dtype=cg.float64), cg.tensor(numbers(True, 6, 5))
    x = spectra.istft(6, 2, window=window, center=False, return_complex=True).requires_grad_()
    distance = (x.stft(6, 2, window=window, center=False, return_complex=True) - spectra).abs().square().sum()
    assert cg.autograd.grad(distance, x)[0].abs().max() < 1e-12 < distance


def test_dtypes_and_lengths():
    x, window = cg.ones(20), cg.ones(8)
    assert cg.stft(x, 8, window=window, return_complex=True).dtype == cg.complex64
    assert cg.stft(x.half(), 8, window=window, return_complex=True).dtype == cg.complex64
    assert cg.stft(x, 8, window=window.double(), return_complex=True).dtype == cg.complex128
    assert cg.stft(x, 8, window=window.cfloat(), return_complex=True).shape == (8, 11)
    parts = cg.stft(x.cfloat(), 8, window=window, return_complex=False)
    assert parts.shape == (8, 11, 2) and parts.dtype == cg.float32
    spectra = cg.stft(x, 8, window=window, return_complex=True)
    assert cg.istft(spectra, 8, window=window).dtype == cg.float32 and cg.istft(spectra, 8, window=window.double()).dtype == cg.float64
    assert cg.istft(spectra, 8, window=window, length=24).shape == (24,)
    with pytest.warns(UserWarning, match="The length of signal is shorter than the length parameter"):
        longer = cg.istft(spectra, 8, window=window, length=26)
    assert longer.shape == (26,) and longer[24:].tolist() == [0, 0] and cg.allclose(longer[:20], x)
    assert cg.stft(cg.ones(0, 9), 4, return_complex=True).shape == (0, 3, 10)


def test_warnings():
    x = cg.ones(9)
    with pytest.warns(UserWarning, match="stft with return_complex=False is deprecated"):
        parts = x.stft(4, return_complex=False)
    assert cg.equal(cg.view_as_complex(parts), x.stft(4, return_complex=True))
    with pytest.warns(UserWarning, match="A window was not provided"):
        cg.istft(cg.view_as_complex(parts), 4)
    with warnings.catch_warnings(action="error"):
        assert cg.allclose(cg.istft(cg.view_as_complex(parts), 4, window=cg.ones(4)), x)


def test_examples_and_windows_in_vmap():
    x, windows = cg.tensor(numbers(False, 3, 12)), cg.tensor(numbers(False, 3, 4)) + 3
    expected = cg.stack([row.stft(4, window=window, return_complex=True) for row, window in zip(x, windows, strict=True)])
    spectra = vmap(lambda row, window: row.stft(4, window=window, return_complex=True))(x, windows)
    assert cg.allclose(spectra, expected)
    assert cg.allclose(vmap(lambda row, window: row.istft(4, window=window))(spectra, windows), x)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        vmap(lambda window: spectra[0].istft(4, window=window))(cg.tensor([[1.0] * 4, [0.0] * 4]))


X, W = cg.ones(40), cg.ones(8)
Z = cg.ones(5, 21, dtype=cg.complex64)


def short(*arguments, **options):
    return lambda: cg.stft(*arguments, **{"window": W, "return_complex": True} | options)


def back(*arguments, **options):
    return lambda: cg.istft(*arguments, **{"window": W} | options)


BAD = [
    (short(X, 8, return_complex=None), RuntimeError, "stft requires the return_complex parameter be given for real inputs"),
    (short(X.int(), 8), RuntimeError, "expected a tensor of floating point or complex values, but got Int"),
    (short(X.bool(), 8), NotImplementedError, "\"reflection_pad1d\" not implemented for 'Bool'"),
    (short(X.half(), 8, window=None), RuntimeError, "MKL FFT doesn't support tensors of type: Half"),
    (short(X[0], 8), RuntimeError, "expected a 1D or 2D tensor, but got 0D"),
    (short(X.reshape(2, 2, 10), 8, center=False), RuntimeError, "expected a 1D or 2D tensor, but got 3D"),
    (short(X, 0), RuntimeError, "expected 0 < n_fft < 40, but got n_fft=0"),
    (short(X, -(2**70)), ValueError, "argument 'n_fft' must lie between -2**63 and 2**63 - 1"),
    (short(X, 41, center=False), RuntimeError, "expected 0 < n_fft < 40, but got n_fft=41"),
    (short(X, 100), RuntimeError, "Padding size should be less than the corresponding input dimension, but got: padding (50, 50)"),
    (short(X[:0], 8), RuntimeError, "Expected 2D or 3D (batch mode) tensor with possibly 0 batch size"),
    (short(X, 8, 0), RuntimeError, "expected hop_length > 0, but got hop_length=0"),
    (short(X, 3, window=None), RuntimeError, "expected hop_length > 0, but got hop_length=0"),
    (short(X, 8, 2, 0), RuntimeError, "expected 0 < win_length <= n_fft, but got win_length=0"),
    (short(X, 8, 2, 9), RuntimeError, "expected 0 < win_length <= n_fft, but got win_length=9"),
    (short(X, 8, 2, 6), RuntimeError, "expected a 1D window tensor of size equal to win_length=6, but got window with size [8]"),
    (short(X, 8, window=W.view(2, 4)), RuntimeError, "size equal to win_length=8, but got window with size [2, 4]"),
    (short(X, 8, window=[1.0]), TypeError, "must be Tensor"),
    (short(X.cfloat(), 8, onesided=True), RuntimeError, "Cannot have onesided output if window or input is complex"),
    (short(X, 8, window=W.cfloat(), onesided=True), RuntimeError, "Cannot have onesided output if window or input is complex"),
    (short(X, 8, align_to_window=False), RuntimeError, "stft align_to_window should only be set when center = false"),
    (short(X, 8, pad_mode="mirror"), NotImplementedError, "Unrecognised padding mode mirror"),
    (short(X, 8.5), TypeError, "argument 'n_fft' must be int, not float"),
    (short(X, 8, 2.5), TypeError, "argument 'hop_length' must be int, not float"),
    (short([1.0], 8), TypeError, "must be Tensor, not list"),
    (back(X, 8), RuntimeError, "istft requires a complex-valued input tensor matching the output from stft with return_complex=True"),
    (back(Z[0], 8), RuntimeError, "expected a tensor with 3 or 4 dimensions, but got 2"),
    (back(Z[None, None], 8), RuntimeError, "expected a tensor with 3 or 4 dimensions, but got 5"),
    (back(Z[:, :0], 8), RuntimeError, "input tensor cannot be empty, but got the shape [5, 0]"),
    (back(Z, 8, onesided=False), RuntimeError, "to match n_fft when onesided=False, but got 5"),
    (back(Z, 5, onesided=True), RuntimeError, "to match n_fft / 2 + 1 when onesided=True, but got 5"),
    (back(Z, 10), RuntimeError, "to match n_fft / 2 + 1 when onesided=True, but got 5"),
    (back(Z, 8, 0), RuntimeError, "expected 0 < hop_length <= win_length, but got hop_length=0"),
    (back(Z, 8, 5, 4), RuntimeError, "expected 0 < hop_length <= win_length, but got hop_length=5 and win_length=4"),
    (back(Z, 8, 2, 9), RuntimeError, "expected 0 < win_length <= n_fft, but got win_length=9"),
    (back(Z, 8, window=W[:5]), RuntimeError, "Invalid window shape. window has to be 1D and length of `win_length`, but got [5]"),
    (back(Z, 8, return_complex=True), RuntimeError, "Cannot have onesided output if window or input is complex"),
    (back(Z, 8, window=W.cfloat()), RuntimeError, "Complex windows are incompatible with return_complex=False"),
    (back(Z, 8, window=cg.hann_window(8), center=False), RuntimeError, "window overlap add min"),
    (back(Z, 8, window=W * 1e-6), RuntimeError, "window overlap add min"),
    (back(Z, 8, length=0), RuntimeError, "expected a signal of at least one point"),
    (back(Z[:, :1], 8), RuntimeError, "expected a signal of at least one point, but got 8 points of windows"),
    (back(Z, 8, length=2.5), TypeError, "argument 'length' must be int, not float"),
]


@pytest.mark.cases(("call", "error", "message"), BAD)
def test_refusals(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
