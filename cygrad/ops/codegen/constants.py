"""The C constants of the table of dtypes, and the tables that erf and log start from."""

import decimal
import itertools
import struct

from ..dtypes import COMPLEX_OF, DTYPES, LARGEST, NUMBER, promote
from .reading import c_type, dtype_row
from .units import HEADER


def dtypes_text() -> str:
    """Return the C constants of the table of dtypes."""
    rows = DTYPES
    promoted = [[str(NUMBER[common.name]) if common else "CG_REFUSED" for common in (promote(a, b) for b in rows)]
                for a in rows]
    return "\n".join([
        "/* Generated from cygrad/ops/dtypes.py by cygrad/ops/codegen. */",
        "enum { " + ", ".join(f"CG_{row.name.upper()}" for row in rows) + ", CG_DTYPES };",
        *(f"typedef struct {{ {c_type(row.real)} re, im; }} {row.c_type};" for row in rows if row.real),
        *(f"typedef struct {{ uint{8 * row.itemsize}_t bits; }} {row.c_type};" for row in rows if row.is_opaque),
        "typedef union { " + " ".join(f"{row.c_type} {row.name}_;" for row in rows) + " } cg_number;",
        f"enum {{ CG_LARGEST = {LARGEST} }};",
        "/* Bytes of the numbers that loops compute in, where dtypes are stored only. */",
        f"enum {{ CG_WIDENED = {max(dtype_row(row.loops).itemsize for row in rows if row.loops)} }};",
        *(constants("signed char", name, (NUMBER[other(row)] for row in rows)) for name, other in
          (("real", lambda row: row.real or row.name), ("complex", lambda row: COMPLEX_OF.get(row.name, row.name)),
           ("loops_of", lambda row: row.loops or row.name))),
        constants("int", "itemsize", (row.itemsize for row in rows)),
        constants("char", "kind", (f"'{row.kind}'" for row in rows)),
        *(constants("char", name, (int(getattr(row, name)) for row in rows)) for name in
          ("rank", "is_differentiable", "is_floating_point", "is_complex", "is_integer", "is_index", "is_opaque")),
        "/* The common dtype of two, or CG_REFUSED. */",
        "enum { CG_REFUSED = -2 };",
        "static const signed char cg_promotion[CG_DTYPES][CG_DTYPES] = {",
        *("    {" + ", ".join(line) + "}," for line in promoted), "};",
        "/* The starts of reductions that look for the largest and the smallest number. */",
        *(f"#define {end}_{row.name} {limit(row, end)}" for row in rows if not row.real and not row.loops for end in ("lowest", "highest"))
    ]) + "\n"


def constants(c_type: str, name: str, values) -> str:
    return f"static const {c_type} cg_{name}[] = {{" + ", ".join(map(str, values)) + "};"


def limit(row, end: str) -> str:
    """Return the end of a dtype's numbers in C: of floats infinity."""
    if row.is_floating_point:
        return f"(({row.c_type}){'-' if end == 'lowest' else ''}INFINITY)"
    value = getattr(row, end)
    return f"(({row.c_type})({value + 1} - 1))" if value < 0 else str(value)


def erf_text() -> str:
    """Return the table that `erf_float64` starts from: erf and its derivative at the multiples of 1/128 below 8."""
    steps, rows = 128, 1024
    with decimal.localcontext(prec=40):
        places = [decimal.Decimal(k) / steps for k in range(rows)]
        slopes = [decimal.Decimal("1.12837916709551257389615890312154517168810") * (-x * x).exp() for x in places]
        values = [slope * erf_by_slope(x) for x, slope in zip(places, slopes, strict=True)]
    return "\n".join([
        HEADER, f"#define CG_ERF_STEPS {steps}", f"#define CG_ERF_ROWS {rows}",
        *(f"static const double {name}[CG_ERF_ROWS] = {{" + ", ".join(float(x).hex() for x in numbers) + "};"
          for name, numbers in (("cg_erf", values), ("cg_erf_slope", slopes)))]) + "\n"


def erf_by_slope(x):
    """Return erf(x) / erf'(x), a series of positive terms: x + x (2 x^2) / 3 + x (2 x^2)^2 / (3 * 5) ..."""
    term = total = x
    odd = 1
    while total + term != total:
        odd += 2
        term *= 2 * x * x / odd
        total += term
    return total


def log_text() -> str:
    """Return the table that `log_of_two_parts` starts from, of numbers c across an octave: 1 / c of few digits, log(c) in two parts.

    One of them is 1, and the first interval begins so that 1 lies within that one's.
    """
    digits, start = 7, 0x3fe6955500000000
    rows = 1 << digits
    ends = [struct.unpack("d", struct.pack("Q", start + (k << (52 - digits))))[0] for k in range(rows + 1)]
    inverses, heads, tails = [], [], []
    with decimal.localcontext(prec=40):
        for low, high in itertools.pairwise(ends):
            parts = rows if high < 1 else 2 * rows
            inverse = 1.0 if low < 1 < high else round(2 * parts / (low + high)) / parts
            logarithm = -decimal.Decimal(inverse).ln()
            head = float(round(logarithm * 2**43)) / 2**43
            inverses.append(inverse)
            heads.append(head)
            tails.append(float(logarithm - decimal.Decimal(head)))
    return "\n".join([
        HEADER, f"#define CG_LOG_START {start:#x}", f"#define CG_LOG_DIGITS {digits}", f"#define CG_LOG_ROWS {rows}",
        *(f"static const double {name}[CG_LOG_ROWS] = {{" + ", ".join(x.hex() for x in numbers) + "};"
          for name, numbers in (("cg_log_inverse", inverses), ("cg_log", heads), ("cg_log_low", tails)))]) + "\n"
