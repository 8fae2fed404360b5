"""Powers of two, and powers in double precision."""

import numpy as np

import cygrad as cg
from samples.sample import ITS_OWN_DTYPE, refused_otherwise, sample

EXPONENTS = np.array([3, -2, 0])

SAMPLES = {
    "frexp": [sample(lambda x: (x * cg.tensor(1.1, dtype=x.dtype)).frexp(), (2, 3), kinds="f",
                     numpy=lambda a: np.frexp(a * a.dtype.type(1.1)))],
    "ldexp": refused_otherwise([
        sample(lambda x: x.ldexp(cg.tensor(EXPONENTS)), (2, 3), numpy=lambda a: np.ldexp(a, EXPONENTS), kinds="f"),
        sample(lambda x, e: cg.ldexp(x, e), (2, 3), (3,), numpy=lambda a, e: a * np.exp2(e), kinds="f"),
        sample(lambda x: (x * 1).ldexp_(cg.tensor(EXPONENTS)), (2, 3)),
    ], "the error in place has the names of dtypes"),
    "float_power": [
        sample(lambda x: x.float_power(3), (2, 3), numpy=lambda a: a.astype(float) ** 3, exempt=ITS_OWN_DTYPE),
        sample(lambda x, e: cg.float_power(x.abs() + 1, e), (2, 3), (3,), numpy=lambda a, e: np.float_power(abs(a) + 1, e), kinds="f",
               exempt=ITS_OWN_DTYPE),
        sample(lambda e: cg.float_power(2, e), (3,), numpy=lambda e: np.float_power(2, e), exempt=ITS_OWN_DTYPE),
    ],
    "float_power_": refused_otherwise([
        sample(lambda x: (x * 1 if x.is_complex() else x * cg.ones(3, dtype=cg.float64)).float_power_(2), (3,), exempt=ITS_OWN_DTYPE),
    ], "the error has the names of dtypes"),
}
