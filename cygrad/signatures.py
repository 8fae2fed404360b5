"""The wrong argument of a call that failed: arguments are compared with the types that the stubs declare.

The stubs are the one place where the types of all arguments stand. Nothing here runs before a call has failed.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cygrad._core.entry.operator_object import name_in_messages
from cygrad._core.graph.tensor import TensorImpl
from cygrad.operators import NAMESPACES

PACKAGE = Path(__file__).parent


class Kind(NamedTuple):
    """A type that an argument may have, and how it is called."""

    fits: Callable[[Any], bool]
    words: str
    item: Any = None        # of a sequence


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_ | TensorImpl)


INTEGER = Kind(lambda value: hasattr(type(value), "__index__"), "int")
KINDS = {
    "int": INTEGER,
    "SupportsIndex": INTEGER,
    "bool": Kind(lambda value: isinstance(value, bool | np.bool_), "bool"),
    "float": Kind(lambda value: _is_number(value) or hasattr(type(value), "__float__"), "float"),
    "str": Kind(lambda value: isinstance(value, str), "str"),
    "None": Kind(lambda value: value is None, "None"),
    "Tensor": Kind(lambda value: isinstance(value, TensorImpl), "Tensor"),
    "np.ndarray": Kind(lambda value: isinstance(value, np.ndarray), "array"),
    "np.generic": Kind(lambda value: isinstance(value, np.generic), "number"),
}


_TENSOR = ast.Name("Tensor")        # the type of `self`


def _sequence(items: list[Kind] | None) -> Kind:
    def fits(value: Any) -> bool:
        if isinstance(value, str | bytes | dict) or not hasattr(type(value), "__iter__"):
            return False
        return items is None or not isinstance(value, tuple | list) or all(any(kind.fits(item) for kind in items) for item in value)

    return Kind(fits, f"tuple of {items[0].words}s" if items else "tuple", items)


@functools.cache
def _stubs() -> tuple[dict[str, list[ast.FunctionDef]], dict[str, ast.expr]]:
    """Return the functions and methods that the stubs declare, by name, and the names that types have there."""
    functions: dict[str, list[ast.FunctionDef]] = {}
    types: dict[str, ast.expr] = {}
    core = PACKAGE / "_core"
    prefixes = {PACKAGE / f"{space.replace('.', '/')}.pyi": prefix for prefix, space in NAMESPACES.items()}
    own = PACKAGE / "typing.py", PACKAGE / "__init__.pyi", core / "entry" / "operators.pyi"
    for path in (*own, *prefixes, *sorted(core.glob("*/*.pyi"))):
        tree = ast.parse(path.read_text()) if path.exists() else ast.Module([], [])
        for node in (*tree.body, *(method for kind in tree.body if isinstance(kind, ast.ClassDef) for method in kind.body)):
            if isinstance(node, ast.FunctionDef):
                node.name = prefixes.get(path, "") + node.name
                functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                types[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                types[node.target.id] = node.value
    return functions, types


def _kinds(annotation: ast.expr | None) -> list[Kind] | None:
    """Return the kinds that an annotation allows; None: anything."""
    if isinstance(annotation, ast.BinOp):
        left, right = _kinds(annotation.left), _kinds(annotation.right)
        return None if left is None or right is None else left + right
    if isinstance(annotation, ast.Subscript):
        outer, inner = ast.unparse(annotation.value), annotation.slice
        if outer == "Literal":
            values = ast.literal_eval(inner)
            values = values if isinstance(values, tuple) else (values,)
            return [Kind(lambda value: isinstance(value, str) and value in values, f"one of {', '.join(map(repr, values))}")]
        if outer in ("Sequence", "Iterable", "list", "tuple"):
            return [_sequence(_kinds(inner.elts[0] if isinstance(inner, ast.Tuple) else inner))]
        return None
    name = "None" if annotation is None else ast.unparse(annotation)
    alias = _stubs()[1].get(name)
    if alias is not None:
        return _kinds(alias)
    kind = KINDS.get(name.removeprefix("_"))
    return None if kind is None or annotation is None else [kind]


def _bound(function: ast.FunctionDef, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[tuple[str, int, Any, Any]]:
    """Yield (name, position or 0, annotation, value) of each argument."""
    named = [*function.args.posonlyargs, *function.args.args]
    for position, value in enumerate(arguments, 1):
        parameter = named[position - 1] if position <= len(named) else function.args.vararg
        if parameter is not None:
            yield parameter.arg, position, _TENSOR if parameter.arg == "self" else parameter.annotation, value
    for parameter in (*named, *function.args.kwonlyargs):
        if parameter.arg in keywords:
            yield parameter.arg, 0, parameter.annotation, keywords[parameter.arg]


def _words(kinds: Iterable[Kind], value: Any) -> str:
    """Return a sentence: the required type of an argument, and its type."""
    known = [kind for kind in kinds if kind.words != "None"] or list(kinds)
    expected = " or ".join(dict.fromkeys(kind.words for kind in known))
    if isinstance(value, tuple | list):
        for kind in known:
            for place, item in enumerate(value if kind.item else ()):
                if not any(inner.fits(item) for inner in kind.item):
                    return f"{expected}, but found element of type {type(item).__name__} at pos {place}"
    return f"{expected}, not {value!r}" if isinstance(value, str) and expected.startswith("one of") else (
        f"{expected}, not {type(value).__name__}")


def _large_integer(value: Any) -> int | None:
    """Return an integer beyond 64 bits, of an argument or of a sequence that it is."""
    for item in value if isinstance(value, tuple | list) else (value,):
        if isinstance(item, int) and not -2**63 <= item < 2**63:
            return item
    return None


def _problem(function: ast.FunctionDef, error: BaseException, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Exception | None:
    """Return the error that names the first argument which a signature does not allow; None if all are as it says."""
    for name, position, annotation, value in _bound(function, arguments, keywords):
        place = f"argument '{name}'" + (f" (position {position})" if position else "")
        large = _large_integer(value)
        if large is not None and isinstance(error, OverflowError):
            text = str(large) if large.bit_length() < 256 else f"an integer of {large.bit_length()} bits"
            return ValueError(f"{function.name}(): Overflow when unpacking long long: {place} must lie between -2**63 and 2**63 - 1, got "
                              f"{text}")
        kinds = _kinds(annotation)
        if kinds is not None and not any(kind.fits(value) for kind in kinds):
            return TypeError(f"{name_in_messages(function.name)}(): {place} must be {_words(kinds, value)}")
    return None


def explained(name: str, error: BaseException, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Exception | None:
    """Return the error of a call that says which argument was wrong; None where the error says so itself, or no argument was wrong."""
    # Errors that speak of an argument or of a number are as clear as they can be, unless they speak of an operator's within.
    text = str(error)
    if "Python integer" in text:
        return None
    problem = None
    parameters: set[str] = set()
    for function in _stubs()[0].get(name, ()):
        parameters |= {parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
        if len(arguments) > len(function.args.posonlyargs) + len(function.args.args) and function.args.vararg is None:
            continue        # another overload is meant
        result = _problem(function, error, arguments, keywords)
        if result is None:
            return None
        problem = problem or result
    spoken = _argument(text)
    called = name_in_messages(name)
    own_word = text.startswith(f"{called}()") and spoken not in parameters       # torch's name of a parameter that is called otherwise here
    speaker = re.match(r"(\w+)\(\)", text)
    within = speaker is not None and speaker[1] != called
    if problem is None or "argument" in text and not within and (spoken is None or own_word or spoken == _argument(str(problem))):
        return None
    return problem


def _argument(text: str) -> str | None:
    """Return the argument that an error speaks of."""
    result = re.search(r"argument '(\w+)'", text)
    return result and result[1]
