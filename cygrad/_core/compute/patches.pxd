"""Windows as columns of a matrix, and columns added up: the functions of patches.pyx, called from C. Nothing is recorded."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl

# columns_of()
cdef TensorImpl window_columns(TensorImpl input, steps, kernel, count, bint merged, intptr_t first=*)
# added_columns()
cdef TensorImpl sum_columns(TensorImpl input, steps, kernel, count, sizes)
