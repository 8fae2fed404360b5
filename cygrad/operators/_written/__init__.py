"""The registry and the type stubs, which `python -m building.operators` writes, and their writers."""
