"""Elements at places that an index names along a dim: taken, put and added. Nothing is recorded."""
from cygrad._core.graph.tensor cimport TensorImpl

# A row-major tensor of the same elements in a dtype: itself where it is one.
cdef TensorImpl dense(TensorImpl tensor, int dtype)
