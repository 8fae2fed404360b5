"""The elementwise loops of every row and every partial, whose C text is in elementwise_template.h, and the table of them."""

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import formula
from ..dtypes import DTYPES, NUMBER, result_dtype
from ..elementwise import ELEMENTWISE
from ..sums import SUMS
from .reading import BOOL, FUNCTIONS, VECTOR_FUNCTIONS, WRITTEN, dtype_row, is_blocked, kind, line_directives, numbers_of
from .units import HEADER, headers_of, included, symbol, table, unit_kind, unit_of

SCALAR = "number"     # the operand of a shifted loop that is one number for all elements


def elementwise_loop(name, directive, row, tree, inputs, dtype, out, stream=False):
    """Return the text of one kernel for one dtype."""
    result = result_dtype(dtype, "same" if row.result == "bool" else row.result)
    dtypes = {word: BOOL if word in row.masks else result if word in ("g", "y") else dtype for word in (*inputs, *row.params)}
    value = formula.to_c(tree, numbers_of(dtype), {word: kind(dtypes[word]) for word in dtypes}, FUNCTIONS, kind(out))
    value = f"({value}) != 0" if out.c_type == "uint8_t" and dtype.name == "bool" else value
    blocked = is_blocked(tree, dtype)
    # Vectors of bytes beside complex numbers are much code, and memory takes longer.
    serial = dtype.real and not blocked and (out.name == "bool" or row.masks)
    forms = {"STREAM": stream, "VECTORS": blocked, "SERIAL": serial, "FETCHES": blocked and SCALAR not in inputs}
    function = symbol(f"{'stream' if stream else 'loop'}_{name}_{dtype.name}", unit_kind(dtype, row.rare))
    return loop_text(function, directive, row, dtype, out, [(word, dtypes[word].c_type) for word in inputs], value, forms)


def narrow_loop(name, directive, row, tree, inputs, dtype):
    """Return the text of one kernel for 16-bit floats, converted in registers."""
    value = formula.to_c(tree, formula.Numbers(dtype.loops), dict.fromkeys((*inputs, *row.params), "r"), FUNCTIONS)
    forms = {f"NARROW {dtype.name}": True, "FETCHES": not VECTOR_FUNCTIONS.isdisjoint(formula.called(tree))}
    operands = [(word, dtype.c_type) for word in inputs]
    text = loop_text(symbol(f"loop_{name}_{dtype.name}", "floats"), directive, row, dtype, dtype_row(dtype.loops), operands, value, forms)
    return f"#ifdef CG_NARROW_LOOPS\n{text}\n#endif"


def loop_text(function, directive, row, dtype, out, operands, value, forms):
    """Return the macros of one loop, and the inclusion of its template."""
    uses = {word: f"USE({word}, {c_type}, {place})" for place, (word, c_type) in enumerate(operands)}
    number = uses.pop(SCALAR, None)
    macros = {"NAME": function, "ELEMENT": dtype.c_type, "RESULT": out.c_type, "COUNT": len(operands),
              "INPUTS(USE)": " ".join(uses.values()),
              "PARAMS(USE)": " ".join(f"USE({param}, {place})" for place, param in enumerate(row.params))}
    macros |= dict(zip(("FIRST(USE)", "SECOND(USE)"), uses.values(), strict=True)) if len(uses) == 2 else {}
    macros |= {"NUMBER(USE)": number} if number else {}
    call = re.fullmatch(r"(\w+)\(\w+\)", value)
    macros |= {"WRITE": f"{'stream' if forms.get('STREAM') else 'write'}_{call[1]}"} if call and call[1] in WRITTEN else {}
    macros |= {form: "" for form, is_so in forms.items() if is_so}
    return included("elementwise_template.h", macros, directive, {"VALUE": value})


def linear_form(tree, inputs, params) -> str:
    """Return the C name of the form of a sum, a difference, a product or a negative of real numbers; else CG_OTHER_FORM."""
    match tree:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name()):
            return "CG_NEGATIVE"
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()) if len(inputs) == 2:
            operation, terms = type(tree.op), [name_of_term(tree.left), name_of_term(tree.right)]
            if terms == inputs:
                return {ast.Add: "CG_SUM", ast.Sub: "CG_DIFFERENCE", ast.Mult: "CG_PRODUCT"}[operation]
            match tree.right:
                case ast.BinOp(left=ast.Name(id=factor), op=ast.Mult(), right=ast.Name(id=second)) if factor in params:
                    if [terms[0], second] == inputs and operation is not ast.Mult:
                        return "CG_SCALED_SUM" if operation is ast.Add else "CG_SCALED_DIFFERENCE"
    return "CG_OTHER_FORM"


def name_of_term(tree) -> str | None:
    """Return the name that a term is, or of which it is the conjugate."""
    match tree:
        case ast.Name(id=name) | ast.Call(func=ast.Name(id="conj"), args=[ast.Name(id=name)]):
            return name
    return None


def elementwise_kernels(rows):
    """Yield the kernels of every row and every partial."""
    directives = (line_directives("elementwise.py", "elementwise") | line_directives("special.py", "elementwise")
                  | {row.name: '#line 1 "cygrad/ops/sums.py"' for row in SUMS})
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
        """Return True if large results are written past the caches.

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
        form = "CG_OTHER_FORM" if self.row.masks else linear_form(self.tree, self.inputs, self.row.params)
        numbers = f"{len(self.inputs)}, {int(self.is_stored)}, {form}"
        return f'    {{"{self.name}", {numbers}, {{{blocked}}}, {table(results["loop"])}, {table(results["stream"])}}},'

    def declarations(self) -> str:
        names = [symbol(f"{form}_{self.name}_{dtype.name}", unit) for form, dtype, unit in self.loops()]
        return f"extern cg_loop_function {', '.join(names)};"


def elementwise_text(kind: str, unit: int) -> str:
    """Return the loops of the rows of one unit; the unit of real floats has the table of all of them."""
    kernels = list(elementwise_kernels(row for row in (*ELEMENTWISE.values(), *SUMS) if unit_of(row, kind) == unit))
    code = [kernel.code(kind) for kernel in kernels]
    if kind == "floats":
        code += [*(kernel.declarations() for kernel in kernels),
                 f"const cg_kernel CG_TABLE(cg_kernels_{unit})[] = {{", *(kernel.entry() for kernel in kernels), "    {0}\n};"]
    return "\n".join([HEADER, *headers_of(kind, unit), *(text for text in code if text)]) + "\n"
