"""The pages of the public modules, and the anchors of all public names: a page for the package, one for Tensor, one for each namespace.

Names that are operators have their places on the pages of the families; the pages of modules lead there.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from inspect import getdoc
from typing import Any, NamedTuple

from building.operators.markdown import block, code, described, slug, source, summary, table
from cygrad.operators._written import exports, stubs

ROOT = stubs.PACKAGE.parent
TENSOR = "cygrad.Tensor"
PACKAGE_ABOUT = "Names of the package that are no operators. [Operators](operators.md) are the others."
TENSOR_ABOUT = "Methods and attributes that are no operators. A method that is an operator is listed here, and leads to its page."


def page_of(path: str) -> str:
    """Return the page of a public module, or of Tensor."""
    return f"{path.removeprefix('cygrad').removeprefix('.').lower() or 'package'}.md"


class Place(NamedTuple):
    """Where a name is explained: a page of the API and an anchor there."""

    page: str
    anchor: str

    def link(self, page: str) -> str:
        return f"{self.page if self.page != page else ''}#{self.anchor}"


class _Plain:
    """An annotation that prints as it was written."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


# ----- Signatures and sources -----
def _plain(annotation: Any) -> Any:
    return _Plain(annotation) if isinstance(annotation, str) else annotation


def _without_addresses(text: str) -> str:
    return re.sub(r"<function (\w+) at 0x\w+>|<([\w.]+) object at 0x\w+>", lambda match: match[1] or match[2], text)


def _signature(name: str, thing: Any) -> str:
    """Return the signature of a function or class, its name alone where Python has none."""
    try:
        full = inspect.signature(thing)
    except (TypeError, ValueError):
        return f"{name}(...)"
    parameters = [parameter.replace(annotation=_plain(parameter.annotation)) for parameter in full.parameters.values()]
    result = inspect.Signature.empty if isinstance(thing, type) else _plain(full.return_annotation)
    plain = full.replace(parameters=parameters, return_annotation=result)
    text = _without_addresses(f"{name}{plain}")
    if len(text) <= stubs.WIDTH:
        return text
    words, marks = [], {parameter.kind for parameter in parameters}
    for parameter in parameters:
        if parameter.kind == parameter.KEYWORD_ONLY and "*" not in words and parameter.VAR_POSITIONAL not in marks:
            words.append("*")
        words.append(_without_addresses(str(parameter)))
    returned = str(plain)[str(plain).rindex(")") + 1:] if plain.return_annotation is not inspect.Signature.empty else ""
    return f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){returned}"


def _source(thing: Any) -> str:
    """Return a line with a link to the file that has an object; "" if that is not known."""
    module = getattr(inspect.unwrap(thing) if callable(thing) else thing, "__module__", None) or ""
    path = stubs.PACKAGE.joinpath(*module.split(".")[1:])
    for file in (path.with_suffix(".py"), path.with_suffix(".pyx"), path / "__init__.py"):
        if module.startswith("cygrad") and file.exists():
            return source(file.relative_to(ROOT).as_posix())
    return ""


# ----- Entries -----
def _members(path: str, kind: type) -> Iterator[tuple[str, Any]]:
    for name in exports.members(kind):
        yield f"{path}.{name}", inspect.getattr_static(kind, name)


def _member(path: str, thing: Any) -> str:
    text = getdoc(thing) or ""
    function = thing.__func__ if isinstance(thing, (staticmethod, classmethod)) else thing
    is_function = callable(function) and not isinstance(thing, property)
    head = [block("python", _signature(path.rpartition(".")[2], function))] if is_function else []
    return "\n\n".join([*head, described(text)])


def _entry(path: str, paths: list[str], thing: Any, level: int) -> Iterator[str]:
    """Yield the parts of the section of a function or class."""
    yield f"{'#' * level} {path}"
    yield block("python", _signature(path.rpartition(".")[2], thing))
    if len(paths) > 1:
        yield code(paths)
    yield described(getdoc(thing) or "")
    if source := _source(thing):
        yield source
    if isinstance(thing, type) and path != TENSOR:
        for member, method in _members(path, thing):
            yield f"{'#' * (level + 1)} {member}"
            yield _member(member, method)


def _value(path: str, thing: Any) -> tuple[str, str]:
    text = _without_addresses(repr(thing))
    if callable(thing) or len(text) > 60:
        text = (getdoc(thing) or "").split("\n")[0]
    return f'<a id="{path}"></a>`{path}`', text if callable(thing) else f"`{text}`"


class Reference:
    """The pages of modules, with the place of each public name; `places` begins with the operators' places."""

    def __init__(self, places: dict[str, Place]):
        self.places = dict(places)
        self.modules = dict(exports.modules())
        self.pages: dict[str, str] = {}
        self.operators = frozenset(places)
        self.exports = list(exports.exports())
        homes: dict[int, list[exports.Export]] = {}
        for export in self.exports:
            homes.setdefault(id(export.thing), []).append(export)
        self.homes = homes
        groups: dict[str, list[str]] = {}
        for path in self.modules:
            groups.setdefault(".".join(path.split(".")[:2]), []).append(path)
        self.groups = groups
        for module, inner in groups.items():
            for path in inner:
                self._place(page_of(module), path)
        for module, inner in groups.items():
            self.pages[page_of(module)] = "\n\n".join(self._page(module, inner)) + "\n"
        self.pages[page_of(TENSOR)] = "\n\n".join(self._tensor()) + "\n"

    def _own(self, path: str) -> Iterator[tuple[exports.Export, list[str]]]:
        """Yield the names that a module explains, those that no other explains better, each with all its paths."""
        for export in self.exports:
            if export.module != path or export.path in self.operators:
                continue
            homes = self.homes[id(export.thing)]
            own = getattr(export.thing, "__module__", None) or ""
            if not export.is_explained:
                yield export, [export.path]
            elif export is min(homes, key=lambda home: (not f"{own}.".startswith(f"{home.module}."), -len(home.module))):
                yield export, [home.path for home in homes if home.path not in self.operators]

    def _place(self, page: str, path: str) -> None:
        """Note the places of a module's names."""
        self.places[path] = Place(page, slug(path))
        for export, paths in self._own(path):
            target = page_of(TENSOR) if export.path == TENSOR else page
            for one in paths:
                self.places[one] = Place(target, slug(export.path) if export.is_explained else one)
            for member, _ in _members("", export.thing) if export.is_explained and isinstance(export.thing, type) else ():
                for one in paths:
                    self.places.setdefault(f"{one}{member}", Place(target, slug(f"{export.path}{member}")))

    def _page(self, module: str, paths: list[str]) -> Iterator[str]:
        for path in paths:
            is_first = path == module
            yield f"{'#' if is_first else '##'} {path}"
            yield described(getdoc(self.modules[path]) or "")
            if path == "cygrad":
                yield PACKAGE_ABOUT
            own = [(export, paths) for export, paths in self._own(path) if export.path != TENSOR]
            shown = [export for export in self.exports if export.module == path and export.is_explained
                     and (path != "cygrad" or export.path not in self.operators)]
            yield from self._summaries(page_of(module), shown)
            values = [_value(export.path, export.thing) for export, _ in own if not export.is_explained]
            if values:
                yield table("value, is", values)
            for export, others in own:
                if export.is_explained:
                    yield from _entry(export.path, others, export.thing, 2 if is_first else 3)

    def _summaries(self, page: str, shown: Iterable[exports.Export]) -> Iterator[str]:
        rows = [summary(export.thing, export.path.removeprefix("cygrad."), self.places[export.path].link(page)) for export in shown]
        if rows:
            yield table("name, result", rows)

    def _tensor(self) -> Iterator[str]:
        yield f"# {TENSOR}"
        yield from list(_entry(TENSOR, [TENSOR], exports.PACKAGE.Tensor, 2))[1:]
        yield TENSOR_ABOUT
        page, others = page_of(TENSOR), []
        by_page: dict[str, list[str]] = {}
        for path, thing in _members(TENSOR, exports.PACKAGE.Tensor):
            place = self.places[path]
            if place.page == page:
                others.append((path, thing))
            else:
                by_page.setdefault(place.page, []).append(f"[`{path.rpartition('.')[2]}`]({place.link(page)})")
        yield table("name, result", (summary(thing, path.removeprefix("cygrad."), self.places[path].link(page)) for path, thing in others))
        yield "## Operators"
        yield "\n\n".join(f"- {' '.join(links)}" for _, links in sorted(by_page.items()))
        for path, thing in others:
            yield f"## {path}"
            yield _member(path, thing)
