"""Types of the compiled module; functions that a declaration describes have theirs there."""

from typing import Any

import numpy as np

from cygrad.tensor import Tensor

def __getattr__(name: str) -> Any: ...
def promoted_factors(a: Tensor | np.ndarray, b: Tensor | np.ndarray) -> tuple[Tensor, Tensor]: ...
