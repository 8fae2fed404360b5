"""How `import cygrad` stays quick: compiled modules lie in one shared library, and modules that few programs use load at first use.

`import cygrad` loads every compiled module, so their finder stays in `sys.meta_path` only as long as that takes. Another one stays, which
waits for packages that look at the types of tensors.
"""

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from typing import Any

_PLACES = [os.path.join(os.path.dirname(__file__), f"_native{suffix}") for suffix in EXTENSION_SUFFIXES]
_LIBRARY = next(filter(os.path.exists, _PLACES), None)


# Pickles name these modules as when the core had no rooms.
_PICKLED = {"cygrad._core.storage": "cygrad._core.memory.storage", "cygrad._core.tensor": "cygrad._core.memory.sizes"}


class _Finder:
    """Finds `cygrad._core`, `cygrad._kernels` and their rooms, whose `__init__.py` hold no code and are not read, and compiled modules."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, *rooms = name.split(".")
        if _LIBRARY is None or package != "cygrad" or not rooms or rooms[0] not in ("_core", "_kernels"):
            return None
        folder = os.path.join(os.path.dirname(__file__), *rooms)
        if len(rooms) < 3:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [folder]
            return spec if os.path.isdir(folder) else None
        if os.path.exists(f"{folder}.py"):
            return None
        spec = ModuleSpec(name, ExtensionFileLoader(name, _LIBRARY), origin=_LIBRARY)
        spec.has_location = True
        return spec


def install() -> None:
    """Let compiled modules be found, before others look through folders for them."""
    if _LIBRARY is None:
        raise ImportError(f"cygrad is not built: there is no {_PLACES[0]}; run `pip install .`")
    sys.meta_path.insert(0, _Finder)


def remove() -> None:
    """Load the other compiled modules, take the finder away again, and add the modules that pickles name."""
    here = os.path.dirname(__file__)
    for package in ("_core", "_kernels"):
        for room in filter(str.isidentifier, os.listdir(os.path.join(here, package))):
            if os.path.isdir(folder := os.path.join(here, package, room)):
                for stub in os.listdir(folder):     # compiled modules without one are loaded by those that call them
                    if stub.endswith(".pyi"):
                        import_module(f"cygrad.{package}.{room}.{stub.removesuffix('.pyi')}")
    sys.meta_path.remove(_Finder)
    sys.modules.update((old, sys.modules[new]) for old, new in _PICKLED.items())


# ----- Packages that look at the types of tensors -----
NEIGHBOURS = ("einops", "autoray")


class _Watcher:
    """An importer that finds no module of its own: it notes that one of these packages is imported, and registers tensors behind that."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in NEIGHBOURS:
            return None
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not _Watcher)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """The loader of such a package, which registers tensors behind it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _register()


def _register() -> None:
    import_module("cygrad.neighbours").register()


def watch() -> None:
    """Register tensors with packages that are imported, and with others when they are."""
    sys.meta_path.insert(0, _Watcher)
    if any(name in sys.modules for name in NEIGHBOURS):
        _register()


def at_first_use(namespace: dict[str, Any], names: Mapping[str, str], reason: Callable[[str], str] = lambda _: "",
                 prefix: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module that loads names from other modules when they are asked for.

    `names` gives the module of each; a name at the end of its module's path is the module itself. `reason` says why there is no name.
    `prefix` begins all names there, and none here.
    """

    def get(name: str) -> Any:
        place = names.get(prefix + name)
        if place is None:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}{reason(name)}", name=name,
                                 obj=sys.modules.get(namespace["__name__"]))
        module = import_module(place)
        return namespace.setdefault(name, module if place.endswith(f".{name}") else getattr(module, prefix + name))

    return get, lambda: sorted({*namespace, *(name.removeprefix(prefix) for name in names)})
