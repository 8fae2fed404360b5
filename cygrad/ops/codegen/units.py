"""Units of compilation: which kind of unit has a loop, for which instruction-set levels it is compiled, and the names of functions there.

Loops of real floats are compiled for every level, the others up to v3, rare loops for the lowest alone. The name of an elementwise row
says in which units its loops are, so that a changed row, or another one, leaves the other units as they were.
"""

import zlib

from ..dtypes import DTYPES

HEADER = "/* Generated from cygrad/ops by cygrad/ops/codegen: change the tables, not this file. */"
UNITS = {"floats": 11, "others": 4, "rare": 4}     # of elementwise rows
APART = {"floats": 3}      # the last of these, of rows with headers of their own
HEADERS = ("gammamath.h", "normalmath.h", "besselmath.h", "sumsmath.h")
LEVELS = {"v2": ("x86-64-v2", 16), "v3": ("x86-64-v3", 32), "v4": ("x86-64-v4", 64)}
NATIVE = "", "CG_NATIVE_VECTOR_BYTES"    # of building/native.py, in place of all levels
LEVEL_OF_OTHERS = {"v4": "v3"}  # on v4, integer and complex loops are those compiled for v3


def unit_kind(dtype, rare: str = "") -> str:
    """Return the kind of unit that has the loops of a dtype, of a row with rare kinds."""
    return "rare" if dtype.kind in rare else "floats" if dtype.is_floating_point else "others"


def unit_of(row, kind: str) -> int:
    number, apart = zlib.crc32(row.name.encode()), APART.get(kind, 0)
    return UNITS[kind] - apart + number % apart if row.apart and apart else number % (UNITS[kind] - apart)


def headers_of(kind: str, unit: int) -> list[str]:
    """Return the lines that include the headers of a unit of rows that lie apart."""
    return [f'#include "mathematics/{header}"' for header in HEADERS if unit >= UNITS[kind] - APART.get(kind, 0)]


def symbol(name: str, unit: str) -> str:
    """Return the C name of a function of a kind of unit, on the level that is compiled."""
    return {"floats": f"CG_TABLE({name})", "others": f"CG_OTHERS_TABLE({name})", "rare": f"CG_RARE_TABLE({name})", "shared": name}[unit]


def table(entries, missing="0"):
    return "{" + ", ".join(entries.get(number, missing) for number in range(len(DTYPES))) + "}"


def included(template: str, macros: dict, directive: str, formulas: dict) -> str:
    """Return the inclusion of a template of C with its macros; compiler errors in formulas name the row."""
    return "\n".join([*(f"#define {name} {value}".rstrip() for name, value in macros.items()), directive,
                      *(f"#define {name} {value}" for name, value in formulas.items()), f'#include "{template}"'])


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
