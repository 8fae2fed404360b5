"""Build the compiled modules; pyproject.toml holds everything that is not about compiling.

`CC`, `CFLAGS` and `LDFLAGS` are respected, CFLAGS with the last word. `CYGRAD_OPENMP=0` builds without threads.
What the compiler can do is asked of the compiler, so nothing is decided by the name of the platform.
"""

import importlib.util
import os
import shlex
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

CORE, KERNELS = Path("cygrad/_core"), Path("cygrad/_kernels")

# Never -ffast-math: it deletes NaN checks and links a start-up object that turns denormals off for the whole process.
# -g1 gives a crash its line numbers; `make wheel` strips them.
FLAGS = ["-O3", "-g1", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing",
         "-fvisibility=hidden", "-Wno-unused-function"]

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
        clang, gcc = "__clang__" in macros, int(macros.get("__GNUC__", 0))
        levelled = "__x86_64__" in macros and not clang
        if levelled and gcc < 12:
            raise CompileError(f"cygrad needs GCC 12 or newer, or Clang, and {self.command()[0]!r} is GCC {gcc}: "
                               "name a newer one in CC")
        compile_flags = [*FLAGS, *([] if clang else ["-fcx-fortran-rules"]), self.openmp_flag()]
        link_flags = ["-Wl,--as-needed", "-lmvec", "-lm"] if levelled and "__GLIBC__" in macros else ["-lm"]
        link_flags += ["-fopenmp"] if "-fopenmp" in compile_flags else []
        compile_flags += shlex.split(os.environ.get("CFLAGS", ""))

        generator = load_generator()
        loops = generator.generate(("v2", "v3", "v4") if levelled else ("baseline",))
        # Other flags are a reason to compile again: a file that says them is what every module depends on.
        flags = f"{shlex.join([*self.command(), *compile_flags])}\n{shlex.join(link_flags)}\n"
        generator.write(generator.OUTPUT / "flags", flags)
        headers = [str(path) for path in (*Path("cygrad").glob("**/*.h"), generator.OUTPUT / "flags")]

        directives = {"language_level": 3, "embedsignature": False, "freethreading_compatible": False}
        translated = cythonize(self.extensions, compiler_directives=directives)
        for extension, module in zip(self.extensions, translated, strict=True):
            family = extension.name.removeprefix("cygrad._kernels.")
            extension.sources = [*module.sources, *loops.get(family, [])]
            extension.depends = [*module.depends, *headers]
            extension.extra_compile_args, extension.extra_link_args = compile_flags, link_flags
        self.extensions.sort(key=lambda extension: -len(extension.sources))  # the longest first, for even loads
        super().build_extensions()

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


def extension(path):
    """Return the module of a .pyx file; `Build` adds what depends on the compiler."""
    return Extension(".".join(path.with_suffix("").parts), [str(path)],
                     include_dirs=[str(CORE), str(KERNELS), numpy.get_include()],
                     define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")])


modules = sorted([*CORE.glob("*.pyx"), *KERNELS.glob("*.pyx")])
setup(ext_modules=[extension(path) for path in modules], cmdclass={"build_ext": Build})
