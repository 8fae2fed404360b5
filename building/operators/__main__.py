"""Write files from the declarations: `python -m building.operators` after a change of a table, of a declaration or of a stub."""

from building.operators import facts, pages
from cygrad.operators._written import catalogue, stubs


def main() -> None:
    """Write the registry, the stubs and the pages."""
    catalogue.REGISTRY.write_text(catalogue.registry())
    for path in stubs.PATHS:
        path.write_text(stubs.stub(path))
    facts.measure()
    pages.write()


if __name__ == "__main__":
    main()
