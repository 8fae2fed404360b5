"""Spectra of windows, and signals made from them."""

import numpy as np

import cygrad as cg
from samples.sample import sample

NARROW = {"narrow floats": "refused, as in torch: there are no complex numbers of 16 bits"}
WIDER = NARROW | {"refusals": "complex numbers of 16 bits are made as complex64"}
HALF = {"complex numbers": "half of a spectrum is of real numbers"}
WINDOW = cg.tensor([0.5, 1.0, 2.0, 1.5], dtype=cg.float64)


def by_hand(x):
    """Return the spectra of the centred windows by NumPy, for windows of 4 points that begin 2 apart."""
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(2, 2)], mode="reflect")
    pieces = np.lib.stride_tricks.sliding_window_view(padded, 4, -1)[..., ::2, :]
    return np.fft.rfft(pieces * WINDOW.numpy()).swapaxes(-1, -2)


def spectra(x, **options):
    return cg.stft(x, 4, 2, window=WINDOW, return_complex=True, **options)


def signal(x, **options):
    return cg.istft(x + 0j, 4, 2, window=WINDOW, **options)


SAMPLES = {
    "stft": [
        sample(spectra, (6,), numpy=by_hand, kinds="f", exempt=NARROW | HALF | {"transforms": "a window of float64 promotes"}),
        sample(lambda x, w: x.stft(5, 2, 3, w, normalized=True, pad_mode="constant", onesided=False, return_complex=True), (2, 7), (3,),
               exempt=NARROW),
        sample(lambda x, w: cg.stft(x, 4, 1, 2, w, center=False, align_to_window=True, onesided=False, return_complex=True), (6,), (2,),
               exempt=NARROW),
    ],
    "istft": [
        sample(lambda x: signal(x, onesided=True), (3, 4), exempt=WIDER),
        sample(lambda x, w: (x + 0j).istft(4, 2, 3, w + 3, normalized=True, onesided=False, return_complex=True), (2, 4, 3), (3,),
               exempt=WIDER),
        sample(lambda x: signal(x, onesided=True, center=False, length=7), (3, 3), exempt=WIDER),
    ],
}
