"""Types of the compiled module: it offers nothing to Python."""
