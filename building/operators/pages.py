"""The pages of the API, which `python -m building.operators` writes to `docs/api`.

There is one for each family, one for each section of the table of formulas, and the pages that `modules` writes.
"""

import ast
import copy
import functools
import re
import textwrap
from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import getdoc
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from building.operators import modules
from building.operators.facts import facts
from building.operators.latex import latex, symbol
from building.operators.markdown import block, code, described, slug, source, summary, table
from cygrad.operators import public_name
from cygrad.operators._written import catalogue, exports, stubs
from cygrad.ops import ELEMENTWISE, REDUCTIONS, Elementwise, formula

FOLDER = stubs.PACKAGE.parent / "docs" / "api"
ABOUT = "Every public name. `python -m building.operators` writes these pages, from the declarations and their docstrings."
OPERATORS = """\
By families. Names, arguments and defaults are torch's; where NumPy's name is another, or torch has none, the operator's section says so.
Functions of `dim` take `axis`, too, and with `keepdim` `keepdims`. Lists of dtypes are measured: all tensors of a call have the dtype,
masks and indices excepted."""
TABLES = ("cygrad/ops/elementwise.py", "cygrad/ops/special.py")
FORMULAS = """\
Elementwise operators, the rows of `cygrad/ops/elementwise.py` and `special.py`. `x`, or `a` and `b`, are the operands, `y` is the result.
Each operator is a function with `out=`, a method, and, with `_` behind its name, a method in place. The derivatives are factors of the
gradient in a backward; their names in the formula say which tensors a graph keeps."""
NOTATION = """\
$\\sigma$ is the logistic function, $\\Phi$ the normal distribution, $\\psi$ the digamma function and $\\psi^{(n)}$ its derivatives, $I_n$ a
modified Bessel function."""
FORMS = {(True, True): "", (True, False): " Not in place.", (False, True): " Method in place only.", (False, False): " No method."}
KINDS = {"b": "bool", "i": "integer", "u": "unsigned", "f": "float", "c": "complex"}


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


def _reductions(family: Any, operators: dict[str, list[catalogue.Entry]]) -> Iterator[str]:
    """Yield the rows of the table that a family has, the signature that they share, and a section for each."""
    rows = [REDUCTIONS[name] for name in operators if name in REDUCTIONS]
    if rows:
        yield table("reduction, start, step, result, dtypes", (
            (f"[`{row.name}`](#{slug(row.name)})", f"`{row.start}`", f"`{row.step}`", f"`{row.y}`", _kinds(row.kinds)) for row in rows))
        yield block("python", _signatures(operators[rows[0].name]))
    for row in rows:
        yield f"## {row.name}"
        yield code(_names(operators[row.name]))
        yield row.doc
        yield facts(row.name, getattr(family, row.name))


def _family(module: str, operators: dict[str, list[catalogue.Entry]]) -> str:
    """Return the page of a family: a table of its operators, then each with its signature, names and documentation."""
    family = import_module(module)
    single = {name: entries for name, entries in operators.items() if name not in REDUCTIONS}
    titles = {name: public_name(name) for name in single}
    summaries = (summary(getattr(family, name), title, f"#{slug(title)}") for name, title in titles.items())
    parts = [f"# {_title(module)}", getdoc(family) or "", source(f"{module.replace('.', '/')}.py"), *_reductions(family, operators),
             table("operator, result", summaries)]
    for name, entries in single.items():
        text = getdoc(getattr(family, name)) or ""
        parts += [f"## {titles[name]}", block("python", _signatures(entries)), code(_names(entries)), described(text),
                  facts(getattr(family, name).name, getattr(family, name))]
    return "\n\n".join(filter(None, parts)) + "\n"


# ----- Rows -----
def _kinds(kinds: str) -> str:
    return ", ".join(KINDS[kind] for kind in kinds)


class Section(NamedTuple):
    """A heading of a table, the rows below it, and the table's file."""

    title: str
    rows: list[Elementwise]
    path: str


def _sections() -> Iterator[Section]:
    """Yield the parts of the tables of formulas."""
    for path in TABLES:
        for part in (stubs.PACKAGE.parent / path).read_text().split("\n# ----- ")[1:]:
            names = re.findall(r'^elementwise\("(\w+)"', part, re.MULTILINE)
            yield Section(part.partition(" -----")[0], [ELEMENTWISE[name] for name in names], path)


def _formula_names(row: Elementwise) -> list[str]:
    """Return the public names of a row: functions, methods, and forms in place."""
    names = []
    for name in (row.name, *row.aliases):
        space = public_name(name).rpartition(".")[0]
        names += [f"cygrad.{public_name(name)}"] + [f"cygrad.{public_name(name)}_"] * (row.in_place and space in stubs.IN_PLACE)
        if not space:
            names += [f"Tensor.{name}"] * row.method + [f"Tensor.{name}_"] * row.in_place
    return [name for name in names if _exists(name)]


def _exists(name: str) -> bool:
    place: Any = exports.PACKAGE
    for word in name.removeprefix("cygrad.").split("."):
        place = getattr(place, word, None)
    return place is not None


def _equation(name: str, text: str) -> str:
    return f"{name} = {latex(formula.parse(text))}"


def _mathematics(row: Elementwise) -> str:
    """Return the formula of a row and its derivatives, and its abbreviations below them."""
    lines = [_equation("y", row.y)]
    partials = [(symbol(operand), text) for operand, text in row.partials.items()]
    partials += [(rf"\overline{{{symbol(operand)}}}", text) for operand, text in row.conjugates.items()]
    lines += [_equation(rf"\frac{{\partial y}}{{\partial {operand}}}", text) for operand, text in partials]
    blocks = [f"$$\n{line}\n$$" for line in lines]
    if row.let:
        blocks += ["with", *(f"$$\n{_equation(symbol(name), text)}\n$$" for name, text in row.let.items())]
    return "\n\n".join(blocks)


def _row(row: Elementwise) -> Iterator[str]:
    """Yield the parts of the section of a row."""
    arguments = ", ".join(re.sub(r": \w+( = )?", lambda match: "=" if match[1] else "", word) for word in stubs.parameters_of(row))
    yield f"## {public_name(row.name)}"
    yield block("python", f"{row.name}({arguments})")
    yield code(_formula_names(row))
    yield row.doc + FORMS[row.method, row.in_place]
    yield _mathematics(row)
    operator = attrgetter(public_name(row.name))(exports.PACKAGE)
    yield _example(getdoc(operator) or "")
    written = {"y": row.y, **row.let, **{f"d{operand}": text for operand, text in row.partials.items()}}
    yield f"Row: {', '.join(f'`{name} = {text}`' for name, text in written.items())}. It is computed in {_kinds(row.kinds)}."
    yield facts(row.name, ufunc=row.numpy)


def _example(docstring: str) -> str:
    """Return the example of a row's docstring with the result in place of its shape."""
    call = re.search(r"^>>> (cygrad\..*)\.shape$", docstring, re.MULTILINE)
    return block("pycon", f">>> import cygrad\n>>> {call[1]}\n{eval(call[1], {'cygrad': exports.PACKAGE})!r}") if call else ""


def _section(section: Section) -> str:
    links = {row.name: f"[`{row.name}`](#{slug(public_name(row.name))})" for row in section.rows}
    head = table("operator, computed in, meaning", ((links[row.name], _kinds(row.kinds), row.doc) for row in section.rows))
    parts = [f"# {_row_title(section.title)}", head, NOTATION, source(section.path), *(part for row in section.rows for part in _row(row))]
    return "\n\n".join(filter(None, parts)) + "\n"


def _row_title(title: str) -> str:
    return f"Elementwise: {title[0].lower()}{title[1:]}"


def _page_of(title: str) -> str:
    return f"formulas_{slug(title).replace('-', '_')}.md"


# ----- Pages -----
def _title(module: str) -> str:
    return _stem(module).replace("_", " ").capitalize()


def _stem(module: str) -> str:
    return module.rpartition(".")[2]


def _path(name: str) -> str:
    """Return the path of a name from the package on."""
    return name if name.startswith("cygrad.") else f"cygrad.{name}"


def _places(families: dict[str, dict[str, list[catalogue.Entry]]]) -> dict[str, modules.Place]:
    """Return the places of the operators' names."""
    results = {}
    for module, operators in families.items():
        for name, entries in operators.items():
            for public in _names(entries):
                results[_path(public)] = modules.Place(f"{_stem(module)}.md", slug(public_name(name)))
    for section in _sections():
        for row in section.rows:
            for public in _formula_names(row):
                results.setdefault(_path(public), modules.Place(_page_of(section.title), slug(public_name(row.name))))
    return results


@functools.cache
def _reference() -> modules.Reference:
    return modules.Reference(_places(_families()))


def places() -> dict[str, modules.Place]:
    """Return the page and the anchor of each public name."""
    return _reference().places


def _modules() -> str:
    """Return the page that leads to all others."""
    reference = _reference()
    about = [summary(reference.modules[path], path, modules.page_of(path)) for path in reference.groups]
    about[1:1] = [(f"[`{modules.TENSOR}`]({modules.page_of(modules.TENSOR)})", "Methods and attributes of tensors."),
                  ("[Operators](operators.md)", "Functions and methods that compute, by families.")]
    return f"# Reference\n\n{ABOUT}\n\n{table('names, subject', about)}\n"


def _operators(families: dict[str, dict[str, list[catalogue.Entry]]]) -> str:
    """Return the page that leads to the families of operators."""
    def named(page: str, names: Iterable[str]) -> str:
        return " ".join(f"[`{name}`]({page}#{slug(name)})" for name in names)

    links = [(f"[{_row_title(title)}]({_page_of(title)})", named(_page_of(title), (public_name(row.name) for row in rows)))
             for title, rows, _ in _sections()]
    links += [(f"[{_title(module)}]({_stem(module)}.md)", named(f"{_stem(module)}.md", map(public_name, operators)))
              for module, operators in families.items()]
    index = "\n".join(textwrap.fill(f"- {link}: {names}", 140, subsequent_indent="  ", break_on_hyphens=False) for link, names in links)
    return f"# Operators\n\n{OPERATORS}\n\n{index}\n\n## Elementwise\n\n{FORMULAS}\n"


def pages() -> dict[Path, str]:
    """Return the text of each page by its place."""
    families = _families()
    results = {f"{_stem(module)}.md": _family(module, operators) for module, operators in families.items()}
    results |= {_page_of(section.title): _section(section) for section in _sections()}
    assert not results.keys() & _reference().pages.keys(), "a family has the name of a public module"
    results |= {**_reference().pages, "README.md": _modules(), "operators.md": _operators(families)}
    return {FOLDER / name: text for name, text in results.items()}


def write() -> None:
    """Write all pages, and remove pages of families that are gone."""
    FOLDER.mkdir(exist_ok=True)
    written = pages()
    for path in set(FOLDER.glob("*.md")) - written.keys():
        path.unlink()
    for path, text in written.items():
        path.write_text(text)
