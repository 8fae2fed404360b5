"""How the loops of rows are built and shared among threads: nothing here changes a value, a dtype or a gradient.

A row that is not listed has the defaults of `Tuning`. The names are the rows' names of `elementwise` and `reduction`.
"""

from types import SimpleNamespace
from typing import Any


class Tuning(SimpleNamespace):
    """The fields of a row that tune.

    ``cost`` is the class of work for the choice of threads: 0 arithmetic, 1 transcendental functions, 2 powers and the like.
    ``flops`` are the floating-point operations per element that a profile counts.
    ``rare`` are kinds of dtypes whose loops are compiled for the lowest instruction set only, which keeps the library small.
    ``narrow``: 16-bit floats have loops of their own, which convert in registers; other rows convert such operands block by block.
    ``stored``: loops read 16-bit floats as they are stored, since the result depends on the spacing of the numbers of that dtype.
    ``apart``: its loops lie in units of their own, which alone read the headers of special functions.
    ``shifted`` is an operand: further loops subtract a number from it first, as formulas of tiles do with a row's largest element or mean.
    """

    cost: int = 0
    flops: int = 0
    rare: str = ""
    narrow: bool = False
    stored: bool = False
    apart: bool = False
    shifted: str | None = None


TUNING: dict[str, dict[str, Any]] = {
    # ----- Elementwise -----
    "add": {"narrow": True, "flops": 1},
    "add_scaled": {"rare": "bi"},
    "sub": {"narrow": True},
    "sub_scaled": {"rare": "i"},
    "mul": {"narrow": True, "shifted": "b", "flops": 1},
    "floor_divide": {"rare": "i"},
    "trunc_divide": {"rare": "i"},
    "remainder": {"rare": "i"},
    "fmod": {"rare": "i"},
    "gcd": {"cost": 2, "rare": "i"},
    "lcm": {"cost": 2, "rare": "i"},
    "pow": {"cost": 2, "rare": "bi"},
    "sign": {"rare": "bi"},
    "sgn": {"rare": "bi"},
    "angle": {"cost": 1, "rare": "c"},
    "conj_physical": {"rare": "bi"},
    "square": {"rare": "i", "shifted": "x"},
    "rsqrt": {"rare": "c"},
    "hypot": {"cost": 1},
    "lerp": {"rare": "c"},
    "addcmul": {"rare": "i"},
    "addcdiv": {"rare": "c"},
    "floor": {"rare": "i"},
    "ceil": {"rare": "i"},
    "trunc": {"rare": "i"},
    "round": {"rare": "i"},
    "exp": {"cost": 1, "narrow": True, "shifted": "x"},
    "expm1": {"cost": 1, "rare": "c"},
    "exp2": {"cost": 1, "rare": "c"},
    "log": {"cost": 1},
    "log1p": {"cost": 1, "rare": "c"},
    "log2": {"cost": 1, "rare": "c"},
    "log10": {"cost": 1, "rare": "c"},
    "logaddexp": {"cost": 2, "rare": "c"},
    "logaddexp2": {"cost": 2},
    "xlogy": {"cost": 1},
    "logit": {"cost": 1},
    "sin": {"cost": 1},
    "cos": {"cost": 1},
    "tan": {"cost": 1},
    "asin": {"cost": 1, "rare": "c"},
    "acos": {"cost": 1, "rare": "c"},
    "atan": {"cost": 1, "rare": "c"},
    "atan2": {"cost": 1},
    "sinh": {"cost": 1},
    "cosh": {"cost": 1},
    "asinh": {"cost": 1, "rare": "c"},
    "acosh": {"cost": 1, "rare": "c"},
    "atanh": {"cost": 1, "rare": "c"},
    "sinc": {"cost": 2, "rare": "c"},
    "tanh": {"cost": 1},
    "erf": {"cost": 1},
    "erfc": {"cost": 1},
    "ndtr": {"cost": 1},
    "gaussian": {"cost": 1},
    "sigmoid": {"cost": 1},
    "softplus": {"cost": 2},
    "gelu": {"cost": 2},
    "gelu_tanh": {"cost": 2},
    "silu": {"cost": 1, "rare": "c"},
    "logsigmoid": {"cost": 1},
    "elu": {"cost": 1},
    "selu": {"cost": 1},
    "celu": {"cost": 1},
    "hardtanh": {"rare": "i"},
    "relu6": {"rare": "i"},
    "softsign": {"rare": "c"},
    "mish": {"cost": 2},
    "tanhshrink": {"cost": 1, "rare": "c"},
    "threshold": {"rare": "i"},
    "fmax": {"rare": "bi"},
    "fmin": {"rare": "bi"},
    "heaviside": {"rare": "bi"},
    "nextafter": {"stored": True},
    "nan_to_num": {"rare": "bi"},
    "logical_xor": {"rare": "bic"},
    "bitwise_left_shift": {"rare": "i"},
    "bitwise_right_shift": {"rare": "i"},
    "isnan": {"rare": "bi"},
    "isinf": {"rare": "bi"},
    "isfinite": {"rare": "bi"},
    # ----- Special functions -----
    "lgamma": {"cost": 2, "apart": True},
    "digamma": {"cost": 2, "apart": True},
    "trigamma": {"cost": 2, "apart": True},
    "erfinv": {"cost": 2, "apart": True},
    "ndtri": {"cost": 2, "apart": True},
    "erfcx": {"cost": 2, "apart": True},
    "log_ndtr": {"cost": 2, "apart": True},
    "xlog1py": {"cost": 2, "apart": True},
    "i0": {"cost": 2, "apart": True},
    "i0e": {"cost": 2, "apart": True},
    "i1": {"cost": 2, "apart": True},
    "i1e": {"cost": 2, "apart": True},
    "entr": {"cost": 1, "apart": True},
    "higher_polygamma": {"cost": 2, "apart": True},
    # ----- Reductions -----
    "nansum": {"rare": "bi"},
    "prod": {"rare": "bic"},
    "any": {"rare": "ic"},
    "all": {"rare": "ic"},
}
