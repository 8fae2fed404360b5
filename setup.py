"""Build the compiled modules; pyproject.toml holds everything that is not about compiling, `building` how it is done."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))

from building.requirements import PROJECT, exit_unless_met  # noqa: E402

exit_unless_met()

from setuptools import Extension, setup  # noqa: E402

from building.archives import SourceArchive, Wheel  # noqa: E402
from building.command import MODULES, Build  # noqa: E402
from building.readme import with_absolute_links  # noqa: E402

# All modules are linked into one library; `cygrad/_imports.py` finds them in it.
setup(ext_modules=[Extension("cygrad._native", list(map(str, MODULES)))],
      cmdclass={"build_ext": Build, "sdist": SourceArchive, "bdist_wheel": Wheel},
      long_description=with_absolute_links(ROOT / "README.md", PROJECT), long_description_content_type="text/markdown")
