"""Layouts: tensors of a replay without their memory, and values with places for tensors."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.memory.storage cimport Storage

cdef enum ResultKind:
    MADE            # in memory of its own
    SAME            # an input itself
    VIEW_OF_INPUT
    DETACHED        # of an input, without its history

cdef class Layout:
    """The place of a tensor: a base, bytes from there, and geometry."""
    cdef int kind
    cdef int base, dtype, ndim
    cdef intptr_t offset
    cdef unsigned long long version     # how often a result was changed
    cdef unsigned created       # how autograd follows a view (CREATED)
    cdef bint is_current        # a view was made after all changes of its memory,
    cdef bint has_history       # and is recorded
    cdef intptr_t[16] dims      # sizes, then strides
    cdef tuple many_sizes, many_strides

cdef Layout layout_at(TensorImpl tensor, int kind, int base, intptr_t offset)
cdef TensorImpl tensor_in(Layout layout, Storage storage, intptr_t start)
cdef TensorImpl empty_in(Layout layout)
cdef bint suits(Layout layout, TensorImpl tensor) noexcept
cdef bint has_strides_of(Layout layout, TensorImpl tensor) noexcept
cdef object with_holes(object value, object numbers)
cdef object filled(object value, object tensors)
