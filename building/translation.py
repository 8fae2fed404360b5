"""Cython: a module's translation to C, in the build folder."""

import os
import subprocess
import sys
from pathlib import Path

from Cython import __version__
from Cython.Build import cythonize
from Cython.Compiler import Options
from Cython.Compiler.Errors import CompileError as TranslationError
from setuptools import Extension
from setuptools.errors import CompileError

from building.files import MadeFile, listed_dependencies

# Indices are checked where they are computed; a module that reads foreign data says otherwise in its first line.
DIRECTIVES = {"language_level": 3, "boundscheck": False, "wraparound": False, "embedsignature": False,
              "freethreading_compatible": False, "auto_pickle": False}

Options.warning_errors = True       # such as the warning about a negative index, which without `wraparound` reads anything

# The changes of `--debug`: an index outside of a list or a tuple, and an attribute of None, are errors instead of a crash.
DEBUG_DIRECTIVES = {"boundscheck": True, "nonecheck": True}

# The module of code that each module would have a copy of: Cython's functions and the like, a fifth of their code.
COMMON = Path("cygrad/_kernels/system/cython_common.pyx")
UNUSED = ("AutoPickle", "MemoryView")


def name_of(module: Path) -> str:
    return ".".join(module.with_suffix("").parts)


def common_translation(folder: Path) -> MadeFile:
    """Return the C file of the shared code of modules; there is no source."""
    def translate_to(partial: Path) -> list[Path]:
        translated = folder / "partial" / COMMON.with_suffix(".c")
        translated.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "cython", "generate-shared", "--exclude", ",".join(UNUSED), "--module-name", name_of(COMMON),
                        str(translated)], check=True)
        os.replace(translated, partial)
        return []

    return MadeFile((folder / COMMON).with_suffix(".c"), [f"Cython {__version__}", *UNUSED], translate_to)


def translation_of(module: Path, folder: Path, debug: bool) -> MadeFile:
    """Return the C file of a module; not safe to make in two threads at once."""
    directives = {**DIRECTIVES, **(DEBUG_DIRECTIVES if debug else {})}
    options = {"compiler_directives": directives, "shared_utility_qualified_name": name_of(COMMON)}

    def translate_to(partial: Path) -> list[Path]:
        try:
            (extension,) = cythonize([Extension(name_of(module), [str(module)])], build_dir=str(folder / "partial"), depfile=True,
                                     force=True, quiet=True, **options)
        except TranslationError:
            raise CompileError(f"Cython cannot translate {module}") from None
        (translated,) = extension.sources
        os.replace(translated, partial)
        return [*listed_dependencies(Path(f"{translated}.dep")), module.with_suffix(".pxd")]

    return MadeFile((folder / module).with_suffix(".c"), [f"Cython {__version__}", repr(options)], translate_to)
