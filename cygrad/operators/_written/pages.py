"""The pages of the API, which `python -m cygrad.operators` writes to `docs/api`: one for each family, and one for the rows of formulas."""

import ast
import copy
import re
import textwrap
from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Any

from cygrad.operators import public_name
from cygrad.operators._written import catalogue, stubs
from cygrad.ops import ELEMENTWISE, REDUCTIONS, Elementwise

FOLDER = stubs.PACKAGE.parent / "docs" / "api"
ABOUT = """\
These pages are written by `python -m cygrad.operators`, from the declarations. Functions of `dim` take `axis`, too, and with `keepdim`
`keepdims`. Factories, random numbers, autograd and the rest explain themselves: `help(cygrad.zeros)`."""
TABLES = ("elementwise.py", "special.py")
FORMULAS = """\
Elementwise operators, the rows of `cygrad/ops/elementwise.py` and `special.py`. `x`, or `a` and `b`, are the operands, `y` is the result,
and `dx`, `da`, `db` are the factors of the gradient in a backward. Each is a function with `out=`, a method, and, with `_` behind its
name, a method in place. Where a namespace (`special`, `nn.functional`) is named beside it, it has a function of the same name."""
FORMS = {(True, True): "", (True, False): " Not in place.", (False, True): " Method in place only.", (False, False): " No method."}
KINDS = {"b": "bool", "i": "integer", "u": "unsigned", "f": "float", "c": "complex"}


# ----- Markdown -----
def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a table under the words of its head; `|` in a cell does not end it."""
    titles = head.split(", ")
    cells = [titles, ["---"] * len(titles), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _code(words: Iterable[str], between: str = ", ") -> str:
    return between.join(f"`{word}`" for word in words)


def _described(docstring: str) -> str:
    """Return a docstring with its examples as blocks of code."""
    return "\n\n".join(_block("pycon", part) if part.startswith(">>>") else part for part in docstring.split("\n\n"))


def _summary(thing: Any, title: str) -> tuple[str, str]:
    """Return the row of an operator: a link to it, and as much of its first sentence as leaves the row short."""
    link = f"[`{title}`](#{title.lower().replace('.', '')})"
    sentence = (getdoc(thing) or "").split("\n\n")[0]
    return link, textwrap.shorten(sentence, min(100, 150 - len(link) - sentence.count("|")), placeholder=" ...")


# ----- Declared operators -----
def _families() -> dict[str, dict[str, list[catalogue.Entry]]]:
    """Return {module: {operator: its public names}}; the names of an operator are its own, its aliases and its in-place forms."""
    results: dict[str, dict[str, list[catalogue.Entry]]] = {}
    for entry in catalogue.entries():
        if not entry.name.startswith("_") and (entry.function or entry.method or entry.property):     # not gradients' own
            declared = getattr(import_module(entry.module), entry.name.removesuffix(entry.form)).name
            results.setdefault(entry.module, {}).setdefault(declared, []).append(entry)
    return results


def _names(entries: list[catalogue.Entry]) -> Iterator[str]:
    for entry in entries:
        yield from [f"cygrad.{public_name(entry.name)}"] * entry.function
        yield from [f"Tensor.{entry.name}"] * (entry.method or entry.property)


def _signatures(entries: list[catalogue.Entry]) -> str:
    """Return the signatures of an operator, the method's too where it differs."""
    results = {}
    for entry in entries:
        for signature in () if entry.form else entry.signatures:
            bare = copy.copy(signature)
            bare.name = entry.name if bare.name.startswith("_") else public_name(bare.name).rpartition(".")[2]
            bare.decorator_list, bare.body = [], [ast.Expr(ast.Constant(...))]
            results[signature] = stubs.formatted(ast.unparse(bare), "").removesuffix(": ...\n")
    return "\n".join(results.values())


def _reductions(operators: dict[str, list[catalogue.Entry]]) -> Iterator[str]:
    """Yield the rows of the table that a family has, and the signature that they share."""
    rows = [REDUCTIONS[name] for name in operators if name in REDUCTIONS]
    if rows:
        yield _table("reduction, start, step, result, dtypes, meaning", (
            (f"`{row.name}`", f"`{row.start}`", f"`{row.step}`", f"`{row.y}`", _kinds(row.kinds), row.doc) for row in rows))
        yield _block("python", _signatures(operators[rows[0].name]))


def _family(module: str, operators: dict[str, list[catalogue.Entry]]) -> str:
    """Return the page of a family: a table of its operators, then each with its signature, names and documentation."""
    family = import_module(module)
    single = {name: entries for name, entries in operators.items() if name not in REDUCTIONS}
    titles = {name: public_name(name) for name in single}
    summaries = (_summary(getattr(family, name), title) for name, title in titles.items())
    parts = [f"# {_title(module)}", getdoc(family) or "", *_reductions(operators), _table("operator, result", summaries)]
    for name, entries in single.items():
        text = getdoc(getattr(family, name)) or ""
        parts += [f"## {titles[name]}", _block("python", _signatures(entries)), _code(_names(entries)), _described(text)]
    return "\n\n".join(parts) + "\n"


# ----- Rows -----
def _kinds(kinds: str) -> str:
    return ", ".join(KINDS[kind] for kind in kinds)


def _sections() -> Iterator[tuple[str, list[Elementwise]]]:
    """Yield the headings of the table, and the rows below each."""
    for part in (part for table in TABLES for part in (stubs.PACKAGE / "ops" / table).read_text().split("\n# ----- ")[1:]):
        yield part.partition(" -----")[0], [ELEMENTWISE[name] for name in re.findall(r'^elementwise\("(\w+)"', part, re.MULTILINE)]


def _formulas_of(row: Elementwise) -> Iterator[tuple[str, str, str]]:
    """Yield a line for the result, each abbreviation and each partial."""
    yield f"`{row.name}`", "", f"`{row.y}`"
    yield from (("", f"`{name}`", f"`{text}`") for name, text in row.let.items())
    yield from (("", f"`d{operand}`", f"`{text}`") for operand, text in row.partials.items())


def _usage(row: Elementwise) -> Iterator[str]:
    arguments = ", ".join(re.sub(r": \w+( = )?", lambda match: "=" if match[1] else "", word) for word in stubs.parameters_of(row))
    others = [public_name(alias).removesuffix(f".{row.name}") for alias in row.aliases]      # of the same name in a namespace: that alone
    yield _code([f"{row.name}({arguments})", *others])
    yield _kinds(row.kinds)
    yield row.doc + FORMS[row.method, row.in_place]


def _formulas() -> str:
    parts = ["# Formulas", FORMULAS]
    for title, rows in _sections():
        parts += [f"## {title}", _table("operator, dtypes, meaning", map(_usage, rows)),
                  _table("operator, name, formula", (line for row in rows for line in _formulas_of(row)))]
    return "\n\n".join(parts) + "\n"


# ----- Pages -----
def _title(module: str) -> str:
    return _stem(module).replace("_", " ").capitalize()


def _stem(module: str) -> str:
    return module.rpartition(".")[2]


def pages() -> dict[Path, str]:
    """Return the text of each page by its place."""
    families = _families()
    results = {FOLDER / f"{_stem(module)}.md": _family(module, operators) for module, operators in families.items()}
    links = [(f"[{_title(module)}]({_stem(module)}.md)", _code(map(public_name, operators), " ")) for module, operators in families.items()]
    rows = _code((row.name for _, section in _sections() for row in section), " ")
    index = "\n".join(textwrap.fill(f"- {link}: {names}", 140, subsequent_indent="  ", break_on_hyphens=False)
                      for link, names in [("[Formulas](formulas.md)", rows), *links])
    results[FOLDER / "formulas.md"] = _formulas()
    results[FOLDER / "README.md"] = f"# Operators\n\n{index}\n\n{ABOUT}\n"
    return results


def write() -> None:
    """Write all pages, and remove pages of families that are gone."""
    FOLDER.mkdir(exist_ok=True)
    written = pages()
    for path in set(FOLDER.glob("*.md")) - written.keys():
        path.unlink()
    for path, text in written.items():
        path.write_text(text)
