"""Formulas: Python expressions of the tables, read as C or as differentiable tensor operations.

The grammar: arguments, parameters and `let` names; numbers, inf, nan; + - * / & | ^ ~ and unary minus; comparisons;
and, or, not; `p if condition else q` (finite in both branches: the tensor reading evaluates both); the functions that headers of
`_kernels` define as CG_EXACT_FUNCTION or CG_VECTOR_FUNCTION, which `generate.py` reads there.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any

CONSTANTS = {"inf": "(T)INFINITY", "nan": "(T)NAN", "lowest": "lowest_{}", "highest": "highest_{}"}

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_LOGICAL = {ast.And: ("&&", "logical_and"), ast.Or: ("||", "logical_or")}


class FormulaError(ValueError):
    """A formula of a table uses something outside the grammar."""


def parse(text: str, let: Mapping[str, str] | None = None) -> ast.expr:
    """Parse a formula and put the expressions of `let` in place of their names."""
    tree = ast.parse(text, mode="eval").body
    return _Substitute(let).visit(tree) if let else tree


class _Substitute(ast.NodeTransformer):
    def __init__(self, let: Mapping[str, str]):
        self.let = let

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return parse(self.let[node.id], self.let) if node.id in self.let else node


def nodes_of(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a formula; `ast.walk` imports something when called, which a backward cannot while Python shuts down."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        yield from nodes_of(child)


def names(tree: ast.AST) -> set[str]:
    """Return the argument and parameter names a formula mentions."""
    found = {node.id for node in nodes_of(tree) if isinstance(node, ast.Name)}
    return found - called(tree) - set(CONSTANTS)


def called(tree: ast.AST) -> set[str]:
    """Return the names of the functions a formula calls."""
    return {node.func.id for node in nodes_of(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def times_gradient(tree: ast.expr) -> ast.expr:
    """Return `g * (partial)` with the product moved inwards, so that a zero branch is exactly 0 and `1 / b` is `g / b`."""
    g = ast.Name("g", ast.Load())
    match tree:
        case ast.Constant(value=0):
            return tree
        case ast.Constant(value=1):
            return g
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ast.UnaryOp(ast.USub(), times_gradient(operand))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return ast.IfExp(test, times_gradient(body), times_gradient(orelse))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return ast.BinOp(times_gradient(left), ast.Div(), right)
    return ast.BinOp(g, ast.Mult(), tree)


def to_c(tree: ast.expr, dtype: str, known: set[str], functions: Collection[str]) -> str:
    """Translate a formula to a C expression for element type `dtype`; names must be in `known`, what is called in `functions`."""

    def walk(node: ast.expr) -> str:
        match node:
            case ast.Name(id=name) if name in known:
                return name
            case ast.Name(id=name) if name in CONSTANTS:
                return CONSTANTS[name].format(dtype)
            case ast.Constant(value=bool() | int() | float() as value):
                return f"(T){value!r}"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return f"({walk(left)} {_BINARY[type(op)]} {walk(right)})"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{walk(operand)})"
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return f"({'!' if dtype == 'bool' else '~'}{walk(operand)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"(!{walk(operand)})"
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return f"({walk(left)} {_COMPARE[type(op)]} {walk(right)})"
            case ast.BoolOp(op=op, values=values):
                # `&` of 0/1 values: no short circuit, so the loop stays free of branches.
                return "(" + f" {_LOGICAL[type(op)][0][0]} ".join(f"({walk(value)} != 0)" for value in values) + ")"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"({walk(test)} ? {walk(body)} : {walk(orelse)})"
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in functions:
                return f"{name}_{dtype}({', '.join(map(walk, arguments))})"
        raise FormulaError(f"not in the grammar of formulas: {ast.unparse(node)!r}")

    return walk(tree)


class _TensorReading(ast.NodeTransformer):
    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return _call("where", node.test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        result = node.values[0]
        for value in node.values[1:]:
            result = _call(_LOGICAL[type(node.op)][1], result, value)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _call("logical_not", node.operand) if isinstance(node.op, ast.Not) else node


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def takes_number(tree: ast.expr, operand: str) -> bool:
    """Say whether an operand may stay a number in the tensor reading: no function or logical operator is to begin with it."""
    first = [node.args[0] if isinstance(node, ast.Call) else node for node in nodes_of(tree)
             if isinstance(node, ast.Call | ast.BoolOp) or isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)]
    return not any(operand in names(node) for node in first)


def to_tensor_function(tree: ast.expr, arguments: list[str], namespace: Mapping[str, Any], filename: str):
    """Compile a formula into a Python function of tensors; its functions are looked up in `namespace`."""
    body = ast.unparse(_TensorReading().visit(ast.parse(ast.unparse(tree), mode="eval").body))
    source = f"lambda {', '.join(arguments)}: {body}"
    where = namespace["where"]

    def choose(test: object, chosen: object, other: object) -> object:
        """Return `chosen if test else other`; a test of numbers is a bool."""
        return (chosen if test else other) if isinstance(test, bool) else where(test, chosen, other)

    return eval(compile(source, f"<formula of {filename}>", "eval"), {**CONSTANT_VALUES, **namespace, "where": choose})


CONSTANT_VALUES = {"inf": float("inf"), "nan": float("nan")}
