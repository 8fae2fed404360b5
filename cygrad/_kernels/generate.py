"""Write the inner loops in C from the tables: translate formulas, never control flow.

Each loop is one-dimensional and serial; the drivers own broadcasting and threads. Compiler errors point at the row (#line).
Every instruction-set level compiles the same units, but for those of complex numbers, whose vectors are no longer than v3's. The name
of an elementwise row says in which one its loops are, so that a changed row, or another one, leaves the other units as they were.
"""

import decimal
import importlib.util
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
OUTPUT = HERE / "generated"
ELEMENTWISE_UNITS, COMPLEX_UNITS = 8, 4
LEVELS = {"v2": ("x86-64-v2", 16), "v3": ("x86-64-v3", 32), "v4": ("x86-64-v4", 64)}
COMPLEX_LEVEL = {"v4": "v3"}    # whose loops of complex numbers run on the level


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


BOOL = DTYPES.DTYPES[DTYPES.NUMBER["bool"]]


def functions_defined(macro: str) -> set[str]:
    """Return what the headers define for formulas with one of the macros that say how it is evaluated."""
    definition = re.compile(rf"^ *{macro} \w+ (?:CG_NAME\((\w+)\)|(\w+)_(?:float64|##D))\(", re.MULTILINE)
    found = (match for path in (HERE / "mathematics").glob("*.h") for match in definition.findall(path.read_text()))
    return {shared or own for shared, own in found}


def complex_functions(macro: str) -> dict[str, tuple[str, str]]:
    """Return the kinds of number ("r", "c") that functions of complex numbers take, and the one that they give."""
    definition = re.compile(rf"^{macro} (\w+) (?:CG_COMPLEX_NAME\((\w+)\)|(\w+)_complex128)\((.*?)\)", re.MULTILINE)
    found = (match for path in (HERE / "mathematics").glob("*.h") for match in definition.findall(path.read_text()))
    return {shared or own: ("".join(kind_of(word) for word in arguments.split(", ")), kind_of(given))
            for given, shared, own, arguments in found}


def kind_of(declaration: str) -> str:
    return "c" if declaration.lower().startswith(("cg_complex", "cg_complex128")) else "r"


VECTOR_FUNCTIONS, COMPLEX_VECTOR_FUNCTIONS = functions_defined("CG_VECTOR_FUNCTION"), complex_functions("CG_VECTOR_FUNCTION")
FUNCTIONS = FORMULA.Functions(VECTOR_FUNCTIONS | functions_defined("CG_EXACT_FUNCTION"),
                              COMPLEX_VECTOR_FUNCTIONS | complex_functions("CG_EXACT_FUNCTION"))


def is_blocked(tree, dtype) -> bool:
    """Say whether the loop of a formula runs in whole vectors, over the end of the data (see "No tails" in docs/design/kernels.md).

    Quotients of complex numbers do, too: they are as much code as a function.
    """
    if dtype.real:
        return not COMPLEX_VECTOR_FUNCTIONS.keys().isdisjoint(FORMULA.called(tree)) or FORMULA.divides(tree)
    return not VECTOR_FUNCTIONS.isdisjoint(FORMULA.called(tree))


def numbers_of(dtype) -> tuple:
    """Return the dtypes in which a loop of a dtype reads its formula."""
    return FORMULA.Numbers(dtype.real or dtype.name, dtype.name if dtype.real else DTYPES.COMPLEX_OF.get(dtype.name),
                           c_type(dtype.real) if dtype.real else "T")


def kind(dtype) -> str:
    return "c" if dtype.real else "r"


def line_directives(filename: str, call: str) -> dict[str, str]:
    """Map each row of a table to the #line directive that makes the compiler name it."""
    text = (HERE.parent / "ops" / filename).read_text().splitlines()
    found = ((re.match(rf'{call}\("(\w+)"', line), number) for number, line in enumerate(text, 1))
    return {match[1]: f'#line {number} "cygrad/ops/{filename}"' for match, number in found if match}


def elementwise_loop(name, directive, row, tree, inputs, dtype, out, stream=False):
    """Return the C function of one kernel for one dtype; two inputs have bodies for a scalar on either side."""
    result = DTYPES.result_dtype(dtype, "same" if row.result == "bool" else row.result)
    dtypes = {word: BOOL if word in row.masks else result if word in ("g", "y") else dtype for word in (*inputs, *row.params)}
    types, out_type = {word: dtypes[word].c_type for word in inputs}, out.c_type
    expression = FORMULA.to_c(tree, numbers_of(dtype), {word: kind(dtypes[word]) for word in dtypes}, FUNCTIONS, kind(out))
    expression = f"({expression}) != 0" if out_type == "uint8_t" and dtype.name == "bool" else expression
    blocked = is_blocked(tree, dtype)
    # Vectors of bytes beside complex numbers are much code, and memory takes longer.
    serial = dtype.real and not blocked and (out.name == "bool" or row.masks)
    start = "CG_BLOCKS(T, n) { const intptr_t i = first + k;" if blocked else "CG_SERIAL_LOOP(n) {" if serial else "CG_LOOP(T, n) {"
    store = f"out[i] = {expression}; }}"
    if blocked and dtype.real:
        fetched = " ".join(f"CG_FETCH_BLOCK(p_{operand} + first);" for operand in inputs)
        start = f"CG_VECTORS(T, n) {{ {fetched} CG_FETCH_BLOCK(out + first); CG_LANE(T) {{ const intptr_t i = first + k;"
        store += " }"
    if stream:
        start = "CG_VECTORS(T, n) { CG_VECTOR(T); CG_LANE(T) { const intptr_t i = first + k;"
        store = f"vector[k] = {expression}; }} CG_STREAM_VECTOR(out + first, vector); }}"
    form = "stream" if stream else "loop"
    function = f"{form}_{name}_{dtype.name}"
    declared = f"{'CG_SERIAL ' if serial else ''}void CG_TABLE({function})" if dtype.real else f"static void {function}"
    body = [f"{declared}(char *const *p, const intptr_t *s, intptr_t n, const void *c) {{",
            f"    typedef {dtype.c_type} T CG_UNUSED; {out_type} *out = ({out_type} *)p[{len(inputs)}]; (void)s; (void)c;"]
    body += [f"    const {types[operand]} *p_{operand} = (const {types[operand]} *)p[{k}];" for k, operand in enumerate(inputs)]
    body += [f"    const T {param} = ((const T *)c)[{k}]; (void){param};" for k, param in enumerate(row.params)]
    # A blocked loop gets no scalars: gcc would hoist a function of one and call its scalar form, with other bits.
    two = len(inputs) == 2 and not blocked
    scalars = [(f"if (!s[{k}]) ", (operand,)) for k, operand in enumerate(inputs)] if two and not serial else []
    places = {operand: f"s[{k}] ? i : 0" if two and serial else "i" for k, operand in enumerate(inputs)}
    for condition, constant in [*scalars, ("", ())]:
        before = "".join(f"const {types[operand]} {operand} CG_UNUSED = *p_{operand}; " for operand in constant)
        inside = "".join(f"const {types[operand]} {operand} CG_UNUSED = p_{operand}[{places[operand]}]; "
                         for operand in inputs if operand not in constant)
        body += [f"    {condition}{{ {before}{start} {inside}", directive, f"        {store} return; }}"]
    return "\n".join([*body, "}"])


def elementwise_kernels(rows):
    """Yield the kernels of every row and every partial."""
    directives = line_directives("elementwise.py", "elementwise")
    for row in rows:
        gradients = "".join(kind for kind in "fc" if kind in row.kinds)
        readings = [(row.name, row.tree(row.y), list(row.operands))]
        for operand in row.partials:
            saved = row.saved(operand)
            readings.append((f"{row.name}_d{operand}", row.backward(operand), ["g", *(w for w in (*row.operands, "y") if w in saved)]))
        for name, tree, inputs in readings:
            kinds, result = (row.kinds, row.result) if name == row.name else (gradients, "same")
            dtypes = [dtype for dtype in DTYPES.DTYPES if dtype.kind in kinds and not dtype.loops]
            # Vector mathematics hides what memory takes, and vectors that trickle past the caches take twice as long. Of a vector of bytes
            # as short as one of the output gcc makes branches, which took ten times as long.
            streamed = [dtype for dtype in dtypes if dtype.kind in "fc" and DTYPES.result_dtype(dtype, result) is dtype
                        and not is_blocked(tree, dtype) and not row.masks]
            yield Kernel(name, inputs, dtypes, streamed, [is_blocked(tree, dtype) for dtype in DTYPES.DTYPES],
                         lambda dtype, form, *reading, result=result, name=name, row=row: elementwise_loop(
                             name, directives[row.name], row, *reading, dtype, DTYPES.result_dtype(dtype, result), form == "stream"),
                         tree)


class Kernel(NamedTuple):
    """The loops of a row or of a partial: for which dtypes there are some, those of large results, and how one is written."""

    name: str
    inputs: list
    dtypes: list
    streamed: list
    blocked: list
    text: Callable
    tree: Any

    def loops(self) -> Iterator[tuple]:
        yield from (("loop", dtype) for dtype in self.dtypes)
        yield from (("stream", dtype) for dtype in self.streamed)

    def code(self, of_complex: bool) -> str:
        return "\n".join(self.text(dtype, form, self.tree, self.inputs) for form, dtype in self.loops() if bool(dtype.real) == of_complex)

    def row(self) -> str:
        """Return the entry of the table of kernels."""
        found: dict[str, dict[int, str]] = {"loop": {}, "stream": {}}
        for form, dtype in self.loops():
            name = f"{form}_{self.name}_{dtype.name}"
            found[form][DTYPES.NUMBER[dtype.name]] = f"CG_COMPLEX_TABLE({name})" if dtype.real else name
        blocked = ", ".join(str(int(value)) for value in self.blocked)
        return f'    {{"{self.name}", {len(self.inputs)}, {{{blocked}}}, {table(found["loop"])}, {table(found["stream"])}}},'

    def declarations(self) -> str:
        names = [f"CG_COMPLEX_TABLE({form}_{self.name}_{dtype.name})" for form, dtype in self.loops() if dtype.real]
        return f"extern cg_loop_function {', '.join(names)};" if names else ""


def reduction_kernels():
    """Yield (row, {dtype number: (suffix, accumulator, result)}, code); the C text is in reduction_template.h."""
    directives = line_directives("reduction.py", "reduction")
    for row in OPS.REDUCTIONS.values():
        code, numbers = [], {}
        for number, dtype in enumerate(DTYPES.DTYPES):
            if dtype.kind not in row.kinds or dtype.loops:
                continue
            acc = dtype.widest if row.wide else "bool" if row.result == "truth" else dtype.name
            out = {"truth": "uint8" if dtype.name == "uint8" else "bool", "same": dtype.name,
                   "widest": dtype.name if dtype.kind in "fc" else dtype.widest}[row.result]
            suffix, folded = f"{row.name}_{dtype.name}", DTYPES.DTYPES[DTYPES.NUMBER[acc]]
            result = DTYPES.DTYPES[DTYPES.NUMBER[out]]
            read = {key: read_fold(text, folded) for key, text in
                    {"START": row.start, "STEP": row.step, "COMBINE": row.combine or row.step, "FINISH": row.y}.items()}
            if row.block_step and acc != dtype.name and dtype.kind in "fc":
                read |= {"BLOCK_START": read_fold(row.start, dtype), "BLOCK_STEP": read_fold(row.block_step, dtype)}
            defines = {"NAME": suffix, "X": dtype.c_type, "T": c_type(acc), "Y": c_type(out), "CG_COUNT": c_type(folded.real or acc),
                       "CG_ELEMENT(value)": converted("value", dtype, BOOL if row.result == "truth" else folded),
                       "CG_RESULT(value)": f"({result.c_type})(value)" if not result.real else converted("value", folded, result), **read}
            defines |= {} if dtype.real else {"ORDERED": ""}
            code += [f"#define {key} {value}" for key, value in defines.items()]
            code += [directives[row.name], '#include "reduction_template.h"']
            numbers[number] = (suffix, DTYPES.NUMBER[acc], DTYPES.NUMBER[out])
        yield row, numbers, "\n".join(code)


def c_type(name):
    return DTYPES.DTYPES[DTYPES.NUMBER[name]].c_type


def read_fold(text, dtype):
    return FORMULA.to_c(FORMULA.parse(text), numbers_of(dtype) if dtype.real else FORMULA.Numbers(dtype.name),
                        {"acc": kind(dtype), "x": kind(dtype), "n": "r"}, FUNCTIONS, kind(dtype))


def converted(value, source, target):
    """Return the C expression of a value in another dtype: of complex numbers the real part."""
    if source.loops or target.loops:
        return value if source is target else f"widened_{source.name}({value})" if source.loops else f"narrowed_{target.name}({value})"
    if source.real:
        if target.real:
            part = c_type(target.real)
            return f"(({target.c_type}){{({part})({value}).re, ({part})({value}).im}})"
        return f"((({value}).re != 0) | (({value}).im != 0))" if target.name == "bool" else f"(({target.c_type})({value}).re)"
    if target.real:
        return f"(({target.c_type}){{({c_type(target.real)})({value}), 0}})"
    return f"(({value}) != 0)" if target.name == "bool" and source.name != "bool" else f"(({target.c_type})({value}))"


def cast_kernels():
    """Yield the code of every pair of dtypes: strided copies that convert."""
    for source in DTYPES.DTYPES:
        for target in DTYPES.DTYPES:
            rare = kind(source) != kind(target) and "f" not in (source.kind, target.kind)
            form = "CG_RARE_CAST" if rare else "CG_CAST"
            name, narrow = f"cast_{source.name}_{target.name}", source if source.loops else target
            arguments = f"{name}, {source.c_type}, {target.c_type}"
            if source.name == target.loops or target.name == source.loops:
                yield f"CG_NARROW_CAST({arguments}, {narrow.name}, {'widen' if source.loops else 'narrow'})"
            elif narrow.loops and source is not target:
                yield f"CG_CAST_BY_FLOATS({name}, cast_{source.name}_{narrow.loops}, cast_{narrow.loops}_{target.name})"
            else:
                yield f"{form}({arguments}, {converted('x', source, target)})"


def table(entries, missing="0"):
    return "{" + ", ".join(entries.get(number, missing) for number in range(len(DTYPES.DTYPES))) + "}"


HEADER = "/* Generated from cygrad/ops by generate.py: change the tables, not this file. */"


def unit_of(row, units: int) -> int:
    return zlib.crc32(row.name.encode()) % units


def rows_of_unit(unit: int, units: int) -> list:
    return [row for row in OPS.ELEMENTWISE.values() if unit_of(row, units) == unit]


def elementwise_text(unit: int) -> str:
    """Return the loops of the rows of one unit, and the table of them."""
    kernels = list(elementwise_kernels(rows_of_unit(unit, ELEMENTWISE_UNITS)))
    return "\n".join([HEADER, *(text for kernel in kernels for text in (kernel.code(False), kernel.declarations()) if text),
                      f"const cg_kernel CG_TABLE(cg_kernels_{unit})[] = {{", *(kernel.row() for kernel in kernels), "    {0}\n};"]) + "\n"


def complex_text(unit: int) -> str:
    """Return the loops of complex numbers of the rows of one unit, which are in the tables of the elementwise units.

    Those of rare rows are the lowest level's: the others jump there.
    """
    rows = [row for row in rows_of_unit(unit, COMPLEX_UNITS) if "c" in row.kinds]
    often = elementwise_kernels(row for row in rows if not row.rare)
    rare = list(elementwise_kernels(row for row in rows if row.rare))
    jumps = [f"CG_JUMP({form}_{kernel.name}_{dtype.name})" for kernel in rare for form, dtype in kernel.loops() if dtype.real]
    return "\n".join([HEADER, *(kernel.code(True) for kernel in often), "#ifdef CG_LOWEST_TABLE", *jumps,
                      "#else", *(kernel.code(True) for kernel in rare), "#endif"]) + "\n"


def shared_text() -> str:
    """Return the list of the elementwise units, the casts, the copies to and from blocks, and the copy past the caches."""
    units = [f"CG_TABLE(cg_kernels_{unit})" for unit in range(ELEMENTWISE_UNITS)]
    names = [d.name for d in DTYPES.DTYPES]
    return "\n".join([
        HEADER,
        f"extern const cg_kernel {', '.join(f'{unit}[]' for unit in units)};",
        f"const cg_kernel *const CG_TABLE(cg_kernels)[] = {{{', '.join(units)}, 0}};",
        *sorted(cast_kernels(), key=lambda code: code.startswith("CG_CAST_BY")),
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
                   for part in ("fill", "rows", "columns", "across", "combine", "finish", "scan")]
        columns.append(table({n: f"find_{suffix}" for n, (suffix, _, _) in numbers.items() if not DTYPES.DTYPES[n].real}))
        results = {n: pair[1:] for n, pair in numbers.items()}
        for n, dtype in enumerate(DTYPES.DTYPES):   # what is stored only is folded by others' loops
            if dtype.loops and dtype.kind in row.kinds:
                computed = DTYPES.NUMBER[dtype.loops]
                acc, out = results[computed]
                results[n] = acc, n if out == computed else out
        types = [table({n: str(pair[k]) for n, pair in results.items()}, "-1") for k in (0, 1)]
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
        *(f"typedef struct {{ {c_type(row.real)} re, im; }} {row.c_type};" for row in rows if row.real),
        *(f"typedef struct {{ uint{8 * row.itemsize}_t bits; }} {row.c_type};" for row in rows if row.loops),
        "static const int cg_itemsize[] = {" + ", ".join(str(row.itemsize) for row in rows) + "};",
        "typedef union { " + " ".join(f"{row.c_type} {row.name}_;" for row in rows) + " } cg_number;",
        f"enum {{ CG_LARGEST = {max(row.itemsize for row in rows)} }};",
        *(f"static const signed char cg_{name}[] = {{" + ", ".join(str(DTYPES.NUMBER[other(row)]) for row in rows) + "};" for name, other in
          (("real", lambda row: row.real or row.name), ("complex", lambda row: DTYPES.COMPLEX_OF.get(row.name, row.name)),
           ("loops_of", lambda row: row.loops or row.name))),
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


def level_text(level: str, unit: str, lowest: str) -> str:
    target, vector_bytes = LEVELS.get(level, ("", 16))
    pragma = f'#pragma GCC target("arch={target}")\n' if target else ""
    lower = f"#define CG_LOWEST_TABLE(name) name##_{lowest}\n" if level != lowest else ""
    block = "CG_COMPLEX_BLOCK" if unit.startswith("complex") else "CG_VECTOR_BYTES"
    return (f'{pragma}{lower}#define CG_TABLE(name) name##_{level}\n'
            f'#define CG_COMPLEX_TABLE(name) name##_{COMPLEX_LEVEL.get(level, level)}\n'
            f'#define CG_VECTOR_BYTES {vector_bytes}\n#define CG_BLOCK_BYTES {block}\n#include "loops.h"\n#include "{unit}_loops.h"\n')


def write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(levels) -> list[str]:
    """Write all generated files, as far as their text changed, and return the C sources, relative to the project."""
    OUTPUT.mkdir(exist_ok=True)
    levels = list(levels)
    write(OUTPUT / "dtypes.h", dtypes_text())
    write(OUTPUT / "erf_table.h", erf_text())
    units = {f"elementwise_{unit}": elementwise_text(unit) for unit in range(ELEMENTWISE_UNITS)}
    units |= {f"complex_{unit}": complex_text(unit) for unit in range(COMPLEX_UNITS)}
    units |= {"reduction": reduction_text(), "shared": shared_text()}
    sources = []
    for unit, text in units.items():
        write(OUTPUT / f"{unit}_loops.h", text)
        for level in levels if not unit.startswith("complex") else dict.fromkeys(COMPLEX_LEVEL.get(level, level) for level in levels):
            write(OUTPUT / f"{unit}_{level}.c", level_text(level, unit, levels[0]))
            sources.append(f"cygrad/_kernels/generated/{unit}_{level}.c")
    return sources


if __name__ == "__main__":
    print("\n".join(generate(LEVELS)))
