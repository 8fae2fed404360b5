"""`python -m building.notebooks`: the examples as notebooks that ran, in `build/notebooks`, beside their scripts and pictures.

A notebook has a cell for each definition of the script, and ends with the picture. A script that fails, or whose check fails, ends the
command: no notebook is without its output.
"""

import ast
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "build" / "notebooks"
SECONDS = 300           # that a cell may take


def scripts() -> list[Path]:
    """Return the examples; the other files of their folder are imported by them."""
    return [path for path in sorted((ROOT / "examples").glob("*.py")) if "def main(" in path.read_text()]


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


def notebook(script: Path) -> dict[str, Any]:
    """Return an example as a notebook without output: its arguments, its parts, and the picture that it writes."""
    source, picture = script.read_text(), f"{script.stem}.svg"
    arguments = f'# The arguments of the script.\nimport sys\n\nsys.argv = ["{script.name}", "--output", "{picture}"]'
    shown = f'from IPython.display import SVG\n\nSVG("{picture}")'
    parts = enumerate([arguments, *cells(source), shown], 1)
    code: list[dict[str, Any]] = [{"cell_type": "code", "id": f"part-{number}", "source": part, "outputs": [], "execution_count": None,
                                   "metadata": {}} for number, part in parts]
    about = f"# {script.stem}\n\n{ast.get_docstring(ast.parse(source))}"
    return {"cells": [{"cell_type": "markdown", "id": "about", "metadata": {}, "source": about}, *code],
            "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
            "nbformat": 4, "nbformat_minor": 5}


def run(script: Path, folder: Path) -> float:
    """Write the notebook of an example that ran in a folder, and return its seconds; CellExecutionError where a cell fails."""
    import nbclient
    import nbformat
    from traitlets.config import Config

    document = nbformat.from_dict(notebook(script))
    with tempfile.TemporaryDirectory() as sockets:      # files, not ports of the machine
        kernel = Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"})
        client = nbclient.NotebookClient(document, timeout=SECONDS, coalesce_streams=True, record_timing=False,
                                         resources={"metadata": {"path": str(folder)}}, config=kernel)
        begin = time.perf_counter()
        client.execute()
        document.metadata["seconds"] = time.perf_counter() - begin
    nbformat.write(document, folder / f"{script.stem}.ipynb")
    return float(document.metadata["seconds"])


def main() -> int:
    part = NOTEBOOKS.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(ROOT / "examples", part, ignore=shutil.ignore_patterns("__pycache__"))
    for script in scripts():
        print(f"{script.stem}.ipynb: {run(script, part):.1f} s", flush=True)
    shutil.rmtree(part / "__pycache__", ignore_errors=True)
    shutil.rmtree(NOTEBOOKS, ignore_errors=True)
    part.rename(NOTEBOOKS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
