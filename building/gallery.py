"""The gallery of the site: the page of the examples with a card, a script and a notebook for each.

The page stays the source: its table names the examples, its sections quote their output. A notebook has a cell for each definition of the
script, and shows the output and the picture of the page.
"""

import ast
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| `examples/(\w+)\.py` \| (.*?) \| (.*?) \|\n", re.MULTILINE)
TABLE = re.compile(r"^\| example \|.*\n\|---.*\n(?:\| .*\n)+", re.MULTILINE)


class Example(NamedTuple):
    """A row of the page's table, with the output and the time that its section quotes."""

    name: str
    subject: str
    check: str
    output: str

    @property
    def script(self) -> Path:
        return ROOT / "examples" / f"{self.name}.py"

    @property
    def picture(self) -> Path:
        return ROOT / "docs" / f"{self.name}.svg"

    @property
    def time(self) -> str:
        return next(iter(re.findall(r"^time: (.*?)(?:;|$)", self.output, re.MULTILINE)), "")


def examples(page: str) -> list[Example]:
    """Return the examples of the page's table."""
    sections: dict[str, str] = {}
    for part in page.split("\n## ")[1:]:
        picture = re.search(r"\]\((\w+)\.svg\)", part)
        outputs = [text for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL) if not language]
        if picture and outputs:
            sections[picture[1]] = outputs[-1]
    return [Example(name, subject, check, sections.get(name, "")) for name, subject, check in ROW.findall(page)]


def cells(source: str) -> Iterator[str]:
    """Yield the parts of a script below its docstring: the imports, then each definition with the comments above it."""
    lines, tree = source.splitlines(), ast.parse(source)
    first, *others = tree.body
    begin, in_imports = first.end_lineno or 0, True
    for node in [*others, None]:
        imports = isinstance(node, (ast.Import, ast.ImportFrom))
        definition = isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.If))
        if node is not None and not definition and imports == in_imports:
            continue
        if node is None:
            end = len(lines)
        else:
            end = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))]) - 1
            while end > begin and lines[end - 1].startswith("#"):
                end -= 1
        in_imports = imports
        if text := "\n".join(lines[begin:end]).strip("\n"):
            yield text
        begin = end


def notebook(example: Example) -> dict[str, Any]:
    """Return a notebook of an example; its last cell has the output and the picture of the page."""
    source = example.script.read_text()
    text = ast.get_docstring(ast.parse(source)) or ""
    setup = "# The script's arguments are its defaults here.\nimport sys\n\nsys.argv = sys.argv[:1]"
    parts = [setup, *cells(source)]
    results: list[dict[str, Any]] = []
    if example.output:
        results.append({"output_type": "stream", "name": "stdout", "text": example.output})
    if example.picture.exists():
        results.append({"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": example.picture.read_text()}})
    code: list[dict[str, Any]] = [{"cell_type": "code", "id": f"part-{number}", "metadata": {}, "execution_count": None, "source": part,
             "outputs": results if number == len(parts) else []} for number, part in enumerate(parts, 1)]
    return {"cells": [{"cell_type": "markdown", "id": "about", "metadata": {}, "source": f"# {example.name}\n\n{text}"}, *code],
            "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
            "nbformat": 4, "nbformat_minor": 5}


def card(example: Example) -> str:
    """Return the card of an example: picture, subject, check, size, time, downloads."""
    subject = re.sub(r"^\[(.*?)\]\((.*?)\)", r"**[\1](\2)**", example.subject)
    lines = len(example.script.read_text().splitlines())
    picture = f":img-top: {example.picture.name}\n:img-alt: Picture of {example.name}\n" if example.picture.exists() else ""
    time = f", {example.time}" if example.time else ""
    return (f":::{{grid-item-card}}\n{picture}\n{subject}\n\n{lines} lines{time}. Checked against {example.check}.\n\n"
            f"{{download}}`script <downloads/{example.name}.py>` · {{download}}`notebook <downloads/{example.name}.ipynb>`\n:::\n")


def gallery(page: str, downloads: Path) -> str:
    """Return the page of the examples with cards in place of its table; scripts and notebooks are written to `downloads`."""
    downloads.mkdir(parents=True, exist_ok=True)
    shown = examples(page)
    for example in shown:
        shutil.copy(example.script, downloads)
        (downloads / f"{example.name}.ipynb").write_text(json.dumps(notebook(example), indent=1))
    helpers = [path for path in sorted((ROOT / "examples").glob("*.py")) if "def main(" not in path.read_text()]
    for path in helpers:
        shutil.copy(path, downloads)
    beside = ", ".join(f"{{download}}`{path.name} <downloads/{path.name}>`" for path in helpers)
    grid = "::::{grid} 1 2 2 3\n:gutter: 3\n\n" + "\n".join(map(card, shown)) + f"::::\n\nBeside a script or notebook lie {beside}.\n"
    return TABLE.sub(lambda _: grid, page, count=1)
