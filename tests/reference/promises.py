"""The table of promises, and the page of the documentation that is written from it: `python tests/reference/promises.py`.

Each row of promises.csv is a promise about automatic differentiation, in a sentence; the tests that show it; and, if cygrad differs
from the pages of other libraries, or does not keep it yet, how and why.
"""

import csv
import textwrap
from itertools import groupby
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parents[1] / "docs" / "promises.md"


def read_table(name):
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


PROMISES = read_table("promises.csv")

HEAD = """# Promises

The promises of cygrad about automatic differentiation, and the tests that hold them. They come from torch's and OneFlow's
documentation, in our words; where a page and torch 2.13 differ, torch 2.13 holds, and a note below the table says so.

`tests/reference/promises.csv` has the tests of each promise by its id. `python tests/reference/promises.py` writes this page from it.
"""


def page():
    lines = [HEAD]
    for subject, rows in groupby(PROMISES, lambda row: row["subject"]):
        rows = list(rows)
        lines += [f"## {subject[0].upper()}{subject[1:]}\n", "| id | promise |", "|---|---|"]
        lines += [f"| {row['id']} | {row['promise']} |" for row in rows]
        notes = [f"- {row['id']}: {row['differently']}." for row in rows if row["differently"]]
        lines += ["", *wrapped(notes), ""] if notes else [""]
    return "\n".join(lines)


def wrapped(notes):
    """Return list items in lines of 140 characters."""
    return [line for note in notes for line in textwrap.wrap(note, 140, subsequent_indent="  ", break_on_hyphens=False)]


if __name__ == "__main__":
    PAGE.write_text(page())
