"""Samples of orthogonal polynomials."""

import cygrad as cg
from cygrad.operators.polynomials import _gegenbauer, _laguerre
from samples.gamma_functions import REAL
from samples.sample import sample

DEGREES = [0, 1, 5]
NAMES = ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
         "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
         "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
         "legendre_polynomial_p")


def of_degrees(polynomial, *orders):
    return [sample(lambda x: polynomial(x, cg.tensor(DEGREES), *orders), (2, 3), exempt=REAL),
            sample(lambda x: polynomial(x, cg.tensor(3), *orders), (2,), exempt=REAL)]


SAMPLES = {
    **{f"special_{name}": of_degrees(lambda *x, name=name: getattr(cg.special, name)(*x)) for name in NAMES},
    "gegenbauer": of_degrees(_gegenbauer, 1.5),
    "laguerre": of_degrees(_laguerre, 1),
}
