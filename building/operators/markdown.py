"""Markdown of the pages of the API."""

import re
import textwrap
from collections.abc import Iterable
from inspect import getdoc
from typing import Any


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a table under the words of its head; `|` in a cell does not end it."""
    titles = head.split(", ")
    cells = [titles, ["---"] * len(titles), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def block(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def code(words: Iterable[str], between: str = ", ") -> str:
    return between.join(f"`{word}`" for word in words)


def described(docstring: str) -> str:
    """Return a docstring with its examples, and other indented text, as blocks of code."""
    parts = []
    for part in docstring.split("\n\n"):
        if part.startswith(">>>"):
            parts.append(block("pycon", part))
        elif all(line.startswith("    ") for line in part.splitlines()) and part:
            parts.append(block("text", textwrap.dedent(part)))
        elif example := re.fullmatch(r"(Examples?:)\n((?:    .*\n?)+)", part):
            parts += [example[1], block("pycon", textwrap.dedent(example[2]).strip())]
        else:
            parts.append(re.sub(r"^(Args|Returns|Raises):\n((?:    .*\n?)+)", _arguments, part, flags=re.MULTILINE))
    return "\n\n".join(parts)


def _arguments(match: re.Match[str]) -> str:
    """Return a section of arguments as a list."""
    lines = textwrap.dedent(match[2]).splitlines()
    items = [f"  {line.strip()}" if line.startswith(" ") else re.sub(r"^([*\w, ]+):", r"- `\1`:", line) for line in lines]
    return f"{match[1]}:\n\n" + "\n".join(items)


def source(path: str) -> str:
    """Return a line that leads to a file of the package."""
    return f"Source: [`{path}`](../../{path})"


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub has it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def summary(thing: Any, title: str, target: str) -> tuple[str, str]:
    """Return the row of a name: a link to it, and as much of its first sentence as leaves the row short."""
    link = f"[`{title}`]({target})"
    sentence = (getdoc(thing) or "").split("\n\n")[0]
    short = textwrap.shorten(sentence, max(20, min(100, 150 - len(link) - sentence.count("|"))), placeholder=" ...")
    return link, short if short.count("`") % 2 == 0 else f"{short.rpartition('`')[0].rstrip(' ,;:(')} ..."      # not within code
