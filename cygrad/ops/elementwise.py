"""The table of elementwise operators: one row holds an operator's formula and its partial derivatives.

Everything else is derived from the row: kernels, saved tensors, fused backward, double backward, methods, documentation, tests.
Conventions: x or a, b are operands, y the result. Gradients follow torch: 0 at the kinks of abs and relu, shared at ties.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from . import formula
from .refusals import BOOL_DIFFERENCE, SEVERAL_FORMS, refuse
from .tuning import TUNING, Tuning


class Elementwise(Tuning):
    """One elementwise operator.

    ``partials`` maps an operand to the formula of dy/d(operand); an operator without partials is not differentiable. Where it is not
    holomorphic, ``conjugates`` has the partial for the conjugate; where the result is real, the partial is dy/dRe + i dy/dIm.
    ``kinds`` are the kinds of dtype it computes in (b, i, u, f, c): other inputs are converted upwards, or refused.
    ``counts_bools``: bools, which it does not compute in, are taken as int64. ``bounds`` are operands of which 0-d tensors count as
    numbers where another of them is a number.
    ``result`` is "same", "bool", or "real": the dtype of the parts of its numbers. ``masks`` are operands read as bool, outside
    promotion. ``params`` are constants of one call with their defaults. ``select`` names a keyword and the row that each of its values
    stands for, ``bad_choice`` torch's words for another value, where they are its own.
    ``of_numbers``: it computes two numbers as 0-d tensors, as torch's arithmetic does. ``tensors`` are operands that are no numbers in
    functions and methods, as in torch's; formulas and NumPy's functions take numbers there, too.
    ``no_bools``: it takes no bool, beside other operands either; ``no_integers``: nor converts it integers to floats.
    ``refuses`` are torch's exceptions by kinds of dtype that it does not take, ``loop`` is torch's name of the loop (see `refusals`).
    ``forms``: torch has several signatures, and lists them where an operand has a wrong type. ``bad_params`` says which real parameters are
    refused, and by which exception.
    ``integers`` names the check that the second operand needs there: a divisor must not be 0, an exponent not negative.
    ``domain`` and ``edges`` are where the tests draw operands from. How its loops are built is a row of `tuning`, whose fields it has, too.
    """

    name: str
    doc: str
    y: str
    operands: tuple[str, ...]
    partials: Mapping[str, str]
    conjugates: Mapping[str, str]
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
    bad_choice: str = ""
    method: bool = True
    in_place: bool = True
    integers: str | None = None
    no_bools: bool = False
    no_integers: bool = False
    refuses: Mapping[str, Exception] = {}
    loop: str = ""
    forms: bool = False
    bad_params: tuple[Callable[..., bool], Exception] | None = None
    counts_bools: bool = False
    bounds: tuple[str, ...] = ()
    of_numbers: bool = False
    tensors: tuple[str, ...] = ()

    def tree(self, text: str) -> Any:
        """Return a formula of the row as a syntax tree."""
        return formula.parse(text, self.let)

    def backward(self, operand: str) -> Any:
        """Return the syntax tree of `g * conj(dy/d(operand))`, which is the gradient; a real result's is `g` in a direction."""
        partial = self.tree(self.partials[operand])
        if self.result == "real":
            return formula.times_gradient(partial)
        return self._with_conjugate(formula.times_gradient(formula.conjugated(partial)), operand)

    def tangent(self, operand: str) -> Any:
        """Return the syntax tree of the result's tangent for a complex tangent `g`; of a real result it is the part along a direction."""
        partial = self.tree(self.partials[operand])
        if self.result == "real":
            return formula.call("real", formula.times_gradient(formula.conjugated(partial)))
        return self._with_conjugate(formula.times_gradient(partial), operand)

    def _with_conjugate(self, product: Any, operand: str) -> Any:
        """Return the sum of a product with `g` and of conj(g) times the partial for the conjugate."""
        if operand not in self.conjugates:
            return product
        other = formula.times_gradient(self.tree(self.conjugates[operand]), formula.conjugated(ast.Name("g", ast.Load())))
        return formula.sum_of(product, other)

    def tree_of_shifted(self, number: str) -> Any:
        """Return the formula as a syntax tree, with a number taken from an operand, which is called `operand_` now."""
        operand = str(self.shifted)
        return formula.parse(self.y, {**self.let, operand: f"({operand}_ - {number})"})

    def saved(self, operand: str) -> set[str]:
        """Return the names (operands, y) that the partial for `operand` reads."""
        return self.words(f"{self.partials[operand]} + {self.conjugates.get(operand, '')}") & {*self.operands, "y"}

    def words(self, text: str) -> set[str]:
        """Return the names in a formula. Parsing it would distinguish functions, but costs half the time of an import."""
        results = set(re.findall(r"[A-Za-z_]\w*", text))
        return results.union(*(self.words(self.let[name]) for name in results & set(self.let)))


ELEMENTWISE: dict[str, Elementwise] = {}


def elementwise(name: str, *, y: str, operands: tuple[str, ...] = (), doc: str, numpy: str | None = None, **fields) -> None:
    """Add a row; `dx=`, `da=`, ... give the partials, by the operand's name."""
    operands = operands or (("a", "b") if re.search(r"\bb\b", " ".join([y, *fields.get("let", {}).values()])) else ("x",))
    partials = {operand: fields.pop("d" + operand) for operand in operands if "d" + operand in fields}
    conjugates = {operand: fields.pop(f"d{operand}_conj") for operand in operands if f"d{operand}_conj" in fields}
    unknown = set(fields) - set(Elementwise.__annotations__)
    if unknown:
        raise TypeError(f"elementwise({name!r}): no such fields: {', '.join(unknown)}")
    ELEMENTWISE[name] = Elementwise(name=name, doc=doc, y=y, operands=operands, partials=partials, conjugates=conjugates, numpy=numpy,
                                    **fields, **TUNING.get(name, {}))
    refuse(name, ELEMENTWISE[name].refuses, ELEMENTWISE[name].loop)
    SEVERAL_FORMS.update((name, *ELEMENTWISE[name].aliases) if ELEMENTWISE[name].forms else ())


# ----- Arithmetic -----
elementwise("add", y="a + b", da="1", db="1", kinds="bifc", numpy="add",
            select=("alpha", {1: "add", ...: "add_scaled"}),
            loop="add_stub",
            of_numbers=True, doc="Sum of two tensors, `input + alpha * other`.")
elementwise("add_scaled", y="a + alpha * b", da="1", db="alpha", params={"alpha": 1}, kinds="bifc", node="Add", method=False,
            loop="add_stub",
            of_numbers=True, doc="Sum of a tensor and a multiple of another.")
elementwise("sub", y="a - b", da="1", db="-1", kinds="ifc", numpy="subtract", aliases=("subtract",),
            select=("alpha", {1: "sub", ...: "sub_scaled"}),
            no_bools=True,
            refuses={"b": BOOL_DIFFERENCE},
            loop="add_stub",
            of_numbers=True, doc="Difference of two tensors, `input - alpha * other`.")
elementwise("sub_scaled", y="a - alpha * b", da="1", db="-alpha", params={"alpha": 1}, kinds="ifc", node="Sub", method=False,
            no_bools=True,
            refuses={"b": BOOL_DIFFERENCE},
            loop="add_stub",
            of_numbers=True, doc="Difference of a tensor and a multiple of another.")
elementwise("mul", y="a * b", da="b", db="a", kinds="biufc", numpy="multiply", aliases=("multiply",),
            of_numbers=True, doc="Product of two tensors, element by element.")
elementwise("div", y="a / b", da="1 / b", db="-(a / b) / b", kinds="fc", numpy="true_divide", domain=(0.3, 2),
            aliases=("divide", "true_divide"),
            select=("rounding_mode", {None: "div", "trunc": "trunc_divide", "floor": "floor_divide"}),
            of_numbers=True, doc="Quotient of two tensors; integers are divided as floats.")
elementwise("floor_divide", y="floor_divide(a, b)", da="0", db="0", kinds="if", numpy="floor_divide", domain=(0.3, 2),
            integers="divisor",
            loop="div_floor_cpu",
            of_numbers=True, forms=True, doc="Quotient rounded towards minus infinity.")
elementwise("trunc_divide", y="trunc_divide(a, b)", da="0", db="0", kinds="if", domain=(0.3, 2), method=False, integers="divisor",
            loop="div_trunc_cpu",
            of_numbers=True, doc="Quotient rounded towards zero.")
elementwise("remainder", y="remainder(a, b)", da="1", db="-floor_divide(a, b)", kinds="if", numpy="remainder", domain=(0.3, 2),
            integers="divisor", forms=True, doc="Remainder of the floored division, with the sign of the divisor.")
elementwise("fmod", y="fmod(a, b)", da="1", db="-trunc_divide(a, b)", kinds="if", numpy="fmod", domain=(0.3, 2),
            integers="divisor", tensors=("a",),
            forms=True, doc="Remainder of the division rounded towards zero, with the sign of the dividend.")
elementwise("pow", operands=("a", "exponent"), y="pow(a, exponent)",
            da="0 if exponent == 0 else exponent * pow(base, exponent - 1 if exponent != 0 else 0)",
            let={"base": "(1 if a == 0 else a) if exponent * (exponent - 1) == 0 else a"},      # complex 0 ** 0 is NaN
            dexponent="0 if a == 0 and real(exponent) >= 0 else y * log(a if a != 0 or real(exponent) < 0 else 1)",
            kinds="bifc", numpy="power", domain=(0.3, 2), edges=(0.0, 1.0), integers="exponent",
            loop="pow",
            forms=True, doc="`input` raised to the power `exponent`.")
elementwise("neg", y="-x", dx="-1", kinds="ifc", numpy="negative", aliases=("negative",),
            refuses={"b": RuntimeError("Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
                                       "mask, use the `~` or `logical_not()` operator instead.")},
            doc="Negative of each element.")
elementwise("abs", y="abs(x)", dx="sgn(x)", kinds="ifc", result="real", numpy="absolute", aliases=("absolute",), edges=(0.0,),
            doc="Absolute value of each element.")
elementwise("sign", y="sign(x)", dx="0", kinds="bif", numpy="sign", edges=(0.0,),
            refuses={"c": NotImplementedError("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
                                              "torch.sgn instead.")},
            doc="Sign of each element: -1, 0 or 1.")
elementwise("sgn", y="sgn(x)", dx="0 if is_real else 0 if x == 0 else 0.5 / m",
            dx_conj="0 if is_real else 0 if x == 0 else -0.5 * y * y / m",
            let={"m": "abs(x) if x != 0 else 1"}, kinds="bifc", edges=(0.0,),
            loop="sign_cpu",
            doc="Sign of each element; complex ones divided by their absolute value.")
elementwise("angle", y="angle(x)", dx="0 if is_real else 0 if x == 0 else complex(-imag(x), real(x)) / m / m",
            let={"m": "abs(x) if x != 0 else 1"}, kinds="fc", result="real", edges=(0.0,),
            doc="Angle of each element in the complex plane, in radians; pi of a negative number.")
elementwise("conj_physical", y="conj(x)", dx="0", dx_conj="1", kinds="biufc", numpy="conjugate", node="Conj",
            doc="Complex conjugate of each element.")
elementwise("reciprocal", y="1 / x", dx="-y * y", kinds="fc", numpy="reciprocal", domain=(0.3, 2), doc="One divided by each element.")
elementwise("square", y="x * x", dx="2 * x", kinds="ifc", counts_bools=True, numpy="square", node="Pow",
            loop="pow",
            doc="Square of each element.")
elementwise("sqrt", y="sqrt(x)", dx="0.5 / y", kinds="fc", numpy="sqrt", domain=(0.1, 3), doc="Square root of each element.")
elementwise("rsqrt", y="1 / sqrt(x)", dx="-0.5 * y * y * y", kinds="fc", domain=(0.1, 3),
            doc="One divided by the square root of each element.")
elementwise("hypot", y="hypot(a, b)", da="a / y", db="b / y", numpy="hypot", domain=(0.3, 2),
            tensors=("a", "b"), doc="Square root of the sum of two squares, which do not overflow.")
elementwise("lerp", operands=("x", "end", "weight"), y="x + weight * (end - x) if abs(weight) < 0.5 else end - (end - x) * (1 - weight)",
            dx="1 - weight", dend="weight", dweight="end - x", kinds="fc",
            forms=True, doc="Linear interpolation, `input + weight * (end - input)`.")
elementwise("addcmul", operands=("x", "tensor1", "tensor2"), y="x + value * tensor1 * tensor2", dx="1", dtensor1="value * tensor2",
            dtensor2="value * tensor1", params={"value": 1}, kinds="ifc",
            loop="addcmul_cpu_out",
            doc="Sum with a product, `input + value * tensor1 * tensor2`.")
elementwise("addcdiv", operands=("x", "tensor1", "tensor2"), y="x + value * (tensor1 / tensor2)", dx="1", dtensor1="value / tensor2",
            dtensor2="-value * (tensor1 / tensor2) / tensor2", kinds="fc", no_integers=True, params={"value": 1},
            domain=(0.3, 2),
            refuses={"biu": RuntimeError("Integer division with addcdiv is no longer supported: convert the operands first, e.g. with "
                                         ".float()")},
            doc="Sum with a quotient, `input + value * tensor1 / tensor2`.")
elementwise("gcd", y="gcd(a, b)", kinds="i", numpy="gcd",
            tensors=("a", "b"), doc="Greatest common divisor of two integers, not negative; of 0 and 0 it is 0.")
elementwise("lcm", y="lcm(a, b)", kinds="i", numpy="lcm",
            tensors=("a", "b"), doc="Least common multiple of two integers, not negative; 0 where one is 0.")

# ----- Rounding -----
elementwise("floor", y="floor(x)", dx="0", kinds="iuf", numpy="floor",
            refuses={"c": NotImplementedError("{name} is not supported for complex inputs")}, loop="floor_vml_cpu",
            doc="Largest integer not above each element.")
elementwise("ceil", y="ceil(x)", dx="0", kinds="iuf", numpy="ceil",
            refuses={"c": NotImplementedError("{name} is not supported for complex inputs")}, loop="ceil_vml_cpu",
            doc="Smallest integer not below each element.")
elementwise("trunc", y="trunc(x)", dx="0", kinds="iuf", numpy="trunc", aliases=("fix",),
            refuses={"c": NotImplementedError("{name} is not supported for complex inputs")}, loop="trunc_vml_cpu",
            doc="Integer part of each element.")
elementwise("round", y="round(x)", dx="0", kinds="iuf", numpy="rint", edges=(0.5, 1.5, 2.5),
            loop="round_vml_cpu",
            doc="Nearest integer, halves to even; with `decimals` so many digits behind the point.")
elementwise("frac", y="x - trunc(x)", dx="1", doc="Fractional part of each element, with its sign.")

# ----- Exponential, logarithmic and trigonometric -----
elementwise("exp", y="exp(x)", dx="y", kinds="fc", numpy="exp", doc="Exponential of each element.")
elementwise("expm1", y="expm1(x)", dx="y + 1", kinds="fc", numpy="expm1", aliases=("special_expm1",),
            doc="exp(x) - 1, accurate for small x.")
elementwise("exp2", y="exp2(x)", dx="y * 0.6931471805599453", kinds="fc", numpy="exp2",
            aliases=("special_exp2",), doc="Two to the power of each element.")
elementwise("log", y="log(x)", dx="1 / x", kinds="fc", numpy="log", domain=(0.1, 3), doc="Natural logarithm of each element.")
elementwise("log1p", y="log1p(x)", dx="1 / (1 + x)", kinds="fc", numpy="log1p", domain=(-0.5, 3), node="Log1P",
            aliases=("special_log1p",), doc="log(1 + x), accurate for small x.")
elementwise("log2", y="log2(x)", dx="1.4426950408889634 / x", kinds="fc", numpy="log2", domain=(0.1, 3),
            doc="Logarithm to base 2 of each element.")
elementwise("log10", y="log10(x)", dx="0.4342944819032518 / x", kinds="fc", numpy="log10", domain=(0.1, 3),
            doc="Logarithm to base 10 of each element.")
elementwise("logaddexp", y="(a if first else b) + log1p(exp(0 if a == b else (b if first else a) - (a if first else b)))",
            let={"first": "real(a) >= real(b)"}, da="sigmoid(a - b)", db="sigmoid(b - a)", kinds="fc", numpy="logaddexp",
            tensors=("a", "b"), doc="Logarithm of the sum of exponentials, log(exp(a) + exp(b)).")
elementwise("logaddexp2", y="maximum(a, b) + 1.4426950408889634 * log1p(exp2(0 if a == b else -abs(a - b)))",
            da="sigmoid(0.6931471805599453 * (a - b))", db="sigmoid(0.6931471805599453 * (b - a))", numpy="logaddexp2",
            tensors=("a", "b"), doc="Logarithm to base 2 of the sum of powers of 2.")
elementwise("xlogy", y="b if isnan(b) else 0 if a == 0 else a * log(b)",
            da="0 if a == 0 and b <= 0 else log(1 if a == 0 and b <= 0 else b)",
            db="a / b", domain=(0.3, 2), aliases=("special_xlogy",), forms=True, doc="a * log(b); 0 where a is 0.")
elementwise("logit", y="logit(x)", dx="1 / s / s", let={"s": "sqrt(x * (1 - x))"}, domain=(0.1, 0.9),
            doc="Logarithm of the odds, log(x / (1 - x)); with `eps`, of elements limited to the range from `eps` to 1 - `eps`.")
elementwise("sin", y="sin(x)", dx="cos(x)", kinds="fc", numpy="sin", doc="Sine of each element, in radians.")
elementwise("cos", y="cos(x)", dx="-sin(x)", kinds="fc", numpy="cos", doc="Cosine of each element, in radians.")
elementwise("tan", y="tan(x)", dx="1 + y * y", kinds="fc", numpy="tan", domain=(-1, 1), doc="Tangent of each element, in radians.")
elementwise("asin", y="asin(x)", dx="1 / sqrt((1 - x) * (1 + x))", kinds="fc", numpy="arcsin", domain=(-0.9, 0.9),
            aliases=("arcsin",), doc="Inverse sine of each element.")
elementwise("acos", y="acos(x)", dx="-1 / sqrt((1 - x) * (1 + x))", kinds="fc", numpy="arccos", domain=(-0.9, 0.9),
            aliases=("arccos",), doc="Inverse cosine of each element.")
elementwise("atan", y="atan(x)", dx="s * s / (s * s + q * q)", let={"s": "1 if abs(x) < 1e9 else 9.313225746154785e-10", "q": "s * x"},
            kinds="fc", numpy="arctan", aliases=("arctan",), doc="Inverse tangent of each element.")
elementwise("atan2", y="atan2(a, b)", let={"h": "hypot(a, b) if a != 0 or b != 0 else 1"}, da="b / h / h", db="-a / h / h",
            numpy="arctan2", domain=(0.3, 2), aliases=("arctan2",), tensors=("a", "b"), doc="Angle of the point (b, a), from -pi to pi.")
elementwise("sinh", y="sinh(x)", dx="cosh(x)", kinds="fc", numpy="sinh", doc="Hyperbolic sine of each element.")
elementwise("cosh", y="cosh(x)", dx="sinh(x)", kinds="fc", numpy="cosh", doc="Hyperbolic cosine of each element.")
elementwise("asinh", y="asinh(x)", dx="1 / (sqrt(x * x + 1) if abs(x) < 1e9 else x * copysign(1, real(x)))", kinds="fc",
            numpy="arcsinh", aliases=("arcsinh",), doc="Inverse hyperbolic sine of each element.")
elementwise("acosh", y="acosh(x)", dx="1 / sqrt(x - 1) / sqrt(x + 1)", kinds="fc", numpy="arccosh", domain=(1.1, 3),
            aliases=("arccosh",), doc="Inverse hyperbolic cosine of each element.")
elementwise("atanh", y="atanh(x)", dx="1 / ((1 - x) * (1 + x))", kinds="fc", numpy="arctanh", domain=(-0.9, 0.9),
            aliases=("arctanh",), doc="Inverse hyperbolic tangent of each element.")
elementwise("sinc", y="1 if x == 0 else s / (3.141592653589793 * (x if x != 0 else 1))", kinds="fc",
            let={"n": "round(real(x))", "sign": "1 - 2 * abs(n - 2 * round(0.5 * n))", "s": "sign * sin(3.141592653589793 * (x - n))",
                 "c": "sign * cos(3.141592653589793 * (x - n))", "far": "x if abs(x) > 0.2 else 1", "z": "9.869604401089358 * x * x",
                 "series": "1 - z / 10 * (1 - z / 28 * (1 - z / 54 * (1 - z / 88 * (1 - z / 130 * (1 - z / 180)))))"},
            dx="(c - s / (3.141592653589793 * far)) / far if abs(x) > 0.2 else -3.289868133696453 * x * series",
            aliases=("special_sinc",), doc="sin(pi * x) / (pi * x) of each element.")
elementwise("deg2rad", node="Deg2Rad", numpy="deg2rad", y="x * 0.017453292519943295", dx="0.017453292519943295",
            refuses={"c": RuntimeError("{name} is not supported for complex tensors.")},
            doc="Angles in degrees as radians.")
elementwise("rad2deg", node="Rad2Deg", numpy="rad2deg", y="x * 57.29577951308232", dx="57.29577951308232",
            refuses={"c": RuntimeError("{name} is not supported for complex tensors.")},
            doc="Angles in radians as degrees.")
elementwise("tanh", y="tanh(x)", dx="1 - y * y", kinds="fc", numpy="tanh", aliases=("nn_functional_tanh",),
            doc="Hyperbolic tangent of each element.")
elementwise("erf", y="erf(x)", dx="1.1283791670955126 * gaussian(x) * gaussian(x)",
            loop="erf_vml_cpu",
            aliases=("special_erf",), doc="Error function of each element (Abramowitz and Stegun 7.1.1).")
elementwise("erfc", y="erfc(x)", dx="-1.1283791670955126 * gaussian(x) * gaussian(x)",
            loop="erfc_vml_cpu",
            aliases=("special_erfc",), doc="One minus the error function of each element, accurate where it is tiny.")
elementwise("ndtr", y="ndtr(x)", dx="0.3989422804014327 * gaussian(x)", method=False,
            loop="erf_vml_cpu",
            aliases=("special_ndtr",), doc="Normal distribution: the area under the standard normal density below each element.")
elementwise("gaussian", y="gaussian(x)", dx="-x * y", method=False,
            doc="exp(-x * x / 2), of the square before it is rounded: right also where it is large.")

# ----- Activations -----
elementwise("sigmoid", y="sigmoid(x)", dx="y * (1 - y)", kinds="fc", aliases=("nn_functional_sigmoid", "special_expit"),
            doc="Logistic function, 1 / (1 + exp(-x)).")
elementwise("softplus", y="x if x * beta > threshold else log1p(exp(x * beta)) / beta",
            dx="1 if x * beta > threshold else sigmoid(x * beta)", params={"beta": 1.0, "threshold": 20.0},
            aliases=("nn_functional_softplus",),
            doc="Smooth rectifier, log(1 + exp(beta * x)) / beta; linear where beta * x > threshold.")
elementwise("relu", y="maximum(x, 0)", dx="0 if y <= 0 else 1", kinds="if", edges=(0.0,),
            refuses={"c": NotImplementedError("clamp is not supported for complex types"), "b": RuntimeError("Boolean inputs not "
                                              "supported for relu")},
            loop="clamp_min_scalar_cpu",
            aliases=("nn_functional_relu",), doc="Rectifier, max(x, 0).")
elementwise("gelu", y="x * ndtr(x)", dx="ndtr(x) + x * 0.3989422804014327 * gaussian(x)", method=False,
            select=("approximate", {"none": "gelu", "tanh": "gelu_tanh"}), bad_choice="approximate argument must be either none or tanh",
            loop="GeluKernelImpl",
            aliases=("nn_functional_gelu",), doc="Gaussian error linear unit, x * Phi(x) (Hendrycks and Gimpel 2016).")
elementwise("gelu_tanh", y="x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))", method=False, node="Gelu",
            let={"m": "copysign(minimum(abs(x), 30), x)", "p": "1.5957691216057308 * m", "u": "p * (1 + 0.044715 * m * m)"},
            dx="sigmoid(u) * (1 + sigmoid(-u) * p * (1 + 0.134145 * m * m))",
            loop="GeluKernelImpl",
            doc="Gaussian error linear unit, in its approximation by tanh.")
elementwise("silu", y="x * sigmoid(x)", dx="sigmoid(x) * (1 + x * sigmoid(-x))", kinds="fc",
            aliases=("nn_functional_silu",), doc="Sigmoid linear unit, x * sigmoid(x).")
elementwise("logsigmoid", node="LogSigmoid", y="minimum(x, 0) - log1p(exp(-abs(x)))", dx="sigmoid(-x)", method=False,
            loop="log_sigmoid_cpu",
            aliases=("nn_functional_logsigmoid",), doc="Logarithm of the sigmoid, without underflow.")
elementwise("elu", y="x if x > 0 else alpha * expm1(x)", dx="1 if x > 0 else alpha * exp(0 if x > 0 else x)", params={"alpha": 1.0},
            method=False, aliases=("nn_functional_elu",), doc="Exponential linear unit: x, or alpha * (exp(x) - 1) below 0.")
elementwise("selu", y="1.0507009873554805 * x if x > 0 else 1.7580993408473766 * expm1(x)", method=False,
            dx="1.0507009873554805 if x > 0 else 1.7580993408473766 * exp(0 if x > 0 else x)", node="Elu",
            loop="elu_cpu",
            aliases=("nn_functional_selu",), doc="Scaled exponential linear unit (Klambauer et al. 2017).")
elementwise("celu", y="x if x > 0 else alpha * expm1(x / alpha)", dx="1 if x > 0 else exp((0 if x > 0 else x) / alpha)",
            params={"alpha": 1.0}, method=False,
            loop="elu_cpu",
            aliases=("nn_functional_celu",), doc="Continuously differentiable exponential linear unit.")
elementwise("leaky_relu", y="x if x > 0 else x * negative_slope", dx="1 if x > 0 else negative_slope", params={"negative_slope": 0.01},
            edges=(0.0,), method=False, aliases=("nn_functional_leaky_relu",), doc="Rectifier with a slope below 0.")
elementwise("hardtanh", y="minimum(maximum(x, min_val), max_val)", dx="1 if x > min_val and x < max_val else 0", edges=(-1.0, 1.0),
            params={"min_val": -1.0, "max_val": 1.0}, kinds="if", method=False,
            refuses={"c": NotImplementedError("clamp is not supported for complex types"), "b": RuntimeError("Bool inputs not supported "
                                              "for hardtanh")},
            loop="clamp_scalar_cpu", bad_params=(operator.gt, ValueError("min_val cannot be greater than max_val")),
            aliases=("nn_functional_hardtanh",), doc="Elements limited to a range; gradient 0 at bounds.")
elementwise("relu6", node="Hardtanh", y="minimum(maximum(x, 0), 6)", dx="1 if x > 0 and x < 6 else 0", edges=(0.0, 6.0), kinds="if",
            method=False,
            refuses={"c": NotImplementedError("clamp is not supported for complex types"), "b": RuntimeError("Bool inputs not supported "
                                              "for hardtanh")},
            loop="clamp_scalar_cpu",
            aliases=("nn_functional_relu6",), doc="Rectifier limited to 6.")
elementwise("softsign", y="x / (1 + abs(x))", let={"r": "1 / (1 + abs(x))"}, dx="r / (1 + abs(x)) if is_real else (0.5 + 0.5 * r) * r",
            dx_conj="0 if is_real else -0.5 * (x * r) * sgn(x) * r", kinds="fc", method=False, aliases=("nn_functional_softsign",),
            doc="x / (1 + abs(x)).")
elementwise("mish", y="x * (n / (n + 2))", let={"m": "minimum(x, 21)", "e": "exp(m)", "n": "e * (e + 2)"},
            dx="(n + 4 * e * m * (1 + e) / (n + 2)) / (n + 2)", method=False, aliases=("nn_functional_mish",),
            doc="x * tanh(softplus(x)) (Misra 2019).")
elementwise("hardsigmoid", y="minimum(maximum(x + 3, 0), 6) / 6", dx="0.16666666666666666 if x > -3 and x < 3 else 0", method=False,
            edges=(-3.0, 3.0), aliases=("nn_functional_hardsigmoid",), doc="Sigmoid in three straight pieces.")
elementwise("hardswish", y="x * (minimum(maximum(x + 3, 0), 6) / 6)", dx="0 if x <= -3 else 1 if x >= 3 else (x + 1.5) / 3", method=False,
            edges=(-3.0, 3.0), aliases=("nn_functional_hardswish",), doc="x times its hardsigmoid.")
elementwise("softshrink", y="x - lambd if x > lambd else x + lambd if x < -lambd else x * 0", dx="1 if x > lambd or x < -lambd else 0",
            params={"lambd": 0.5}, edges=(-0.5, 0.5), method=False,
            loop="softshrink_check", bad_params=(lambda lambd: not lambd >= 0, RuntimeError("lambda must be in range [0, inf]")),
            aliases=("nn_functional_softshrink",), doc="Elements moved towards 0 by `lambd`, those nearer to it set to 0.")
elementwise("hardshrink", y="0 if x >= -lambd and x <= lambd else x", dx="1 if x > lambd or x < -lambd else 0", params={"lambd": 0.5},
            edges=(-0.5, 0.5), aliases=("nn_functional_hardshrink",), doc="Elements with those not farther from 0 than `lambd` set to 0.")
elementwise("tanhshrink", y="x - tanh(x)", dx="tanh(x) * tanh(x)", kinds="fc", no_bools=True, method=False,
            refuses={"b": BOOL_DIFFERENCE},
            aliases=("nn_functional_tanhshrink",), doc="x - tanh(x).")
elementwise("threshold", y="value if x <= threshold else x", dx="0 if x <= threshold else 1", params={"threshold": 0, "value": 0},
            kinds="if", edges=(0.0,), method=False, aliases=("nn_functional_threshold",),
            doc="Elements above a threshold, and `value` for the others.")

# ----- Maximum, minimum and selection -----
elementwise("maximum", y="maximum(a, b)", da="0.5 if a == b else 0 if a < b else 1", db="0.5 if a == b else 0 if b < a else 1",
            kinds="bif", numpy="maximum",
            refuses={"c": RuntimeError("{name} not implemented for complex tensors.")},
            tensors=("a", "b"), doc="Larger of two elements; NaN if either is.")
elementwise("minimum", y="minimum(a, b)", da="0.5 if a == b else 0 if a > b else 1", db="0.5 if a == b else 0 if b > a else 1",
            kinds="bif", numpy="minimum",
            refuses={"c": RuntimeError("{name} not implemented for complex tensors.")},
            tensors=("a", "b"), doc="Smaller of two elements; NaN if either is.")
elementwise("fmax", y="b if isnan(a) or a < b else a", da="1 if a >= b or isnan(b) else 0", db="0 if a >= b or isnan(b) else 1",
            kinds="bif", numpy="fmax",
            refuses={"c": RuntimeError("{name} not implemented for complex tensors.")}, loop="maximum_cpu",
            tensors=("a", "b"), doc="Larger of two elements; the other one where one is NaN.")
elementwise("fmin", y="b if isnan(a) or b < a else a", da="1 if a <= b or isnan(b) else 0", db="0 if a <= b or isnan(b) else 1",
            kinds="bif", numpy="fmin",
            refuses={"c": RuntimeError("{name} not implemented for complex tensors.")}, loop="minimum_cpu",
            tensors=("a", "b"), doc="Smaller of two elements; the other one where one is NaN.")
elementwise("copysign", y="copysign(a, b)", da="0 if a == 0 else y / (a if a != 0 else 1)", db="0", numpy="copysign",
            tensors=("a",), forms=True, doc="Magnitude of `input` with the sign of `other`.")
elementwise("heaviside", operands=("x", "values"), y="values if x == 0 else 1 if x > 0 else 0", dx="0", dvalues="1 if x == 0 else 0",
            kinds="bif", numpy="heaviside", edges=(0.0,),
            refuses={"c": RuntimeError("{name} is not yet implemented for complex tensors.")},
            tensors=("x", "values"), doc="Step function of each element: 0 below 0, `values` at 0, 1 above; 0 of NaN, as in torch.")
elementwise("nextafter", y="nextafter(a, b)", da="0 if a == b else 1", db="0", numpy="nextafter", edges=(0.0,),
            tensors=("a", "b"), doc="Neighbour of each float in the direction of `other`.")
elementwise("nan_to_num", y="nan if isnan(x) else (posinf if x > 0 else neginf) if isinf(x) else x", dx="1 if isfinite(x) else 0",
            kinds="biuf", params={"nan": 0.0, "posinf": 0.0, "neginf": 0.0},
            doc="Elements with NaN and infinities replaced by numbers.")
elementwise("clamp", operands=("x", "min", "max"), y="minimum(maximum(x, min), max)",
            dx="1 if x >= min and x <= max else 0", dmin="1 if x < min and min < max else 0",
            dmax="1 if x > max or max < min else 0", kinds="bif", bounds=("min", "max"), method=False,
            refuses={"c": NotImplementedError("clamp is not supported for complex types")},
            forms=True, doc="Elements limited to the range from `min` to `max`.")
elementwise("clamp_min", operands=("x", "min"), y="maximum(x, min)", dx="1 if x >= min else 0", dmin="1 if x < min else 0",
            kinds="bif",
            loop="maximum_cpu",
            tensors=("x",), forms=True, doc="Elements limited from below by `min`.")
elementwise("clamp_max", operands=("x", "max"), y="minimum(x, max)", dx="1 if x <= max else 0", dmax="1 if x > max else 0",
            kinds="bif",
            loop="minimum_cpu",
            tensors=("x",), forms=True, doc="Elements limited from above by `max`.")
elementwise("where", operands=("condition", "a", "b"), masks=("condition",), y="a if condition else b", da="1 if condition else 0",
            db="0 if condition else 1", kinds="biufc", method=False, in_place=False,
            forms=True, doc="Elements of `input` where `condition` holds, of `other` elsewhere.")

# ----- Comparison, logic and bits -----
elementwise("eq", y="a == b", kinds="biufc", result="bool", numpy="equal", tensors=("a",), forms=True, doc="Where two tensors are equal.")
elementwise("ne", y="a != b", kinds="biufc", result="bool", numpy="not_equal", aliases=("not_equal",),
            tensors=("a",), forms=True, doc="Where two tensors differ.")
elementwise("lt", y="a < b", kinds="bif", result="bool", numpy="less", aliases=("less",),
            tensors=("a",), forms=True, doc="Where `input < other`.")
elementwise("le", y="a <= b", kinds="bif", result="bool", numpy="less_equal", aliases=("less_equal",),
            tensors=("a",), forms=True, doc="Where `input <= other`.")
elementwise("gt", y="a > b", kinds="bif", result="bool", numpy="greater", aliases=("greater",),
            tensors=("a",), forms=True, doc="Where `input > other`.")
elementwise("ge", y="a >= b", kinds="bif", result="bool", numpy="greater_equal", aliases=("greater_equal",),
            tensors=("a",), forms=True, doc="Where `input >= other`.")
elementwise("logical_and", y="a != 0 and b != 0", kinds="bifc", result="bool", numpy="logical_and",
            tensors=("a", "b"), doc="Where both elements are non-zero.")
elementwise("logical_or", y="a != 0 or b != 0", kinds="bifc", result="bool", numpy="logical_or",
            tensors=("a", "b"), doc="Where one of two elements is non-zero.")
elementwise("logical_xor", y="(a != 0) != (b != 0)", kinds="bifc", result="bool", numpy="logical_xor",
            tensors=("a", "b"), doc="Where exactly one of two elements is non-zero.")
elementwise("logical_not", y="x == 0", kinds="bifc", result="bool", numpy="logical_not", doc="Where elements are zero.")
elementwise("bitwise_and", y="a & b", kinds="biu", numpy="bitwise_and", forms=True, doc="Bitwise and; logical and of bools.")
elementwise("bitwise_or", y="a | b", kinds="biu", numpy="bitwise_or", forms=True, doc="Bitwise or; logical or of bools.")
elementwise("bitwise_xor", y="a ^ b", kinds="biu", numpy="bitwise_xor", forms=True,
            doc="Bitwise exclusive or; of bools, where they differ.")
elementwise("bitwise_not", y="~x", kinds="bi", numpy="bitwise_not", doc="Bitwise complement; logical not of bools.")
elementwise("bitwise_left_shift", y="left_shift(a, b)", kinds="i", numpy="left_shift",
            loop="lshift_cpu",
            forms=True, doc="Bits of `input` shifted left by `other`.")
elementwise("bitwise_right_shift", y="right_shift(a, b)", kinds="i", numpy="right_shift",
            loop="rshift_cpu",
            forms=True, doc="Bits of `input` shifted right by `other`; the sign is kept.")
elementwise("isnan", y="isnan(x)", kinds="biufc", result="bool", numpy="isnan", in_place=False, edges=(float("nan"),),
            doc="Where elements are NaN.")
elementwise("isinf", y="isinf(x)", kinds="biufc", result="bool", numpy="isinf", in_place=False, edges=(float("inf"),),
            doc="Where elements are infinite.")
elementwise("isfinite", y="isfinite(x)", kinds="biufc", result="bool", numpy="isfinite", in_place=False,
            edges=(float("nan"), float("inf")), doc="Where elements are neither infinite nor NaN.")
elementwise("isreal", y="imag(x) == 0", kinds="biufc", result="bool", in_place=False, edges=(1.0,),
            doc="Where elements have no imaginary part.")
elementwise("isposinf", y="x == inf", result="bool", in_place=False, edges=(float("inf"),),
            refuses={"c": RuntimeError("{name} does not support complex inputs.")},
            doc="Where elements are plus infinity.")
elementwise("isneginf", y="x == -inf", result="bool", in_place=False, edges=(float("-inf"),),
            refuses={"c": RuntimeError("{name} does not support complex inputs.")},
            doc="Where elements are minus infinity.")
elementwise("signbit", y="copysign(1, x) < 0", result="bool", numpy="signbit", in_place=False, edges=(-0.0,),
            refuses={"c": NotImplementedError("{name} is not implemented for complex tensors.")},
            doc="Where the sign is minus, of zeros too.")
elementwise("isclose", kinds="fc", params={"rtol": 1e-5, "atol": 1e-8, "equal_nan": 0}, result="bool", in_place=False,
            y="a == b or abs(a - b) <= real(atol) + real(rtol) * abs(b) and isfinite(a - b) or equal_nan != 0 and isnan(a) and isnan(b)",
            doc="Where `abs(input - other) <= atol + rtol * abs(other)`.")
