"""The generated part of the type stubs, which `python -m building.operators` writes.

`cygrad/__init__.pyi` gets the functions and dtypes of the tables and declarations, `cygrad/_core/entry/operators.pyi` all the methods,
`cygrad/linalg.pyi` and its like the functions of a namespace. The part above the line "From the tables" is written by hand; a name that
is declared there is left out below.
"""

import __future__

import ast
import copy
import functools
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cygrad.operators import NAMESPACES, public_name
from cygrad.operators._written import catalogue
from cygrad.ops import ELEMENTWISE, Elementwise
from cygrad.ops.dtypes import DTYPES
from cygrad.signatures import stub_of

PACKAGE = Path(__file__).resolve().parents[2]
FUNCTIONS, METHODS = PACKAGE / "__init__.pyi", PACKAGE / "_core" / "entry" / "operators.pyi"
OF_NAMESPACES = {stub_of(space): space for space in NAMESPACES.values()}
PATHS = (FUNCTIONS, METHODS, *OF_NAMESPACES)
GENERATED = "# ----- From the tables"            # the line below which everything is written here
NUMPY_WORDS = {"dim": "axis", "keepdim": "keepdims", "dims": "axes"}        # which all operators take
WIDTH = 120
IN_PLACE = {"", "nn.functional"}        # where the in-place forms of rows are functions, too
SHADOWED = {"bool", "float", "int"}             # names of Python's that the package and Tensor use for dtypes and conversions


def keyword_of(row: Elementwise) -> list[str]:
    """Return the keyword-only parameter that selects another row, with the type of its values."""
    if not row.select:
        return []
    name, rows = row.select
    default = next(value for value, chosen in rows.items() if chosen == row.name)
    values = [repr(value) for value in rows if value is not None]
    kind = "_float" if ... in rows else f"Literal[{', '.join(values)}]{' | None' if None in rows else ''}"
    return [f"{name}: {kind} = {default!r}"]


def parameters_of(row: Elementwise) -> list[str]:
    """Return the operands and parameters of a row; of several operands some may be numbers."""
    kinds = {operand: "Tensor | np.ndarray" if operand in row.tensors else "Operand" for operand in row.operands}
    names = {"x": "input", "a": "input", "b": "other"}
    return [*(f"{names.get(operand, operand)}: {'Tensor' if len(kinds) == 1 else kind}" for operand, kind in kinds.items()),
            *(f"{name}: _float = {value!r}" for name, value in row.params.items())]


def declaration(name: str, positional: list[str], keywords: list[str]) -> str:
    return f"def {name}({', '.join([*positional, *(['*', *keywords] if keywords else [])])}) -> Tensor: ..."


def functions() -> Iterator[tuple[str, str]]:
    """Yield (name, declaration) of the functions of the tables, in the package or a namespace."""
    out = "out: Tensor | None = None"
    for row in ELEMENTWISE.values():
        for name in (row.name, *row.aliases):
            space, _, short_name = public_name(name).rpartition(".")
            inplace = ["inplace: _bool = False"] * (row.in_place and space == "nn.functional")
            yield name, declaration(short_name, [*parameters_of(row), *inplace], [*keyword_of(row), out])
            if row.in_place and space in IN_PLACE:      # they are the methods, which take their tensor by position
                first, *others = parameters_of(row)
                yield f"{name}_", declaration(f"{short_name}_", [first, "/", *others], keyword_of(row))


def methods() -> Iterator[tuple[str, str]]:
    """Yield (name, declaration) of the methods of the tables: their functions, in-place forms and conversions."""
    for row in ELEMENTWISE.values():
        for name in (name for name in (row.name, *row.aliases) if public_name(name) == name):
            if row.method:
                out = [*keyword_of(row), "out: Tensor | None = None"]
                yield name, declaration(name, ["self", *parameters_of(row)[1:]], out)
            if row.in_place:
                yield f"{name}_", declaration(f"{name}_", ["self", *parameters_of(row)[1:]], keyword_of(row))
    for dtype in DTYPES:
        for name in dtype.conversions:
            yield name, declaration(name, ["self", "memory_format: MemoryFormat = ..."], [])


@functools.cache
def signature_of_row(name: str) -> inspect.Signature:
    """Return the signature of the function or in-place method `name` of a row, with annotations as text."""
    text = (dict(methods()) | dict(functions()))[name]
    for shadowed in SHADOWED:
        text = re.sub(rf"\b_{shadowed}\b", shadowed, text)
    namespace: dict[str, Any] = {}
    exec(compile(text, "<stub>", "exec", __future__.annotations.compiler_flag), namespace)
    return inspect.signature(namespace[public_name(name).rpartition(".")[2]])


class _Unshadowed(ast.NodeTransformer):
    """Writes Python's types as stubs have to, where the package has something else of that name."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(f"_{node.id}") if node.id in SHADOWED else node


def _in_words_of_numpy(node: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    """Yield the signatures of an operator that takes NumPy's names of parameters, too."""
    arguments = node.args
    required = {argument.arg for argument in arguments.args[:len(arguments.args) - len(arguments.defaults)]}
    required |= {argument.arg for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None}
    by_name = copy.deepcopy(node)
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + arguments.defaults
    for argument, default in (*zip(arguments.args, defaults, strict=True),
                              *zip(list(arguments.kwonlyargs), list(arguments.kw_defaults), strict=True)):
        if argument.arg in NUMPY_WORDS and default is not None:
            arguments.kwonlyargs.append(ast.arg(NUMPY_WORDS[argument.arg], argument.annotation))
            arguments.kw_defaults.append(default)
    if not required & NUMPY_WORDS.keys():
        yield node
        return
    place = next((k for k, argument in enumerate(by_name.args.args) if argument.arg in NUMPY_WORDS), len(by_name.args.args))
    by_name.args.kwonlyargs[:0] = by_name.args.args[place:]
    by_name.args.kw_defaults[:0] = defaults[place:]
    del by_name.args.args[place:]
    by_name.args.defaults = [default for default in defaults[:place] if default is not None]
    for argument in by_name.args.kwonlyargs:
        argument.arg = NUMPY_WORDS.get(argument.arg, argument.arg)
    for signature in (node, by_name):
        signature.decorator_list = [ast.Name("overload")]
        yield signature


def _without_first(arguments: ast.arguments) -> None:
    """Turn the parameters of a function into the method's."""
    positional = arguments.posonlyargs or arguments.args
    if positional:
        positional[0] = ast.arg("self")
        if len(arguments.defaults) == len(arguments.posonlyargs) + len(arguments.args):
            del arguments.defaults[0]


def declared_operators(namespace: str | None) -> Iterator[str]:
    """Yield the signatures of declared operators, as functions of a namespace, or (None) as methods and properties."""
    methods = namespace is None
    for entry in catalogue.entries():
        is_declared = entry.method or entry.property if methods else entry.function and entry.namespace() == namespace
        for signature in entry.signatures if is_declared else ():
            node = ast.parse(ast.unparse(signature)).body[0]
            assert isinstance(node, ast.FunctionDef)
            node.decorator_list = [ast.Name("overload")] if len(entry.signatures) > 1 else [ast.Name("property")] * entry.property
            node.name, arguments = public_name(entry.name).rpartition(".")[2], node.args
            if entry.form:
                places = [place for place, argument in enumerate(arguments.kwonlyargs) if argument.arg != "out"]
                arguments.kwonlyargs = [arguments.kwonlyargs[place] for place in places]
                arguments.kw_defaults = [arguments.kw_defaults[place] for place in places]
            if entry.form == "_copy" and not methods:
                kind = "Tensor" if ast.unparse(node.returns or ast.Constant(None)) == "Tensor" else "Sequence[Tensor]"
                arguments.kwonlyargs.append(ast.arg("out", ast.parse(f"{kind} | None").body[0].value))  # type: ignore[attr-defined]
                arguments.kw_defaults.append(ast.Constant(None))
            if methods:
                _without_first(arguments)
            for argument in ast.walk(node):
                if isinstance(argument, ast.arg) and argument.annotation:
                    argument.annotation = _Unshadowed().visit(argument.annotation)
            node.returns = node.returns and _Unshadowed().visit(node.returns)
            node.body = [ast.Expr(ast.Constant(...))]
            for written in [node] if entry.name.startswith("_") else _in_words_of_numpy(node):
                yield ast.unparse(ast.fix_missing_locations(written))


def by_hand(path: Path) -> str:
    """Return a stub down to the line above the generated part, that line included."""
    text = path.read_text()
    start = text.index(GENERATED)
    return text[:text.index("\n", start) + 1]


def declared(path: Path) -> set[str]:
    """Return the names that the part written by hand declares, at the top or (of the methods) in the last class."""
    body = ast.parse(by_hand(path)).body
    body = body[-1].body if path == METHODS and isinstance(body[-1], ast.ClassDef) else body
    return {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def parameters(arguments: ast.arguments) -> Iterator[str]:
    """Yield the parameters of a function, as PEP 8 spaces them."""
    yield from map(ast.unparse, arguments.posonlyargs)
    yield from "/" * bool(arguments.posonlyargs)
    required = [None] * (len(arguments.args) - len(arguments.defaults))
    for parameter, default in zip(arguments.args, [*required, *arguments.defaults], strict=True):
        yield ast.unparse(parameter) + (f" = {ast.unparse(default)}" if default else "")
    if arguments.vararg or arguments.kwonlyargs:
        yield f"*{ast.unparse(arguments.vararg) if arguments.vararg else ''}"
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield ast.unparse(parameter) + (f" = {ast.unparse(default)}" if default else "")
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def formatted(declaration: str, indent: str) -> str:
    """Return a declaration and its decorators on one line each, broken between parameters where it is too long."""
    node = ast.parse(declaration).body[0]
    assert isinstance(node, ast.FunctionDef) and node.returns
    decorators = "".join(f"{indent}@{ast.unparse(decorator)}\n" for decorator in node.decorator_list)
    words, end = list(parameters(node.args)), f") -> {ast.unparse(node.returns)}: ..."
    line = f"{indent}def {node.name}({', '.join(words)}{end}"
    if len(line) > WIDTH:
        unbroken = ", ".join(word.replace(" ", "\0") for word in words)
        inside = textwrap.fill(unbroken, WIDTH - 1, initial_indent=f"{indent}    ", subsequent_indent=f"{indent}    ")
        line = f"{indent}def {node.name}(\n{inside},\n{indent}{end}".replace("\0", " ")
    return f"{decorators}{line}\n"


def stub(path: Path) -> str:
    """Return the text of a stub as it has to be."""
    known = declared(FUNCTIONS) | declared(path) | {entry.name for entry in catalogue.entries()}
    if path == METHODS:
        table = (text for name, text in methods() if name not in known)
        return by_hand(path) + "".join(formatted(text, "    ") for text in (*declared_operators(None), *table))
    if path in OF_NAMESPACES:
        space = OF_NAMESPACES[path]
        table = (text for name, text in functions() if name not in known and catalogue.namespace_of(name) == space)
        return by_hand(path) + "".join(formatted(text, "") for text in (*declared_operators(space), *table))
    dtypes = "".join(f"{name}: dtype\n" for row in DTYPES for name in (row.name, *row.aliases))
    dtypes += "".join(f"class {row.tensors}(Tensor): ...\n" for row in DTYPES)
    table = (text for name, text in functions() if name not in known and not catalogue.namespace_of(name))
    return by_hand(path) + "".join(formatted(text, "") for text in (*declared_operators(""), *table)) + dtypes
