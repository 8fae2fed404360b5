from typing import Any, Self

from cygrad._core.memory.looks import Looks
from cygrad.tensor import Tensor

def fixed(tensor: Tensor) -> Tensor: ...

class Call: ...

class Notes:
    count: int
    slot_count: int
    failed: bool
    looks: Looks

    def __len__(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def changed_gradients(self) -> list[tuple[Any, Any]]: ...

