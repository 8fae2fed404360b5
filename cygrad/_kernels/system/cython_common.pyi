"""Code that the compiled modules share: Cython's own, written by it; it has no names of ours."""
