from typing import Any

from cygrad._core.levels.level import Level
from cygrad.tensor import Tensor

class Uncommon(Exception): ...

def parts_of(tensor: Tensor, levels: tuple[Level, ...]) -> tuple[Any, list[Tensor]]: ...
