"""Types of `cygrad.linalg`.

Written by hand down to the line that says so; `python -m cygrad.operators` writes what is below it.
"""

from builtins import int as _int

import numpy as np

from cygrad.operators.matrices import LinAlgError as LinAlgError
from cygrad.tensor import Tensor

# ----- From the tables, by `python -m cygrad.operators`: nothing below is written by hand -----
def diagonal(A: Tensor, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor: ...
def matmul(input: Tensor | np.ndarray, other: Tensor | np.ndarray, *, out: Tensor | None = None) -> Tensor: ...
def cross(input: Tensor, other: Tensor, *, dim: _int = -1, out: Tensor | None = None, axis: _int = -1) -> Tensor: ...
def vecdot(x: Tensor, y: Tensor, *, dim: _int = -1, out: Tensor | None = None, axis: _int = -1) -> Tensor: ...
