"""Types of the compiled module. Every instance of TensorImpl is a Tensor, so for types the two are one."""

from cygrad.tensor import Tensor

TensorImpl = Tensor

class ManyDims: ...

def set_tensor_type(cls: type[Tensor]) -> None: ...
def tensor_class() -> type[Tensor]: ...
