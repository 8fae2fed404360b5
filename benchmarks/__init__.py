"""Ratios of cygrad's times to its peers'; run them with `python -m benchmarks [names]`."""

import os

# NumPy's BLAS reads this when NumPy is imported: `set_num_threads(1)` limits torch's matrix products, and not NumPy's.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
