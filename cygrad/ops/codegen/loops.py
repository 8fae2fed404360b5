"""The elementwise loops of every row and every partial, and the table of them."""

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import formula
from ..dtypes import DTYPES, NUMBER, result_dtype
from ..elementwise import ELEMENTWISE
from .reading import BOOL, FUNCTIONS, VECTOR_FUNCTIONS, c_type, is_blocked, kind, line_directives, numbers_of
from .units import HEADER, symbol, table, unit_kind, unit_of

SCALAR = "number"     # the operand of a shifted loop that is one number for all elements


def elementwise_loop(name, directive, row, tree, inputs, dtype, out, stream=False):
    """Return the C function of one kernel for one dtype; two inputs have bodies for a scalar on either side.

    `number` is one always. Loops with one, of whole vectors, prefetch the next operands of tiles, if parameters say so: they have no
    others.
    """
    result = result_dtype(dtype, "same" if row.result == "bool" else row.result)
    dtypes = {word: BOOL if word in row.masks else result if word in ("g", "y") else dtype for word in (*inputs, *row.params)}
    types, out_type = {word: dtypes[word].c_type for word in inputs}, out.c_type
    expression = formula.to_c(tree, numbers_of(dtype), {word: kind(dtypes[word]) for word in dtypes}, FUNCTIONS, kind(out))
    expression = f"({expression}) != 0" if out_type == "uint8_t" and dtype.name == "bool" else expression
    blocked, always = is_blocked(tree, dtype), tuple(operand for operand in inputs if operand == SCALAR)
    # Vectors of bytes beside complex numbers are much code, and memory takes longer.
    serial = dtype.real and not blocked and (out.name == "bool" or row.masks)
    start = "CG_SERIAL_LOOP(n) {" if serial else "CG_LOOP(T, n) {"
    store = f"out[i] = {expression}; }}"
    fetches = ""
    if always:
        fetches = f"if (c) {{ {' '.join(f'CG_FETCH_ROW(p_{operand} + first);' for operand in inputs if operand != SCALAR)} }} "
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
    """Return the C function of one kernel for 16-bit floats, converted in registers: in whole vectors, without scalars."""
    expression = formula.to_c(tree, formula.Numbers(dtype.loops), dict.fromkeys((*inputs, *row.params), "r"), FUNCTIONS)
    vectors = ", ".join(f"v_{word}[CG_VL(S)]" for word in (*inputs, "result"))
    fetched = "" if VECTOR_FUNCTIONS.isdisjoint(formula.called(tree)) else " if (CG_IS_FAR) { " + "".join(
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
        gradients = {dtype.kind for dtype in DTYPES if dtype.is_differentiable and dtype.kind in row.kinds}
        readings = [(row.name, row.tree(row.y), list(row.operands))]
        for operand in row.partials:
            saved = row.saved(operand)
            readings.append((f"{row.name}_d{operand}", row.backward(operand), ["g", *(w for w in (*row.operands, "y") if w in saved)]))
        if row.shifted:
            inputs = [f"{operand}_" if operand == row.shifted else operand for operand in row.operands]
            readings.append((f"{row.name}_shifted", row.tree_of_shifted(SCALAR), [*inputs, SCALAR]))
        for name, tree, inputs in readings:
            kinds, result = ("f" if SCALAR in inputs else gradients, "same") if name != row.name else (row.kinds, row.result)
            plain = isinstance(tree, ast.Name) or SCALAR in inputs     # a gradient that passes as it is; a loop that tiles run in floats
            own = row.stored and name == row.name or row.narrow and not plain
            dtypes = [dtype for dtype in DTYPES if dtype.kind in kinds and (not dtype.loops or own and dtype.is_opaque)]
            yield Kernel(name, row, directives[row.name], tree, inputs, dtypes, result)


class Kernel(NamedTuple):
    """The loops of a row or of a partial: its formula, for which dtypes there are loops, and the dtype of the result."""

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

    def formula(self, dtype) -> Any:
        """Return the formula for numbers of a dtype, real or complex."""
        return formula.for_numbers(self.tree, is_complex=bool(dtype.real))

    def is_streamed(self, dtype) -> bool:
        """Say whether large results are written past the caches.

        Vector mathematics hides the time of memory, and vectors that trickle past the caches take twice as long. Of a vector of bytes as
        short as one of the output gcc makes branches, which took ten times as long.
        """
        return (dtype.is_differentiable and not dtype.is_opaque and result_dtype(dtype, self.result) is dtype
                and not is_blocked(self.formula(dtype), dtype) and not self.row.masks and dtype.kind not in self.row.rare)

    def loops(self) -> Iterator[tuple]:
        """Yield the form, the dtype and the kind of unit of each loop."""
        yield from (("loop", dtype, unit_kind(dtype, self.row.rare)) for dtype in self.dtypes)
        yield from (("stream", dtype, unit_kind(dtype, self.row.rare)) for dtype in self.dtypes if self.is_streamed(dtype))

    def text(self, form: str, dtype) -> str:
        """Return one loop."""
        loop = self.name, self.directive, self.row, self.formula(dtype), self.inputs, dtype
        return narrow_loop(*loop) if dtype.is_opaque and not self.is_stored else elementwise_loop(
            *loop, result_dtype(dtype, self.result), form == "stream")

    def code(self, unit: str) -> str:
        return "\n".join(self.text(form, dtype) for form, dtype, where in self.loops() if where == unit)

    def entry(self) -> str:
        """Return the row of the table of kernels."""
        results: dict[str, dict[int, str]] = {"loop": {}, "stream": {}}
        for form, dtype, unit in self.loops():
            name = symbol(f"{form}_{self.name}_{dtype.name}", unit)
            results[form][NUMBER[dtype.name]] = f"CG_NARROW_LOOP({name})" if dtype.is_opaque and not self.is_stored else name
        blocked = ", ".join(str(int(is_blocked(self.formula(dtype), dtype))) for dtype in DTYPES)
        numbers = f"{len(self.inputs)}, {int(self.is_stored)}"
        return f'    {{"{self.name}", {numbers}, {{{blocked}}}, {table(results["loop"])}, {table(results["stream"])}}},'

    def declarations(self) -> str:
        names = [symbol(f"{form}_{self.name}_{dtype.name}", unit) for form, dtype, unit in self.loops()]
        return f"extern cg_loop_function {', '.join(names)};"


def elementwise_text(kind: str, unit: int) -> str:
    """Return the loops of the rows of one unit; the unit of real floats has the table of all of them."""
    kernels = list(elementwise_kernels(row for row in ELEMENTWISE.values() if unit_of(row, kind) == unit))
    code = [kernel.code(kind) for kernel in kernels]
    if kind == "floats":
        code += [*(kernel.declarations() for kernel in kernels),
                 f"const cg_kernel CG_TABLE(cg_kernels_{unit})[] = {{", *(kernel.entry() for kernel in kernels), "    {0}\n};"]
    return "\n".join([HEADER, *(text for text in code if text)]) + "\n"
