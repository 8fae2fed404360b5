"""Formulas: Python expressions of the tables, read as C, of real or of complex numbers, or as differentiable tensor operations.

The grammar: arguments, parameters and `let` names; numbers, inf, nan; + - * / & | ^ ~ and unary minus; comparisons;
and, or, not; `p if condition else q` (finite in both branches: the tensor reading evaluates both); the functions that headers of
`_kernels` define as CG_EXACT_FUNCTION or CG_VECTOR_FUNCTION, which `codegen` reads there. `conj`, `real` and `imag` of a real
number are that number, or 0. `p if is_real else q` is p in the formula for real numbers, q in the formula for complex numbers.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

CONSTANTS = {"inf": "(T)INFINITY", "nan": "(T)NAN", "lowest": "lowest_{}", "highest": "highest_{}"}

PARTS = {"conj", "real"}    # of a number, which needs no tensor
IS_REAL = "is_real"

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_OF_BOOLS = {ast.Add: "|", ast.Mult: "&"}       # as numbers they would become int, which has fewer lanes
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_COMPLEX = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
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
    """Yield all nodes of a formula; `ast.walk` imports something when called, which a backward cannot while Python shuts down.

    So does `ast.unparse` of Python 3.14.
    """
    yield tree
    for child in ast.iter_child_nodes(tree):
        yield from nodes_of(child)


def names(tree: ast.AST) -> set[str]:
    """Return the argument and parameter names a formula mentions."""
    results = {node.id for node in nodes_of(tree) if isinstance(node, ast.Name)}
    return results - called(tree) - {*CONSTANTS, IS_REAL}


def called(tree: ast.AST) -> set[str]:
    """Return the names of the functions a formula calls."""
    return {node.func.id for node in nodes_of(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def divides(tree: ast.AST) -> bool:
    """Return True if a formula has a quotient."""
    return any(isinstance(node, ast.Div) for node in nodes_of(tree))


def times_gradient(tree: ast.expr, gradient: ast.expr | None = None) -> ast.expr:
    """Return `g * (partial)` with the product moved inwards, so that a zero branch is exactly 0 and `1 / b` is `g / b`."""
    g = gradient or ast.Name("g", ast.Load())
    match tree:
        case ast.Constant(value=0):
            return tree
        case ast.Constant(value=1):
            return g
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ast.UnaryOp(ast.USub(), times_gradient(operand, gradient))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return ast.IfExp(test, times_gradient(body, gradient), times_gradient(orelse, gradient))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return ast.BinOp(times_gradient(left, gradient), ast.Div(), right)
    return ast.BinOp(g, ast.Mult(), tree)


def conjugated(tree: ast.expr) -> ast.expr:
    """Return the conjugate of a formula, moved inwards, which leaves real parts as they are."""
    match tree:
        case ast.Constant():
            return tree
        case ast.UnaryOp(op=op, operand=operand):
            return ast.UnaryOp(op, conjugated(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return ast.BinOp(conjugated(left), op, conjugated(right))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return ast.IfExp(test, conjugated(body), conjugated(orelse))
        case ast.Call(func=ast.Name(id="abs" | "angle" | "real" | "imag")):
            return tree
    return call("conj", tree)


def sum_of(a: ast.expr, b: ast.expr) -> ast.expr:
    """Return a sum within the common outer part: one that is 0 is 0 also where a quotient overflows."""
    match a, b:
        case ast.Constant(value=0), _:
            return b
        case ast.IfExp(), ast.IfExp() if ast.dump(a.test) == ast.dump(b.test):
            return ast.IfExp(a.test, sum_of(a.body, b.body), sum_of(a.orelse, b.orelse))
        case ast.BinOp(op=ast.Div()), ast.BinOp(op=ast.Div()) if ast.dump(a.right) == ast.dump(b.right):
            return ast.BinOp(sum_of(a.left, b.left), ast.Div(), a.right)
    return ast.BinOp(a, ast.Add(), b)


class Numbers(NamedTuple):
    """The dtypes in which a formula is read as C: of its real numbers, of its complex ones, and the C type of its constants."""

    real: str
    complex: str | None = None
    constant: str = "T"


class Functions(NamedTuple):
    """The functions of formulas: names for real numbers, and for complex ones the kinds that they take and give."""

    real: Collection[str]
    complex: Mapping[str, tuple[str, str]]


def to_c(tree: ast.expr, numbers: Numbers, known: Mapping[str, str], functions: Functions, result: str | None = None) -> str:
    """Translate a formula to a C expression, each part of which is real or complex ("r", "c").

    Names must be in `known`, which has their kinds. Operations without a meaning for complex numbers, such as `<`, are refused. `result` is
    the required kind: a real number becomes complex, of a complex one the real part is taken.
    """

    def refuse(node: ast.expr) -> FormulaError:
        return FormulaError(f"not in the grammar of formulas: {ast.unparse(node)!r}")

    def as_kind(value: tuple[str, str], kind: str) -> str:
        text, own = value
        if own == kind:
            return text
        return f"complex_{numbers.complex}({text}, 0)" if kind == "c" else f"real_{numbers.complex}({text})"

    def truth(value: tuple[str, str]) -> str:
        text, kind = value
        return f"({text} != 0)" if kind == "r" else f"(!equal_{numbers.complex}({text}, complex_{numbers.complex}(0, 0)))"

    def called(node: ast.expr, name: str, arguments: list[tuple[str, str]]) -> tuple[str, str]:
        kinds = {kind for _, kind in arguments}
        if kinds == {"r"} and name in ("conj", "real", "imag"):
            return f"(({numbers.constant})0)" if name == "imag" else arguments[0][0], "r"
        if kinds == {"r"} and name in functions.real:
            return f"{name}_{numbers.real}({', '.join(text for text, _ in arguments)})", "r"
        if numbers.complex is None or name not in functions.complex:
            raise refuse(node)
        kinds_taken, kind_of_result = functions.complex[name]
        if "r" in kinds_taken and "c" in kinds:
            raise refuse(node)
        return f"{name}_{numbers.complex}({', '.join(map(as_kind, arguments, kinds_taken))})", kind_of_result

    def walk(node: ast.expr) -> tuple[str, str]:
        match node:
            case ast.Name(id=name) if name in known:
                return name, known[name]
            case ast.Name(id=name) if name in CONSTANTS:
                return CONSTANTS[name].format(numbers.real).replace("(T)", f"({numbers.constant})"), "r"
            case ast.Constant(value=bool() | int() | float() as value):
                return f"({numbers.constant}){value!r}", "r"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                (a, a_kind), (b, b_kind) = walk(left), walk(right)
                if numbers.real == "bool" and type(op) in _OF_BOOLS:
                    return f"({truth((a, a_kind))} {_OF_BOOLS[type(op)]} {truth((b, b_kind))})", "r"
                if a_kind == b_kind == "r":
                    return f"({a} {_BINARY[type(op)]} {b})", "r"
                if type(op) in _COMPLEX:
                    return f"{_COMPLEX[type(op)]}_{a_kind}{b_kind}_{numbers.complex}({a}, {b})", "c"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                text, kind = walk(operand)
                return (f"(-{text})", "r") if kind == "r" else (f"neg_{numbers.complex}({text})", "c")
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return f"({'!' if numbers.real == 'bool' else '~'}{walk(operand)[0]})", "r"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                text, kind = walk(operand)
                return f"(!{text if kind == 'r' else truth((text, kind))})", "r"
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                one, other = walk(left), walk(right)
                if one[1] == other[1] == "r":
                    return f"({one[0]} {_COMPARE[type(op)]} {other[0]})", "r"
                if isinstance(op, (ast.Eq, ast.NotEq)):
                    return f"({_COMPARE[type(op)][0].strip('=')}equal_{numbers.complex}({as_kind(one, 'c')}, {as_kind(other, 'c')}))", "r"
            case ast.BoolOp(op=op, values=values):
                # `&` of 0/1 values: no short circuit, so the loop stays free of branches.
                return "(" + f" {_LOGICAL[type(op)][0][0]} ".join(truth(walk(value)) for value in values) + ")", "r"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition, chosen, other = walk(test), walk(body), walk(orelse)
                if chosen[1] == other[1] == "r":
                    return f"({condition[0]} ? {chosen[0]} : {other[0]})", "r"
                return f"select_{numbers.complex}({condition[0]}, {as_kind(chosen, 'c')}, {as_kind(other, 'c')})", "c"
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return called(node, name, [walk(argument) for argument in arguments])
        raise refuse(node)

    value = walk(tree)
    return as_kind(value, result or value[1])


class _NumbersReading(ast.NodeTransformer):
    """Puts the formula for real or for complex numbers in place of a choice by `is_real`."""

    def __init__(self, is_complex: bool):
        self.is_complex = is_complex

    def generic_visit(self, node: Any) -> Any:
        """Return a new node: formulas have parts in common, and stay."""
        def visited(value: Any) -> Any:
            return self.visit(value) if isinstance(value, ast.AST) else [*map(visited, value)] if isinstance(value, list) else value

        return type(node)(**{name: visited(value) for name, value in ast.iter_fields(node)})

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if isinstance(node.test, ast.Name) and node.test.id == IS_REAL:
            return self.visit(node.orelse if self.is_complex else node.body)
        return self.generic_visit(node)


def for_numbers(tree: ast.expr, is_complex: bool) -> ast.expr:
    """Return a formula as it is for real or for complex numbers."""
    return _NumbersReading(is_complex).visit(tree)


class _TensorReading(_NumbersReading):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        node = self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) and not self.is_complex else None
        return ast.Constant(0) if name == "imag" else node.args[0] if name in PARTS or name == "complex" else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        choice = super().visit_IfExp(node)
        return call("where", choice.test, choice.body, choice.orelse) if isinstance(choice, ast.IfExp) else choice

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        node = self.generic_visit(node)
        result = node.values[0]
        for value in node.values[1:]:
            result = call(_LOGICAL[type(node.op)][1], result, value)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        node = self.generic_visit(node)
        return call("logical_not", node.operand) if isinstance(node.op, ast.Not) else node


def call(name: str, *arguments: ast.expr) -> ast.expr:
    """Return the call of a function of formulas."""
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def takes_number(tree: ast.expr, operand: str) -> bool:
    """Return True if an operand may stay a number in the tensor reading: no function or logical operator is to begin with it."""
    first = [node.args[0] if isinstance(node, ast.Call) else node for node in nodes_of(tree)
             if isinstance(node, ast.Call) and not names(node.func) <= PARTS or isinstance(node, ast.BoolOp)
             or isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)]
    return not any(isinstance(part, ast.Name) and part.id == operand for node in first for part in _nodes_of_value(node))


def _nodes_of_value(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that a value is made of: not those that only decide which."""
    yield tree
    for child in (tree.body, tree.orelse) if isinstance(tree, ast.IfExp) else ast.iter_child_nodes(tree):
        yield from _nodes_of_value(child)


def to_tensor_function(tree: ast.expr, arguments: list[str], namespace: Mapping[str, Any], filename: str, is_complex: bool = False):
    """Compile a formula into a Python function of tensors; its functions are looked up in `namespace`.

    The reading of real tensors has no imaginary parts: a complex factor is its real part there.
    """
    body = _TensorReading(is_complex).visit(tree)
    kinds_taken = ast.arguments([], [ast.arg(name) for name in arguments], None, [], [], None, [])
    function = ast.fix_missing_locations(ast.Expression(ast.Lambda(kinds_taken, body)))
    where = namespace["where"]

    def choose(test: object, chosen: object, other: object) -> object:
        """Return `chosen if test else other`; a test of numbers is a bool."""
        return (chosen if test else other) if isinstance(test, bool) else where(test, chosen, other)

    return eval(compile(function, f"<formula of {filename}>", "eval"), {**CONSTANT_VALUES, **PARTS_OF_VALUES, **namespace, "where": choose})


def _conjugate(value: Any) -> Any:
    return value.conjugate() if isinstance(value, (int, float, complex)) else value.conj()


# Of tensors and of numbers.
PARTS_OF_VALUES = {"conj": _conjugate, "real": lambda value: value.real, "imag": lambda value: value.imag,
                   "complex": lambda re, im: re + 1j * im}
CONSTANT_VALUES = {"inf": float("inf"), "nan": float("nan")}
