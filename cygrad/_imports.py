"""How `import cygrad` stays quick: compiled modules lie in one shared library, and what few programs use loads at first use.

`import cygrad` loads every compiled module, so their finder stays in `sys.meta_path` only as long as that takes.
"""

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from typing import Any

_PLACES = [os.path.join(os.path.dirname(__file__), f"_native{suffix}") for suffix in EXTENSION_SUFFIXES]
_LIBRARY = next(filter(os.path.exists, _PLACES), None)


class _Finder:
    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, module = name.rpartition(".")
        if _LIBRARY is None or package not in ("cygrad._core", "cygrad._kernels") or not module:
            return None
        spec = ModuleSpec(name, ExtensionFileLoader(name, _LIBRARY), origin=_LIBRARY)
        spec.has_location = True
        return spec


def install() -> None:
    """Let compiled modules be found; last in the line, so that a module in a file of its own comes first."""
    if _LIBRARY is None:
        raise ImportError(f"cygrad is not built: there is no {_PLACES[0]}; run `pip install .`")
    sys.meta_path.append(_Finder)


def remove() -> None:
    """Take the finder away again."""
    sys.meta_path.remove(_Finder)


def at_first_use(namespace: dict[str, Any], names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module that loads names from other modules when they are asked for.

    `names` gives the module of each; a name at the end of its module's path is the module itself.
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        module = import_module(names[name])
        return namespace.setdefault(name, module if names[name].endswith(f".{name}") else getattr(module, name))

    return get, lambda: sorted({*namespace, *names})
