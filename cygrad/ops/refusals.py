"""The errors for dtypes that an operator does not take: torch's type of exception, in torch's words.

Rows and declarations say `refuses={kinds: exception}` and `loop=`. In the words `{name}` is the operator, `{public}` the same as
`linalg.xyz`, without `_ex`, `{dtype}` torch's name of the dtype. Where nothing is said, torch has no loop: its name is `loop`, or the
operator's and `_cpu`.
"""

from collections.abc import Mapping

from .dtypes import DTYPES, NUMBER

NO_LOOP = NotImplementedError("\"{loop}\" not implemented for '{dtype}'")
NOT_FLOATING = RuntimeError("{public}: Expected a floating point or complex tensor as input. Got {dtype}")
LOW_PRECISION = RuntimeError("{public}: Low precision dtypes not supported. Got {dtype}")
BOOL_DIFFERENCE = RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
                               "use the `~` or `logical_not()` operator instead.")
KINDS = {"b": "bool", "i": "integer", "u": "unsigned integer", "f": "floating-point", "c": "complex"}

# Of two operands that are both bool, which the table says of one among others.
TWO_BOOLS = "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."

REFUSALS: dict[tuple[str, str], Exception] = {}     # by operator and kind
LOOPS: dict[str, str] = {}                          # by operator
SEVERAL_FORMS: set[str] = set()                     # operators of which torch lists the signatures, for an argument of a wrong type


def refuse(name: str, refuses: Mapping[str, Exception] = {}, loop: str = "", forms: bool = False) -> None:
    """Note an operator's errors for the kinds of dtype that it does not take, the name of torch's loop, and whether torch lists forms."""
    REFUSALS.update({(name, kind): error for kinds, error in refuses.items() for kind in kinds})
    if loop:
        LOOPS[name] = loop
    if forms:
        SEVERAL_FORMS.add(name)


FACTORS = {"c": "For non-complex input tensors, argument {} must not be a complex number.",
           "f": "For integral input tensors, argument {} must not be a floating point number."}


def refused_factor(argument: str, kind: str) -> Exception:
    """Return the exception for a number of a higher kind than the tensors, where it has no say in the dtype."""
    return RuntimeError(FACTORS[kind].format(argument))


def refusal(name: str, dtype: str, accepted: str = "") -> Exception:
    """Return the exception for a dtype that an operator does not take; `accepted` are the kinds that it does."""
    row = DTYPES[NUMBER[dtype]]
    error = REFUSALS.get((name, row.kind), NO_LOOP)
    public = name.replace("_", ".", 1).removesuffix("_ex")
    words = error.args[0].format(name=name, public=public, dtype=row.title, loop=LOOPS.get(name, f"{name}_cpu"))
    more = f"; {name} takes {', '.join(KINDS[kind] for kind in accepted)} tensors, not {dtype}" if error is NO_LOOP and accepted else ""
    return type(error)(words + more)
