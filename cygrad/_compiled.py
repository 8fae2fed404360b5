"""Finds the compiled modules, which all lie in one shared library: one file to open, one copy of what they share.

`import cygrad` loads every one of them, so the finder stays in `sys.meta_path` only as long as that takes.
"""

import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path

_FOLDER = Path(__file__).parent
_LIBRARY = next((str(path) for suffix in EXTENSION_SUFFIXES if (path := _FOLDER / f"_native{suffix}").exists()), None)


class _Finder:
    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, module = name.rpartition(".")
        if _LIBRARY is None or package not in ("cygrad._core", "cygrad._kernels") or not module:
            return None
        return spec_from_loader(name, ExtensionFileLoader(name, _LIBRARY), origin=_LIBRARY)


def install() -> None:
    """Let compiled modules be found; last in the line, so that a module in a file of its own comes first."""
    if _LIBRARY is None:
        raise ImportError(f"cygrad is not built: there is no {_FOLDER / ('_native' + EXTENSION_SUFFIXES[0])}; run `pip install .`")
    sys.meta_path.append(_Finder)


def remove() -> None:
    """Take the finder away again."""
    sys.meta_path.remove(_Finder)
