"""Types of `cygrad.linalg`.

Written by hand down to the line that says so; `python -m cygrad.operators` writes what is below it.
"""

from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from collections.abc import Sequence

import numpy as np

from cygrad.operators.matrices import LinAlgError as LinAlgError
from cygrad.tensor import Tensor
from cygrad.typing import Dims, DTypeLike, Number

# ----- From the tables, by `python -m cygrad.operators`: nothing below is written by hand -----
def diagonal(A: Tensor, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor: ...
def cholesky(A: Tensor, *, upper: _bool = False, out: Tensor | None = None) -> Tensor: ...
def matmul(input: Tensor | np.ndarray, other: Tensor | np.ndarray, *, out: Tensor | None = None) -> Tensor: ...
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: _bool, left: _bool = True, unitriangular: _bool = False, out: Tensor | None = None,
) -> Tensor: ...
def cross(input: Tensor, other: Tensor, *, dim: _int = -1, out: Tensor | None = None, axis: _int = -1) -> Tensor: ...
def vecdot(x: Tensor, y: Tensor, *, dim: _int = -1, out: Tensor | None = None, axis: _int = -1) -> Tensor: ...
