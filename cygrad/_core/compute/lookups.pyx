# cython: cdivision=True
"""Look-ups (see lookups.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_Check
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, intptr_t
from libc.string cimport memcpy, memset

from cygrad._core.compute.parts cimport Cuts, basic_view
from cygrad._core.compute.places cimport ADD, EITHER, PUT, TAKE, Change, any_outside, dense, element
from cygrad._core.graph.launches cimport STEADY, Launch, add_changed, add_input, add_output, begin_launch, clear_arguments, run_launch
from cygrad._core.graph.tensor cimport SPECIAL, TensorImpl, empty, place_of, tensor_type, view_of
from cygrad._core.memory.storage cimport owner_of
from cygrad._core.operands.operands cimport RELEASE_GIL, Value, copy_of, empty_for, overlaps
from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, CG_FLOAT32, CG_FLOAT64, CG_INT32, CG_INT64, cg_itemsize, cg_loops_of,
                                                  cg_real)
from cygrad._kernels.programs.kernel cimport MAX_TENSORS

cdef enum:
    DIMS = 8                    # of the part
    MOST = MAX_TENSORS - 2      # indices
    FOR_NUMPY = 1 << 16

# The part lies in the dims of the result. Strides count real numbers, of indices elements.
cdef struct Lookup:
    int dtype, ndim, indices
    Change change
    intptr_t start                              # of the whole, from its first element
    intptr_t[DIMS] sizes, steps, own            # of the part, strides of the whole in dims that no index has, and of the part
    intptr_t[MOST] lengths, along               # of the dims of the whole that are looked up: sizes and strides
    intptr_t[MOST][DIMS] places                 # strides of indices


# ----- Elements -----
cdef inline intptr_t checked_place(int64_t place, intptr_t length) noexcept nogil:
    """Return a place from the start of a dim; it was checked, but another thread may have changed it since."""
    place += length if place < 0 else 0
    return place if 0 <= place < length else 0


cdef inline void move_element(element* target, element* part, Change change) noexcept nogil:
    if change == TAKE:
        part[0] = target[0]
    elif change == PUT:
        target[0] = part[0]
    elif change == ADD:
        target[0] = <element>(target[0] + part[0])
    elif part[0]:
        target[0] = 1


cdef inline void move_elements(element* target, element* part, intptr_t count, intptr_t step, intptr_t own, Change change) noexcept nogil:
    """Move or add elements that lie with strides."""
    cdef intptr_t j
    cdef element number
    if step == 1 and own == 1 and change == TAKE:
        memcpy(part, target, count * sizeof(element))
    elif step == -1 and own == 1 and change == TAKE:
        for j in range(count):
            part[j] = target[-j]
    elif step == 1 and own == 1 and change == PUT:
        memcpy(target, part, count * sizeof(element))
    elif step == 1 and own == 0 and change == PUT:
        number = part[0]
        for j in range(count):
            target[j] = number
    else:
        for j in range(count):
            move_element(target + j * step, part + j * own, change)


cdef inline void move_some(element* whole, element* part, const Lookup* g, const int64_t* index, int k) noexcept nogil:
    """Move or add the elements of a row that one index names."""
    cdef int last = g.ndim - 1
    cdef intptr_t j, length = g.lengths[k], along = g.along[k], step = g.steps[last], own = g.own[last], next = g.places[k][last]
    for j in range(g.sizes[last]):
        move_element(whole + checked_place(index[j * next], length) * along + j * step, part + j * own, g.change)


cdef void move_row(element* whole, element* part, const Lookup* g, const int64_t** indices) noexcept nogil:
    """Move or add the elements along the last dim of the part."""
    cdef int last = g.ndim - 1, parts = cg_itemsize[g.dtype] // <int>sizeof(element), varying = 0, k
    cdef int[MOST] vary
    cdef element* target
    cdef intptr_t j
    for k in range(g.indices):
        if g.places[k][last]:
            vary[varying] = k
            varying += 1
        else:
            whole += checked_place(indices[k][0], g.lengths[k]) * g.along[k]
    if varying == 0 and g.steps[last] == parts and g.own[last] == parts:
        move_elements(whole, part, g.sizes[last] * parts, 1, 1, g.change)
    elif varying == 0 and parts == 1:
        move_elements(whole, part, g.sizes[last], g.steps[last], g.own[last], g.change)
    elif varying == 1 and parts == 1:
        move_some(whole, part, g, indices[vary[0]], vary[0])
    else:
        for j in range(g.sizes[last]):
            target = whole + j * g.steps[last]
            for k in range(varying):
                target += checked_place(indices[vary[k]][j * g.places[vary[k]][last]], g.lengths[vary[k]]) * g.along[vary[k]]
            for k in range(parts):
                move_element(target + k, part + j * g.own[last] + k, g.change)


cdef void move_row_of(char* whole, char* part, const Lookup* g, const int64_t** indices) noexcept nogil:
    cdef int dtype = cg_real[g.dtype], width = cg_itemsize[dtype]
    if g.change == ADD and dtype == CG_FLOAT64:
        move_row[double](<double*>whole, <double*>part, g, indices)
    elif g.change == ADD and dtype == CG_FLOAT32:
        move_row[float](<float*>whole, <float*>part, g, indices)
    elif width == 8:
        move_row[int64_t](<int64_t*>whole, <int64_t*>part, g, indices)
    elif width == 4:
        move_row[int32_t](<int32_t*>whole, <int32_t*>part, g, indices)
    elif width == 2:
        move_row[int16_t](<int16_t*>whole, <int16_t*>part, g, indices)
    else:
        move_row[int8_t](<int8_t*>whole, <int8_t*>part, g, indices)


cdef int run_lookup(void* arguments, char** data) noexcept nogil:
    """Run with the whole, the part and the indices; elements are met in the order of the part's dims."""
    cdef const Lookup* g = <const Lookup*>arguments
    cdef const int64_t* indices[MOST]
    cdef intptr_t[DIMS] at
    cdef char* whole = data[0]
    cdef char* part = data[1]
    cdef int width = cg_itemsize[cg_real[g.dtype]], d, k
    for k in range(g.indices):
        indices[k] = <const int64_t*>data[2 + k]
    whole += g.start * width
    memset(at, 0, sizeof(at))
    while True:
        move_row_of(whole, part, g, indices)
        d = g.ndim - 2
        while d >= 0:
            at[d] += 1
            move_along(&whole, &part, indices, g, d, 1, width)
            if at[d] < g.sizes[d]:
                break
            move_along(&whole, &part, indices, g, d, -at[d], width)
            at[d] = 0
            d -= 1
        if d < 0:
            return 0


cdef inline void move_along(char** whole, char** part, const int64_t** indices, const Lookup* g, int d, intptr_t count,
                            int width) noexcept nogil:
    """Move all addresses along a dim of the part."""
    cdef int k
    whole[0] += count * g.steps[d] * width
    part[0] += count * g.own[d] * width
    for k in range(g.indices):
        indices[k] += count * g.places[k][d]


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
    return FOR_NUMPY if not 0 < indices <= MOST else -1 if is_apart else first


cdef bint broadcast_index(TensorImpl index, intptr_t* sizes, int* ndim) noexcept:
    """Broadcast the sizes of an index and of the others; False if they do not fit."""
    cdef int d, e
    if index.ndim > DIMS:
        return False
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


cdef TensorImpl read_lookup(TensorImpl x, tuple items, Lookup* g, list indices, list originals):
    """Read an index, and return the view of the whole that its ints and slices give; None: it is for NumPy, as are places outside, whose
    error it raises. The indices are row-major and of int64; the originals are repeated in the other dims of the part.
    """
    cdef TensorImpl view, index, original
    cdef Cuts cuts
    cdef intptr_t[DIMS] sizes, strides
    cdef list dims = []         # of the view, that are looked up
    cdef int fill = x.ndim - sum([item is not None and item is not Ellipsis for item in items]), before = dims_before(items, fill)
    cdef int ndim = 0, parts = cg_itemsize[x.dtype_nr] // cg_itemsize[cg_real[x.dtype_nr]], dim = 0, d, k
    if before == FOR_NUMPY:
        return None
    if fill < 0:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    clear_arguments(g, sizeof(Lookup))
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
    if view.ndim - len(dims) + ndim > DIMS:
        return None
    g.dtype, g.ndim, g.indices, g.start = x.dtype_nr, view.ndim - <int>len(dims) + ndim, <int>len(dims), 0
    before, dim = max(before, 0), 0
    for d in range(view.ndim):
        if d in dims:
            k = dims.index(d)
            g.lengths[k], g.along[k] = view.sizes[d], view.strides[d] * parts
        else:
            k = dim if dim < before else dim + ndim
            g.sizes[k], g.steps[k] = view.sizes[d], view.strides[d] * parts
            dim += 1
    for d in range(ndim):
        g.sizes[before + d], g.steps[before + d] = sizes[ndim - 1 - d], 0
    for k, index in enumerate(indices):
        original = originals[k]
        for d in range(g.ndim):
            g.places[k][d] = strides[d] = 0
        for d in range(index.ndim):
            if index.sizes[d] > 1:
                dim = before + ndim - index.ndim + d
                g.places[k][dim], strides[dim] = index.strides[d], original.strides[d]
        originals[k] = view_of(original, 0, g.ndim, g.sizes, strides)
    return view


cdef TensorImpl result_of(TensorImpl view, const Lookup* g, list originals):
    """Return memory for the part, which lies as torch's does: the whole and the indices are operands that are repeated in other dims."""
    cdef Value[MOST + 1] values
    cdef intptr_t[DIMS] strides
    cdef list operands = []
    cdef int parts = cg_itemsize[g.dtype] // cg_itemsize[cg_real[g.dtype]], k, d
    for d in range(g.ndim):
        strides[d] = g.steps[d] // parts
    operands.append(view_of(view, 0, g.ndim, g.sizes, strides))
    operands += originals
    for k in range(g.indices + 1):
        values[k].tensor = <PyObject*>operands[k]
    return empty_for(g.dtype, g.ndim, g.sizes, g.indices + 1, values)


# ----- Parts -----
cdef TensorImpl look_up(TensorImpl x, tuple items):
    cdef Lookup g
    cdef Launch launch
    cdef list indices = [], originals = []
    cdef TensorImpl view = read_lookup(x, items, &g, indices, originals), result, index
    if view is None:
        return None
    result = result_of(view, &g, originals)
    if not result.count:
        return result
    set_part(&g, result, TAKE)
    begin_launch(&launch, "look_up", run_lookup, &g, sizeof(g))
    launch.traits = &STEADY
    add_input(&launch, view)
    add_output(&launch, result)
    for index in indices:
        add_input(&launch, index)
    run_launch(&launch, result.count >= RELEASE_GIL)
    return result


def flipped(TensorImpl input not None, dims):
    """Return a row-major copy with the order of elements reversed along some dims; None for a tensor of no or of many dims."""
    cdef Lookup g
    cdef Launch launch
    cdef TensorImpl result
    cdef int parts = cg_itemsize[input.dtype_nr] // cg_itemsize[cg_real[input.dtype_nr]], d
    if not 0 < input.ndim <= DIMS:
        return None
    result = empty(input.dtype_nr, input.ndim, input.sizes)
    if not result.count:
        return result
    clear_arguments(&g, sizeof(g))
    g.dtype, g.ndim, g.indices, g.start = input.dtype_nr, input.ndim, 0, 0
    for d in range(input.ndim):
        g.sizes[d], g.steps[d] = input.sizes[d], input.strides[d] * parts
        if d in dims:
            g.start += (g.sizes[d] - 1) * g.steps[d]
            g.steps[d] = -g.steps[d]
    set_part(&g, result, TAKE)
    begin_launch(&launch, "flip", run_lookup, &g, sizeof(g))
    launch.traits = &STEADY
    add_input(&launch, input)
    add_output(&launch, result)
    run_launch(&launch, result.count >= RELEASE_GIL)
    return result


cdef bint put_at(TensorImpl x, tuple items, TensorImpl value, bint adds) except -1:
    cdef Lookup g
    cdef Launch launch
    cdef list indices = []
    cdef TensorImpl view, index
    cdef int d
    if adds and cg_loops_of[x.dtype_nr] != x.dtype_nr:
        return False
    view = read_lookup(x, items, &g, indices, [])
    if view is None:
        return False
    if value.dtype_nr != x.dtype_nr or share_memory(value, x):
        value = copy_of(value, x.dtype_nr)
    if not set_part(&g, value, PUT if not adds else EITHER if x.dtype_nr == CG_BOOL else ADD):
        return False
    for d in range(g.ndim):
        if not g.sizes[d]:
            return True
    begin_launch(&launch, "put_at", run_lookup, &g, sizeof(g))
    launch.traits = &STEADY
    add_changed(&launch, view)
    add_input(&launch, value)
    for index in indices:
        add_input(&launch, index)
    run_launch(&launch, False)
    return True


cdef bint set_part(Lookup* g, TensorImpl part, Change change) noexcept:
    """Set how the part lies, which may be broadcast; False if it does not fit."""
    cdef int parts = cg_itemsize[g.dtype] // cg_itemsize[cg_real[g.dtype]], skipped = part.ndim - g.ndim, d
    g.change = change
    for d in range(skipped):
        if part.sizes[d] != 1:
            return False
    for d in range(g.ndim):
        g.own[d] = 0
        if skipped + d < 0 or part.sizes[skipped + d] == 1:
            continue
        if part.sizes[skipped + d] != g.sizes[d]:
            return False
        g.own[d] = part.strides[skipped + d] * parts
    return True
