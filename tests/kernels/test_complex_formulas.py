"""The complex reading of the table: refusals, and gradients that conjugate as the convention for complex numbers asks.

The gradient for z of a result y and its gradient g is the gradient of Re(conj(g) y), as a function of the two parts of z: dRe + i dIm.
"""

import numpy as np
import pytest

from cygrad.ops import ELEMENTWISE, formula
from cygrad.ops.dtypes import DTYPES, promote
from cygrad.ops.formula import Functions, Numbers

ROWS = [row for row in ELEMENTWISE.values() if "c" in row.kinds and row.partials]
COMPLEX = Functions({"sqrt", "abs"}, {"sqrt": ("c", "c"), "abs": ("c", "r"), "real": ("c", "r"), "conj": ("c", "c")})
NUMPYS = {
    **{name: getattr(np, name) for name in ("abs", "angle", "conj", "copysign", "cos", "cosh", "exp", "exp2", "expm1", "imag", "log",
                                            "log10", "log1p", "log2", "real", "round", "sin", "sinh", "sqrt", "tan", "tanh", "where")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    "complex": lambda re, im: re + 1j * im, "pow": np.power, "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "sgn": lambda z: z / np.abs(z), "logical_and": np.logical_and, "logical_or": np.logical_or,
}


def written(text, **kinds):
    return formula.to_c(formula.parse(text), Numbers("float64", "complex128", "double"), kinds, COMPLEX)


def test_each_part_is_real_or_complex():
    assert written("a * b", a="c", b="c") == "mul_cc_complex128(a, b)"
    assert written("2 * abs(x) + x", x="c") == "add_rc_complex128(((double)2 * abs_complex128(x)), x)"
    assert written("sqrt(abs(x))", x="c") == "sqrt_float64(abs_complex128(x))"
    assert written("conj(x)", x="r") == "x"
    assert written("imag(x)", x="r") == "((double)0)"
    assert written("x if abs(x) < 1 else 0", x="c") == (
        "select_complex128((abs_complex128(x) < (double)1), x, complex_complex128((double)0, 0))")
    assert formula.to_c(formula.parse("x * x"), Numbers("float64", "complex128", "double"), {"x": "c"}, COMPLEX, "r") == (
        "real_complex128(mul_cc_complex128(x, x))")


@pytest.mark.parametrize("text", ["a < b", "a < 1", "a & b", "maximum(a, b)", "round(a)"])
def test_formulas_without_a_complex_meaning_are_refused(text):
    with pytest.raises(formula.FormulaError):
        written(text, a="c", b="c")


@pytest.mark.parametrize(("row", "operand"), [pytest.param(row, operand, id=f"{row.name}-{operand}")
                                              for row in ROWS for operand in row.partials])
def test_gradients_equal_the_gradients_of_the_parts(row, operand):
    rng = np.random.default_rng(3)
    params = dict.fromkeys(row.params, 1.25)
    values = {name: rng.standard_normal(40) + 1j * rng.standard_normal(40) for name in row.operands}
    values |= {name: rng.random(40) < 0.5 for name in row.masks}
    y = formula.to_tensor_function(row.tree(row.y), [*row.operands, *params], NUMPYS, row.name, True)
    g = rng.standard_normal(40) + (1j * rng.standard_normal(40) if row.result == "same" else 0)

    def loss(step):
        return np.real(np.conj(g) * y(**{**values, operand: values[operand] + step}, **params))

    names = ["g", *row.operands, "y", *params]
    gradient = formula.to_tensor_function(row.backward(operand), names, NUMPYS, row.name, True)
    with np.errstate(all="ignore"):
        result = gradient(g=g, y=y(**values, **params), **values, **params)
        parts = [(loss(step * 1e-6) - loss(-step * 1e-6)) / 2e-6 for step in (1, 1j)]
    expected = parts[0] + 1j * parts[1]
    assert np.allclose(result, expected, rtol=1e-5, atol=1e-6), abs(result - expected).max()


def test_the_real_reading_has_no_conjugates():
    for row in ROWS:
        for operand in row.partials:
            names = ["g", *row.operands, "y", *row.params]
            reading = formula.to_tensor_function(row.backward(operand), names, NUMPYS, row.name)
            assert not {"conj", "real", "imag", "complex"} & set(reading.__code__.co_names)


def test_promotion_with_complex_numbers():
    """A complex number holds the parts that the other one needs: data of torch.promote_types."""
    rows = {row.name: row for row in DTYPES}
    narrow = {"bool", "uint8", "int8", "int16", "int32", "int64", "float32", "complex64"}
    for name in narrow:
        assert promote(rows[name], rows["complex64"]).name == promote(rows["complex64"], rows[name]).name == "complex64"
    for name in (name for name, row in rows.items() if row.kind != "u"):
        assert promote(rows[name], rows["complex128"]).name == promote(rows["complex128"], rows[name]).name == "complex128"
    assert promote(rows["float64"], rows["complex64"]).name == promote(rows["complex64"], rows["float64"]).name == "complex128"
