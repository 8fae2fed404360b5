"""The operators, a module a family; how one is declared: `declaration`."""

from importlib import import_module
from typing import Any

from cygrad.operators import registry


def find(name: str) -> Any:
    """Return the operator that is declared by a name; None if there is none. Its module is loaded."""
    for table in (registry.METHODS, registry.FUNCTIONS, registry.PROPERTIES, registry.SYNTAX):
        for module, names in table.items():
            if name in names.split():
                return getattr(import_module(module), name)
    return None
