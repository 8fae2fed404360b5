"""Formulas as C: which functions the headers define, and in which numbers a formula is read."""

import re
from pathlib import Path

from .. import formula
from ..dtypes import COMPLEX_OF, DTYPES, NUMBER

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "_kernels" / "mathematics"


# ----- Dtypes -----
def dtype_row(name):
    return DTYPES[NUMBER[name]]


def c_type(name):
    return dtype_row(name).c_type


def kind(dtype) -> str:
    return "c" if dtype.real else "r"


def numbers_of(dtype) -> tuple:
    """Return the dtypes in which a loop of a dtype reads its formula."""
    return formula.Numbers(dtype.real or dtype.name, dtype.name if dtype.real else COMPLEX_OF.get(dtype.name),
                           c_type(dtype.real) if dtype.real else "T")


BOOL = dtype_row("bool")


# ----- Functions -----
def functions_defined(macro: str) -> set[str]:
    """Return the functions that headers define for formulas by one of the macros of evaluation."""
    definition = re.compile(rf"^ *{macro} \w+ (?:CG_NAME\((\w+)\)|(\w+)_(?:float64|##D))\(", re.MULTILINE)
    result = (match for path in HEADERS.glob("*.h") for match in definition.findall(path.read_text()))
    return {shared or own for shared, own in result}


def complex_functions(macro: str) -> dict[str, tuple[str, str]]:
    """Return the kinds of number ("r", "c") that functions of complex numbers take, and the one that they give."""
    definition = re.compile(rf"^{macro} (\w+) (?:CG_COMPLEX_NAME\((\w+)\)|(\w+)_complex128)\((.*?)\)", re.MULTILINE)
    result = (match for path in HEADERS.glob("*.h") for match in definition.findall(path.read_text()))
    return {shared or own: ("".join(kind_of(word) for word in arguments.split(", ")), kind_of(result_type))
            for result_type, shared, own, arguments in result}


def kind_of(declaration: str) -> str:
    return "c" if declaration.lower().startswith("cg_complex") else "r"


VECTOR_FUNCTIONS, COMPLEX_VECTOR_FUNCTIONS = functions_defined("CG_VECTOR_FUNCTION"), complex_functions("CG_VECTOR_FUNCTION")
FUNCTIONS = formula.Functions(VECTOR_FUNCTIONS | functions_defined("CG_EXACT_FUNCTION"),
                              COMPLEX_VECTOR_FUNCTIONS | complex_functions("CG_EXACT_FUNCTION"))

# Functions whose results a header writes by whole vectors, with the same bits: as `write_...`, past the caches as `stream_...`.
WRITER = re.compile(r"^CG_INLINE intptr_t write_(\w+)\(", re.MULTILINE)
WRITTEN = {name for path in HEADERS.glob("*.h") for name in WRITER.findall(path.read_text())}


def is_blocked(tree, dtype) -> bool:
    """Return True if the loop of a formula runs in whole vectors, over the end of the data (see "No tails" in docs/design/kernels.md).

    Quotients of complex numbers do, too: they are as much code as a function. So do formulas that are converted in registers.
    """
    if dtype.is_opaque:
        return True
    if dtype.real:
        return not COMPLEX_VECTOR_FUNCTIONS.keys().isdisjoint(formula.called(tree)) or formula.divides(tree)
    return dtype.is_differentiable and not VECTOR_FUNCTIONS.isdisjoint(formula.called(tree))


def line_directives(filename: str, call: str) -> dict[str, str]:
    """Map each row of a table to the #line directive that makes the compiler name it."""
    text = (ROOT / "ops" / filename).read_text().splitlines()
    result = ((re.match(rf'{call}\("(\w+)"', line), number) for number, line in enumerate(text, 1))
    return {match[1]: f'#line {number} "cygrad/ops/{filename}"' for match, number in result if match}


def converted(value, source, target):
    """Return the C expression of a value in another dtype: of complex numbers the real part.

    C leaves the cast of a float that a narrow integer does not hold undefined: it is the low bits of int32, as in torch.
    """
    if source.is_opaque or target.is_opaque:
        return value if source is target else f"widened_{source.name}({value})" if source.is_opaque else f"narrowed_{target.name}({value})"
    by = "(int32_t)" if source.is_differentiable and target.is_integer and target.itemsize < 4 else ""
    if source.real:
        if target.real:
            part = c_type(target.real)
            return f"(({target.c_type}){{({part})({value}).re, ({part})({value}).im}})"
        return f"((({value}).re != 0) | (({value}).im != 0))" if target.name == "bool" else f"(({target.c_type}){by}({value}).re)"
    if target.real:
        return f"(({target.c_type}){{({c_type(target.real)})({value}), 0}})"
    return f"(({value}) != 0)" if target.name == "bool" and source.name != "bool" else f"(({target.c_type}){by}({value}))"
