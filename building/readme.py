"""README.md as a package index shows it: there are no files beside it there, so its links lead into the repository."""

import re
import tomllib
from pathlib import Path


def with_absolute_links(page: Path, pyproject: Path) -> str:
    repository = tomllib.loads(pyproject.read_text())["project"]["urls"]["Repository"]
    return re.sub(r"\]\((?!https?:|#)", f"]({repository}/blob/HEAD/", page.read_text())
