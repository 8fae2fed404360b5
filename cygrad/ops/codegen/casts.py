"""The casts between dtypes, and code that all units share: the table of the casts, the copies to and from blocks and past the caches."""

from ..dtypes import DTYPES
from .reading import converted, dtype_row, kind
from .units import HEADER, UNITS, symbol, unit_kind


def between(source, target):
    """Return the dtype by way of which numbers are converted, if one is: floats of those stored in 16 bits, int64 of unsigned integers."""
    for stored, other in (source, target), (target, source):
        if stored.loops and (stored.is_opaque or not other.is_differentiable) and other.name not in (stored.name, stored.loops):
            return dtype_row(stored.loops)
    return None


def cast_unit(source, target) -> str:
    """Return the kind of unit of a cast; a cast by way of another dtype is beside the table."""
    if between(source, target):
        return "shared"
    if "u" in (source.kind, target.kind) or kind(source) != kind(target) and not (source.is_floating_point or target.is_floating_point):
        return "rare"
    return "others" if "others" in (unit_kind(source), unit_kind(target)) else "floats"


def cast_symbol(source, target) -> str:
    return symbol(f"cast_{source.name}_{target.name}", cast_unit(source, target))


def cast_code(source, target) -> str:
    """Return a strided copy that converts."""
    name, by = cast_symbol(source, target), between(source, target)
    arguments = f"{name}, {source.c_type}, {target.c_type}"
    if by:
        return f"CG_CAST_BY({name}, {by.itemsize}, {cast_symbol(source, by)}, {cast_symbol(by, target)})"
    if source is not target and (source.is_opaque or target.is_opaque):
        return f"CG_NARROW_CAST({arguments}, {(source if source.is_opaque else target).name}, {'widen' if source.is_opaque else 'narrow'})"
    form = "CG_RARE_CAST" if kind(source) != kind(target) and cast_unit(source, target) == "rare" else "CG_CAST"
    return f"{form}({arguments}, {converted('x', source, target)})"


def casts(*units: str) -> list[tuple]:
    """Return the pairs of dtypes whose casts are in some kinds of units."""
    return [(a, b) for a in DTYPES for b in DTYPES if cast_unit(a, b) in units]


def cast_texts() -> dict[str, str]:
    """Return the units of the casts."""
    return {f"{kind}_casts": "\n".join([HEADER, *(cast_code(*pair) for pair in casts(kind))]) + "\n" for kind in UNITS}


def shared_text() -> str:
    """Return the list of the elementwise units, the table of the casts, the copies to and from blocks, and the copy past the caches."""
    units = [f"CG_TABLE(cg_kernels_{unit})" for unit in range(UNITS["floats"])]
    return "\n".join([
        HEADER,
        f"extern const cg_kernel {', '.join(f'{unit}[]' for unit in units)};",
        f"const cg_kernel *const CG_TABLE(cg_kernels)[] = {{{', '.join(units)}, 0}};",
        f"extern cg_cast_function {', '.join(cast_symbol(*pair) for pair in casts(*UNITS))};",
        f"static cg_cast_function {', '.join(cast_symbol(*pair) for pair in casts('shared'))};",
        *(cast_code(*pair) for pair in casts("shared")),
        "const cg_cast CG_TABLE(cg_casts)[CG_DTYPES][CG_DTYPES] = {",
        *("    {" + ", ".join(cast_symbol(a, b) for b in DTYPES) + "}," for a in DTYPES), "};",
        '#include "packing.h"',
        *(f"const cg_move CG_TABLE(cg_{form}s)[CG_DTYPES] = {{{', '.join(f'{form}_uint{8 * d.itemsize}_t' for d in DTYPES)}}};"
          for form in ("gather", "scatter")),
        '#include "mathematics/vectorcalls.h"',
        "CG_STREAM_COPY(stream_copy)", "const cg_copy CG_TABLE(cg_stream_copy) = stream_copy;"]) + "\n"
