"""The loops of the reductions, whose C text is in reduction_template.h, and the table of them."""

from .. import formula
from ..dtypes import DTYPES, NUMBER
from ..reduction import REDUCTIONS
from .reading import BOOL, FUNCTIONS, c_type, converted, dtype_row, kind, line_directives, numbers_of
from .units import HEADER, UNITS, included, symbol, table, unit_kind


def reduction_kernels():
    """Yield (row, {dtype: (accumulator, result)}, {kind of unit: code}); the C text is in reduction_template.h."""
    directives = line_directives("reduction.py", "reduction")
    for row in REDUCTIONS.values():
        code, dtypes = {unit: [] for unit in UNITS}, {}
        for dtype in DTYPES:
            if dtype.kind not in row.kinds or dtype.loops:
                continue
            acc = dtype.widest if row.wide else "bool" if row.result == "truth" else dtype.name
            out = {"truth": "uint8" if dtype.name == "uint8" else "bool", "same": dtype.name,
                   "widest": dtype.name if dtype.is_differentiable else dtype.widest}[row.result]
            unit, accumulator = unit_kind(dtype, row.rare), dtype_row(acc)
            result = dtype_row(out)
            read = {key: read_reduction(text, accumulator) for key, text in
                    {"START": row.start, "STEP": row.step, "COMBINE": row.combine or row.step, "FINISH": row.y}.items()}
            if is_narrower(row, dtype):
                narrow = [f"CG_NARROW_ROWS({rows_symbol(row, stored)}, {stored.name})" for stored in DTYPES
                          if stored.is_opaque and stored.loops == dtype.name]
                read |= {"NARROW": " ".join(narrow)} if narrow else {}
                read |= {"BLOCK_START": read_reduction(row.start, dtype), "BLOCK_STEP": read_reduction(row.block_step, dtype),
                         "CG_FINITE(value)": f"isfinite_{acc}(value)"}
            defines = {"NAME": symbol(f"{row.name}_{dtype.name}", unit), "X": dtype.c_type, "T": c_type(acc), "Y": c_type(out),
                       "CG_COUNT": c_type(accumulator.real or acc),
                       "CG_ELEMENT(value)": converted("value", dtype, BOOL if row.result == "truth" else accumulator),
                       "CG_RESULT(value)": f"({result.c_type})(value)" if not result.real else converted("value", accumulator, result)}
            defines |= {} if dtype.real else {"ORDERED": ""}
            defines |= {"PRODUCTS": ""} if has_products(row, dtype) else {}
            code[unit].append(included("reduction_template.h", defines, directives[row.name], read))
            dtypes[dtype] = acc, out
        yield row, dtypes, code


def is_narrower(row, dtype) -> bool:
    """Whether lanes are reduced in the dtype of the elements before they become accumulators."""
    return row.block_step and dtype.is_differentiable and not dtype.loops and dtype.widest != dtype.name


def has_products(row, dtype) -> bool:
    return row.products and dtype.is_floating_point and not dtype.loops


def rows_symbol(row, dtype) -> str:
    """Return the C name of the function that reduces whole blocks of 16-bit floats."""
    return symbol(f"rows_{row.name}_{dtype.name}", "floats")


def read_reduction(text, dtype):
    return formula.to_c(formula.parse(text), numbers_of(dtype) if dtype.real else formula.Numbers(dtype.name),
                        {"acc": kind(dtype), "x": kind(dtype), "n": "r"}, FUNCTIONS, kind(dtype))


def reduction_texts() -> dict[str, str]:
    """Return the units of the reductions; the one of real floats has the table of all of them."""
    texts, rows = {unit: [HEADER] for unit in UNITS}, []
    for row, dtypes, code in reduction_kernels():
        for unit in UNITS:
            texts[unit] += code[unit]
        columns, some = [], {"find": lambda row, dtype: not dtype.real, "products": has_products,
                             "across_wide": is_narrower, "finite": is_narrower}
        for part in ("fill", "rows", "products", "columns", "across", "across_wide", "finite", "combine", "finish", "scan", "find"):
            names = {dtype: symbol(f"{part}_{row.name}_{dtype.name}", unit_kind(dtype, row.rare)) for dtype in dtypes
                     if part not in some or some[part](row, dtype)}
            entries = dict(names)
            for dtype in DTYPES:
                if part == "rows" and row.block_step and dtype.is_opaque:
                    names[dtype] = rows_symbol(row, dtype)
                    entries[dtype] = f"CG_NARROW_LOOP({names[dtype]})"
            texts["floats"] += [f"extern cg_reduce_{part} {', '.join(names.values())};"] if names else []
            columns.append(table({NUMBER[dtype.name]: entry for dtype, entry in entries.items()}))
        for dtype in DTYPES:     # widened dtypes are reduced by others' loops
            if dtype.loops and dtype.kind in row.kinds:
                acc, out = dtypes[dtype_row(dtype.loops)]
                dtypes[dtype] = acc, dtype.name if out == dtype.loops and dtype.is_opaque else out
        types = [table({NUMBER[dtype.name]: str(NUMBER[pair[k]]) for dtype, pair in dtypes.items()}, "-1") for k in (0, 1)]
        rows.append(f'    {{"{row.name}", {", ".join(columns + types)}}},')
    texts["floats"] += ["const cg_reduction CG_TABLE(cg_reductions)[] = {", *rows, "    {0}\n};"]
    return {f"{unit}_reduction": "\n".join(text) + "\n" for unit, text in texts.items()}
