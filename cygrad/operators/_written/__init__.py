"""Writers of `python -m cygrad.operators`, from the declarations: the registry, the type stubs, the pages of the API."""
