"""Finds the compiled modules, which all lie in one shared library: one file to open, one copy of what they share.

`import cygrad` loads every one of them, so the finder stays in `sys.meta_path` only as long as that takes.
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec

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
