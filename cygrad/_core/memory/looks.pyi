class Looks:
    count: int
    lasts: bool
    reason: str | None
    line: tuple[str, int] | None

def look(reason: str) -> None: ...
def refuse_change(reason: str) -> int: ...
