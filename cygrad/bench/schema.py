"""Trees of JSON by their declarations: types, and rules that an annotation adds; texts that are fit to be shown."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

DEEPEST = 20        # objects and lists within each other
LONGEST = 60        # characters of a value, or of a name, in a sentence
NOUNS = {float: "a number", int: "a whole number", str: "a text", bool: "true or false", list: "a list", dict: "an object"}

Rule = Callable[[Any], str]     # returns the end of a sentence that begins with the place of a value; "" for a right value


# ----- Texts -----
def printable(tree: Any, depth: int = DEEPEST) -> Any:
    """Return a tree whose texts can be shown anywhere: spaces for similar characters, escapes for control characters."""
    if isinstance(tree, str):
        return tree if tree.isprintable() else "".join(map(_printable_character, tree))
    if isinstance(tree, (dict, list)) and not depth:
        raise ValueError(f"objects and lists lie more than {DEEPEST} deep in each other")
    if isinstance(tree, dict):
        return {printable(name): printable(element, depth - 1) for name, element in tree.items()}
    return [printable(element, depth - 1) for element in tree] if isinstance(tree, list) else tree


def _printable_character(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode("ascii")


def shown(value: Any) -> str:
    """Return a value as a sentence names it."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


# ----- Rules -----
def within(least: float, most: float) -> Rule:
    """Return the rule of a number with both ends."""
    return lambda number: "" if least <= number <= most else f" is {shown(number)}, not from {least} to {most}"


def at_most(most: int) -> Rule:
    """Return the rule of the length of a text, a list or an object."""
    return lambda value: "" if len(value) <= most else f" has a length of {len(value)}, more than {most}"


def one_of(*values: str) -> Rule:
    """Return the rule of a text that is one of a few."""
    return lambda value: "" if value in values else f" is {shown(value)}, not {' or '.join(map(repr, values))}"


# ----- Declarations -----
def faults(value: Any, kind: Any, place: str) -> Iterator[str]:
    """Yield sentences on values that contradict a declaration; rules are called for values of the right type only."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        results = [*faults(value, inner[0], place)]
        yield from results or (f"{place}{words}" for rule in inner[1:] if (words := rule(value)))
    elif origin in (UnionType, Union):
        if all(any(faults(value, each, place)) for each in inner):
            yield f"{place} is {shown(value)}"
    elif not _is_of(value, expected := dict if is_typeddict(kind) else origin or kind):
        yield f"{place} is {shown(value)}, not {NOUNS.get(expected, 'null')}"
    elif is_typeddict(kind):
        fields = _fields(kind)
        yield from (f"{place} lacks {name!r}" for name in sorted(fields.keys() - value.keys()))
        for name, declared in fields.items():
            if name in value:
                yield from faults(value[name], declared, f"{place}.{name}")
    elif origin in (dict, list):
        if origin is dict:
            yield from (fault for name in value for fault in faults(name, inner[0], f"a name in {place}"))
        items: Iterable[tuple[Any, Any]] = value.items() if origin is dict else enumerate(value)
        for name, element in items:
            yield from faults(element, inner[-1], f"{place}.{str(name)[:LONGEST]}")


def _is_of(value: Any, kind: Any) -> bool:
    """Return True if a value has a type of JSON, in which a whole number is a number too, and true is none."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


_fields = cache(lambda kind: get_type_hints(kind, include_extras=True))
