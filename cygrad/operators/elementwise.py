"""Functions and methods of the rows of the elementwise table; operators that are more than a row are declared in other modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cygrad._core.compute import dispatch
from cygrad._core.entry import operators as _factories
from cygrad._core.entry.operator_object import LazySignature
from cygrad._core.memory.upward import fill
from cygrad.operators import modules_of, public_name
from cygrad.operators._written import registry
from cygrad.ops import ELEMENTWISE, Elementwise

if TYPE_CHECKING:
    import inspect

functions: dict[str, Callable[..., Any]] = {}
in_place_methods: dict[str, Callable[..., Any]] = {}


def _documentation(row: Elementwise, arguments: tuple[str, ...]) -> str:
    """Return the docstring of a row: its meaning, its formula, its gradient."""
    domain = row.domain if row.domain[0] > 0 else (0.5, 1.0)
    numbers = f"{domain[0]}, {domain[1]}" if "f" in row.kinds else "True, False" if "b" in row.kinds else "1, 2"
    values = ", ".join(f"cygrad.tensor([{'True, False' if operand in row.masks else numbers}])" for operand in row.operands)
    gradients = "".join(f"    d({row.name})/d({argument}) = {row.partials[operand]}\n"
                        for operand, argument in zip(row.operands, arguments, strict=False) if operand in row.partials)
    may_be_numbers = [argument for operand, argument in zip(row.operands, arguments, strict=False) if operand not in row.tensors]
    kinds = "" if not may_be_numbers else " or numbers" if not row.tensors else f", or a number for `{may_be_numbers[0]}`,"
    lets = "".join(f" where {name} = {text}" for name, text in row.let.items())
    return (f"{row.doc}\n\n    y = {row.y}{lets}\n{gradients}\nOperands are tensors{kinds} and broadcast; `out` takes the result.\n\n"
            f">>> import cygrad\n>>> cygrad.{row.name}({values}).shape\ncygrad.Size([2])\n")


def _signature(name: str) -> LazySignature:
    """Return the signature that the stubs declare for the function or in-place method of a row."""
    def read() -> inspect.Signature:
        from cygrad.operators._written.stubs import signature_of_row
        return signature_of_row(name)

    return LazySignature(read)


def _describe(function: Any, name: str, doc: str) -> None:
    space, _, short_name = public_name(name).rpartition(".")
    function.__name__ = function.__qualname__ = short_name
    function.__module__ = f"cygrad.{space}".rstrip(".")
    function.__doc__ = doc
    function.__signature__ = _signature(name)


def _general(op: Any) -> Callable[..., Any]:
    """Return the function of an operator with parameters or more than two operands."""

    def function(*arguments: Any, **keywords: Any) -> Any:
        return op.function(*arguments, **keywords)

    return function


def _general_in_place(op: Any) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return op.in_place(self, *arguments, **keywords)

    return method


def _selecting(row: Elementwise, ending: str, plain: Callable[..., Any], rows: dict[Any, Callable[..., Any]]) -> Callable[..., Any]:
    """Return a function whose keyword chooses the row; a row that has the keyword as a parameter gets it."""
    keyword = row.select[0] if row.select else ""

    def function(*arguments: Any, **keywords: Any) -> Any:
        if keyword not in keywords:
            return plain(*arguments, **keywords)
        value = keywords.pop(keyword)
        if not hasattr(type(value), "__torch_function__") and value in rows:
            return rows[value](*arguments, **keywords)
        if ... not in rows:
            *others, last = map(repr, rows)
            words = row.bad_choice or f"{row.name}{ending} expected {keyword} to be one of {', '.join(others)}, or {last}"
            raise RuntimeError(f"{words} but found {value!r}")
        return rows[...](*arguments, **{keyword: value}, **keywords)

    return function


def _choosing(function: Callable[..., Any], in_place: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return a function of `nn.functional` with torch's `inplace=`, which is also the argument behind the first `count`."""
    def choosing(*arguments: Any, inplace: bool = False, **keywords: Any) -> Any:
        *others, last = arguments if len(arguments) > count else (*arguments, inplace)
        return (in_place if last else function)(*others, **keywords)

    return choosing


def _from_rows() -> None:
    simple = {("input",): (_factories.make_unary, _factories.make_unary_in_place),
              ("input", "other"): (_factories.make_binary, _factories.make_binary_in_place)}
    for name, row in ELEMENTWISE.items():
        op = dispatch.ops[name]
        make, make_in_place = simple.get(op.arguments, (_general, _general_in_place))
        functions[name] = make(op)
        if row.in_place:
            in_place_methods[name + "_"] = make_in_place(op)
    for name, row in ELEMENTWISE.items():
        if row.select:
            names = row.select[1]
            # Kept where the keyword is absent: the plain function costs no Python frame there.
            functions[name] = _selecting(row, "", functions[name], {value: functions[chosen] for value, chosen in names.items()})
            in_place_methods[name + "_"] = _selecting(row, "_", in_place_methods[name + "_"], {
                value: in_place_methods[chosen + "_"] for value, chosen in names.items()})
    for name, row in ELEMENTWISE.items():
        _describe(functions[name], name, _documentation(row, dispatch.ops[name].arguments))
        for alias in row.aliases:
            functions[alias] = functions[name]
        if row.in_place:
            method = in_place_methods[name + "_"]
            _describe(method, name + "_", f"{row.doc} In place.")
            for alias in row.aliases:
                in_place_methods[alias + "_"] = method
                if alias.startswith("nn_functional_"):
                    functions[alias] = _choosing(functions[name], method, len(row.operands) + len(row.params))
                    _describe(functions[alias], alias, _documentation(row, dispatch.ops[name].arguments))


def _move_to_namespaces() -> None:
    """Make the functions of namespaces names of this module, where the namespaces look for them."""
    for table in functions, in_place_methods:
        for name in [name for name in table if public_name(name) != name]:
            globals()[name] = table.pop(name)


_from_rows()
fill(functions=dispatch.ops)
_move_to_namespaces()
for _name in modules_of(registry.FUNCTIONS):     # operators that are more than a row load at first use
    functions.pop(_name, None)
    in_place_methods.pop(_name, None)


def _explained(*call: Any) -> Exception | None:
    from cygrad.signatures import explained
    return explained(*call)


fill(explain=_explained)
