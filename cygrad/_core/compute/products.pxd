"""Products of matrices, also of batches with any strides."""
from cygrad._core.graph.tensor cimport TensorImpl

# The products of matrices in the last two dims of two tensors of one dtype; batches broadcast. Nothing is recorded.
cdef TensorImpl product(TensorImpl a, TensorImpl b)
