"""Types of the compiled module."""

from typing import Any, final

from cygrad.tensor import Tensor

NEWEST: tuple[int, int]
CPU_DEVICE: tuple[int, int]

@final
class Managed: ...

def export(tensor: Tensor, versioned: bool, copied: bool) -> Any: ...
def from_capsule(capsule: Any) -> tuple[Tensor, bool]: ...
