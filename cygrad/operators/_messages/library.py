"""mpi4py, imported with the first message; MPI's datatypes, reductions and largest count."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cygrad._core.memory.storage import DType

# MPI's datatypes for arithmetic. Numbers of other dtypes travel as the unsigned integers of their bits.
DATATYPES = {"bool": "C_BOOL", "float32": "FLOAT", "float64": "DOUBLE", "complex64": "C_FLOAT_COMPLEX", "complex128": "C_DOUBLE_COMPLEX",
             **{f"{sign}int{bits}": f"{sign.upper()}INT{bits}_T" for sign in ("", "u") for bits in (8, 16, 32, 64)}}
# The kinds of dtype that MPI defines each reduction for.
KINDS = {"sum": "iufc", "prod": "iufc", "max": "iuf", "min": "iuf", "land": "biu", "lor": "biu", "lxor": "biu", "band": "iu", "bor": "iu",
         "bxor": "iu"}
# The largest count of elements in one call, where MPI has no 64-bit counts: before its version 4.
LARGEST_COUNT = 2**31 - 1


@cache
def mpi() -> Any:
    """Return mpi4py's module MPI; the first call initialises MPI."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:        # mpi4py's wheels raise RuntimeError where no MPI is installed
        raise ImportError(f'cygrad.mpi needs mpi4py and an MPI: pip install "cygrad[mpi]" ({error})') from error
    return MPI


def is_running() -> bool:
    """Return True if MPI is initialised and not finalised; it is not initialised for the answer."""
    module = sys.modules.get("mpi4py.MPI")
    return module is not None and module.Is_initialized() and not module.Is_finalized()


@cache
def largest_count() -> int:
    """Return the largest count of elements that one call takes."""
    return 2**63 - 1 if mpi().Get_version() >= (4, 0) else LARGEST_COUNT


@cache
def datatype(dtype: DType) -> Any:
    """Return MPI's datatype for the elements of a tensor."""
    return getattr(mpi(), DATATYPES.get(dtype.name, f"UINT{8 * dtype.itemsize}_T"))


class Reduction(NamedTuple):
    """A reduction: its name, MPI's operation, and the kinds of dtype that it takes."""

    name: str
    operation: Any
    kinds: str = "biufc"


@cache
def _reductions() -> tuple[Reduction, ...]:
    return tuple(Reduction(name, getattr(mpi(), name.upper()), kinds) for name, kinds in KINDS.items())


def reduction(name: str, op: Any) -> Reduction:
    """Return the reduction for the argument `op`, a name or an `MPI.Op`; `name` is the operator in errors.

    One that a user made has the name "op": it takes all dtypes and has no derivative.
    """
    for row in _reductions():
        if row.name == op or row.operation == op:
            return row
    if isinstance(op, str):
        raise ValueError(f"{name}(): argument 'op' must be one of {', '.join(KINDS)}, or an MPI.Op, not {op!r}")
    if not isinstance(op, mpi().Op) or op == mpi().OP_NULL:
        raise TypeError(f"{name}(): argument 'op' must be a name or an MPI.Op, not {type(op).__name__}")
    return Reduction("op", op)
