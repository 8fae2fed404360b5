"""The public names of the package and of its public modules, read from them: no name is listed by hand.

A public module is one that the stub of the package imports, or a public module of it. Its names are its `__all__` or, without it, the names
that its source defines or imports `as` themselves, and the names that it loads at first use.
"""

import ast
import functools
import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from cygrad.operators._written import catalogue

PACKAGE = import_module("cygrad")       # which is above this module


class Export(NamedTuple):
    """A public name of a module, and the object."""

    module: str
    name: str
    thing: Any

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def is_explained(self) -> bool:
        """Return True if it is a function or class of the package, which a docstring explains; others are values."""
        own = f"{getattr(self.thing, '__module__', None)}.".startswith("cygrad.") or type(self.thing).__name__ == "Operator"
        return own and callable(self.thing) and hasattr(self.thing, "__name__")


@functools.cache
def _bound(module: ModuleType) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the names that a module defines or exports, the names that it imports for itself, and the words of its tables."""
    own: set[str] = set()
    private: set[str] = set()
    words: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    is_type = bound.islower() and alias.name.lower() == bound.replace("_", "")      # DType as dtype
                    (own if alias.asname and (alias.asname == alias.name or is_type) else private).add(bound)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                own.add(name)
            case ast.Constant(value=str(word)):
                words.add(word)
    return frozenset(own), frozenset(private), frozenset(words)


def names(module: ModuleType) -> list[str]:
    """Return the public names of a module, in the order of the alphabet."""
    own, private, words = _bound(module)
    if module is PACKAGE:
        modules = {name for name, place in catalogue.loaded_at_first_use() if place == f"cygrad.{name}"} | {"autograd"}
    else:
        modules = {*own, *words}
    declared = frozenset(getattr(module, "__all__", ()))

    def is_public(name: str) -> bool:
        thing = getattr(module, name)
        if isinstance(thing, ModuleType):
            return name in modules and thing.__name__ == f"{module.__name__}.{name}"
        return name in declared or name not in private and (not declared or name in words)

    return sorted(name for name in dir(module) if not name.startswith("_") and is_public(name))


def modules(module: ModuleType = PACKAGE, name: str = "cygrad",
            seen: frozenset[ModuleType] = frozenset()) -> Iterator[tuple[str, ModuleType]]:
    """Yield the paths by which users name the public modules, and the modules: the package first."""
    yield name, module
    for inner in names(module):
        thing = getattr(module, inner)
        if isinstance(thing, ModuleType) and thing.__name__.startswith("cygrad.") and thing not in seen:
            yield from modules(thing, f"{name}.{inner}", seen | {module})


def exports() -> Iterator[Export]:
    """Yield all public names but modules."""
    for path, module in modules():
        for name in names(module):
            if not isinstance(thing := getattr(module, name), ModuleType):
                yield Export(path, name, thing)


def members(kind: type) -> list[str]:
    """Return the public methods and attributes that a class has from within the package."""
    return sorted({name for parent in kind.__mro__ if parent.__module__.startswith("cygrad") for name in vars(parent)
                   if not name.startswith("_")} & set(dir(kind)))
