"""Types of the compiled module."""

from typing import final

import numpy as np

from cygrad.tensor import Tensor

@final
class Export: ...

def from_array(array: np.ndarray) -> Tensor: ...
def to_array(tensor: Tensor) -> np.ndarray: ...
