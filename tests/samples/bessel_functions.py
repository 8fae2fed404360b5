"""Samples of Bessel functions and of Airy's."""

import cygrad as cg
from cygrad.operators.bessel_functions import _airy_ai_slope, _spherical_bessel
from samples.gamma_functions import REAL, of_positive
from samples.sample import sample

SAMPLES = {
    **{f"special_{name}": of_positive(name) for name in (
        "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
        "scaled_modified_bessel_k1")},
    **{f"special_{name}": of_positive(name, [0.5, 1.0, 2.0]) for name in ("jv", "yv", "iv", "ive", "kv")},
    "special_airy_ai": [sample(lambda x: cg.special.airy_ai(x), (2, 3), exempt=REAL)],
    "airy_ai_slope": [sample(_airy_ai_slope, (2, 3), exempt=REAL)],
    "special_spherical_bessel_j0": [sample(lambda x: cg.special.spherical_bessel_j0(x), (2, 3), exempt=REAL)],
    "spherical_bessel": [sample(lambda x, order=order: _spherical_bessel(x, order), (2, 3), exempt=REAL) for order in (0, 2)],
}
