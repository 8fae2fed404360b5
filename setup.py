"""Build the compiled modules; pyproject.toml holds everything that is not about compiling."""

import importlib.util
import os
import platform
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

HERE = Path(__file__).resolve().parent
KERNELS = "cygrad/_kernels"
MODULES = ("_kernels.threads", "_kernels.allocator", "_kernels.elementwise", "_kernels.reduction",
           "_core.storage", "_core.tensor", "_core.node", "_core.dispatch", "_core.rules", "_core.reduction", "_core.interop", "_core.views", "_core.creation",
           "_core.matmul", "_core.engine", "_core.operators")


def load_generator():
    spec = importlib.util.spec_from_file_location("generate", HERE / KERNELS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LEVELS = ("v2", "v3", "v4") if platform.machine() in ("x86_64", "AMD64") else ("baseline",)
LOOPS = load_generator().generate(LEVELS)
OPENMP = os.environ.get("CYGRAD_OPENMP", "1") != "0"
# Never -ffast-math: it deletes NaN checks and links a start-up object that turns denormals off for the whole process.
COMPILE = ["-O3", "-g1", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-fcx-fortran-rules",
           "-fvisibility=hidden", "-Wno-unused-function", "-fopenmp" if OPENMP else "-fopenmp-simd"]
LINK = (["-fopenmp"] if OPENMP else []) + ["-Wl,--as-needed", "-lmvec", "-lm"]


def extension(name: str) -> Extension:
    path = "cygrad/" + name.replace(".", "/") + ".pyx"
    return Extension(f"cygrad.{name}", [path, *LOOPS.get(name.removeprefix("_kernels."), [])], include_dirs=[KERNELS, numpy.get_include()],
                     depends=[str(path.relative_to(HERE)) for path in (HERE / KERNELS).rglob("*.h")],
                     define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
                     extra_compile_args=COMPILE, extra_link_args=LINK)


setup(ext_modules=cythonize([extension(name) for name in MODULES if (HERE / ("cygrad/" + name.replace(".", "/") + ".pyx")).exists()],
                            language_level=3, compiler_directives={"embedsignature": False, "freethreading_compatible": False}))
