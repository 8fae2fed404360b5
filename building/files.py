"""Files that are made of others, and made again only when the result would be another.

Beside a made file lies its record: the recipe, a digest of each file that was read, as the compiler lists them, and one of the
result. A file is made under another name and takes its own when it is whole. So an interrupted build goes on where it stopped,
other flags are a reason to make a file again, and a touched file is none.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path


@cache
def _digest(path: Path, modified: int, size: int) -> str:
    # Without the numbers of `#line`: a row that only moved in its table keeps its loops, and the line it had in the debugger.
    return blake2b(re.sub(rb"(?m)^#line \d+", b"#line", path.read_bytes()), digest_size=16).hexdigest()


def digest(path: Path) -> str | None:
    """Return a digest of the text of a file, or None where there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return _digest(path, status.st_mtime_ns, status.st_size)


def listed_dependencies(path: Path) -> list[Path]:
    """Return the files that a compiler lists, as a rule of Make, in a file that is not needed any more."""
    names = path.read_text().partition(": ")[2].replace("\\\n", " ")
    path.unlink()
    return [Path(name.replace("\\ ", " ")) for name in re.split(r"(?<!\\)\s+", names.strip())]


class MadeFile:
    """A file that `make` makes under the name that it is given, returning the files that it read."""

    def __init__(self, target: Path, recipe: Iterable[str], make: Callable[[Path], Iterable[Path]]) -> None:
        self.target, self.recipe, self.make = target, list(recipe), make
        self.record = target.with_name(f"{target.name}.json")

    def is_current(self) -> bool:
        try:
            record = json.loads(self.record.read_text())
        except (FileNotFoundError, ValueError):
            return False
        return (record["recipe"] == self.recipe and record["result"] == digest(self.target)
                and all(digest(Path(name)) == known for name, known in record["read"].items()))

    def update(self, force: bool = False) -> None:
        """Make the file if it is not current."""
        if not force and self.is_current():
            return
        self.target.parent.mkdir(parents=True, exist_ok=True)
        partial, started = self.target.with_name(f"partial_{self.target.name}"), time.time_ns()
        read = {str(path): digest(path) for path in self.make(partial)}
        os.replace(partial, self.target)
        if any(Path(name).stat().st_mtime_ns > started for name, known in read.items() if known):
            return      # edited meanwhile: which text was read is not known
        partial.write_text(json.dumps({"recipe": self.recipe, "result": digest(self.target), "read": read}, indent=1))
        os.replace(partial, self.record)
