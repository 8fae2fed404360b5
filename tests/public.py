"""The public names, with their docstrings, and the pages: functions, classes and methods of the public modules, Markdown pages."""

import functools
import inspect
from operator import attrgetter
from pathlib import Path

import cygrad
from cygrad.operators import NAMESPACES, public_name
from cygrad.operators._written import exports

ROOT = Path(__file__).resolve().parent.parent
# Where operators are public.
PLACES = (cygrad.Tensor, cygrad, *(attrgetter(space)(cygrad) for space in NAMESPACES.values()))


def is_from(package, thing):
    return f"{getattr(thing, '__module__', None)}.".startswith(f"{package}.")


def public():
    """Yield (qualified name, object) of every public callable and of the modules."""
    for path, module in exports.modules():
        yield path, module
        for name in exports.names(module):
            thing = getattr(module, name)
            if not exports.Export(path, name, thing).is_explained:
                continue
            yield f"{path}.{name}", thing
            if isinstance(thing, type):
                yield from methods(f"{path}.{name}", thing)


def is_operator(thing):
    return type(thing).__name__ == "Operator"


def operators():
    """Return [(name, operator)] of all functions and methods; of a function of a namespace, `linalg_xyz`."""
    return [(declared_name(place, name), thing) for place in PLACES for name in dir(place)
            if not name.startswith("_") and is_operator(thing := getattr(place, name))]


def declared_name(place, name):
    """Return the name under which `place.name` is declared."""
    return f"{dict(zip(PLACES[2:], NAMESPACES, strict=True)).get(place, '')}{name}"


def function(name):
    """Return the function that is declared by a name; None if there is none."""
    return functools.reduce(lambda place, word: getattr(place, word, None), public_name(name).split("."), cygrad)


def methods(qualified_name, kind):
    """Yield the methods that a class inherits from within the package."""
    for name in dir(kind):
        owner = next((parent for parent in kind.__mro__ if name in vars(parent)), None)
        if not name.startswith("_") and callable(getattr(kind, name)) and is_from("cygrad", owner):
            yield f"{qualified_name}.{name}", getattr(kind, name)


def docstrings():
    """Return {qualified name: docstring}, with "" where there is none; each text under its first name only."""
    texts, seen = {}, set()
    for name, thing in public():
        text = inspect.getdoc(thing) or ""
        if not text or text not in seen:
            texts[name] = text
            seen.add(text)
    return texts


def pages():
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
