"""The gallery of the site: the page of the examples with a card in place of each row of its table.

The page stays the source of the words. Pictures, times, scripts and notebooks are those that `building/notebooks.py` leaves.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

ROW = re.compile(r"^\| `examples/(\w+)\.py` \| (.*?) \| (.*?) \|\n", re.MULTILINE)
TABLE = re.compile(r"^\| example \|.*\n\|---.*\n(?:\| .*\n)+", re.MULTILINE)


class Example(NamedTuple):
    """A row of the page's table."""

    name: str
    subject: str
    check: str


def examples(page: str) -> list[Example]:
    """Return the examples of the page's table."""
    return [Example(*row) for row in ROW.findall(page)]


def card(example: Example, downloads: Path) -> str:
    """Return the card of an example: picture, subject, check, size, time, downloads."""
    place = f"{downloads.name}/{example.name}"
    title = example.name.replace("_", " ").capitalize()
    lines = len((downloads / f"{example.name}.py").read_text().splitlines())
    seconds = json.loads((downloads / f"{example.name}.ipynb").read_text())["metadata"]["seconds"]
    return (f":::{{grid-item-card}}\n:img-top: {place}.svg\n:img-alt: Picture of {example.name}\n\n**{title}**: {example.subject}\n\n"
            f"{lines} lines, {seconds:.0f} s as a notebook. Checked against {example.check}.\n\n"
            f"{{download}}`script <{place}.py>` · {{download}}`notebook <{place}.ipynb>`\n:::\n")


def gallery(page: str, downloads: Path) -> str:
    """Return the page of the examples with cards in place of its table; `downloads` holds the notebooks that ran."""
    shown = examples(page)
    names = {example.name for example in shown}
    beside = ", ".join(f"{{download}}`{path.name} <{downloads.name}/{path.name}>`" for path in sorted(downloads.glob("*.py"))
                       if path.stem not in names)
    grid = "::::{grid} 1 2 2 3\n:gutter: 3\n\n" + "\n".join(card(example, downloads) for example in shown)
    grid += f"::::\n\nBeside a script or notebook lie {beside}.\n"
    return TABLE.sub(lambda _: grid, page, count=1)
