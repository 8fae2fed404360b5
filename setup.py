"""Build the compiled modules; pyproject.toml holds everything that is not about compiling, `building` how it is done."""

import sys
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).parent
PROJECT = ROOT / "pyproject.toml"
sys.path.insert(0, str(ROOT))

from building.readme import with_absolute_links  # noqa: E402
from building.requirements import unmet_requirements  # noqa: E402

if sentence := unmet_requirements(PROJECT):
    sys.exit(sentence)

from building.command import MODULES, Build  # noqa: E402

# All modules are linked into one library; `cygrad/_imports.py` finds them in it.
setup(ext_modules=[Extension("cygrad._native", list(map(str, MODULES)))], cmdclass={"build_ext": Build},
      long_description=with_absolute_links(ROOT / "README.md", PROJECT), long_description_content_type="text/markdown")
