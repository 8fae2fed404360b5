"""The table of element types: a new dtype is a row here (and a conversion where C has no cast for it).

The order of the rows is the numbering used by the kernels and the core.
"""

from typing import NamedTuple


class DTypeRow(NamedTuple):
    """One element type: its name, C type, kind and size.

    ``kind`` is one of ``b`` (bool), ``i`` (integer), ``f`` (float) and ``c`` (complex); promotion across kinds goes upwards in that order.
    ``widest`` is the dtype in which reductions accumulate. ``tensors`` is what torch calls tensors of it: `FloatTensor`.
    ``real`` is the dtype of the two parts of a complex number. ``loops`` is the dtype that is computed in, of what is stored only: its
    numbers are converted on the way into a loop, and results are rounded once. ``buffer_format`` is empty where buffers have none.
    """

    name: str
    c_type: str
    kind: str
    itemsize: int
    signed: bool
    buffer_format: str
    widest: str
    tensors: str
    aliases: tuple[str, ...] = ()
    real: str | None = None
    loops: str | None = None

    @property
    def is_differentiable(self) -> bool:
        """Whether tensors of it may need gradients: of real and complex floating-point numbers."""
        return self.kind in "fc"

    @property
    def conversions(self) -> tuple[str, ...]:
        """Names of the methods that convert to it: its own, and the one of its tensors."""
        return tuple(dict.fromkeys((self.name, *self.aliases, *(() if self.real else (self.tensors.removesuffix("Tensor").lower(),)))))


DTYPES = (
    DTypeRow("bool", "uint8_t", "b", 1, False, "?", "int64", "BoolTensor"),
    DTypeRow("uint8", "uint8_t", "i", 1, False, "B", "int64", "ByteTensor"),
    DTypeRow("int8", "int8_t", "i", 1, True, "b", "int64", "CharTensor"),
    DTypeRow("int16", "int16_t", "i", 2, True, "h", "int64", "ShortTensor", ("short",)),
    DTypeRow("int32", "int32_t", "i", 4, True, "i", "int64", "IntTensor", ("int",)),
    DTypeRow("int64", "int64_t", "i", 8, True, "q", "int64", "LongTensor", ("long",)),
    DTypeRow("float16", "cg_float16", "f", 2, True, "e", "float64", "HalfTensor", ("half",), loops="float32"),
    DTypeRow("bfloat16", "cg_bfloat16", "f", 2, True, "", "float64", "BFloat16Tensor", loops="float32"),
    DTypeRow("float32", "float", "f", 4, True, "f", "float64", "FloatTensor", ("float",)),
    DTypeRow("float64", "double", "f", 8, True, "d", "float64", "DoubleTensor", ("double",)),
    DTypeRow("complex64", "cg_complex64", "c", 8, True, "Zf", "complex128", "ComplexFloatTensor", ("cfloat",), real="float32"),
    DTypeRow("complex128", "cg_complex128", "c", 16, True, "Zd", "complex128", "ComplexDoubleTensor", ("cdouble",), real="float64"),
)

NUMBER = {row.name: number for number, row in enumerate(DTYPES)}
COMPLEX_OF = {row.real: row.name for row in DTYPES if row.real}
COMPLEX_OF |= {row.name: COMPLEX_OF[row.loops] for row in DTYPES if row.loops}


def result_dtype(row: DTypeRow, result: str) -> DTypeRow:
    """Return the dtype of the result of an elementwise row, from the one it computes in."""
    name = {"bool": "bool", "real": row.real}.get(result)
    return DTYPES[NUMBER[name]] if name else row


def promote(a: DTypeRow, b: DTypeRow) -> DTypeRow:
    """Return the smallest listed type that holds both, by the array API's lattice (NEP 50)."""
    if a.kind != b.kind:
        low, high = sorted((a, b), key=lambda row: "bifc".index(row.kind))
        wider = COMPLEX_OF.get(promote(low, DTYPES[NUMBER[high.real]]).name) if high.real and low.kind == "f" else None
        return DTYPES[NUMBER[wider]] if wider else high
    if a.itemsize == b.itemsize and a is not b and a.loops:
        return DTYPES[NUMBER[a.loops]]      # two formats that are stored only: neither holds the other
    if a.signed == b.signed:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.signed else (b, a)
    holds_both = (row for row in DTYPES if row.kind == "i" and row.signed and row.itemsize > unsigned.itemsize)
    return max((signed, next(holds_both)), key=lambda row: row.itemsize)
