from cygrad.tensor import Tensor

class PartCopies:
    def has(self, tensor: Tensor) -> bool: ...
