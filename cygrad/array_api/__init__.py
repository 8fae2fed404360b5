"""The array API standard 2025.12, whose arrays are tensors: `x.__array_namespace__()` is this module.

Functions have the names, parameters and promotion of the standard. Tensors without dims have their full say in the dtype here, and
unsigned integers are promoted and computed with, by NumPy; operators of Python such as `x + y` follow torch. All functions are
composed of methods of tensors, so they have derivatives.

>>> import cygrad
>>> x = cygrad.tensor([1., 2.], requires_grad=True)
>>> xp = x.__array_namespace__()
>>> xp.sum(xp.pow(x, 2)).backward()
>>> x.grad
tensor([2., 4.])
>>> xp.add(cygrad.tensor([1, 2], dtype=cygrad.uint16), cygrad.tensor(1, dtype=cygrad.int8))
tensor([2, 3], dtype=cygrad.int32)
"""

from typing import Any

from cygrad._core.memory.storage import dtype_by_name as _dtype_by_name
from cygrad.array_api import fft as fft
from cygrad.array_api import linalg as linalg
from cygrad.array_api.creation import *  # noqa: F403
from cygrad.array_api.dtypes import *  # noqa: F403
from cygrad.array_api.elementwise import functions as _functions
from cygrad.array_api.information import INFORMATION as _INFORMATION
from cygrad.array_api.linalg import matmul as matmul
from cygrad.array_api.linalg import matrix_transpose as matrix_transpose
from cygrad.array_api.linalg import tensordot as tensordot
from cygrad.array_api.linalg import vecdot as vecdot
from cygrad.array_api.manipulation import *  # noqa: F403
from cygrad.array_api.searching import *  # noqa: F403
from cygrad.array_api.statistics import *  # noqa: F403

__array_api_version__ = "2025.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")       # each has all of the former ones
e, inf, nan, pi, newaxis = 2.718281828459045, float("inf"), float("nan"), 3.141592653589793, None

globals().update(_functions)
globals().update({name: _dtype_by_name[name] for name in _INFORMATION.dtypes()})


def __array_namespace_info__() -> Any:
    """Return an object whose methods say which dtypes and devices there are, and the capabilities of the library."""
    return _INFORMATION
