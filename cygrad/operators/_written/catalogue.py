"""The operators that the families declare, read from their sources: nothing is imported, no name is listed by hand.

`python -m building.operators` writes `registry` and the type stubs from it.
"""

from __future__ import annotations

import ast
import functools
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from cygrad._core.graph.rules import RuleOp
from cygrad._core.graph.rules import rules as declared_rules
from cygrad.operators import NAMESPACES, public_name
from cygrad.ops import ELEMENTWISE, REDUCTIONS
from cygrad.ops.dtypes import DTYPES

FAMILIES = Path(__file__).resolve().parents[1]
REGISTRY = Path(__file__).with_name("registry.py")
PLACES = {"function", "property", "aliases", "copy"}    # keywords of `operator` that say where names are


def namespace_of(name: str) -> str:
    """Return the namespace of a declared name: "" is the package."""
    return public_name(name).rpartition(".")[0]


class Entry(NamedTuple):
    """A declared name: a function of the package or namespace, a method or property of Tensor, or an operator that gradients alone use."""

    name: str
    module: str
    signatures: tuple[ast.FunctionDef, ...]     # its overloads, or itself
    function: bool
    method: bool
    property: bool
    form: str = ""      # "_" or "_copy": the end of the name of another form, which `operator` makes

    def namespace(self) -> str:
        """Where its function is: "" is the package."""
        return namespace_of(self.name)


def _declaration(node: ast.FunctionDef) -> dict[str, ast.expr] | None:
    """Return the keywords of a function's `@operator`; None if it has none."""
    for decorator in node.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(call, ast.Name) and call.id == "operator":
            return {word.arg: word.value for word in decorator.keywords if word.arg} if isinstance(decorator, ast.Call) else {}
    return None


def _entries(module: str, tree: ast.Module) -> Iterator[Entry]:
    overloads: dict[str, list[ast.FunctionDef]] = {}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        if any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list):
            overloads.setdefault(node.name, []).append(node)
            continue
        keywords = _declaration(node)
        if keywords is None:
            continue
        method = keywords.pop("method", None)
        other_method = method.id if isinstance(method, ast.Name) else None      # of another signature
        options = {word: ast.literal_eval(keywords[word]) for word in PLACES & keywords.keys()}
        has_in_place = "in_place" in keywords
        for name in (node.name, *options.get("aliases", ())):
            is_property = options.get("property", False)
            is_function = options.get("function", not name.startswith("_") and not is_property)
            is_method = (method is None or ast.unparse(method) == "True") and not is_property and public_name(name) == name
            signatures = tuple(overloads.get(node.name, (node,)))
            yield Entry(name, module, signatures, is_function, is_method, is_property)
            if "copy" in keywords and name == node.name:
                yield Entry(f"{name}_copy", module, signatures, True, options["copy"] == "method", False, "_copy")
            if other_method is not None and public_name(name) == name:
                yield Entry(name, module, (functions[other_method],), False, True, False)
            if has_in_place and namespace_of(name) in ("", "nn.functional"):      # torch has them nowhere else
                yield Entry(name + "_", module, (node,), is_function, is_method, False, "_")


@functools.cache
def trees() -> dict[str, ast.Module]:
    """Return the sources of the modules by their names."""
    return {f"cygrad.operators.{path.stem}": ast.parse(path.read_text()) for path in sorted(FAMILIES.glob("[!_]*.py"))}


def _reductions() -> Iterator[Entry]:
    """Yield the reductions of the table, which have one signature."""
    module = "cygrad.operators.reductions"
    signature = next(node for node in ast.walk(trees()[module]) if isinstance(node, ast.FunctionDef) and node.name == "reduction")
    for row in REDUCTIONS.values():
        for name in (row.name, *row.aliases):
            yield Entry(name, module, (signature,), True, True, False)


def names_of_rows() -> Iterator[tuple[str, str]]:
    """Yield (name, module) of the functions of namespaces that the elementwise table has; functions of the package need no table."""
    for row in ELEMENTWISE.values():
        for name in (row.name, *row.aliases):
            forms = (name, f"{name}_") if row.in_place and namespace_of(name) == "nn.functional" else (name,)
            yield from ((form, "cygrad.operators.elementwise") for form in forms if namespace_of(name))


def entries() -> Iterator[Entry]:
    """Yield the declarations of the modules, in their order, and the reductions of the table."""
    for module, tree in trees().items():
        yield from _entries(module, tree)
    yield from _reductions()


def rules() -> Iterator[tuple[str, str]]:
    """Yield (name, module) of the gradients that are declared: by `@operator` with a `d...=` or `each=`, or by `declare_rule` alone."""
    for module, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                keywords = _declaration(node) or {}
                names = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
                if any(word == "each" or word[0] == "d" and word[1:] in names | {"input"} for word in keywords):
                    yield node.name.strip("_"), module
                continue
            call = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "declare_rule":
                yield ast.literal_eval(call.args[0]), module


def _imports_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, module) of each name that a file of the package imports from it under the same name, `*` included."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "cygrad":
            for alias in node.names:
                if alias.name == (alias.asname or "*"):
                    yield alias.name, f"cygrad.{alias.name}" if node.module == "cygrad" else node.module


def loaded_at_first_use() -> Iterator[tuple[str, str]]:
    """Yield (name, module) of each name that the stub of the package imports, and the package itself does not; and the types of tensors."""
    here, stub = (list(_imports_of(FAMILIES.parent / name)) for name in ("__init__.py", "__init__.pyi"))
    wholly = [module for name, module in here if name == "*"]
    yield from ((name, module) for name, module in stub if (name, module) not in here and module not in (*wholly, "cygrad.tensor"))
    yield from ((row.tensors, "cygrad.torch_names.tensor_types") for row in DTYPES)


def load() -> dict[str, RuleOp]:
    """Import all modules, and return the gradients that they and the tables declare."""
    for module in trees():
        if not module.endswith("__main__"):
            import_module(module)
    return {name: rule for name, rule in declared_rules.items() if rule.declared}


def registry() -> str:
    """Return the text of `registry`."""
    text = '"""Written by `python -m building.operators`: where each operator is declared, read when a name is first asked for."""\n'
    results = list(entries())
    functions = [*((entry.name, entry.module) for entry in results if entry.function), *names_of_rows()]
    tables = {
        "FUNCTIONS": [(name, module) for name, module in functions if not namespace_of(name)],
        **{space.upper().replace(".", "_"): [(name, module) for name, module in functions if namespace_of(name) == space]
           for space in NAMESPACES.values()},
        "METHODS": [(entry.name, entry.module) for entry in results if entry.method and not entry.name.startswith("__")],
        "SYNTAX": [(entry.name, entry.module) for entry in results if entry.name.startswith("__")],      # methods that the core has
        "PROPERTIES": [(entry.name, entry.module) for entry in results if entry.property],
        "RULES": list(rules()),
        "OTHERS": list(loaded_at_first_use()),      # names of the package that are no operators
    }
    for title, places in tables.items():
        by_module: dict[str, list[str]] = {}
        for name, module in places:
            by_module.setdefault(module, []).append(name)
        text += f"\n{title}: dict[str, str] = {{\n"
        for module, names in by_module.items():
            lines = textwrap.wrap(" ".join(names), 120)
            text += f'    "{module}":\n' + "\n".join(f'        "{line}{" " if line is not lines[-1] else ""}"' for line in lines) + ",\n"
        text += "}\n"
    return text
