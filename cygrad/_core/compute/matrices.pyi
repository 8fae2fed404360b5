from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad.tensor import Tensor

class MatrixLoop:
    signature: str

    def __init__(self, signature: str, ufunc: np.ufunc | None = None, otherwise: Callable[..., Any] | None = None) -> None: ...
    def __call__(self, *tensors: Tensor) -> Any: ...

def our_loop(name: str) -> MatrixLoop: ...
def first_failure(results: Tensor, dims: int = 0) -> int | None: ...
