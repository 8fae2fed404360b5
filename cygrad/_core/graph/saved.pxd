"""Saved tensors that are more than a reference: packed by hooks, kept by a user Function, or handed out as `_raw_saved_*`.

A node keeps its saved tensors as they are until hooks are active in this thread or a handle is asked for. Needs the GIL.
"""
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport TensorImpl

cdef class SavedTensor:
    cdef TensorImpl tensor      # as it was saved, an output without its history; None where packed, empty or freed
    cdef object packed          # the result of the pack hook
    cdef object unpacker        # the hook; None where not packed
    cdef list tangents          # Duals of the packed tensor, or None
    cdef object origin          # node, or leaf (output number LEAF), that gradients of the tensor go to
    cdef int output_nr
    cdef unsigned long long version
    cdef bint is_output         # of the node that keeps it
    cdef bint shares_memory     # the packed value is a tensor over the same memory
    cdef bint freed
    cdef int pack(self, TensorImpl tensor, object packer, object unpacker) except -1
    cdef TensorImpl value(self, Node reader, bint with_history)
    cpdef void free(self) noexcept

cdef int hook_pairs              # that are active, in all threads
cpdef object thread_hooks()
cpdef void set_thread_hooks(object hooks) noexcept
cdef SavedTensor saved_operand(TensorImpl tensor, unsigned long long version, object origin, int output_nr)
cdef SavedTensor saved_result(TensorImpl copy, unsigned long long version, int output_nr)
cdef bint packs_by_default() noexcept
cdef SavedTensor packed_by_default(TensorImpl tensor, bint is_output)
cdef object released_error()
cdef int check_attached(TensorImpl tensor, object origin, int output_nr) except -1
cdef int check_version(TensorImpl tensor, unsigned long long version, Node maker, Node reader) except -1
cdef str saved_name(str argument)
cdef bint is_followed(TensorImpl tensor) noexcept
cdef int check_savable(TensorImpl tensor) except -1
