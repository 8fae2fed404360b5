from collections.abc import Collection

from cygrad.tensor import Tensor

def flipped(input: Tensor, dims: Collection[int]) -> Tensor: ...
