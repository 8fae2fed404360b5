"""The table of elementwise operators: one row holds an operator's formula and its partial derivatives.

Everything else is derived from the row: kernels, saved tensors, fused backward, double backward, methods, documentation, tests.
Conventions: x or a, b are operands, y the result. Gradients follow torch: 0 at the kinks of abs and relu, shared at ties.
"""

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any


class Elementwise(SimpleNamespace):
    """One elementwise operator.

    ``partials`` maps an operand to the formula of dy/d(operand); an operator without partials is not differentiable.
    ``kinds`` are the kinds of dtype it computes in (b, i, f): other inputs are converted upwards, or refused.
    ``result`` is "same" or "bool". ``masks`` are operands read as bool, outside promotion. ``params`` are constants
    of one call with their defaults. ``select`` names a keyword and the row that each of its values stands for.
    ``integers`` names the check that the second operand needs there: a divisor must not be 0, an exponent not negative.
    ``domain`` and ``edges`` are where the tests draw operands from.
    """

    name: str
    doc: str
    y: str
    operands: tuple[str, ...]
    partials: Mapping[str, str]
    let: Mapping[str, str] = {}
    kinds: str = "f"
    result: str = "same"
    params: Mapping[str, float] = {}
    masks: tuple[str, ...] = ()
    numpy: str | None = None
    domain: tuple[float, float] = (-3.0, 3.0)
    edges: tuple[float, ...] = ()
    node: str | None = None
    aliases: tuple[str, ...] = ()
    select: tuple[str, Mapping[object, str]] | None = None
    method: bool = True
    in_place: bool = True
    integers: str | None = None
    refusal: str = ""
    cost: int = 0

    def tree(self, text: str) -> Any:
        """Return a formula of the row as a syntax tree."""
        from . import formula
        return formula.parse(text, self.let)

    def backward(self, operand: str) -> Any:
        """Return the syntax tree of `g * dy/d(operand)`."""
        from . import formula
        return formula.times_gradient(self.tree(self.partials[operand]))

    def saved(self, operand: str) -> set[str]:
        """Return the names (operands, y) that the partial for `operand` reads."""
        return self.words(self.partials[operand]) & {*self.operands, "y"}

    def words(self, text: str) -> set[str]:
        """Return the names in a formula. Parsing it would tell functions apart, but costs half the time of an import."""
        found = set(re.findall(r"[A-Za-z_]\w*", text))
        return found.union(*(self.words(self.let[name]) for name in found & set(self.let)))


ELEMENTWISE: dict[str, Elementwise] = {}


def elementwise(name: str, *, y: str, operands: tuple[str, ...] = (), doc: str, numpy: str | None = None, **fields) -> None:
    """Add a row; `dx=`, `da=`, ... give the partials, by the operand's name."""
    operands = operands or (("a", "b") if re.search(r"\bb\b", y) else ("x",))
    partials = {operand: fields.pop("d" + operand) for operand in operands if "d" + operand in fields}
    unknown = set(fields) - set(Elementwise.__annotations__)
    if unknown:
        raise TypeError(f"elementwise({name!r}): no such fields: {', '.join(unknown)}")
    ELEMENTWISE[name] = Elementwise(name=name, doc=doc, y=y, operands=operands, partials=partials, numpy=numpy, **fields)


# ----- Arithmetic -----
elementwise("add", y="a + b", da="1", db="1", kinds="bif", numpy="add", select=("alpha", {1: "add", ...: "add_scaled"}),
            doc="Sum of two tensors, `input + alpha * other`.")
elementwise("add_scaled", y="a + alpha * b", da="1", db="alpha", params={"alpha": 1}, kinds="if", node="Add", method=False,
            doc="Sum of a tensor and a multiple of another.")
elementwise("sub", y="a - b", da="1", db="-1", kinds="if", numpy="subtract", aliases=("subtract",),
            select=("alpha", {1: "sub", ...: "sub_scaled"}),
            refusal="Subtraction, the `-` operator, with two bool tensors is not supported. "
                    "Use the `^` or `logical_xor()` operator instead.",
            doc="Difference of two tensors, `input - alpha * other`.")
elementwise("sub_scaled", y="a - alpha * b", da="1", db="-alpha", params={"alpha": 1}, kinds="if", node="Sub", method=False,
            doc="Difference of a tensor and a multiple of another.")
elementwise("mul", y="a * b", da="b", db="a", kinds="bif", numpy="multiply", aliases=("multiply",),
            doc="Product of two tensors, element by element.")
elementwise("div", y="a / b", da="1 / b", db="-y / b", numpy="true_divide", domain=(0.3, 2), aliases=("divide", "true_divide"),
            select=("rounding_mode", {None: "div", "trunc": "trunc_divide", "floor": "floor_divide"}),
            doc="Quotient of two tensors; integers are divided as floats.")
elementwise("floor_divide", y="floor_divide(a, b)", da="0", db="0", kinds="if", numpy="floor_divide", domain=(0.3, 2), integers="divisor",
            doc="Quotient rounded towards minus infinity.")
elementwise("trunc_divide", y="trunc_divide(a, b)", da="0", db="0", kinds="if", domain=(0.3, 2), method=False, integers="divisor",
            doc="Quotient rounded towards zero.")
elementwise("remainder", y="remainder(a, b)", da="1", db="-floor_divide(a, b)", kinds="if", numpy="remainder", domain=(0.3, 2),
            integers="divisor", doc="Remainder of the floored division, with the sign of the divisor.")
elementwise("pow", y="pow(a, b)", da="b * pow(a, b - 1 if b != 0 else 0)", db="y * log(a if a != 0 or b < 0 else 1)", kinds="if",
            numpy="power", domain=(0.3, 2), edges=(0.0, 1.0), integers="exponent", cost=2, doc="`input` raised to the power `exponent`.")
elementwise("neg", y="-x", dx="-1", kinds="if", numpy="negative", aliases=("negative",),
            refusal="Negation, the `-` operator, on a bool tensor is not supported. "
                    "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
            doc="Negative of each element.")
elementwise("abs", y="abs(x)", dx="sign(x)", kinds="if", numpy="absolute", aliases=("absolute",), edges=(0.0,),
            doc="Absolute value of each element.")
elementwise("sign", y="sign(x)", dx="0", kinds="bif", numpy="sign", edges=(0.0,), doc="Sign of each element: -1, 0 or 1.")
elementwise("reciprocal", y="1 / x", dx="-y * y", numpy="reciprocal", domain=(0.3, 2), doc="One divided by each element.")
elementwise("square", y="x * x", dx="2 * x", kinds="if", numpy="square", node="Pow", doc="Square of each element.")
elementwise("sqrt", y="sqrt(x)", dx="0.5 / y", numpy="sqrt", domain=(0.1, 3), doc="Square root of each element.")
elementwise("rsqrt", y="1 / sqrt(x)", dx="-0.5 * y * y * y", domain=(0.1, 3),
            doc="One divided by the square root of each element.")

# ----- Exponential, logarithmic and trigonometric -----
elementwise("exp", y="exp(x)", dx="y", numpy="exp", cost=1, doc="Exponential of each element.")
elementwise("expm1", y="expm1(x)", dx="y + 1", numpy="expm1", cost=1, doc="exp(x) - 1, accurate for small x.")
elementwise("log", y="log(x)", dx="1 / x", numpy="log", domain=(0.1, 3), cost=1, doc="Natural logarithm of each element.")
elementwise("log1p", y="log1p(x)", dx="1 / (1 + x)", numpy="log1p", domain=(-0.5, 3), cost=1,
            doc="log(1 + x), accurate for small x.")
elementwise("sin", y="sin(x)", dx="cos(x)", numpy="sin", cost=1, doc="Sine of each element, in radians.")
elementwise("cos", y="cos(x)", dx="-sin(x)", numpy="cos", cost=1, doc="Cosine of each element, in radians.")
elementwise("tan", y="tan(x)", dx="1 + y * y", numpy="tan", domain=(-1, 1), cost=1, doc="Tangent of each element, in radians.")
elementwise("tanh", y="tanh(x)", dx="1 - y * y", numpy="tanh", cost=1, doc="Hyperbolic tangent of each element.")
elementwise("erf", y="erf(x)", dx="1.1283791670955126 * exp(-x * x)", cost=1,
            doc="Error function of each element (Abramowitz and Stegun 7.1.1).")

# ----- Activations -----
elementwise("sigmoid", y="1 / (1 + exp(-x))", dx="y * (1 - y)", cost=1, doc="Logistic function, 1 / (1 + exp(-x)).")
elementwise("softplus", y="x if x * beta > threshold else log1p(exp(x * beta)) / beta",
            dx="1 if x * beta > threshold else 1 / (1 + exp(-x * beta))", params={"beta": 1.0, "threshold": 20.0}, cost=2,
            doc="Smooth rectifier, log(1 + exp(beta * x)) / beta; linear where beta * x exceeds `threshold`.")
elementwise("relu", y="maximum(x, 0)", dx="0 if y <= 0 else 1", kinds="if", edges=(0.0,), doc="Rectifier, max(x, 0).")
elementwise("gelu", y="0.5 * x * (1 + erf(x * 0.7071067811865476))",
            dx="0.5 * (1 + erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * exp(-0.5 * x * x)", cost=2, method=False,
            select=("approximate", {"none": "gelu", "tanh": "gelu_tanh"}),
            doc="Gaussian error linear unit, x * Phi(x) (Hendrycks and Gimpel 2016).")
elementwise("gelu_tanh", y="0.5 * x * (1 + s)", let={"s": "tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))"},
            dx="0.5 * (1 + s) + 0.5 * x * (1 - s * s) * 0.7978845608028654 * (1 + 0.134145 * x * x)", node="Gelu", cost=2,
            method=False, doc="Gaussian error linear unit, in its approximation by tanh.")
elementwise("silu", y="x * s", dx="s * (1 + x * (1 - s))", let={"s": "1 / (1 + exp(-x))"}, cost=1,
            doc="Sigmoid linear unit, x * sigmoid(x).")

# ----- Maximum, minimum and selection -----
elementwise("maximum", y="maximum(a, b)", da="0.5 if a == b else 0 if a < b else 1", db="0.5 if a == b else 0 if b < a else 1",
            kinds="bif", numpy="maximum", doc="Larger of two elements; NaN if either is.")
elementwise("minimum", y="minimum(a, b)", da="0.5 if a == b else 0 if a > b else 1", db="0.5 if a == b else 0 if b > a else 1",
            kinds="bif", numpy="minimum", doc="Smaller of two elements; NaN if either is.")
elementwise("clamp", operands=("x", "min", "max"), y="minimum(maximum(x, min), max)",
            dx="1 if x >= min and x <= max else 0", dmin="1 if x < min and min < max else 0",
            dmax="1 if x > max or max < min else 0", kinds="if", method=False,
            doc="Elements limited to the range from `min` to `max`.")
elementwise("clamp_min", operands=("x", "min"), y="maximum(x, min)", dx="1 if x >= min else 0", dmin="1 if x < min else 0",
            kinds="if", doc="Elements limited from below by `min`.")
elementwise("clamp_max", operands=("x", "max"), y="minimum(x, max)", dx="1 if x <= max else 0", dmax="1 if x > max else 0",
            kinds="if", doc="Elements limited from above by `max`.")
elementwise("where", operands=("condition", "a", "b"), masks=("condition",), y="a if condition else b", da="1 if condition else 0",
            db="0 if condition else 1", kinds="bif", method=False, in_place=False,
            doc="Elements of `input` where `condition` holds, of `other` elsewhere.")

# ----- Comparison, logic and bits -----
elementwise("eq", y="a == b", kinds="bif", result="bool", numpy="equal", doc="Where two tensors are equal.")
elementwise("ne", y="a != b", kinds="bif", result="bool", numpy="not_equal", aliases=("not_equal",),
            doc="Where two tensors differ.")
elementwise("lt", y="a < b", kinds="bif", result="bool", numpy="less", aliases=("less",), doc="Where `input < other`.")
elementwise("le", y="a <= b", kinds="bif", result="bool", numpy="less_equal", aliases=("less_equal",),
            doc="Where `input <= other`.")
elementwise("gt", y="a > b", kinds="bif", result="bool", numpy="greater", aliases=("greater",), doc="Where `input > other`.")
elementwise("ge", y="a >= b", kinds="bif", result="bool", numpy="greater_equal", aliases=("greater_equal",),
            doc="Where `input >= other`.")
elementwise("logical_and", y="a != 0 and b != 0", kinds="bif", result="bool", numpy="logical_and",
            doc="Where both elements are non-zero.")
elementwise("logical_or", y="a != 0 or b != 0", kinds="bif", result="bool", numpy="logical_or",
            doc="Where one of two elements is non-zero.")
elementwise("logical_xor", y="(a != 0) != (b != 0)", kinds="bif", result="bool", numpy="logical_xor",
            doc="Where exactly one of two elements is non-zero.")
elementwise("logical_not", y="x == 0", kinds="bif", result="bool", numpy="logical_not", doc="Where elements are zero.")
elementwise("bitwise_and", y="a & b", kinds="bi", numpy="bitwise_and", doc="Bitwise and; logical and of bools.")
elementwise("bitwise_or", y="a | b", kinds="bi", numpy="bitwise_or", doc="Bitwise or; logical or of bools.")
elementwise("bitwise_xor", y="a ^ b", kinds="bi", numpy="bitwise_xor", doc="Bitwise exclusive or; of bools, where they differ.")
elementwise("bitwise_not", y="~x", kinds="bi", numpy="bitwise_not", doc="Bitwise complement; logical not of bools.")
elementwise("isnan", y="isnan(x)", kinds="bif", result="bool", numpy="isnan", in_place=False, edges=(float("nan"),),
            doc="Where elements are NaN.")
elementwise("isinf", y="isinf(x)", kinds="bif", result="bool", numpy="isinf", in_place=False, edges=(float("inf"),),
            doc="Where elements are infinite.")
elementwise("isfinite", y="isfinite(x)", kinds="bif", result="bool", numpy="isfinite", in_place=False,
            edges=(float("nan"), float("inf")), doc="Where elements are neither infinite nor NaN.")
elementwise("isclose", params={"rtol": 1e-5, "atol": 1e-8, "equal_nan": 0}, result="bool", in_place=False,
            y="a == b or abs(a - b) <= atol + rtol * abs(b) and isfinite(a - b) or equal_nan != 0 and isnan(a) and isnan(b)",
            doc="Where `abs(input - other) <= atol + rtol * abs(other)`.")
