"""Write the inner loops in C from the tables: translate formulas, never control flow.

Each loop is one-dimensional and serial; the drivers own broadcasting and threads. Compiler errors point at the row (#line).
Those of real floats are compiled for every instruction-set level, the others up to v3, what is rare for the lowest alone. The name of
an elementwise row says in which units its loops are, so that a changed row, or another one, leaves the other units as they were.
"""

import ast
import decimal
import importlib.util
import itertools
import re
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
OUTPUT = HERE / "generated"
UNITS = {"floats": 8, "others": 4, "rare": 4}     # of elementwise rows
LEVELS = {"v2": ("x86-64-v2", 16), "v3": ("x86-64-v3", 32), "v4": ("x86-64-v4", 64)}
NUMBER = "number"               # the operand of a shifted loop that is one for all elements
NATIVE = "", "CG_NATIVE_VECTOR_BYTES"    # of building/native.py, in place of all levels
LEVEL_OF_OTHERS = {"v4": "v3"}  # whose loops of what is no real float run on the level


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
    return "c" if declaration.lower().startswith("cg_complex") else "r"


VECTOR_FUNCTIONS, COMPLEX_VECTOR_FUNCTIONS = functions_defined("CG_VECTOR_FUNCTION"), complex_functions("CG_VECTOR_FUNCTION")
FUNCTIONS = FORMULA.Functions(VECTOR_FUNCTIONS | functions_defined("CG_EXACT_FUNCTION"),
                              COMPLEX_VECTOR_FUNCTIONS | complex_functions("CG_EXACT_FUNCTION"))


def is_blocked(tree, dtype) -> bool:
    """Say whether the loop of a formula runs in whole vectors, over the end of the data (see "No tails" in docs/design/kernels.md).

    Quotients of complex numbers do, too: they are as much code as a function. So does what is converted in registers.
    """
    if dtype.is_opaque:
        return True
    if dtype.real:
        return not COMPLEX_VECTOR_FUNCTIONS.keys().isdisjoint(FORMULA.called(tree)) or FORMULA.divides(tree)
    return dtype.is_differentiable and not VECTOR_FUNCTIONS.isdisjoint(FORMULA.called(tree))


def unit_kind(dtype, rare: str = "") -> str:
    """Return the kind of unit that has the loops of a dtype, of a row of which those of some kinds are rare."""
    return "rare" if dtype.kind in rare else "floats" if dtype.is_floating_point else "others"


def symbol(name: str, unit: str) -> str:
    """Return the C name of a function of a kind of unit, on the level that is compiled."""
    return {"floats": f"CG_TABLE({name})", "others": f"CG_OTHERS_TABLE({name})", "rare": f"CG_RARE_TABLE({name})", "shared": name}[unit]


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
    """Return the C function of one kernel for one dtype; two inputs have bodies for a scalar on either side.

    `number` is one always. Loops with one, of whole vectors, fetch what tiles will read next, if parameters say so: they have no others.
    """
    result = DTYPES.result_dtype(dtype, "same" if row.result == "bool" else row.result)
    dtypes = {word: BOOL if word in row.masks else result if word in ("g", "y") else dtype for word in (*inputs, *row.params)}
    types, out_type = {word: dtypes[word].c_type for word in inputs}, out.c_type
    expression = FORMULA.to_c(tree, numbers_of(dtype), {word: kind(dtypes[word]) for word in dtypes}, FUNCTIONS, kind(out))
    expression = f"({expression}) != 0" if out_type == "uint8_t" and dtype.name == "bool" else expression
    blocked, always = is_blocked(tree, dtype), tuple(operand for operand in inputs if operand == NUMBER)
    # Vectors of bytes beside complex numbers are much code, and memory takes longer.
    serial = dtype.real and not blocked and (out.name == "bool" or row.masks)
    start = "CG_SERIAL_LOOP(n) {" if serial else "CG_LOOP(T, n) {"
    store = f"out[i] = {expression}; }}"
    fetches = ""
    if always:
        fetches = f"if (c) {{ {' '.join(f'CG_FETCH_ROW(p_{operand} + first);' for operand in inputs if operand != NUMBER)} }} "
    elif blocked:
        fetched = " ".join(f"CG_FETCH_BLOCK({place} + first);" for place in (*(f"p_{operand}" for operand in inputs), "out"))
        fetches = f"if (CG_IS_FAR) {{ {fetched} }} "
    if blocked:
        start = f"CG_VECTORS(T, n) {{ {fetches}CG_LANE(T) {{ const intptr_t i = first + k;"
        store += " }"
    if stream:
        start = f"CG_VECTORS(T, n) {{ {fetches}CG_VECTOR(T); CG_LANE(T) {{ const intptr_t i = first + k;"
        store = f"vector[k] = {expression}; }} CG_STREAM_VECTOR(out + first, vector); }}"
    form = "stream" if stream else "loop"
    function = symbol(f"{form}_{name}_{dtype.name}", unit_kind(dtype, row.rare))
    body = [f"{'CG_SERIAL ' if serial else ''}void {function}(char *const *p, const intptr_t *s, intptr_t n, const void *c) {{",
            f"    typedef {dtype.c_type} T CG_UNUSED; {out_type} *out = ({out_type} *)p[{len(inputs)}]; (void)s; (void)c;",
            *(["    CG_FAR(T, n);"] if blocked and not always else [])]
    body += [f"    const {types[operand]} *p_{operand} = (const {types[operand]} *)p[{k}];" for k, operand in enumerate(inputs)]
    body += [f"    const T {param} = ((const T *)c)[{k}]; (void){param};" for k, param in enumerate(row.params)]
    # A blocked loop gets no other scalars: gcc would hoist a function of one and call its scalar form, with other bits.
    two = len(inputs) == 2 and not blocked and not always
    scalars = [(f"if (!s[{k}]) ", (operand,)) for k, operand in enumerate(inputs)] if two and not serial else []
    places = {operand: f"s[{k}] ? i : 0" if two and serial else "i" for k, operand in enumerate(inputs)}
    for condition, constant in [*scalars, ("", always)]:
        before = "".join(f"const {types[operand]} {operand} CG_UNUSED = *p_{operand}; " for operand in constant)
        inside = "".join(f"const {types[operand]} {operand} CG_UNUSED = p_{operand}[{places[operand]}]; "
                         for operand in inputs if operand not in constant)
        body += [f"    {condition}{{ {before}{start} {inside}", directive, f"        {store} return; }}"]
    return "\n".join([*body, "}"])


def narrow_loop(name, directive, row, tree, inputs, dtype):
    """Return the C function of one kernel for what is stored only, converted in registers: in whole vectors, without scalars."""
    expression = FORMULA.to_c(tree, FORMULA.Numbers(dtype.loops), dict.fromkeys((*inputs, *row.params), "r"), FUNCTIONS)
    vectors = ", ".join(f"v_{word}[CG_VL(S)]" for word in (*inputs, "result"))
    fetched = "" if VECTOR_FUNCTIONS.isdisjoint(FORMULA.called(tree)) else " if (CG_IS_FAR) { " + "".join(
        f"CG_FETCH_BLOCK({place} + first); " for place in (*(f"p_{operand}" for operand in inputs), "out")) + "}"
    return "\n".join([
        "#ifdef CG_NARROW_LOOPS",
        f"void {symbol(f'loop_{name}_{dtype.name}', 'floats')}(char *const *p, const intptr_t *s, intptr_t n, const void *c) {{",
        f"    typedef {c_type(dtype.loops)} T; typedef {dtype.c_type} S; S *out = (S *)p[{len(inputs)}]; CG_FAR(S, n); (void)s; (void)c;",
        *(f"    const S *p_{operand} = (const S *)p[{k}];" for k, operand in enumerate(inputs)),
        *(f"    const T {param} = ((const T *)c)[{k}]; (void){param};" for k, param in enumerate(row.params)),
        f"    CG_VECTORS(S, n) {{ T {vectors};{fetched}",
        *(f"        widen_{dtype.name}(v_{operand}, p_{operand} + first);" for operand in inputs),
        "        CG_LANE(S) { " + " ".join(f"const T {operand} CG_UNUSED = v_{operand}[k];" for operand in inputs), directive,
        f"            v_result[k] = {expression}; }} narrow_{dtype.name}(out + first, v_result); }}", "}", "#endif"])


def elementwise_kernels(rows):
    """Yield the kernels of every row and every partial."""
    directives = line_directives("elementwise.py", "elementwise")
    for row in rows:
        gradients = {dtype.kind for dtype in DTYPES.DTYPES if dtype.is_differentiable and dtype.kind in row.kinds}
        readings = [(row.name, row.tree(row.y), list(row.operands))]
        for operand in row.partials:
            saved = row.saved(operand)
            readings.append((f"{row.name}_d{operand}", row.backward(operand), ["g", *(w for w in (*row.operands, "y") if w in saved)]))
        if row.shifted:
            inputs = [f"{operand}_" if operand == row.shifted else operand for operand in row.operands]
            readings.append((f"{row.name}_shifted", row.tree_of_shifted(NUMBER), [*inputs, NUMBER]))
        for name, tree, inputs in readings:
            kinds, result = ("f" if NUMBER in inputs else gradients, "same") if name != row.name else (row.kinds, row.result)
            plain = isinstance(tree, ast.Name) or NUMBER in inputs     # a gradient that passes as it is; what tiles compute in floats
            own = row.stored and name == row.name or row.narrow and not plain
            dtypes = [dtype for dtype in DTYPES.DTYPES if dtype.kind in kinds and (not dtype.loops or own and dtype.is_opaque)]
            yield Kernel(name, row, directives[row.name], tree, inputs, dtypes, result)


class Kernel(NamedTuple):
    """The loops of a row or of a partial: its formula, for which dtypes there are some, and of what dtype the result is."""

    name: str
    row: Any
    directive: str
    tree: Any
    inputs: list
    dtypes: list
    result: str

    @property
    def is_stored(self) -> bool:
        """Whether it reads numbers as they are stored, of 16 bits too; partials read floats."""
        return self.row.stored and self.name == self.row.name

    def is_streamed(self, dtype) -> bool:
        """Say whether large results are written past the caches.

        Vector mathematics hides what memory takes, and vectors that trickle past the caches take twice as long. Of a vector of bytes as
        short as one of the output gcc makes branches, which took ten times as long.
        """
        return (dtype.is_differentiable and not dtype.is_opaque and DTYPES.result_dtype(dtype, self.result) is dtype
                and not is_blocked(self.tree, dtype) and not self.row.masks and dtype.kind not in self.row.rare)

    def loops(self) -> Iterator[tuple]:
        """Yield the form, the dtype and the kind of unit of each loop."""
        yield from (("loop", dtype, unit_kind(dtype, self.row.rare)) for dtype in self.dtypes)
        yield from (("stream", dtype, unit_kind(dtype, self.row.rare)) for dtype in self.dtypes if self.is_streamed(dtype))

    def text(self, form: str, dtype) -> str:
        """Return one loop."""
        formula = self.name, self.directive, self.row, self.tree, self.inputs, dtype
        return narrow_loop(*formula) if dtype.is_opaque and not self.is_stored else elementwise_loop(
            *formula, DTYPES.result_dtype(dtype, self.result), form == "stream")

    def code(self, unit: str) -> str:
        return "\n".join(self.text(form, dtype) for form, dtype, where in self.loops() if where == unit)

    def entry(self) -> str:
        """Return the row of the table of kernels."""
        found: dict[str, dict[int, str]] = {"loop": {}, "stream": {}}
        for form, dtype, unit in self.loops():
            name = symbol(f"{form}_{self.name}_{dtype.name}", unit)
            found[form][DTYPES.NUMBER[dtype.name]] = f"CG_NARROW_LOOP({name})" if dtype.is_opaque and not self.is_stored else name
        blocked = ", ".join(str(int(is_blocked(self.tree, dtype))) for dtype in DTYPES.DTYPES)
        numbers = f"{len(self.inputs)}, {int(self.is_stored)}"
        return f'    {{"{self.name}", {numbers}, {{{blocked}}}, {table(found["loop"])}, {table(found["stream"])}}},'

    def declarations(self) -> str:
        names = [symbol(f"{form}_{self.name}_{dtype.name}", unit) for form, dtype, unit in self.loops()]
        return f"extern cg_loop_function {', '.join(names)};"


def reduction_kernels():
    """Yield (row, {dtype: (accumulator, result)}, {kind of unit: code}); the C text is in reduction_template.h."""
    directives = line_directives("reduction.py", "reduction")
    for row in OPS.REDUCTIONS.values():
        code, dtypes = {kind: [] for kind in UNITS}, {}
        for dtype in DTYPES.DTYPES:
            if dtype.kind not in row.kinds or dtype.loops:
                continue
            acc = dtype.widest if row.wide else "bool" if row.result == "truth" else dtype.name
            out = {"truth": "uint8" if dtype.name == "uint8" else "bool", "same": dtype.name,
                   "widest": dtype.name if dtype.is_differentiable else dtype.widest}[row.result]
            unit, folded = unit_kind(dtype, row.rare), dtype_row(acc)
            result = dtype_row(out)
            read = {key: read_fold(text, folded) for key, text in
                    {"START": row.start, "STEP": row.step, "COMBINE": row.combine or row.step, "FINISH": row.y}.items()}
            if is_narrower(row, dtype):
                narrow = [f"CG_NARROW_ROWS({rows_symbol(row, stored)}, {stored.name})" for stored in DTYPES.DTYPES
                          if stored.is_opaque and stored.loops == dtype.name]
                read |= {"NARROW": " ".join(narrow)} if narrow else {}
                read |= {"BLOCK_START": read_fold(row.start, dtype), "BLOCK_STEP": read_fold(row.block_step, dtype),
                         "CG_FINITE(value)": f"isfinite_{acc}(value)"}
            defines = {"NAME": symbol(f"{row.name}_{dtype.name}", unit), "X": dtype.c_type, "T": c_type(acc), "Y": c_type(out),
                       "CG_COUNT": c_type(folded.real or acc),
                       "CG_ELEMENT(value)": converted("value", dtype, BOOL if row.result == "truth" else folded),
                       "CG_RESULT(value)": f"({result.c_type})(value)" if not result.real else converted("value", folded, result), **read}
            defines |= {} if dtype.real else {"ORDERED": ""}
            defines |= {"PRODUCTS": ""} if has_products(row, dtype) else {}
            code[unit] += [*(f"#define {key} {value}" for key, value in defines.items()), directives[row.name],
                           '#include "reduction_template.h"']
            dtypes[dtype] = acc, out
        yield row, dtypes, code


def is_narrower(row, dtype) -> bool:
    """Whether lanes are folded in the dtype of the elements before they become accumulators."""
    return row.block_step and dtype.is_differentiable and not dtype.loops and dtype.widest != dtype.name


def has_products(row, dtype) -> bool:
    return row.products and dtype.is_floating_point and not dtype.loops


def rows_symbol(row, dtype) -> str:
    """Return the C name of what folds whole blocks of numbers that are stored only."""
    return symbol(f"rows_{row.name}_{dtype.name}", "floats")


def dtype_row(name):
    return DTYPES.DTYPES[DTYPES.NUMBER[name]]


def c_type(name):
    return dtype_row(name).c_type


def read_fold(text, dtype):
    return FORMULA.to_c(FORMULA.parse(text), numbers_of(dtype) if dtype.real else FORMULA.Numbers(dtype.name),
                        {"acc": kind(dtype), "x": kind(dtype), "n": "r"}, FUNCTIONS, kind(dtype))


def converted(value, source, target):
    """Return the C expression of a value in another dtype: of complex numbers the real part.

    C leaves open what becomes of a float that a narrow integer does not hold: it is the low bits of that of 32, as in torch.
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


def between(source, target):
    """Return the dtype by way of which numbers are converted, if one is: floats of those stored in 16 bits, int64 of unsigned integers."""
    for stored, other in (source, target), (target, source):
        if stored.loops and (stored.is_opaque or not other.is_differentiable) and other.name not in (stored.name, stored.loops):
            return dtype_row(stored.loops)
    return None


def cast_unit(source, target) -> str:
    """Return the kind of unit of a cast; what goes by way of another dtype is beside the table."""
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


def table(entries, missing="0"):
    return "{" + ", ".join(entries.get(number, missing) for number in range(len(DTYPES.DTYPES))) + "}"


HEADER = "/* Generated from cygrad/ops by generate.py: change the tables, not this file. */"


def unit_of(row, kind: str) -> int:
    return zlib.crc32(row.name.encode()) % UNITS[kind]


def elementwise_text(kind: str, unit: int) -> str:
    """Return the loops of the rows of one unit; those of real floats have the table of all of them."""
    kernels = list(elementwise_kernels(row for row in OPS.ELEMENTWISE.values() if unit_of(row, kind) == unit))
    code = [kernel.code(kind) for kernel in kernels]
    if kind == "floats":
        code += [*(kernel.declarations() for kernel in kernels),
                 f"const cg_kernel CG_TABLE(cg_kernels_{unit})[] = {{", *(kernel.entry() for kernel in kernels), "    {0}\n};"]
    return "\n".join([HEADER, *(text for text in code if text)]) + "\n"


def casts(*units: str) -> list[tuple]:
    """Return the pairs of dtypes whose casts are in some kinds of units."""
    return [(a, b) for a in DTYPES.DTYPES for b in DTYPES.DTYPES if cast_unit(a, b) in units]


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
        *("    {" + ", ".join(cast_symbol(a, b) for b in DTYPES.DTYPES) + "}," for a in DTYPES.DTYPES), "};",
        '#include "packing.h"',
        *(f"const cg_move CG_TABLE(cg_{form}s)[CG_DTYPES] = {{{', '.join(f'{form}_uint{8 * d.itemsize}_t' for d in DTYPES.DTYPES)}}};"
          for form in ("gather", "scatter")),
        '#include "mathematics/vectorcalls.h"',
        "CG_STREAM_COPY(stream_copy)", "const cg_copy CG_TABLE(cg_stream_copy) = stream_copy;"]) + "\n"


def reduction_texts() -> dict[str, str]:
    """Return the units of the reductions; the one of real floats has the table of all of them."""
    texts, rows = {kind: [HEADER] for kind in UNITS}, []
    for row, dtypes, code in reduction_kernels():
        for kind in UNITS:
            texts[kind] += code[kind]
        columns, some = [], {"find": lambda row, dtype: not dtype.real, "products": has_products,
                             "across_wide": is_narrower, "finite": is_narrower}
        for part in ("fill", "rows", "products", "columns", "across", "across_wide", "finite", "combine", "finish", "scan", "find"):
            names = {dtype: symbol(f"{part}_{row.name}_{dtype.name}", unit_kind(dtype, row.rare)) for dtype in dtypes
                     if part not in some or some[part](row, dtype)}
            entries = dict(names)
            for dtype in DTYPES.DTYPES:
                if part == "rows" and row.block_step and dtype.is_opaque:
                    names[dtype] = rows_symbol(row, dtype)
                    entries[dtype] = f"CG_NARROW_LOOP({names[dtype]})"
            texts["floats"] += [f"extern cg_fold_{part} {', '.join(names.values())};"] if names else []
            columns.append(table({DTYPES.NUMBER[dtype.name]: entry for dtype, entry in entries.items()}))
        for dtype in DTYPES.DTYPES:     # what is stored only is folded by others' loops
            if dtype.loops and dtype.kind in row.kinds:
                acc, out = dtypes[dtype_row(dtype.loops)]
                dtypes[dtype] = acc, dtype.name if out == dtype.loops and dtype.is_opaque else out
        types = [table({DTYPES.NUMBER[dtype.name]: str(DTYPES.NUMBER[pair[k]]) for dtype, pair in dtypes.items()}, "-1") for k in (0, 1)]
        rows.append(f'    {{"{row.name}", {", ".join(columns + types)}}},')
    texts["floats"] += ["const cg_reduction CG_TABLE(cg_reductions)[] = {", *rows, "    {0}\n};"]
    return {f"{kind}_reduction": "\n".join(text) + "\n" for kind, text in texts.items()}


def dtypes_text() -> str:
    """Return the C constants of the table of dtypes."""
    rows = DTYPES.DTYPES
    promoted = [[str(DTYPES.NUMBER[common.name]) if common else "CG_REFUSED" for common in (DTYPES.promote(a, b) for b in rows)]
                for a in rows]
    return "\n".join([
        "/* Generated from cygrad/ops/dtypes.py by generate.py. */",
        "enum { " + ", ".join(f"CG_{row.name.upper()}" for row in rows) + ", CG_DTYPES };",
        *(f"typedef struct {{ {c_type(row.real)} re, im; }} {row.c_type};" for row in rows if row.real),
        *(f"typedef struct {{ uint{8 * row.itemsize}_t bits; }} {row.c_type};" for row in rows if row.is_opaque),
        "typedef union { " + " ".join(f"{row.c_type} {row.name}_;" for row in rows) + " } cg_number;",
        f"enum {{ CG_LARGEST = {DTYPES.LARGEST} }};",
        "/* Bytes of what is computed in, of numbers that are stored only. */",
        f"enum {{ CG_WIDENED = {max(dtype_row(row.loops).itemsize for row in rows if row.loops)} }};",
        *(constants("signed char", name, (DTYPES.NUMBER[other(row)] for row in rows)) for name, other in
          (("real", lambda row: row.real or row.name), ("complex", lambda row: DTYPES.COMPLEX_OF.get(row.name, row.name)),
           ("loops_of", lambda row: row.loops or row.name))),
        constants("int", "itemsize", (row.itemsize for row in rows)),
        constants("char", "kind", (f"'{row.kind}'" for row in rows)),
        *(constants("char", name, (int(getattr(row, name)) for row in rows)) for name in
          ("rank", "is_differentiable", "is_floating_point", "is_complex", "is_integer", "is_index", "is_opaque")),
        "/* What two dtypes have in common, or CG_REFUSED. */",
        "enum { CG_REFUSED = -2 };",
        "static const signed char cg_promotion[CG_DTYPES][CG_DTYPES] = {",
        *("    {" + ", ".join(line) + "}," for line in promoted), "};",
        "/* What folds start from that look for the largest and the smallest number. */",
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


def level_text(level: str, unit: str, lowest: str) -> str:
    target, vector_bytes = NATIVE if level == "native" else LEVELS.get(level, ("", 16))
    pragma = f'#pragma GCC target("arch={target}")\n' if target else '#include "native.h"\n'
    block = "CG_VECTOR_BYTES" if unit.startswith("floats") else "CG_COMPLEX_BLOCK"
    frame = "" if unit == "matrices" else '#include "loops.h"\n'
    return (f'{pragma}#define CG_TABLE(name) name##_{level}\n'
            f'#define CG_OTHERS_TABLE(name) name##_{LEVEL_OF_OTHERS.get(level, level)}\n#define CG_RARE_TABLE(name) name##_{lowest}\n'
            f'#define CG_VECTOR_BYTES {vector_bytes}\n#define CG_BLOCK_BYTES {block}\n{frame}#include "{unit}_loops.h"\n')


def levels_of(unit: str, levels: list[str]) -> list[str]:
    """Return the levels for which a unit is compiled."""
    if "rare" in unit:
        return levels[:1]
    return list(dict.fromkeys(LEVEL_OF_OTHERS.get(level, level) for level in levels)) if "others" in unit else levels


def write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(levels, native: str = "") -> list[str]:
    """Write all generated files, as far as their text changed, and return the C sources, relative to the project.

    `native` tells of the one processor that a build is for (building/native.py), and is empty in others.
    """
    OUTPUT.mkdir(exist_ok=True)
    levels = list(levels)
    write(OUTPUT / "dtypes.h", dtypes_text())
    write(OUTPUT / "erf_table.h", erf_text())
    write(OUTPUT / "log_table.h", log_text())
    write(OUTPUT / "native.h", f"{HEADER}\n{native}")
    units = {f"{kind}_{unit}": elementwise_text(kind, unit) for kind in UNITS for unit in range(UNITS[kind])}
    units |= reduction_texts() | cast_texts() | {"shared": shared_text(), "matrices": '#include "matrices/blocked_levels.h"\n'}
    sources = []
    for unit, text in units.items():
        write(OUTPUT / f"{unit}_loops.h", text)
        for level in levels_of(unit, levels):
            write(OUTPUT / f"{unit}_{level}.c", level_text(level, unit, levels[0]))
            sources.append(f"cygrad/_kernels/generated/{unit}_{level}.c")
    return sources


if __name__ == "__main__":
    print("\n".join(generate(LEVELS)))
