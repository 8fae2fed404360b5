"""Build the compiled modules; pyproject.toml holds everything that is not about compiling.

`CC`, `CFLAGS` and `LDFLAGS` are respected, CFLAGS with the last word. `CYGRAD_OPENMP=0` builds without threads.
What the compiler can do is asked of the compiler, so nothing is decided by the name of the platform.
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy
from Cython.Build import cythonize
from setuptools import Extension, __version__, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

if int(__version__.partition(".")[0]) < 77:     # what 3.11 brings, which has no setuptools.modified
    sys.exit(f"cygrad is built with setuptools 77 or newer, and here is {__version__}: pip install --upgrade setuptools")

CORE, KERNELS = Path("cygrad/_core"), Path("cygrad/_kernels")
PYX = sorted([*CORE.glob("*/*.pyx"), *KERNELS.glob("*/*.pyx")])
INCLUDES = [str(CORE), str(KERNELS), numpy.get_include()]
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")]

# Never -ffast-math: it deletes NaN checks and links a start-up object that turns denormals off for the whole process.
# -fno-builtin-memset: gcc clears objects of 200 bytes by `rep stos`, which takes 20 ns to start.
# -g1 gives a crash its line numbers; `make wheel` strips them.
FLAGS = ["-O3", "-g1", "-fno-math-errno", "-fno-trapping-math", "-fno-builtin-memset", "-ffp-contract=off", "-fwrapv",
         "-fno-strict-aliasing", "-fno-stack-protector", "-fvisibility=hidden", "-Wno-unused-function",
         "-Werror=incompatible-pointer-types"]

# Clang warns of NaN checks, of conditions that are meant to have no branches, and of loops that it has no vectors for.
CLANG_FLAGS = ["-Wno-tautological-compare", "-Wno-bitwise-instead-of-logical", "-Wno-pass-failed", "-Wno-unknown-warning-option"]

PROBES = {
    "python": "#include <Python.h>\n",
    "openmp": "#include <omp.h>\nint probe(void) { return omp_get_max_threads(); }\n",
}


def load_generator():
    """Import the generator of the inner loops without the package, which is not built yet."""
    spec = importlib.util.spec_from_file_location("generate", KERNELS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def available_cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Build(build_ext):
    """Ask the compiler what it can do, then generate the inner loops, translate to C and compile."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or available_cores()

    def build_extensions(self):
        macros = self.macros()
        levelled = "__x86_64__" in macros and "__clang__" not in macros
        compile_flags, link_flags = self.flags(macros)
        if levelled and int(macros["__GNUC__"]) < 12:
            raise CompileError(f"cygrad needs GCC 12 or newer, or Clang, and {self.command()[0]!r} is GCC "
                               f"{macros['__GNUC__']}: name a newer one in CC")

        generator = load_generator()
        loops = generator.generate(("v2", "v3", "v4") if levelled else ("baseline",))
        # Other flags are a reason to compile again: a file that says them lies beside the objects, and every one depends on it.
        lines = shlex.join([*self.command(), *compile_flags]), shlex.join(link_flags)
        flags = Path(self.build_temp, "flags")
        flags.parent.mkdir(parents=True, exist_ok=True)
        generator.write(flags, "\n".join(lines))
        headers = [str(path) for path in (*Path("cygrad").glob("**/*.h"), flags)]

        directives = {"language_level": 3, "embedsignature": False, "freethreading_compatible": False}
        modules = cythonize([module(path) for path in PYX], compiler_directives=directives)
        sources = [*chain(*loops.values()), *(source for translated in modules for source in translated.sources)]
        (native,) = self.extensions
        native.sources, native.extra_link_args = [], link_flags
        native.depends = native.extra_objects = self.compile_objects(sources, headers, compile_flags)
        super().build_extensions()

    def copy_extensions_to_source(self):
        """Leave word of how the loops were compiled, for the tests of a build in place."""
        super().copy_extensions_to_source()
        shutil.copy(Path(self.build_temp, "flags"), Path(KERNELS, "generated"))

    def compile_objects(self, sources, headers, flags):
        """Compile what is not up to date, side by side, and return the object files."""
        from setuptools.modified import newer_group

        def compile_one(source):
            (target,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
            if self.force or newer_group([source, *headers], target, "newer"):
                self.compiler.compile([source], output_dir=self.build_temp, include_dirs=INCLUDES, macros=MACROS, extra_postargs=flags)
            return target

        with ThreadPoolExecutor(self.parallel) as pool:
            return list(pool.map(compile_one, sources))

    def flags(self, macros):
        """Return the flags for compiling and for linking that suit the compiler; the user's come last."""
        openmp = self.openmp_flag()
        compile_flags = [*FLAGS, openmp, *(CLANG_FLAGS if "__clang__" in macros else ["-fcx-fortran-rules"])]
        link_flags = [openmp] if openmp == "-fopenmp" else []
        if "__x86_64__" in macros and "__GLIBC__" in macros and "__clang__" not in macros:
            link_flags += ["-Wl,--as-needed", "-lmvec"]  # before libm, which it needs
        return [*compile_flags, *shlex.split(os.environ.get("CFLAGS", ""))], [*link_flags, "-lm"]

    def command(self):
        """Return the compiler and its first arguments; CC is already in it."""
        if not hasattr(self.compiler, "compiler_so"):
            raise CompileError("cygrad is built with GCC or Clang, and this platform's setuptools uses neither")
        return self.compiler.compiler_so

    def run_compiler(self, *arguments):
        """Run the compiler in a directory of the probes and return the result, or say that there is none."""
        with TemporaryDirectory() as folder:
            for name, text in PROBES.items():
                Path(folder, f"{name}.c").write_text(text)
            try:
                return subprocess.run([*self.command(), *arguments], cwd=folder, capture_output=True, text=True)
            except OSError as error:
                message = f"cygrad needs a C compiler, and {self.command()[0]!r} cannot be run ({error.strerror})"
                raise CompileError(f"{message}: install one (Debian: apt install gcc) or name it in CC") from None

    def macros(self):
        """Return what the compiler predefines, with Python's headers and the C library's."""
        includes = [f"-I{Path(folder).resolve()}" for folder in self.compiler.include_dirs]
        result = self.run_compiler("-dM", "-E", *includes, "python.c")
        if result.returncode:
            reason = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr.strip())
            raise CompileError(f"the C compiler {self.command()[0]!r} cannot read Python's headers "
                               f"(Debian: apt install python3-dev): {reason}")
        definitions = (line.split(maxsplit=2) for line in result.stdout.splitlines())
        return {definition[1]: definition[-1] for definition in definitions}

    def openmp_flag(self):
        """Return the flag for threads, which the compiler and the linker must both know, or for doing without."""
        if os.environ.get("CYGRAD_OPENMP", "1") == "0":
            return "-fopenmp-simd"
        if self.run_compiler("-shared", "-fopenmp", "openmp.c", "-o", "openmp.so").returncode:
            raise CompileError(f"the C compiler {self.command()[0]!r} has no OpenMP: install its library (Debian: "
                               "libgomp1 for GCC, libomp-dev for Clang; macOS: build with GCC), or set CYGRAD_OPENMP=0 "
                               "for a build without threads")
        return "-fopenmp"


def module(path):
    return Extension(".".join(path.with_suffix("").parts), [str(path)])


# All modules are linked into one library; `cygrad/_imports.py` finds them in it.
setup(ext_modules=[Extension("cygrad._native", list(map(str, PYX)))], cmdclass={"build_ext": Build})
