"""What `python -m cygrad.operators` writes from the declarations, and how: the registry, the type stubs, the pages of the API."""
