"""Types of the compiled module."""

import numpy as np

def stepped(name: str, a: np.ndarray, b: np.ndarray, parameter: float = 0) -> np.ndarray: ...
