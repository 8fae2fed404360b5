"""The C compiler: its version and features, the flags that suit it, and how it compiles and links.

`CC`, `CFLAGS` and `LDFLAGS` are respected, CFLAGS with the last word. `CYGRAD_OPENMP=0` builds without threads.
The features of the compiler are read from the compiler, so nothing is decided by the name of the platform.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools.errors import CompileError

from building.files import MadeFile, listed_dependencies

# Never -ffast-math: it deletes NaN checks and links a start-up object that turns denormals off for the whole process.
# -fno-builtin-memset: gcc clears objects of 200 bytes by `rep stos`, which takes 20 ns to start.
# -g1 gives a crash its line numbers; `make wheel` strips them. Tables that unwind the stack besides a debugger's would be a twentieth of
# the library: nothing is thrown through it, and threads that end within it need none.
FLAGS = ["-g1", "-fno-math-errno", "-fno-trapping-math", "-fno-builtin-memset", "-ffp-contract=off", "-fwrapv",
         "-fno-strict-aliasing", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fvisibility=hidden",
         "-Wall", "-Wsign-compare", "-Wno-unused-function", "-Werror=incompatible-pointer-types", "-Werror=implicit-function-declaration",
         "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION"]

# Rare loops are to be small, and for old processors the loops that -O3 makes no faster: its additions are half of their code, and lies in
# their ends.
# A short loop is a tenth slower where it crosses a window of the decoder; in Cython's output places do not matter, since it is calls.
# Its loops are over dims and operands, too short for vectors. Names are those that Clang has, too.
LOOPS = ["-O3", "-falign-loops=32", "-falign-jumps=1"]
# Second versions of loops, for other strides and conditions, make loops no faster, and strided ones slower. They are a tenth of the code of
# reductions. Clang has no such flags.
ONE_VERSION = ["-fno-version-loops-for-strides", "-fno-split-loops", "-fno-unswitch-loops"]
RARE = ["-O2", "-falign-loops=1", "-falign-jumps=1"]
SMALLEST = ["-Os", "-falign-loops=1", "-falign-jumps=1"]      # of integers, complex and rare numbers, for old processors
CALLS = ["-O3", "-ffunction-sections", "-fno-tree-vectorize", "-ftree-slp-vectorize", "-falign-loops=1", "-falign-jumps=1"]
SHORT = ["-O2", "-ffunction-sections", "-fno-tree-vectorize"]
SELDOM = ["-Os", "-ffunction-sections"]

# The changes of `--debug`: assertions, of Python's headers too, and symbols for a debugger.
DEBUG_FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", "-UNDEBUG"]

# Clang warns of NaN checks, of conditions that are meant to have no branches, of loops it has no vectors for, and of features that only GCC
# has.
CLANG_FLAGS = ["-Wno-tautological-compare", "-Wno-bitwise-instead-of-logical", "-Wno-bitwise-conditional-parentheses", "-Wno-pass-failed",
               "-Wno-unknown-attributes", "-Wno-ignored-optimization-argument", "-Wno-unknown-warning-option"]

# Functions that Cython writes into each module, in sections of their own, lie side by side by this, and are packed as one.
BY_NAME = "-Wl,--sort-section=name"

OLDER_GLIBC = Path("cygrad/_kernels/system/older_glibc.h")

PROBES = {
    "python": "#include <Python.h>\n",
    "openmp": "#include <omp.h>\nint probe(void) { return omp_get_max_threads(); }\n",
}


class Compiler:
    """GCC or Clang, as setuptools found it."""

    def __init__(self, result: Any, includes: Iterable[str], debug: bool) -> None:
        if not hasattr(result, "compiler_so"):
            raise CompileError("cygrad is built with GCC or Clang, and this platform's setuptools uses neither")
        self.command: list[str] = result.compiler_so     # CC and its first arguments
        self.linker: list[str] = result.linker_so
        self.includes = [f"-I{folder}" for folder in (*includes, *result.include_dirs)]
        # The names of files for a debugger and in __FILE__ do not contain their folders.
        places = {folder: "include" for folder in (*includes, *result.include_dirs) if os.path.isabs(folder)} | {os.getcwd(): "."}
        self.places = [f"-ffile-prefix-map={folder}={name}" for folder, name in places.items()]
        self.debug = debug
        if self.levelled and int(self.macros["__GNUC__"]) < 12:
            raise CompileError(f"cygrad needs GCC 12 or newer, or Clang, and {self.command[0]!r} is GCC "
                               f"{self.macros['__GNUC__']}: name a newer one in CC")

    @cached_property
    def macros(self) -> dict[str, str]:
        """The macros that the compiler predefines, with Python's headers and the C library's."""
        return self.macros_with()

    def macros_with(self, *flags: str) -> dict[str, str]:
        includes = [f"-I{Path(option[2:]).resolve()}" for option in self.includes]
        result = self.probe("-dM", "-E", *flags, *includes, "python.c")
        if result.returncode:
            reason = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr.strip())
            raise CompileError(f"the C compiler {self.command[0]!r} cannot read Python's headers "
                               f"(Debian: apt install python3-dev): {reason}")
        definitions = (line.split(maxsplit=2) for line in result.stdout.splitlines())
        return {definition[1]: definition[-1] for definition in definitions}

    @property
    def clang(self) -> bool:
        return "__clang__" in self.macros

    @property
    def levelled(self) -> bool:
        """Whether the loops are compiled once for each level of x86-64."""
        return "__x86_64__" in self.macros and not self.clang

    @cached_property
    def openmp_flag(self) -> str:
        """The flag for threads, which both the compiler and the linker need, or for doing without."""
        if os.environ.get("CYGRAD_OPENMP", "1") == "0":
            return "-fopenmp-simd"
        if self.probe("-shared", "-fopenmp", "openmp.c", "-o", "openmp.so").returncode:
            raise CompileError(f"the C compiler {self.command[0]!r} has no OpenMP: install its library (Debian: "
                               "libgomp1 for GCC, libomp-dev for Clang; macOS: build with GCC), or set CYGRAD_OPENMP=0 "
                               "for a build without threads")
        return "-fopenmp"

    def compile_flags(self, optimization: list[str]) -> list[str]:
        own = [*optimization, *FLAGS, self.openmp_flag, *(CLANG_FLAGS if self.clang else ["-fcx-fortran-rules"])]
        return [*own, *(DEBUG_FLAGS if self.debug else []), *shlex.split(os.environ.get("CFLAGS", ""))]

    @cached_property
    def link_flags(self) -> list[str]:
        openmp = [self.openmp_flag] if self.openmp_flag == "-fopenmp" else []
        order = [] if self.probe("-shared", BY_NAME, "-xc", os.devnull, "-o", "order.so").returncode else [BY_NAME]
        vectors = ["-Wl,--as-needed", "-lmvec"] if self.levelled and "__GLIBC__" in self.macros else []  # before libm, which it needs
        return [*order, *openmp, *vectors, "-lm", *(f"-Wl,--wrap={name}" for name in self.wrapped)]

    @cached_property
    def wrapped(self) -> list[str]:
        """The functions that are bound to an older version than the newest, where the header decides whether it is of use here."""
        return re.findall(r"\b__wrap_(\w+)[^;{}]*\{", self.probe("-E", "-D_GNU_SOURCE", str(OLDER_GLIBC.resolve())).stdout)

    def object_of(self, source: Path, target: Path, optimization: list[str]) -> MadeFile:
        """Return the object file of a source."""
        command, flags = [*self.command, *self.includes, "-c", str(source)], self.compile_flags(optimization)

        def compile_to(partial: Path) -> list[Path]:
            listing = partial.with_suffix(".d")
            said = run([*command, "-o", str(partial), "-MMD", "-MF", str(listing), "-MT", str(target), *self.places, *flags])
            messages_of(target).write_text(said)
            return listed_dependencies(listing)

        return MadeFile(target, [self.macros["__VERSION__"], *command, *flags], compile_to)

    def library_of(self, objects: list[Path], target: Path) -> MadeFile:
        """Return the shared library of some objects."""
        command = [*self.linker, *map(str, objects)]

        def link_to(partial: Path) -> list[Path]:
            run([*command, "-o", str(partial), *self.link_flags])
            return objects

        return MadeFile(target, [*command, *self.link_flags], link_to)

    def probe(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run the compiler in a directory of the probes, with a text as its input, and return the result, or say that there is none."""
        with TemporaryDirectory() as folder:
            for name, source in PROBES.items():
                Path(folder, f"{name}.c").write_text(source)
            try:
                return subprocess.run([*self.command, *arguments], cwd=folder, input=text, capture_output=True, text=True)
            except OSError as error:
                message = f"cygrad needs a C compiler, and {self.command[0]!r} cannot be run ({error.strerror})"
                raise CompileError(f"{message}: install one (Debian: apt install gcc) or name it in CC") from None


def messages_of(target: Path) -> Path:
    """Return the file beside an object that holds the compiler's messages."""
    return target.with_suffix(".txt")


def run(command: list[str]) -> str:
    """Run a command, and return its output; that is shown at once, and the command itself if it fails."""
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        sys.stdout.write(f"{shlex.join(command)}\n{result.stdout}")
        raise CompileError(f"command {command[0]!r} failed with exit code {result.returncode}")
    if result.stdout:
        sys.stdout.write(result.stdout)
    sys.stdout.flush()
    return result.stdout
