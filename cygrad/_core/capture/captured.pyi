from typing import Any

from cygrad._core.graph.notes import Notes

def exchange_arenas(byte: int, reuses: bool) -> tuple[int, bool]: ...

class Uncapturable(Exception): ...
class Part: ...
class Room: ...

class Captured:
    name: str
    reads_forward: tuple[int, ...]
    saved_by_functions: frozenset[int]
    reads_back: tuple[int, ...]
    changes: list[tuple[int, int]]
    changes_back: list[tuple[int, int]]
    written: tuple[int, ...]
    written_back: tuple[int, ...]
    recorded: tuple[int, ...]
    released: tuple[int, ...]
    fails_after_call: bool
    guards: list[Any]
    runs_backward: bool
    reached: tuple[tuple[int, bool], ...]
    argument_sets: int
    frees: frozenset[int] | None
    others: list[Captured | None]
    read_often: tuple[tuple[int, int], ...]
    nested: tuple[int, ...]

    def __init__(
        self, notes: Notes, inputs: list[Any], results: list[Any], split: int, gradients: list[Any], back: list[Any], name: str,
        before: Captured | None = None
    ) -> None: ...
    def __len__(self) -> int: ...
    def described(self) -> tuple[list[str], list[tuple[int, int]], int, list[tuple[Any, str]], int, int, int]: ...
