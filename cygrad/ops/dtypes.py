"""The table of element types: a new dtype is a row here (and a conversion where C has no cast for it).

The order of the rows is the numbering used by the kernels and the core.
"""

import re
from typing import NamedTuple


class DTypeRow(NamedTuple):
    """One element type: its name, C type, kind and size.

    ``kind`` is one of ``b`` (bool), ``i`` (integer), ``u`` (unsigned integer), ``f`` (float) and ``c`` (complex); promotion across kinds
    goes upwards in that order. Unsigned integers meet nothing but themselves and floats, and few operators take them, as in torch; uint8,
    which is older, is an integer as others are.
    ``widest`` is the dtype in which reductions accumulate. ``tensors`` is torch's name of tensors of it: `FloatTensor`.
    ``real`` is the dtype of the two parts of a complex number. ``loops`` is the dtype of the loops, of widened dtypes: its
    numbers are converted on the way into a loop, and results are rounded once. ``buffer_format`` is empty where buffers have none.
    ``precision`` are the bits of the significand of a float, from which its limits follow. ``dlpack`` is DLPack's code, where that is not
    the one of its kind.
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
    precision: int = 0
    dlpack: int | None = None

    @property
    def is_differentiable(self) -> bool:
        """Whether tensors of it may need gradients: of real and complex floating-point numbers."""
        return self.kind in "fc"

    @property
    def is_floating_point(self) -> bool:
        """Whether its numbers are real floats."""
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_integer(self) -> bool:
        """Whether its numbers are integers; bools are not counted among them."""
        return self.kind in "iu"

    @property
    def is_index(self) -> bool:
        """Whether its numbers may stand for places: torch has no indices of the unsigned ones."""
        return self.kind == "i"

    @property
    def is_opaque(self) -> bool:
        """Whether C has no arithmetic for it: of floats that are stored only."""
        return self.is_floating_point and self.loops is not None

    @property
    def rank(self) -> int:
        """The place of its kind: results of a lower or the same rank may be cast to it."""
        return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}[self.kind]

    @property
    def title(self) -> str:
        """Its name in torch's messages, such as Long."""
        return self.tensors.removesuffix("Tensor")

    @property
    def spelling(self) -> str:
        """How torch writes its C type in messages."""
        if self.real:
            return f"c10::complex<{DTYPES[NUMBER[self.real]].c_type}>"
        return f"c10::{self.title}" if self.is_opaque else self.c_type

    @property
    def dlpack_code(self) -> int:
        """Its DLDataTypeCode; https://dmlc.github.io/dlpack/latest/c_api.html."""
        code = {"b": 6, "i": 0 if self.signed else 1, "u": 1, "f": 2, "c": 5}[self.kind]
        return code if self.dlpack is None else self.dlpack

    @property
    def conversions(self) -> tuple[str, ...]:
        """Names of the methods that convert to it: its own, and the one of its tensors."""
        return tuple(dict.fromkeys((self.name, *self.aliases, *(() if self.real else (self.title.lower(),)))))

    @property
    def highest(self) -> int | float:
        """The largest number, of floats the largest finite one."""
        if self.is_floating_point:
            return (2 - self.eps) * 2.0 ** (2 ** (8 * self.itemsize - self.precision - 1) - 1)
        return 1 if self.kind == "b" else 2 ** (8 * self.itemsize - self.signed) - 1

    @property
    def lowest(self) -> int | float:
        return -self.highest if self.is_floating_point else -self.highest - 1 if self.signed else 0

    @property
    def eps(self) -> float:
        """The distance of 1 to the next larger float."""
        return 2.0 ** (1 - self.precision)

    @property
    def tiny(self) -> float:
        """The smallest normal float."""
        return 2.0 ** (2 - 2 ** (8 * self.itemsize - self.precision - 1))

    @property
    def resolution(self) -> float:
        """The power of ten with as many decimals as a float surely has."""
        return float(f"1e-{int((self.precision - 1) * 0.30103)}")


DTYPES = (
    DTypeRow("bool", "uint8_t", "b", 1, False, "?", "int64", "BoolTensor"),
    DTypeRow("uint8", "uint8_t", "i", 1, False, "B", "int64", "ByteTensor"),
    DTypeRow("int8", "int8_t", "i", 1, True, "b", "int64", "CharTensor"),
    DTypeRow("int16", "int16_t", "i", 2, True, "h", "int64", "ShortTensor", ("short",)),
    DTypeRow("int32", "int32_t", "i", 4, True, "i", "int64", "IntTensor", ("int",)),
    DTypeRow("int64", "int64_t", "i", 8, True, "q", "int64", "LongTensor", ("long",)),
    DTypeRow("uint16", "uint16_t", "u", 2, False, "H", "int64", "UInt16Tensor", loops="int64"),
    DTypeRow("uint32", "uint32_t", "u", 4, False, "I", "int64", "UInt32Tensor", loops="int64"),
    DTypeRow("uint64", "uint64_t", "u", 8, False, "Q", "int64", "UInt64Tensor", loops="int64"),    # its operators give the same bits there
    DTypeRow("float16", "cg_float16", "f", 2, True, "e", "float64", "HalfTensor", ("half",), loops="float32", precision=11),
    DTypeRow("bfloat16", "cg_bfloat16", "f", 2, True, "", "float64", "BFloat16Tensor", loops="float32", precision=8,
             dlpack=4),
    DTypeRow("float32", "float", "f", 4, True, "f", "float64", "FloatTensor", ("float",), precision=24),
    DTypeRow("float64", "double", "f", 8, True, "d", "float64", "DoubleTensor", ("double",), precision=53),
    DTypeRow("complex64", "cg_complex64", "c", 8, True, "Zf", "complex128", "ComplexFloatTensor", ("cfloat",), real="float32"),
    DTypeRow("complex128", "cg_complex128", "c", 16, True, "Zd", "complex128", "ComplexDoubleTensor", ("cdouble",), real="float64"),
)

# Names of torch's that stand for no dtype here, as a pattern.
UNSUPPORTED = r"complex32|chalf|float[48]_\w+|qu?int\d\w*|bits\d\w*|u?int[1-7]"

NUMBER = {row.name: number for number, row in enumerate(DTYPES)}
LARGEST = max(row.itemsize for row in DTYPES)
COMPLEX_OF = {row.real: row.name for row in DTYPES if row.real}
COMPLEX_OF |= {row.name: COMPLEX_OF[row.loops] for row in DTYPES if row.is_opaque and row.loops}


def result_dtype(row: DTypeRow, result: str) -> DTypeRow:
    """Return the dtype of the result of an elementwise row, from the one it computes in."""
    name = {"bool": "bool", "real": row.real}.get(result)
    return DTYPES[NUMBER[name]] if name else row


def promote(a: DTypeRow, b: DTypeRow) -> DTypeRow | None:
    """Return the smallest listed type that holds both, by the array API's lattice (NEP 50), or None where torch refuses the pair."""
    low, high = sorted((a, b), key=lambda row: "biufc".index(row.kind))
    if low.kind != high.kind:
        if "u" in (low.kind, high.kind) and not high.is_floating_point:
            return None
        parts = promote(low, DTYPES[NUMBER[high.real]]) if high.real and low.is_floating_point else None
        return DTYPES[NUMBER[COMPLEX_OF[parts.name]]] if parts else high
    if low.kind == "u" and a is not b:
        return None
    if a.itemsize == b.itemsize and a is not b and a.loops:
        return DTYPES[NUMBER[a.loops]]      # two formats that are stored only: neither holds the other
    if a.signed == b.signed:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.signed else (b, a)
    holds_both = (row for row in DTYPES if row.kind == "i" and row.signed and row.itemsize > unsigned.itemsize)
    return max((signed, next(holds_both)), key=lambda row: row.itemsize)


def refused_promotion(a: DTypeRow, b: DTypeRow) -> str:
    """Return the error for two dtypes that have no common one."""
    return (f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a.title} and {b.title}; "
            "convert one of them first")


def common(a: DTypeRow, b: DTypeRow) -> DTypeRow:
    """Return the smallest type that holds both; RuntimeError where torch refuses the pair."""
    result = promote(a, b)
    if result is None:
        raise RuntimeError(refused_promotion(a, b))
    return result


def why_unsupported(name: str) -> str:
    """Return the answer for a name of a dtype that torch has and cygrad lacks; "" for any other name."""
    return f": this dtype is not supported; there are {', '.join(row.name for row in DTYPES)}" if re.fullmatch(UNSUPPORTED, name) else ""
