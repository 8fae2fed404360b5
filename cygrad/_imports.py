"""How `import cygrad` stays quick: compiled modules lie in one shared library, and modules that few programs use load at first use.

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


# Pickles name these modules as when the core had no rooms.
_PICKLED = {"cygrad._core.storage": "cygrad._core.memory.storage", "cygrad._core.tensor": "cygrad._core.memory.sizes"}


class _Finder:
    """Finds `cygrad._core`, `cygrad._kernels` and their rooms, whose `__init__.py` hold no code and are not read, and their modules."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, *rooms = name.split(".")
        if _LIBRARY is None or package != "cygrad" or not rooms or rooms[0] not in ("_core", "_kernels"):
            return None
        if len(rooms) < 3:
            folder = os.path.join(os.path.dirname(__file__), *rooms)
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [folder]
            return spec if os.path.isdir(folder) else None
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
                for stub in os.listdir(folder):     # each compiled module has one
                    if stub.endswith(".pyi"):
                        import_module(f"cygrad.{package}.{room}.{stub.removesuffix('.pyi')}")
    sys.meta_path.remove(_Finder)
    sys.modules.update((old, sys.modules[new]) for old, new in _PICKLED.items())


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
