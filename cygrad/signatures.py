"""The wrong argument of a call that failed: arguments are compared with the types that the stubs declare.

The stubs are the one place where the types of all arguments stand. Nothing here runs before a call has failed.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cygrad._core.entry.operator_object import name_in_messages
from cygrad._core.graph.tensor import TensorImpl
from cygrad.operators import NAMESPACES
from cygrad.ops.refusals import SEVERAL_FORMS

PACKAGE = Path(__file__).parent
FACTORIES = PACKAGE / "data" / "creation.py", PACKAGE / "data" / "spaced.py"        # which have their types at the functions


class Kind(NamedTuple):
    """A type that an argument may have, and how it is called."""

    fits: Callable[[Any], bool]
    words: str
    item: Any = None        # of a sequence


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.number, np.bool_, TensorImpl))


INTEGER = Kind(lambda value: hasattr(type(value), "__index__") and not isinstance(value, bool), "int")
KINDS = {
    "int": INTEGER,
    "SupportsIndex": INTEGER,
    "bool": Kind(lambda value: isinstance(value, (bool, np.bool_)), "bool"),
    "float": Kind(lambda value: _is_number(value) or hasattr(type(value), "__float__"), "float"),
    "complex": Kind(lambda value: _is_number(value) or hasattr(type(value), "__complex__"), "complex"),
    "str": Kind(lambda value: isinstance(value, str), "str"),
    "None": Kind(lambda value: value is None, "None"),
    "Tensor": Kind(lambda value: isinstance(value, TensorImpl), "Tensor"),
    "np.ndarray": Kind(lambda value: isinstance(value, np.ndarray), "array"),
    "np.generic": Kind(lambda value: isinstance(value, np.generic), "number"),
}


PARTS_OF_OPERANDS = ("bool", "int", "float", "complex", "number", "array")
_TENSOR = ast.Name("Tensor")        # the type of `self`


def _sequence(items: list[Kind] | None) -> Kind:
    def fits(value: Any) -> bool:
        if isinstance(value, (str, bytes, dict)) or not hasattr(type(value), "__iter__"):
            return False
        return items is None or not isinstance(value, (tuple, list)) or all(any(kind.fits(item) for kind in items) for item in value)

    return Kind(fits, f"tuple of {items[0].words}s" if items else "tuple", items)


def stub_of(space: str) -> Path:
    """Return the stub of a namespace: beside its module, or in its package."""
    place = PACKAGE.joinpath(*space.split("."))
    return place / "__init__.pyi" if place.is_dir() else place.with_suffix(".pyi")


@functools.cache
def _stubs() -> tuple[dict[str, list[ast.FunctionDef]], dict[str, ast.expr]]:
    """Return the functions and methods that the stubs declare, by name, and the names that types have there."""
    functions: dict[str, list[ast.FunctionDef]] = {}
    types: dict[str, ast.expr] = {}
    core = PACKAGE / "_core"
    prefixes = {stub_of(space): prefix for prefix, space in NAMESPACES.items()}
    own = PACKAGE / "typing.py", *FACTORIES, PACKAGE / "__init__.pyi", core / "entry" / "operators.pyi"
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


@functools.cache
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
    words = list(dict.fromkeys(kind.words for kind in known))
    if "complex" in words:      # all numbers are one type, and an array stands for a tensor
        words = [*(word for word in words if word not in PARTS_OF_OPERANDS), "Number"]
    expected = " or ".join(words)
    if isinstance(value, (tuple, list)):
        for kind in known:
            for place, item in enumerate(value if kind.item else ()):
                if not any(inner.fits(item) for inner in kind.item):
                    return f"{expected}, but found element of type {type(item).__name__} at pos {place}"
    return f"{expected}, not {value!r}" if isinstance(value, str) and expected.startswith("one of") else (
        f"{expected}, not {type(value).__name__}")


def _large_integer(value: Any) -> int | None:
    """Return an integer beyond 64 bits, of an argument or of a sequence that it is."""
    for item in value if isinstance(value, (tuple, list)) else (value,):
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


# ----- The forms of an operator -----
# Words of types in forms: a number is one type, and an array stands for a tensor.
WORDS = {"Number": "Number", "Real": "float", "np.generic": "Number", "np.ndarray": "Tensor", "DTypeLike": "dtype", "Device": "device",
         "_device": "device", "Layout": "layout", "None": ""}


def _choices(annotation: ast.expr | None) -> list[str]:
    """Return the words of the types that an annotation allows, less None."""
    if isinstance(annotation, ast.BinOp):
        return list(dict.fromkeys(_choices(annotation.left) + _choices(annotation.right)))
    name = "" if annotation is None else ast.unparse(annotation)
    if name in WORDS:
        return [WORDS[name]] if WORDS[name] else []
    alias = _stubs()[1].get(name)
    if alias is not None:
        return _choices(alias)
    kinds = _kinds(annotation)
    return [kind.words for kind in kinds] if kinds else [name]


def _forms(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the lists of parameters of a function, one for each choice of the types of those that can be given by position."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(named) - len(arguments.defaults)), *arguments.defaults]

    def text(words: str, parameter: ast.arg, default: ast.expr | None) -> str:
        return f"{words} {parameter.arg}" + (f" = {ast.unparse(default)}" if default else "")

    others = [text(" or ".join(_choices(parameter.annotation)), parameter, default)
              for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    for words in itertools.product(*(_choices(parameter.annotation) for parameter in named)):
        yield ", ".join([*map(text, words, named, defaults), *["*"] * bool(others), *others])


@functools.cache
def _lines_of_forms(name: str) -> str:
    """Return a line for each form of an operator, less those without a tensor: it takes no numbers alone; or of a factory."""
    functions = [function for function in _stubs()[0].get(name, ()) if not any(each.arg == "self" for each in function.args.args[:1])]
    forms = [form for function in functions for form in _forms(function)
             if "Tensor " in form.partition("*")[0] or name not in SEVERAL_FORMS]
    return "".join(f"\n * ({form})" for form in dict.fromkeys(forms))


def with_forms(name: str, error: BaseException, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Exception:
    """Return the TypeError, in torch's words, that lists the forms of an operator; its last line is the error of the wrong argument."""
    types = [type(value).__name__ for value in arguments] + [f"{word}={type(value).__name__}" for word, value in keywords.items()]
    return TypeError(f"{name_in_messages(name)}() received an invalid combination of arguments - got ({', '.join(types)}), but expected "
                     f"one of:{_lines_of_forms(name)}\n{error}")


def explained(name: str, error: BaseException, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Exception | None:
    """Return the error of a call that says which argument was wrong; None where the error says so itself, or no argument was wrong."""
    of_an_argument = rf"{name_in_messages(name)}\(\): argument '\w+'.* must be "
    if name not in SEVERAL_FORMS and re.match(of_an_argument + "(Tensor|bool), not ", str(error)):
        return None         # of a parameter that is declared so: it needs no stubs
    better = _named(name, error, arguments, keywords)
    final = better or error
    if name in SEVERAL_FORMS and isinstance(final, TypeError) and re.match(f"{of_an_argument}|unsupported operand type", str(final)):
        return with_forms(name, final, arguments, keywords)
    return better


def _named(name: str, error: BaseException, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Exception | None:
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
