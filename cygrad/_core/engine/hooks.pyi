"""Types of the compiled module: it has no Python names."""
