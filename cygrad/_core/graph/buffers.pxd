"""The buffer protocol of tensors: other code reads and writes their memory until it releases the buffer."""
from cpython.buffer cimport Py_buffer

from cygrad._core.graph.tensor cimport TensorImpl

# Fill a buffer but for its object. BufferError for a tensor whose memory has other values, or does not lie as the flags ask for.
cdef int fill_buffer(TensorImpl tensor, Py_buffer* buffer, int flags) except -1
cdef void release_buffer(Py_buffer* buffer) noexcept
