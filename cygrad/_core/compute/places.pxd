"""Elements at places that an index names along a dim: taken, put and added. Nothing is recorded."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl

# A row-major tensor of the same elements in a dtype: itself where it is one.
cdef TensorImpl dense(TensorImpl tensor, int dtype)
# Whether one of dense places of int64 is outside of a dim; `from_end`: negative ones count from the end.
cdef bint any_outside(TensorImpl places, intptr_t size, bint from_end=?) noexcept
# A result in the dtype that it is stored in.
cdef TensorImpl stored(TensorImpl result, int dtype)
# A 0-d tensor as a vector.
cdef TensorImpl vector_of(TensorImpl tensor)
# A row-major tensor as a vector.
cdef TensorImpl in_order(TensorImpl tensor)
