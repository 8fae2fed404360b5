"""Tensors that are written whole: copied into, filled, set to zero, padded.

The functions with an underscore are the methods of Tensor too: their first argument is the tensor.
"""
from libc.stdint cimport intptr_t

from cygrad._core.compute.indexing cimport scalar_like, set_item
from cygrad._core.compute.inplace cimport check_in_place, cut_history
from cygrad._core.graph.rule_nodes cimport needs_node
from cygrad._core.graph.tensor cimport TensorImpl, count_change, empty, view_of
from cygrad._core.memory.sizes cimport integer, parse_sizes, sizes_tuple
from cygrad._core.operands.operands cimport copy_into
from cygrad._core.programs.deferred cimport copy_later
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS


def copy_(TensorImpl self not None, other, non_blocking=False):
    """Copy the elements of `other`, broadcast and converted, into this tensor."""
    set_item(self, Ellipsis, other)
    return self


def fill_(TensorImpl self not None, value):
    """Set all elements to a number (or a 0-d tensor)."""
    if isinstance(value, TensorImpl) and (<TensorImpl>value).ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {(<TensorImpl>value).ndim} dimensions.")
    set_item(self, Ellipsis, value)
    return self


def zero_(TensorImpl self not None):
    """Set all elements to 0."""
    check_in_place(self, False)
    copy_into(self, scalar_like(self, 0))
    count_change(self)
    if needs_node(self, None):
        cut_history(self, True)
    return self


def padded(TensorImpl input not None, tuple counts not None, TensorImpl number not None):
    """Return a copy with more elements at the ends of the last dims, all the number. Nothing is recorded.

    counts: before and behind, of the last dim first, at most two for each dim; a negative one cuts elements off.
    """
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t shape[MAX_DIMS]
    cdef intptr_t offset = 0, size, start, before, behind
    cdef list lengths = list(sizes_tuple(input.ndim, input.sizes))
    cdef TensorImpl result, part
    cdef int d, k
    for d in range(input.ndim):
        sizes[d] = input.sizes[d]
    for k in range(len(counts) // 2):
        d = input.ndim - 1 - k
        size, length = sizes[d], counts[2 * k] + counts[2 * k + 1] + sizes[d]
        if length < 0:
            raise RuntimeError(f"narrow(): length must be non-negative: size {size} of dimension {d} and a padding of {counts[2 * k]} and "
                               f"{counts[2 * k + 1]} make {length}")
        lengths[d] = length
        before, behind = integer(counts[2 * k], "pad"), integer(counts[2 * k + 1], "pad")
        sizes[d] = max(size + min(behind, 0), 0)
        start = min(max(-before, 0), sizes[d])
        sizes[d] -= start
        offset += start * input.strides[d]
    part = view_of(input, offset, input.ndim, sizes, input.strides)
    result = empty(input.dtype_nr, parse_sizes(lengths, shape), shape)
    if result.count > part.count:
        copy_into(result, number)
    offset = 0
    for k in range(len(counts) // 2):
        d = input.ndim - 1 - k
        offset += max(<intptr_t>counts[2 * k], 0) * result.strides[d]
    if part.count:
        copy_later(view_of(result, offset, input.ndim, sizes, result.strides), part, False)
    return result
