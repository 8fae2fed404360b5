"""Write what is made from the declarations: `python -m cygrad.operators` after a change of a table, of a declaration or of a stub."""

from cygrad.operators._written import catalogue, pages, stubs

catalogue.REGISTRY.write_text(catalogue.registry())
for path in stubs.PATHS:
    path.write_text(stubs.stub(path))
pages.write()
