"""Write files from the declarations: `python -m cygrad.operators` after a change of a table, of a declaration or of a stub."""

import sys

from cygrad import _commands
from cygrad.operators._written import catalogue, facts, pages, stubs


def main() -> int:
    """Write the registry, the stubs and the pages, and return the exit status."""
    catalogue.REGISTRY.write_text(catalogue.registry())
    for path in stubs.PATHS:
        path.write_text(stubs.stub(path))
    facts.measure()
    pages.write()
    return 0


if __name__ == "__main__":
    sys.exit(_commands.ended(main, "python -m cygrad.operators"))
