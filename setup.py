"""Build the compiled modules; pyproject.toml holds everything that is not about compiling, `building` how it is done."""

import sys
from pathlib import Path

from setuptools import Extension, __version__, setup

if int(__version__.partition(".")[0]) < 77:     # what 3.11 brings, which does not know how the licence is named
    sys.exit(f"cygrad is built with setuptools 77 or newer, and here is {__version__}: pip install --upgrade setuptools")

sys.path.insert(0, str(Path(__file__).parent))

from building.command import MODULES, Build  # noqa: E402

# All modules are linked into one library; `cygrad/_imports.py` finds them in it.
setup(ext_modules=[Extension("cygrad._native", list(map(str, MODULES)))], cmdclass={"build_ext": Build})
