"""What the compiled modules share: Cython's own code, written by it; it has no names of ours."""
