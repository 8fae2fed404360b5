"""Sparse tensors (see sparse.pxd for the contract)."""
cimport cython
from libc.stdint cimport intptr_t
from libc.string cimport memset

from cygrad._core.graph.notes cimport Notes, current_notes
from cygrad._core.graph.tensor cimport CONTIGUOUS, SPARSE, TensorImpl, new_tensor, replace_memory
from cygrad._core.levels.fronts cimport Front
from cygrad._core.memory.looks cimport note_look
from cygrad._core.memory.sizes cimport checked_numel, parse_sizes
from cygrad._core.memory.storage cimport Storage, new_storage, owner_of
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_is_differentiable, cg_itemsize


@cython.final
@cython.binding(False)
cdef class Sparse(Front):
    """The values of a sparse tensor, and the pattern of their places."""

    def around(self, TensorImpl inner not None):
        """Return the sparse tensor that has other values at the same places."""
        return sparse_tensor(inner, self.pattern)


def sparse_tensor(TensorImpl values not None, pattern):
    """Return the sparse tensor of some values at the places of a pattern, which has checked them."""
    cdef intptr_t shape[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef int ndim = parse_sizes(pattern.shape, shape)
    cdef int itemsize = cg_itemsize[values.dtype_nr]
    cdef Storage storage
    cdef TensorImpl result
    cdef Sparse front = Sparse.__new__(Sparse)
    checked_numel(ndim, shape, itemsize)
    front.inner, front.pattern = values, pattern
    # One element stands at all places. Operators never read it; where an oversight does, the result is NaN.
    storage = new_storage(itemsize)
    memset(storage.data, 0xff if cg_is_differentiable[values.dtype_nr] else 0, itemsize)
    memset(strides, 0, sizeof(strides))
    result = new_tensor(storage, 0, values.dtype_nr, ndim, shape, strides)
    result.flags = (result.flags & ~<unsigned>CONTIGUOUS) | SPARSE
    result.special = front
    return result


def sparse_part(tensor):
    """Return the Sparse of a sparse tensor, its `inner` values and their `pattern`; None of any other object."""
    return (<TensorImpl>tensor).special if isinstance(tensor, TensorImpl) and (<TensorImpl>tensor).flags & SPARSE else None


def replace_sparse(TensorImpl tensor not None, TensorImpl source not None):
    """Have a sparse tensor take on the values, the pattern and the shape of another: the end of a change in place."""
    cdef Notes notes = current_notes()
    if not tensor.flags & source.flags & SPARSE:
        raise TypeError("only a sparse tensor takes on the values of another")
    if notes is not None and notes.is_from_before(owner_of(tensor.storage)):
        note_look("a sparse tensor from outside is changed in place")
    tensor.special = source.special
    replace_memory(tensor, source, source.storage)
    return tensor


cdef bint any_sparse(list tensors) noexcept:
    """Return True if a tensor of a list is sparse."""
    cdef TensorImpl tensor
    for tensor in tensors:
        if tensor.flags & SPARSE:
            return True
    return False
