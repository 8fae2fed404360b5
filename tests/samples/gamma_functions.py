"""Samples of the incomplete gamma functions, of zeta and of Euler's functions."""

import cygrad as cg
from cygrad.operators.gamma_functions import _igamma_slope
from samples.sample import sample

REAL = {"complex numbers": "it is a function of real numbers"}
ORDERS = [0.5, 2.0, 9.0]


def of_positive(name, *others):
    """Return samples of a special function of positive numbers; `others` are its operands in front, without derivatives."""
    def call(x):
        return getattr(cg.special, name)(*[cg.tensor(numbers, dtype=x.dtype) for numbers in others], x * x + 0.5)

    return [sample(call, (2, 3), exempt=REAL)]


SAMPLES = {
    "igamma": [sample(lambda x: cg.igamma(cg.tensor(ORDERS, dtype=x.dtype), x * x + 0.5), (2, 3), exempt=REAL)],
    "igammac": [sample(lambda x: cg.igammac(cg.tensor(ORDERS, dtype=x.dtype), x * x + 0.5), (2, 3), exempt=REAL)],
    "igamma_slope": [sample(lambda x: _igamma_slope(cg.tensor([0.5, 1.0, 9.0], dtype=x.dtype), x * x + 0.5), (2, 3), exempt=REAL)],
    "special_zeta": [*of_positive("zeta", [2.0, 3.5, 4.0]), sample(lambda x: cg.special.zeta(3, x * x + 0.5), (2,), exempt=REAL)],
    "special_gamma": of_positive("gamma"),
    "special_rgamma": [sample(lambda x: cg.special.rgamma(x), (2, 3), exempt=REAL)],
    "special_gammasgn": of_positive("gammasgn"),
    "special_beta": [sample(lambda a, b: cg.special.beta(a * a + 0.5, b * b + 0.5), (2, 3), (3,), exempt=REAL),
                     sample(lambda a: cg.special.beta(a * a + 0.5, 2), (2,), exempt=REAL)],
    "special_betaln": [sample(lambda a, b: cg.special.betaln(a * a + 0.5, b * b + 0.5), (2, 3), (3,), exempt=REAL)],
    "special_betainc": [sample(lambda x: cg.special.betainc(2, cg.tensor([0.5, 1.0, 3.0], dtype=x.dtype), x.sigmoid()), (2, 3),
                               exempt=REAL)],
    "special_erfcinv": [sample(lambda x: cg.special.erfcinv(2 * x.sigmoid()), (2, 3), exempt=REAL)],
}
