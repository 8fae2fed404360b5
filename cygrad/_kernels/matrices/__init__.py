"""Loops over batches of matrices, with the interface of NumPy's generalized ufuncs: plain ones in C, and LAPACK for larger matrices."""
