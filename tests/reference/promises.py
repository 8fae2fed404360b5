"""The table of promises, and the page of the documentation that is written from it: `python tests/reference/promises.py`.

Each row of promises.csv is a promise about automatic differentiation, in a sentence; the tests that show it; and, if cygrad differs
from the pages of other libraries, or does not keep it yet, how and why.
"""

import csv
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
documentation, in our words; where a page and torch 2.13 differ, torch 2.13 holds, and the row says so.

Made from `tests/reference/promises.csv` by `python tests/reference/promises.py`.
"""


def link(identifier):
    path, _, name = identifier.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../{path})"


def page():
    lines = [HEAD]
    for subject, rows in groupby(PROMISES, lambda row: row["subject"]):
        lines += [f"## {subject[0].upper()}{subject[1:]}\n", "| Promise | Shown by |", "|---|---|"]
        for row in rows:
            differently = f" *{row['differently'][0].upper()}{row['differently'][1:]}.*" if row["differently"] else ""
            lines.append(f"| {row['promise']}{differently} | {', '.join(map(link, row['tests'].split()))} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
