"""Formulas of rows as LaTeX, for the pages of the API: one reading more of the grammar of `cygrad.ops.formula`."""

import ast
import copy
import math

from cygrad.ops import formula

PI, ROOT_PI, ROOT_2_PI = math.pi, math.sqrt(math.pi), math.sqrt(2 * math.pi)
NUMBERS = {     # the constants that rows write as decimals, as fractions
    PI: (r"\pi", ""), PI / 180: (r"\pi", "180"), 180 / PI: ("180", r"\pi"), PI**2: (r"\pi^{2}", ""), PI**2 / 3: (r"\pi^{2}", "3"),
    math.log(2): (r"\ln 2", ""), 1 / math.log(2): ("", r"\ln 2"), 1 / math.log(10): ("", r"\ln 10"), 2 / ROOT_PI: ("2", r"\sqrt{\pi}"),
    ROOT_PI / 2: (r"\sqrt{\pi}", "2"), 1 / ROOT_2_PI: ("", r"\sqrt{2\pi}"), ROOT_2_PI: (r"\sqrt{2\pi}", ""), 1 / 6: ("", "6"),
    math.sqrt(2 / PI): (r"\sqrt{2}", r"\sqrt{\pi}"), 2 * math.sqrt(2 / PI): (r"2\sqrt{2}", r"\sqrt{\pi}"),
    math.sqrt(0.5): ("", r"\sqrt{2}"), 0.5: ("", "2"),
}
WORDS = {"inf": r"\infty", "nan": r"\mathrm{NaN}", "lowest": r"-\infty", "highest": r"\infty", "acc": "s"}
COMPARISONS = {ast.Eq: "=", ast.NotEq: r"\ne", ast.Lt: "<", ast.LtE: r"\le", ast.Gt: ">", ast.GtE: r"\ge"}
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt}
BITS = {ast.BitAnd: r"\operatorname{and}", ast.BitOr: r"\operatorname{or}", ast.BitXor: r"\operatorname{xor}"}
LOGICAL = {ast.And: r"\text{ and }", ast.Or: r"\text{ or }"}

# Functions by their notation, with {0}, {1} for the arguments; a braced {0:p} puts an argument in parentheses where it is no single symbol.
FUNCTIONS = {
    **{name: rf"\{name} {{0:p}}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{name}": rf"\operatorname{{{{ar{'c' if name in ('sin', 'cos', 'tan') else ''}{name}}}}}({{0}})"
       for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "log": r"\ln {0:p}", "log2": r"\log_{{2}} {0:p}", "log10": r"\log_{{10}} {0:p}", "log1p": r"\ln(1 + {0})",
    "exp": "e^{{{0}}}", "exp2": "2^{{{0}}}", "gaussian": r"e^{{-{0:b}^{{2}}/2}}", "sqrt": r"\sqrt{{{0}}}", "abs": r"\left|{0}\right|",
    "pow": "{0:b}^{{{1}}}", "floor": r"\lfloor {0} \rfloor", "ceil": r"\lceil {0} \rceil", "conj": r"\overline{{{0}}}",
    "real": r"\operatorname{{Re}}({0})", "imag": r"\operatorname{{Im}}({0})", "sigmoid": r"\sigma({0})", "minimum": r"\min({0}, {1})",
    "maximum": r"\max({0}, {1})", "hypot": r"\sqrt{{{0:b}^{{2}} + {1:b}^{{2}}}}", "floor_divide": r"\lfloor {0:q} / {1:q} \rfloor",
    "trunc_divide": r"\operatorname{{trunc}}({0:q} / {1:q})", "logit": r"\ln \frac{{{0}}}{{1 - {0:q}}}",
    "lgamma": r"\ln \left|\Gamma({0})\right|", "digamma": r"\psi({0})", "trigamma": r"\psi^{{(1)}}({0})",
    "higher_polygamma": r"\psi^{{({1})}}({0})", "i0": "I_{{0}}({0})", "i1": "I_{{1}}({0})", "i0e": r"e^{{-|{0}|}} I_{{0}}({0})",
    "i1e": r"e^{{-|{0}|}} I_{{1}}({0})", "ndtr": r"\Phi({0})", "ndtri": r"\Phi^{{-1}}({0})", "log_ndtr": r"\ln \Phi({0})",
    "erfinv": r"\operatorname{{erf}}^{{-1}}({0})", "erfcx": r"e^{{{0:b}^{{2}}}} \operatorname{{erfc}}({0})",
    "left_shift": r"{0:q} \cdot 2^{{{1}}}", "right_shift": r"\lfloor {0:q} / 2^{{{1}}} \rfloor",
}
SUMS = {"expm1": "e^{{{0}}} - 1", "remainder": r"{0} - {1:q} \lfloor {0:q} / {1:q} \rfloor",
        "fmod": r"{0} - {1:q} \operatorname{{trunc}}({0:q} / {1:q})", "complex": "{0} + i {1:q}"}     # notations that are sums
CONDITIONS = {"isnan": r"{0} \text{{ is NaN}}", "isinf": r"\left|{0}\right| = \infty", "isfinite": r"\left|{0}\right| < \infty"}
CHOICE, CONDITION, SUM, PRODUCT, FUNCTION, POWER, SYMBOL = range(7)     # how tightly a text binds


class _Text:
    """A formula with how tightly it binds, as an argument of a notation."""

    def __init__(self, text: str, level: int):
        self.text, self.level = text, level

    def at(self, level: int) -> str:
        return self.text if self.level >= level else rf"\left({self.text}\right)"

    def __format__(self, form: str) -> str:
        if form == "p":     # an argument of \sin: a symbol needs no parentheses
            return self.text if self.level == SYMBOL else f"({self.text})"
        return {"b": self.at(SYMBOL), "q": self.at(PRODUCT + 1)}.get(form, self.text)


def latex(tree: ast.expr) -> str:
    """Return a formula as LaTeX."""
    return _read(_Decided(set()).visit(copy.deepcopy(tree))).text


def symbol(name: str) -> str:
    """Return the name of an operand, a parameter or an abbreviation: words are upright."""
    return WORDS.get(name) or (name if len(name) == 1 else rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}")


def _number(value: float) -> _Text:
    if isinstance(value, float) and value == int(value) and abs(value) < 1e6:
        return _Text(str(int(value)), SYMBOL)
    mantissa, _, exponent = (f"{value:g}" if abs(value) >= 1e6 else repr(value)).partition("e")
    if not exponent:
        return _Text(mantissa, SYMBOL)
    power = f"10^{{{int(exponent)}}}"
    return _Text(power if mantissa == "1" else rf"{float(mantissa):.6g} \cdot {power}", PRODUCT)


def _constant(value: float) -> tuple[str, str] | None:
    """Return the numerator and the denominator of a constant; None if it has no name."""
    return next((parts for constant, parts in NUMBERS.items() if math.isclose(value, constant, rel_tol=1e-15)), None)


class _Fraction:
    """A product of factors over another."""

    def __init__(self, node: ast.expr):
        self.sign = 1
        self.above: list[_Text] = []
        self.below: list[_Text] = []
        self.add(node, self.above, self.below)

    def add(self, node: ast.expr, above: list[_Text], below: list[_Text]) -> None:
        match node:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                self.add(left, above, below)
                self.add(right, above, below)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                self.add(left, above, below)
                self.add(right, below, above)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                self.sign = -self.sign
                self.add(operand, above, below)
            case ast.Constant(value=float() as value) if parts := _constant(value):
                above += [_Text(parts[0], FUNCTION)] * bool(parts[0])
                below += [_Text(parts[1], FUNCTION)] * bool(parts[1])
            case ast.Constant(value=1):
                pass
            case _:
                above.append(_read(node))

    def text(self) -> _Text:
        sign = "-" if self.sign < 0 else ""
        if self.below:
            return _Text(rf"{sign}\frac{{{_product(self.above).text}}}{{{_product(self.below).text}}}", PRODUCT if sign else FUNCTION)
        product = _product(self.above)
        return _Text(f"-{product.at(PRODUCT)}", PRODUCT) if sign else product


def _product(factors: list[_Text]) -> _Text:
    """Return a product, equal factors as powers."""
    powers: dict[str, list[_Text]] = {}
    for factor in factors:
        powers.setdefault(factor.text, []).append(factor)
    parts = [_Text(f"{equal[0]:b}^{{{len(equal)}}}", POWER) if len(equal) > 1 else equal[0] for equal in powers.values()]
    if len(parts) < 2:
        return parts[0] if parts else _Text("1", SYMBOL)
    text = ""
    for part in parts:
        one = part.at(PRODUCT)
        text += (rf" \cdot {one}" if one[0].isdigit() or one[0] == "-" else rf"\,{one}") if text else one
    return _Text(text, PRODUCT)


# ----- Choices: an inner one that an outer one has decided is left out -----
def _negated(test: ast.expr) -> ast.expr:
    match test:
        case ast.Compare(left=left, ops=[op], comparators=others) if type(op) in OPPOSITES:
            return ast.Compare(left, [OPPOSITES[type(op)]()], others)
        case ast.BoolOp(op=op, values=values):
            return ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), [*map(_negated, values)])
    return ast.UnaryOp(ast.Not(), test)


def _facts(test: ast.expr, holds: bool) -> set[str]:
    """Return the conditions that hold where a test does, or does not."""
    true = test if holds else _negated(test)
    return {ast.dump(true)}.union(*(_facts(part, True) for part in true.values)
                                  if isinstance(true, ast.BoolOp) and isinstance(true.op, ast.And) else ())


class _Decided(ast.NodeTransformer):
    def __init__(self, facts: set[str]):
        self.facts = facts

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if ast.dump(node.test) in self.facts:
            return self.visit(node.body)
        if ast.dump(_negated(node.test)) in self.facts:
            return self.visit(node.orelse)
        body = _Decided(self.facts | _facts(node.test, True)).visit(node.body)
        return ast.IfExp(self.visit(node.test), body, _Decided(self.facts | _facts(node.test, False)).visit(node.orelse))


def _choice(node: ast.IfExp) -> _Text:
    lines: list[str] = []
    rest: ast.expr = node
    while isinstance(rest, ast.IfExp):
        is_real = isinstance(rest.test, ast.Name) and rest.test.id == formula.IS_REAL
        test = r"\text{for real numbers}" if is_real else rf"\text{{if }} {_read(rest.test).text}"
        lines.append(f"{_read(rest.body).text} & {test}")
        rest = rest.orelse
    lines.append(rf"{_read(rest).text} & \text{{otherwise}}")
    return _Text(r"\begin{cases} " + r" \\ ".join(lines) + r" \end{cases}", SYMBOL)


def _read(node: ast.expr) -> _Text:
    match node:
        case ast.Name(id=name):
            return _Text(symbol(name), SYMBOL)
        case ast.Constant(value=float() as value) if _constant(value):
            return _Fraction(node).text()
        case ast.Constant(value=bool() | int() | float() as value):
            return _number(value)
        case ast.BinOp(op=ast.Mult() | ast.Div()) | ast.UnaryOp(op=ast.USub()):
            return _Fraction(node).text()
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign, level = ("+", SUM) if isinstance(op, ast.Add) else ("-", PRODUCT)
            other = _read(right).at(level)
            return _Text(f"{_read(left).at(SUM)} {sign} {other if other[0] != '-' else rf'({other})'}", SUM)
        case ast.BinOp(left=left, op=op, right=right):
            return _Text(rf"{_read(left).at(FUNCTION)} {BITS[type(op)]} {_read(right).at(FUNCTION)}", SUM)
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return _Text(rf"\operatorname{{not}} {_read(operand).at(FUNCTION)}", FUNCTION)
        case ast.Compare(left=left, ops=[comparison], comparators=[right]):
            return _Text(f"{_read(left).at(SUM)} {COMPARISONS[type(comparison)]} {_read(right).at(SUM)}", CONDITION)
        case ast.BoolOp(op=junction, values=values):
            inner = [_read(value) for value in values]
            nested = [isinstance(value, ast.BoolOp) and isinstance(junction, ast.And) for value in values]
            parts = [one.at(SUM) if deep else one.text for one, deep in zip(inner, nested, strict=True)]
            return _Text(LOGICAL[type(junction)].join(parts), CHOICE)
        case ast.IfExp():
            return _choice(node)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            read = [_read(argument) for argument in arguments]
            for notations, level in ((FUNCTIONS, POWER if name in ("exp", "exp2", "gaussian", "pow") else FUNCTION), (SUMS, SUM),
                                     (CONDITIONS, CONDITION)):
                if name in notations:
                    return _Text(notations[name].format(*read), level)
            return _Text(rf"{operator(name)}({', '.join(one.text for one in read)})", FUNCTION)
    raise formula.FormulaError(f"not in the grammar of formulas: {ast.unparse(node)!r}")


def operator(name: str) -> str:
    """Return the name of a function in upright letters."""
    return rf"\operatorname{{{name.replace('_', chr(92) + '_')}}}"
