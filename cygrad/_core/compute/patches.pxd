"""Windows as columns of a matrix, and columns added up (see patches.pyx). Nothing is recorded."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl

cpdef TensorImpl columns_of(TensorImpl input, steps, kernel, count, bint merged, intptr_t first=*)
cpdef TensorImpl added_columns(TensorImpl input, steps, kernel, count, sizes)
