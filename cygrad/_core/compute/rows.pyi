"""Types of the compiled module."""

from cygrad.ops import Elementwise

class Row:
    name: str
    node_name: str
    title: str
    row: Elementwise
    arguments: tuple[str, ...]

PUBLIC_NAMES: dict[str, str]
