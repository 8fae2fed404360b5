# cython: cdivision=True
"""Look-ups (see lookups.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_Check
from libc.stdint cimport intptr_t

from cygrad._core.compute.moving cimport (ADD, EITHER, MOST_INDICES, PUT, TAKE, Change, Moves, begin_moves, launch_moves,
                                          parts_of_element)
from cygrad._core.compute.parts cimport Cuts, basic_view
from cygrad._core.compute.places cimport any_outside, dense
from cygrad._core.graph.tensor cimport SPECIAL, TensorImpl, empty, place_of, tensor_type, view_of
from cygrad._core.memory.storage cimport owner_of
from cygrad._core.operands.operands cimport RELEASE_GIL, Value, copy_of, empty_for, overlaps
from cygrad._kernels.drivers.elementwise cimport CG_BOOL, CG_INT32, CG_INT64, MAX_DIMS, cg_loops_of

cdef enum:
    FOR_NUMPY = 1 << 16


# ----- Indices -----
cdef bint share_memory(TensorImpl a, TensorImpl b) noexcept:
    """Return True if one of two tensors may lie in the memory of the other, which may be foreign."""
    return owner_of(a.storage) is owner_of(b.storage) or place_of(a) == place_of(b) or overlaps(a, b)


cdef bint is_index(object item) noexcept:
    """Return True if an item of an index is a plain tensor of integers that names places."""
    cdef TensorImpl tensor
    if type(item) is not tensor_type:
        return False
    tensor = item
    return (tensor.dtype_nr == CG_INT64 or tensor.dtype_nr == CG_INT32) and not tensor.flags & SPECIAL and tensor.ndim > 0


cdef int dims_before(tuple items, int fill) except -2:
    """Return how many dims of the view stand before the first one that is looked up; -1: places stand apart, so their dims come first in
    the result; FOR_NUMPY: NumPy owns the rule. `fill`: the dims that an ellipsis stands for.

    Integers are looked up beside tensors.
    """
    cdef int first = -1, before = 0, indices = 0
    cdef bint ended = False, is_apart = False, is_place
    for item in items:
        is_place = type(item) is int or is_index(item)
        indices += type(item) is not int and is_place
        if is_place:
            is_apart = is_apart or ended
            first = before if first < 0 else first
        elif item is Ellipsis and first >= 0 and not fill or not (PySlice_Check(item) or item is None or item is Ellipsis):
            return FOR_NUMPY
        else:
            ended = first >= 0
            before += fill if item is Ellipsis else 1
    return FOR_NUMPY if not 0 < indices <= MOST_INDICES else -1 if is_apart else first


cdef bint broadcast_index(TensorImpl index, intptr_t* sizes, int* ndim) noexcept:
    """Broadcast the sizes of an index and of the others; False if they do not fit."""
    cdef int d, e
    for d in range(ndim[0], index.ndim):
        sizes[d] = 1
    ndim[0] = max(ndim[0], index.ndim)
    for d in range(index.ndim):     # from the last dim on
        e = index.ndim - 1 - d
        if sizes[d] == 1:
            sizes[d] = index.sizes[e]
        elif index.sizes[e] != 1 and index.sizes[e] != sizes[d]:
            return False
    return True


cdef TensorImpl read_lookup(TensorImpl x, tuple items, Change change, Moves* moves, list indices, list originals):
    """Read an index, and return the view of the whole that its ints and slices give; None: it is for NumPy, as are places outside, whose
    error it raises. The indices are row-major and of int64; the originals are repeated in the other dims of the part.
    """
    cdef TensorImpl view, index, original
    cdef Cuts cuts
    cdef intptr_t[MAX_DIMS] sizes, strides
    cdef list dims = []         # of the view, that are looked up
    cdef int fill = x.ndim - sum([item is not None and item is not Ellipsis for item in items]), before = dims_before(items, fill)
    cdef int ndim = 0, parts = parts_of_element(x.dtype_nr), dim = 0, d, k
    if before == FOR_NUMPY:
        return None
    if fill < 0:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    view = basic_view(x, tuple([slice(None) if is_index(item) else item for item in items]), &cuts)
    for item in items:
        if is_index(item):
            index = dense(item, CG_INT64)
            if share_memory(index, x):
                index = copy_of(index, CG_INT64)
            if not broadcast_index(index, sizes, &ndim) or any_outside(index, view.sizes[dim], True):
                return None
            indices.append(index)
            originals.append(item)
            dims.append(dim)
        dim += fill if item is Ellipsis else type(item) is not int
    if view.ndim - len(dims) + ndim > MAX_DIMS:
        return None
    begin_moves(moves, x.dtype_nr, view.ndim - <int>len(dims) + ndim, change)
    moves.indices = <int>len(dims)
    before, dim = max(before, 0), 0
    for d in range(view.ndim):
        if d in dims:
            k = dims.index(d)
            moves.lengths[k], moves.along[k] = view.sizes[d], view.strides[d] * parts
        else:
            k = dim if dim < before else dim + ndim
            moves.axes[k].size, moves.axes[k].step = view.sizes[d], view.strides[d] * parts
            dim += 1
    for d in range(ndim):
        moves.axes[before + d].size, moves.axes[before + d].step = sizes[ndim - 1 - d], 0
    for d in range(moves.ndim):
        sizes[d] = moves.axes[d].size
    for k, index in enumerate(indices):
        original = originals[k]
        for d in range(moves.ndim):
            moves.axes[d].places[k] = strides[d] = 0
        for d in range(index.ndim):
            if index.sizes[d] > 1:
                dim = before + ndim - index.ndim + d
                moves.axes[dim].places[k], strides[dim] = index.strides[d], original.strides[d]
        originals[k] = view_of(original, 0, moves.ndim, sizes, strides)
    return view


cdef TensorImpl result_of(TensorImpl view, const Moves* moves, list originals):
    """Return memory for the part, which lies as torch's does: the whole and the indices are operands that are repeated in other dims."""
    cdef Value[MOST_INDICES + 1] values
    cdef intptr_t[MAX_DIMS] sizes, strides
    cdef list operands
    cdef int parts = parts_of_element(moves.dtype), k, d
    for d in range(moves.ndim):
        sizes[d], strides[d] = moves.axes[d].size, moves.axes[d].step // parts
    operands = [view_of(view, 0, moves.ndim, sizes, strides), *originals]
    for k in range(moves.indices + 1):
        values[k].tensor = <PyObject*>operands[k]
    return empty_for(moves.dtype, moves.ndim, sizes, moves.indices + 1, values)


cdef bint set_part(Moves* moves, TensorImpl part) noexcept:
    """Set how the part lies, which may be broadcast; False if it does not fit."""
    cdef int parts = parts_of_element(moves.dtype), skipped = part.ndim - moves.ndim, d
    for d in range(skipped):
        if part.sizes[d] != 1:
            return False
    for d in range(moves.ndim):
        moves.axes[d].own = 0
        if skipped + d < 0 or part.sizes[skipped + d] == 1:
            continue
        if part.sizes[skipped + d] != moves.axes[d].size:
            return False
        moves.axes[d].own = part.strides[skipped + d] * parts
    return True


# ----- Parts -----
cdef TensorImpl look_up(TensorImpl x, tuple items):
    cdef Moves moves
    cdef list indices = [], originals = []
    cdef TensorImpl view = read_lookup(x, items, TAKE, &moves, indices, originals), result
    if view is None:
        return None
    result = result_of(view, &moves, originals)
    set_part(&moves, result)
    launch_moves("look_up", &moves, view, result, indices, result.count >= RELEASE_GIL)
    return result


cdef bint put_at(TensorImpl x, tuple items, TensorImpl value, bint adds) except -1:
    cdef Moves moves
    cdef list indices = []
    cdef TensorImpl view
    if adds and cg_loops_of[x.dtype_nr] != x.dtype_nr:
        return False
    view = read_lookup(x, items, PUT if not adds else EITHER if x.dtype_nr == CG_BOOL else ADD, &moves, indices, [])
    if view is None:
        return False
    if value.dtype_nr != x.dtype_nr or share_memory(value, x):
        value = copy_of(value, x.dtype_nr)
    if not set_part(&moves, value):
        return False
    launch_moves("put_at", &moves, view, value, indices, False)
    return True


def flipped(TensorImpl input not None, dims):
    """Return a row-major copy with the order of elements reversed along some dims."""
    cdef Moves moves
    cdef TensorImpl result = empty(input.dtype_nr, input.ndim, input.sizes)
    cdef int parts = parts_of_element(input.dtype_nr), ndim = max(input.ndim, 1), d
    begin_moves(&moves, input.dtype_nr, ndim, TAKE)
    moves.axes[0].size, moves.axes[0].step = 1, 0       # of a 0-d tensor
    for d in range(input.ndim):
        moves.axes[d].size, moves.axes[d].step = input.sizes[d], input.strides[d] * parts
        if d in dims:
            moves.start += (moves.axes[d].size - 1) * moves.axes[d].step
            moves.axes[d].step = -moves.axes[d].step
    set_part(&moves, result)
    launch_moves("flip", &moves, input, result, [], result.count >= RELEASE_GIL)
    return result
