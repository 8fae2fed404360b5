"""Conjugates, and the parts of complex numbers."""

import numpy as np

import cygrad as cg
from samples.sample import refused_otherwise, sample

OF_PARTS = {"complex numbers": "makes them of real numbers", "narrow floats": "there are no complex numbers of 32 bits"}

SAMPLES = {
    "conj": [sample(lambda x: x.conj(), (2,), numpy=np.conj)],
    "resolve_conj": [sample(lambda x: x.resolve_conj(), (2,), numpy=np.conj)],
    "resolve_neg": [sample(lambda x: x.resolve_neg(), (2,), numpy=np.conj)],
    "real": [sample(lambda x: cg.real(x), (2,), numpy=np.real)],
    "imag": [
        sample(lambda x: cg.imag(x.contiguous().view_as_complex()), (3, 2), numpy=lambda x: x[:, 1], kinds="f", exempt=OF_PARTS),
    ],
    "view_as_real": [
        sample(lambda x: (x.contiguous() * 1).view_as_complex().view_as_real(), (3, 2), numpy=np.positive, kinds="f", exempt=OF_PARTS),
    ],
    "view_as_complex": [
        sample(lambda x: x.contiguous().view_as_complex().abs(), (3, 2), numpy=lambda x: np.hypot(*x.T), kinds="f", exempt=OF_PARTS),
    ],
    "complex": [
        sample(lambda re, im: cg.complex(re, im).abs(), (2, 3), (3,), numpy=np.hypot, kinds="f", exempt=OF_PARTS),
    ],
    "polar": refused_otherwise([
        sample(lambda size, angle: cg.polar(size, angle).real, (2, 3), (3,), numpy=lambda x, a: x * np.cos(a), kinds="f", exempt=OF_PARTS),
    ], "torch has complex numbers of 32 bits"),
}

PLAIN = {
    "is_conj": [sample(lambda x: x.is_conj(), (2,), numpy=lambda x: np.array(False))],
    "is_neg": [sample(lambda x: x.is_neg(), (2,), numpy=lambda x: np.array(False))],
}
