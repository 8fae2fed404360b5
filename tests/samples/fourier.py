"""Discrete Fourier transforms."""

import numpy as np

import cygrad as cg
from samples.sample import sample

REAL = {"complex numbers": "the input is real"}
NARROW = {"narrow floats": "refused, as in torch: there are no complex numbers of 16 bits"}
fft = cg.fft


def transform(name, *shapes, exempt=(), **arguments):
    """Return samples of a transform with NumPy's name and parameters."""
    words = {"dim": "axis" if "n" in arguments or isinstance(arguments.get("dim"), int) else "axes"}
    numpy = getattr(np.fft, name, None)
    theirs = {words.get(word, word): value for word, value in arguments.items()}
    return [sample(lambda x: getattr(fft, name)(x, **arguments), shape, kinds="f", exempt=NARROW | dict(exempt),
                   numpy=numpy and (lambda a: numpy(a, **theirs))) for shape in shapes]


def several(name, last, **others):
    """Return samples of a transform along several dims, which NumPy has unless it is of Hermitian numbers."""
    return [*transform(name, (2, 3), **others), *transform(name, (3, 2, 3), dim=(2, 0), norm="ortho", **others),
            *transform(name, (3, 2, 3), s=(2, last), dim=(-1, 0), norm="forward", **others)]


SAMPLES = {
    "fft_c2c": [*transform("fft", (5,), (2, 4)), *transform("fft", (4, 3), n=5, dim=0, norm="ortho"), *transform("ifft", (3,), (2, 1)),
                *transform("ifft", (2, 6), n=4, norm="forward"), *several("fftn", 4), *several("ifftn", 4),
                *transform("fft2", (2, 3, 2)), *transform("ifft2", (2, 3, 2), norm="ortho")],
    "fft_r2c": [*transform("rfft", (5,), (2, 4), (1,), (2,), exempt=REAL),
                *transform("rfft", (4, 3), n=6, dim=0, norm="ortho", exempt=REAL),
                *transform("ihfft", (4,), (2, 5), exempt=REAL), *several("rfftn", 5, exempt=REAL), *several("ihfftn", 4, exempt=REAL),
                *transform("rfft2", (2, 3, 2), exempt=REAL), *transform("ihfft2", (2, 3, 2), norm="forward", exempt=REAL)],
    "fft_c2r": [*transform("irfft", (3,), (2, 4)), *transform("irfft", (4, 2), n=5, dim=0, norm="ortho"), *transform("irfft", (1,), n=1),
                *transform("hfft", (4,), (2, 5)), *transform("hfft", (2, 5), n=7, norm="forward"), *several("irfftn", 5),
                *several("hfftn", 4), *transform("irfft2", (2, 3, 3)), *transform("hfft2", (2, 3, 3), norm="ortho")],
    "fft_fftshift": [sample(lambda x: fft.fftshift(x, 0), (3, 4), numpy=lambda a: np.fft.fftshift(a, 0))],
    "fft_ifftshift": [sample(lambda x: fft.ifftshift(x), (3, 4), numpy=np.fft.ifftshift)],
}
