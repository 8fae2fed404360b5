"""Write the inner loops in C from the tables: translate formulas, never control flow.

Each loop is one-dimensional and serial; the drivers own broadcasting and threads. Compiler errors point at the row (#line).
Every instruction-set level compiles the same units. The name of an elementwise row says in which one its loops are, so that a
changed row, or another one, leaves the other units as they were.
"""

import decimal
import importlib.util
import re
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUTPUT = HERE / "generated"
ELEMENTWISE_UNITS = 8
LEVELS = {"v2": ("x86-64-v2", 16), "v3": ("x86-64-v3", 32), "v4": ("x86-64-v4", 64)}


def load_tables():
    """Import `cygrad/ops` without the package, which may not be built yet."""
    folder = HERE.parent / "ops"
    spec = importlib.util.spec_from_file_location("_cygrad_ops", folder / "__init__.py", submodule_search_locations=[str(folder)])
    sys.modules["_cygrad_ops"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OPS = load_tables()
DTYPES = importlib.import_module("_cygrad_ops.dtypes")
FORMULA = importlib.import_module("_cygrad_ops.formula")


def functions_defined(macro: str) -> set[str]:
    """Return what the headers define for formulas with one of the macros that say how it is evaluated."""
    definition = re.compile(rf"^ *{macro} \w+ (?:CG_NAME\((\w+)\)|(\w+)_(?:float64|##D))\(", re.MULTILINE)
    found = (match for path in (HERE / "mathematics").glob("*.h") for match in definition.findall(path.read_text()))
    return {shared or own for shared, own in found}


VECTOR_FUNCTIONS = functions_defined("CG_VECTOR_FUNCTION")
FUNCTIONS = VECTOR_FUNCTIONS | functions_defined("CG_EXACT_FUNCTION")


def is_blocked(tree) -> bool:
    """Say whether the loop of a formula runs in whole vectors, over the end of the data (see "No tails" in docs/design/kernels.md)."""
    return not VECTOR_FUNCTIONS.isdisjoint(FORMULA.called(tree))


def line_directives(filename: str, call: str) -> dict[str, str]:
    """Map each row of a table to the #line directive that makes the compiler name it."""
    text = (HERE.parent / "ops" / filename).read_text().splitlines()
    found = ((re.match(rf'{call}\("(\w+)"', line), number) for number, line in enumerate(text, 1))
    return {match[1]: f'#line {number} "cygrad/ops/{filename}"' for match, number in found if match}


def elementwise_loop(name, directive, row, tree, inputs, dtype, out_type, stream=False):
    """Return the C function of one kernel for one dtype; two inputs have bodies for a scalar on either side."""
    types = {operand: "uint8_t" if operand in row.masks else dtype.c_type for operand in inputs}
    expression = FORMULA.to_c(tree, dtype.name, {*inputs, *row.params}, FUNCTIONS)
    expression = f"({expression}) != 0" if out_type == "uint8_t" and dtype.name == "bool" else expression
    blocked = is_blocked(tree)
    start = "CG_LOOP(T, n) {" if not blocked else "CG_BLOCKS(T, n) { const intptr_t i = first + k;"
    store = f"out[i] = {expression}; }}"
    if stream:
        start = "CG_VECTORS(T, n) { CG_VECTOR(T); CG_LANE(T) { const intptr_t i = first + k;"
        store = f"vector[k] = {expression}; }} cg_stream(out + first, vector); }}"
    form = "stream" if stream else "loop"
    body = [f"static void {form}_{name}_{dtype.name}(char *const *p, const intptr_t *s, intptr_t n, const void *c) {{",
            f"    typedef {dtype.c_type} T CG_UNUSED; {out_type} *out = ({out_type} *)p[{len(inputs)}]; (void)s; (void)c;"]
    body += [f"    const {types[operand]} *p_{operand} = (const {types[operand]} *)p[{k}];" for k, operand in enumerate(inputs)]
    body += [f"    const T {param} = ((const T *)c)[{k}]; (void){param};" for k, param in enumerate(row.params)]
    # A blocked loop gets no scalars: gcc would hoist a function of one and call its scalar form, with other bits.
    scalars = [(f"if (!s[{k}]) ", (operand,)) for k, operand in enumerate(inputs)] if len(inputs) == 2 and not blocked else []
    for condition, constant in [*scalars, ("", ())]:
        before = "".join(f"const {types[operand]} {operand} CG_UNUSED = *p_{operand}; " for operand in constant)
        inside = "".join(f"const {types[operand]} {operand} CG_UNUSED = p_{operand}[i]; " for operand in inputs if operand not in constant)
        body += [f"    {condition}{{ {before}{start} {inside}", directive, f"        {store} return; }}"]
    return "\n".join([*body, "}"])


def elementwise_kernels(rows):
    """Yield (kernel name, inputs, blocked, {dtype number: loop}, {dtype number: stream}, code) for every row and every partial."""
    directives = line_directives("elementwise.py", "elementwise")
    for row in rows:
        readings = [(row.name, row.tree(row.y), list(row.operands))]
        for operand in row.partials:
            saved = row.saved(operand)
            readings.append((f"{row.name}_d{operand}", row.backward(operand), ["g", *(w for w in (*row.operands, "y") if w in saved)]))
        for name, tree, inputs in readings:
            kinds, result = (row.kinds, row.result) if name == row.name else ("f", "same")
            dtypes = [dtype for dtype in DTYPES.DTYPES if dtype.kind in kinds]
            # Vector mathematics hides what memory takes, and vectors that trickle past the caches take twice as long. Of a vector of bytes
            # as short as one of the output gcc makes branches, which took ten times as long.
            streamed = [dtype for dtype in dtypes if dtype.kind == "f" and result == "same" and not is_blocked(tree) and not row.masks]
            code = [elementwise_loop(name, directives[row.name], row, tree, inputs, dtype,
                                     "uint8_t" if result == "bool" else dtype.c_type) for dtype in dtypes]
            code += [elementwise_loop(name, directives[row.name], row, tree, inputs, dtype, dtype.c_type, stream=True)
                     for dtype in streamed]
            loops = {DTYPES.NUMBER[dtype.name]: f"loop_{name}_{dtype.name}" for dtype in dtypes}
            streams = {DTYPES.NUMBER[dtype.name]: f"stream_{name}_{dtype.name}" for dtype in streamed}
            yield name, len(inputs), is_blocked(tree), loops, streams, "\n".join(code)


def reduction_kernels():
    """Yield (row, {dtype number: (suffix, accumulator, result)}, code); the C text is in reduction_template.h."""
    directives = line_directives("reduction.py", "reduction")
    for row in OPS.REDUCTIONS.values():
        code, numbers = [], {}
        for number, dtype in enumerate(DTYPES.DTYPES):
            if dtype.kind not in row.kinds:
                continue
            acc = dtype.widest if row.wide else "bool" if row.result == "truth" else dtype.name
            out = {"truth": "uint8" if dtype.name == "uint8" else "bool", "same": dtype.name,
                   "widest": dtype.name if dtype.kind == "f" else dtype.widest}[row.result]
            known, suffix = {"acc", "x", "n"}, f"{row.name}_{dtype.name}"
            read = {key: FORMULA.to_c(FORMULA.parse(text), acc, known, FUNCTIONS) for key, text in
                    {"START": row.start, "STEP": row.step, "COMBINE": row.combine or row.step, "FINISH": row.y}.items()}
            if row.block_step and acc != dtype.name and dtype.kind == "f":
                read["BLOCK_STEP"] = FORMULA.to_c(FORMULA.parse(row.block_step), dtype.name, known, FUNCTIONS)
            element = "(value) != 0" if row.result == "truth" else "(T)(value)"
            defines = {"NAME": suffix, "X": dtype.c_type, "T": c_type(acc), "Y": c_type(out), "CG_ELEMENT(value)": element, **read}
            code += [f"#define {key} {value}" for key, value in defines.items()]
            code += [directives[row.name], '#include "reduction_template.h"']
            numbers[number] = (suffix, DTYPES.NUMBER[acc], DTYPES.NUMBER[out])
        yield row, numbers, "\n".join(code)


def c_type(name):
    return DTYPES.DTYPES[DTYPES.NUMBER[name]].c_type


def cast_kernels():
    """Yield (from, to, code) for every pair of dtypes: strided copies that convert."""
    for source in DTYPES.DTYPES:
        for target in DTYPES.DTYPES:
            value = "x != 0" if target.name == "bool" and source.name != "bool" else f"({target.c_type})x"
            yield source.name, target.name, f"CG_CAST(cast_{source.name}_{target.name}, {source.c_type}, {target.c_type}, {value})"


def table(entries, missing="0"):
    return "{" + ", ".join(entries.get(number, missing) for number in range(len(DTYPES.DTYPES))) + "}"


HEADER = "/* Generated from cygrad/ops by generate.py: change the tables, not this file. */"


def elementwise_unit(row) -> int:
    return zlib.crc32(row.name.encode()) % ELEMENTWISE_UNITS


def elementwise_text(unit: int) -> str:
    """Return the loops of the rows of one unit, and the table of them."""
    parts, rows = [HEADER], []
    for name, inputs, blocked, loops, streams, code in elementwise_kernels(
            row for row in OPS.ELEMENTWISE.values() if elementwise_unit(row) == unit):
        parts.append(code)
        rows.append(f'    {{"{name}", {inputs}, {int(blocked)}, {table(loops)}, {table(streams)}}},')
    return "\n".join([*parts, f"const cg_kernel CG_TABLE(cg_kernels_{unit})[] = {{", *rows, "    {0}\n};"]) + "\n"


def shared_text() -> str:
    """Return the list of the elementwise units, the casts, the copies to and from blocks, and the copy past the caches."""
    units = [f"CG_TABLE(cg_kernels_{unit})" for unit in range(ELEMENTWISE_UNITS)]
    names = [d.name for d in DTYPES.DTYPES]
    return "\n".join([
        HEADER,
        f"extern const cg_kernel {', '.join(f'{unit}[]' for unit in units)};",
        f"const cg_kernel *const CG_TABLE(cg_kernels)[] = {{{', '.join(units)}, 0}};",
        *(code for _, _, code in cast_kernels()),
        "const cg_cast CG_TABLE(cg_casts)[CG_DTYPES][CG_DTYPES] = {",
        *("    {" + ", ".join(f"cast_{a}_{b}" for b in names) + "}," for a in names), "};",
        '#include "packing.h"',
        *(f"const cg_move CG_TABLE(cg_{form}s)[CG_DTYPES] = {{{', '.join(f'{form}_uint{8 * d.itemsize}_t' for d in DTYPES.DTYPES)}}};"
          for form in ("gather", "scatter")),
        "CG_STREAM_COPY(stream_copy)", "const cg_copy CG_TABLE(cg_stream_copy) = stream_copy;"]) + "\n"


def reduction_text() -> str:
    """Return the reductions that every instruction-set level compiles."""
    parts, rows = [HEADER], []
    for row, numbers, code in reduction_kernels():
        parts.append(code)
        columns = [table({n: f"{part}_{suffix}" for n, (suffix, _, _) in numbers.items()})
                   for part in ("fill", "rows", "columns", "across", "combine", "finish", "scan", "find")]
        types = [table({n: str(pair[k]) for n, pair in numbers.items()}, "-1") for k in (1, 2)]
        rows.append(f'    {{"{row.name}", {", ".join(columns + types)}}},')
    parts += ["const cg_reduction CG_TABLE(cg_reductions)[] = {", *rows, "    {0}\n};"]
    return "\n".join(parts) + "\n"


def dtypes_text() -> str:
    """Return the C constants of the table of dtypes."""
    rows = DTYPES.DTYPES
    promoted = ("    {" + ", ".join(str(DTYPES.NUMBER[DTYPES.promote(a, b).name]) for b in rows) + "}," for a in rows)
    return "\n".join([
        "/* Generated from cygrad/ops/dtypes.py by generate.py. */",
        "enum { " + ", ".join(f"CG_{row.name.upper()}" for row in rows) + ", CG_DTYPES };",
        "static const int cg_itemsize[] = {" + ", ".join(str(row.itemsize) for row in rows) + "};",
        "typedef union { " + " ".join(f"{row.c_type} {row.name}_;" for row in rows) + " } cg_number;",
        f"enum {{ CG_LARGEST = {max(row.itemsize for row in rows)} }};",
        "static const char cg_kind[] = {" + ", ".join(f"'{row.kind}'" for row in rows) + "};",
        "static const char cg_is_differentiable[] = {" + ", ".join(str(int(row.is_differentiable)) for row in rows) + "};",
        "static const signed char cg_promotion[CG_DTYPES][CG_DTYPES] = {", *promoted, "};"]) + "\n"


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


def level_text(level: str, unit: str) -> str:
    target, vector_bytes = LEVELS.get(level, ("", 16))
    pragma = f'#pragma GCC target("arch={target}")\n' if target else ""
    return (f'{pragma}#define CG_TABLE(name) name##_{level}\n#define CG_VECTOR_BYTES {vector_bytes}\n'
            f'#include "loops.h"\n#include "{unit}_loops.h"\n')


def write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(levels) -> list[str]:
    """Write all generated files, as far as their text changed, and return the C sources, relative to the project."""
    OUTPUT.mkdir(exist_ok=True)
    write(OUTPUT / "dtypes.h", dtypes_text())
    write(OUTPUT / "erf_table.h", erf_text())
    units = {f"elementwise_{unit}": elementwise_text(unit) for unit in range(ELEMENTWISE_UNITS)}
    units |= {"reduction": reduction_text(), "shared": shared_text()}
    for unit, text in units.items():
        write(OUTPUT / f"{unit}_loops.h", text)
        for level in levels:
            write(OUTPUT / f"{unit}_{level}.c", level_text(level, unit))
    return [f"cygrad/_kernels/generated/{unit}_{level}.c" for unit in units for level in levels]


if __name__ == "__main__":
    print("\n".join(generate(LEVELS)))
