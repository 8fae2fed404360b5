"""`CYGRAD_ISA_BUILD=native`: loops for the processor that builds, in place of those for each level of x86-64.

They may use the features that `-march=native` turns on; a header names these as a processor's check does when cygrad is loaded.
"""

import os
import re
from collections.abc import Iterable

from setuptools.errors import CompileError

from building.compiler import Compiler

FLAGS = ["-march=native", "-mprefer-vector-width=512"]     # GCC has Intel's processors prefer 256, where vectors of 512 take less time
WIDTHS = {"__AVX512F__": 64, "__AVX2__": 32}     # of vectors, in bytes


def builds_for_this_machine(compiler: Compiler) -> bool:
    wish = os.environ.get("CYGRAD_ISA_BUILD", "").strip()
    if wish not in ("", "native"):
        raise CompileError(f"CYGRAD_ISA_BUILD={wish!r} is nothing to build for: say native, or unset it for all levels of x86-64")
    if wish and not compiler.levelled:
        raise CompileError("CYGRAD_ISA_BUILD=native is for GCC on x86-64; elsewhere there is one level, and CFLAGS has its instructions")
    return bool(wish)


def header(compiler: Compiler) -> str:
    """Return the C text of the features that the loops need, which every source of a build reads."""
    macros = compiler.macros_with(*FLAGS)
    added = sorted(macros.keys() - compiler.macros.keys())
    names = [name.strip("_").lower() for name in added if re.fullmatch("__[A-Z0-9_]+__", name)]
    features = known_features(compiler, [name.replace("_", mark) for name in names for mark in (".-" if "_" in name else ".")])
    march = re.search(r"-march=\s*(\S+)", compiler.probe("-Q", "--help=target", *FLAGS).stdout)
    width = next((width for macro, width in WIDTHS.items() if macro in macros), 16)
    needed = " ".join(f'needed("{feature}")' for feature in features)
    return (f'#define CG_NATIVE "{march[1] if march else "unknown"}"\n#define CG_NATIVE_VECTOR_BYTES {width}\n'
            f"#define CG_NATIVE_NEEDS(needed) {needed}\n")


def known_features(compiler: Compiler, names: Iterable[str]) -> list[str]:
    """Return the names that the compiler can ask a processor for; a line each, without the lines of errors."""
    sources = list(names)
    lines = [f'int has_{number}(void) {{ return __builtin_cpu_supports("{name}"); }}' for number, name in enumerate(sources)]
    messages = compiler.probe("-c", "-x", "c", "-", "-o", os.devnull, text="\n".join(lines)).stderr
    wrong = {int(line) for line in re.findall(r"(?m)^<stdin>:(\d+):", messages)}
    return [name for line, name in enumerate(sources, 1) if line not in wrong]
