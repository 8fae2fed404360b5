"""Types of the compiled module: nothing for Python."""
