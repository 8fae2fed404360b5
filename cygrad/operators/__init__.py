"""The operators, a module a family. `_language` has the words of declarations; `python -m building.operators` writes files from them."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from cygrad._imports import at_first_use
from cygrad.operators._written import registry

# By the beginning of a declared name: an operator `linalg_xyz` is public as `cygrad.linalg.xyz`, and nowhere else.
NAMESPACES = {"linalg_": "linalg", "fft_": "fft", "special_": "special", "signal_windows_": "signal.windows",
              "nn_functional_": "nn.functional", "mpi_": "mpi"}


def public_name(name: str) -> str:
    """Return the name that a function is public by, within the package: `linalg.xyz` where it is declared as `linalg_xyz`."""
    for prefix, space in NAMESPACES.items():
        if name.startswith(prefix):
            return f"{space}.{name.removeprefix(prefix)}"
    return name


def modules_of(names_by_module: dict[str, str]) -> dict[str, str]:
    """Return the module of each name of a table of `registry`."""
    return {name: module for module, names in names_by_module.items() for name in names.split()}


def namespace(module: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of the module of a namespace, such as `cygrad.linalg`, from its globals."""
    space = module["__name__"].removeprefix("cygrad.")
    (prefix,) = [prefix for prefix, name in NAMESPACES.items() if name == space]
    return at_first_use(module, modules_of(getattr(registry, prefix.strip("_").upper())), prefix=prefix)


@cache
def find(name: str) -> Any:
    """Return the operator that is declared by a name; None if there is none. Its module is loaded."""
    for table in (registry.METHODS, registry.FUNCTIONS, registry.PROPERTIES, registry.SYNTAX):
        module = modules_of(table).get(name)
        if module is not None:
            return getattr(import_module(module), name)
    return None
