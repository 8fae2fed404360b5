# cython: cdivision=True
"""Look-ups (see lookups.pxd for the contract)."""
cimport numpy
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_Check
from libc.stdint cimport int64_t, intptr_t, uint64_t
from libc.string cimport memcpy

from cygrad._core.compute.mapping cimport map_kernel
from cygrad._core.compute.moving cimport (ADD, EITHER, MOST_INDICES, PUT, TAKE, Change, Moves, begin_moves, launch_moves,
                                          parts_of_element)
from cygrad._core.compute.parts cimport Cuts, basic_view
from cygrad._core.compute.places cimport any_outside, dense, in_order, vector_of
from cygrad._core.compute.rows cimport OPERANDS, Row
from cygrad._core.graph.launches cimport STEADY, Launch, add_input, add_output, begin_launch, clear_arguments, run_decision, run_launch
from cygrad._core.graph.notes cimport note_array, part_copies_of_notes
from cygrad._core.graph.tensor cimport SPECIAL, TensorImpl, empty, new_address, new_tensor, place_of, tensor_type, view_of
from cygrad._core.memory.storage cimport owner_of
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.operands.operands cimport RELEASE_GIL, Value, copy_of, empty_for, overlaps
from cygrad._core.operands.strided cimport overlaps_itself
from cygrad._kernels.drivers.elementwise cimport CG_BOOL, CG_INT32, CG_INT64, CG_UINT8, MAX_DIMS, cg_itemsize, cg_loops_of
from cygrad._kernels.programs.settings cimport noted

from cygrad._core.compute.dispatch import ops
from cygrad._core.compute.inplace import write_constant

numpy.import_array()

cdef enum:
    FOR_NUMPY = 1 << 16
    MOST_COUNTED = 1 << 30      # elements of a mask by one decision, whose outcome is an int


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
    return (tensor.dtype_nr == CG_INT64 or tensor.dtype_nr == CG_INT32) and not tensor.flags & SPECIAL


# ----- Masks, lists and arrays -----
cdef struct Marks:
    int ndim
    intptr_t count                      # of elements; of these that hold, for `find_marked`
    intptr_t[MAX_DIMS] sizes


cdef int count_marked(void* arguments, char** data) noexcept nogil:
    """Return how many elements of a mask hold: eight at once, whose bytes become 0 or 1 and are added by a product."""
    cdef intptr_t elements = (<Marks*>arguments).count, k
    cdef uint64_t word
    cdef int count = 0
    for k in range(0, elements, 8):
        word = 0
        memcpy(&word, data[0] + k, 8 if k + 8 <= elements else elements - k)
        word |= word >> 4 & 0x0f0f0f0f0f0f0f0fULL
        word |= word >> 2 & 0x0303030303030303ULL
        word = (word | word >> 1) & 0x0101010101010101ULL
        count += <int>(word * 0x0101010101010101ULL >> 56)
    return count


cdef int find_marked(void* arguments, char** data) noexcept nogil:
    """Write the places of the elements of a mask that hold: a row for each dim."""
    cdef const Marks* marks = <const Marks*>arguments
    cdef const char* mask = data[0]
    cdef int64_t* places = <int64_t*>data[1]
    cdef intptr_t[MAX_DIMS] at
    cdef int last = marks.ndim - 1, d = 0
    cdef intptr_t count = marks.count, size = marks.sizes[last], first, next = 0, ahead, k
    for d in range(last):
        at[d] = 0
    while next < count:
        first, k = next, 0
        while k < size and next < count:    # without a branch on an element, which may be any
            ahead = min(size - k, count - next)     # there is room for all of these
            for k in range(k, k + ahead):
                places[last * count + next] = k
                next += mask[k] != 0
            k += 1
        for d in range(last):
            for k in range(first, next):
                places[d * count + k] = at[d]
        mask += size
        d = last - 1
        while d >= 0:
            at[d] += 1
            if at[d] < marks.sizes[d]:
                break
            at[d] = 0
            d -= 1
        if d < 0:
            break
    for d in range(marks.ndim):         # of a mask that another thread has changed since it was counted
        for k in range(next, count):
            places[d * count + k] = 0
    return 0


cdef bint is_mask(object item) noexcept:
    """Return True if an item of an index is a plain tensor whose elements hold or not."""
    cdef TensorImpl tensor
    if type(item) is not tensor_type:
        return False
    tensor = item
    return (tensor.dtype_nr == CG_BOOL or tensor.dtype_nr == CG_UINT8) and not tensor.flags & SPECIAL and tensor.ndim > 0


cdef object misfit(TensorImpl x, int dim, TensorImpl mask):
    """Return the error for a mask at a dim, or None where there are more dims of the mask than of the tensor from there on."""
    for d in range(mask.ndim if dim + mask.ndim <= x.ndim else 0):
        if mask.sizes[d] != x.sizes[dim + d]:
            return IndexError(f"The shape of the mask {list(sizes_tuple(mask.ndim, mask.sizes))} at index {d} does not match the shape of "
                              f"the indexed tensor {list(sizes_tuple(x.ndim, x.sizes))} at index {dim + d}")


cdef bint fits_mask(TensorImpl x, int dim, TensorImpl mask) noexcept:
    """Return True if a mask has the sizes of a tensor's dims from one on."""
    cdef int d
    for d in range(mask.ndim):
        if dim + d >= x.ndim or mask.sizes[d] != x.sizes[dim + d]:
            return False
    return True


cdef intptr_t count_of(TensorImpl mask, Marks* marks):
    """Return how many elements of a row-major mask hold: decisions, of a part each."""
    cdef intptr_t count = 0, start, one = 1
    for start in range(0, mask.count, MOST_COUNTED):
        marks.count = min(MOST_COUNTED, mask.count - start)
        count += run_decision("count", count_marked, marks, sizeof(Marks), view_of(mask, start, 1, &marks.count, &one))
    return count


def places_in(TensorImpl input not None):
    """Return the places of the elements that are not 0, row-major: a row for each dim. A 0-d tensor is a vector."""
    cdef Marks marks
    cdef Launch launch
    cdef TensorImpl mask = dense(input, CG_BOOL), places
    cdef intptr_t[2] sizes
    cdef int d
    clear_arguments(&marks, sizeof(marks))
    marks.ndim, marks.sizes[0] = max(mask.ndim, 1), 1
    for d in range(mask.ndim):
        marks.sizes[d] = mask.sizes[d]
    sizes[0], sizes[1] = marks.ndim, count_of(mask, &marks)
    places = empty(CG_INT64, 2, sizes)
    marks.count = sizes[1]
    if marks.count:
        begin_launch(&launch, "places", find_marked, &marks, sizeof(marks))
        launch.traits = &STEADY
        add_input(&launch, mask)
        add_output(&launch, places)
        run_launch(&launch, mask.count >= RELEASE_GIL)
    return places


cdef list vectors_of(TensorImpl places):
    """Return places as vectors, one of each dim."""
    cdef intptr_t one = 1
    cdef int d
    return [view_of(places, d * places.sizes[1], 1, &places.sizes[1], &one) for d in range(places.sizes[0])]


cdef TensorImpl tensor_of_numbers(object array, int dtype):
    """Return a tensor of the elements of a row-major array of a dtype, as a constant where steps are noted."""
    cdef intptr_t[MAX_DIMS] sizes
    cdef TensorImpl result
    cdef int d
    for d in range(numpy.PyArray_NDIM(array)):
        sizes[d] = numpy.PyArray_DIM(array, d)
    result = empty(dtype, numpy.PyArray_NDIM(array), sizes)
    if noted:
        write_constant(result, lambda memory: memory.__setitem__(..., array))
    else:
        memcpy(new_address(result), numpy.PyArray_DATA(array), result.count * cg_itemsize[dtype])
    return result


cdef object constant_index(object item):
    """Return a list, or an array, as a tensor of integers or bools; None: it is neither."""
    if noted and type(item) is not list:
        note_array(item)
    try:
        array = numpy.PyArray_FROM_O(item)
    except ValueError:
        return None
    if not array.size and type(item) is list:
        array = array.astype("int64")
    if not 0 < array.ndim <= MAX_DIMS or array.dtype.kind not in "bi":
        return None
    if array.dtype.kind == "b":
        return tensor_of_numbers(numpy.PyArray_GETCONTIGUOUS(array), CG_BOOL)
    return tensor_of_numbers(numpy.PyArray_FROMANY(array, numpy.NPY_INT64, 1, 0, numpy.NPY_ARRAY_CARRAY_RO), CG_INT64)


cdef int dims_of(object item) noexcept:
    """Return how many dims an item of an index selects from."""
    return 0 if item is None or item is Ellipsis else (<TensorImpl>item).ndim if is_mask(item) else 1


cdef TensorImpl spread_over(TensorImpl tensor, TensorImpl whole):
    """Return a tensor broadcast to the sizes of another one."""
    cdef intptr_t[MAX_DIMS] strides
    cdef int skipped = whole.ndim - tensor.ndim, d
    for d in range(whole.ndim):
        strides[d] = 0 if d < skipped or tensor.sizes[d - skipped] == 1 else tensor.strides[d - skipped]
    return view_of(tensor, 0, whole.ndim, whole.sizes, strides)


cpdef object fill_where(TensorImpl target, TensorImpl mask, TensorImpl number):
    cdef Row where = <Row>ops["where"]
    cdef Value[OPERANDS] values
    if mask.dtype_nr != CG_BOOL or overlaps(target, mask):
        mask = copy_of(mask, CG_BOOL)
    number = copy_of(number, target.dtype_nr)       # it may lie in the target
    if overlaps_itself(target.ndim, target.sizes, target.strides):
        put_at(target, with_tensors(target, (spread_over(mask, target),)), number, False)
        return
    values[0].tensor, values[1].tensor, values[2].tensor = <PyObject*>mask, <PyObject*>number, <PyObject*>target
    map_kernel(where.kernel, target.dtype_nr, where.results[target.dtype_nr], where.masks, OPERANDS, values, NULL, where.cost, target)


cdef bint has_tensors_alone(tuple items) noexcept:
    """Return True if an index has no lists, arrays or masks."""
    for item in items:
        if not (type(item) is int or item is None or item is Ellipsis or PySlice_Check(item) or is_index(item)):
            return False
    return True


cdef tuple with_tensors(TensorImpl x, tuple items):
    cdef list read = [], result = []
    cdef int fill = x.ndim, dim = 0
    if has_tensors_alone(items):
        return items
    for item in items:
        if type(item) is list or isinstance(item, numpy.ndarray):
            item = constant_index(item)
            if item is None:
                return None
        read.append(item)
        fill -= dims_of(item)
    for item in read:
        if is_mask(item):
            if not fits_mask(x, dim, item):
                error = misfit(x, dim, item)        # NumPy has none for masks without elements
                if error is not None:
                    raise error
                return None
            result += vectors_of(places_in(item))
        else:
            result.append(item)
        dim += fill if item is Ellipsis else dims_of(item)
    return tuple(result)


# ----- Index -----
cdef bint keeps_places(object key, bint writes) noexcept:
    if not noted or writes:
        return noted
    for item in key if isinstance(key, tuple) else (key,):
        if (is_index(item) and (<TensorImpl>item).ndim or is_mask(item) or type(item) is list or isinstance(item, numpy.ndarray)):
            return True
    return part_copies_of_notes() is not None


cdef bint names_part(tuple items) noexcept:
    cdef bint named = False
    for item in items:
        if type(item) is tensor_type:
            if (<TensorImpl>item).ndim or not is_index(item):
                return False
            named = True
        elif type(item) is list or isinstance(item, numpy.ndarray):
            return False
    return named


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
    begin_moves(moves, x.dtype_nr, max(view.ndim - <int>len(dims) + ndim, 1), change)
    moves.axes[0].size, moves.axes[0].step = 1, 0       # of a single element
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
    cdef TensorImpl view = None if items is None else read_lookup(x, items, TAKE, &moves, indices, originals), result
    if view is None:
        return None
    result = result_of(view, &moves, originals)
    set_part(&moves, result)
    launch_moves("look_up", &moves, view, result, indices, result.count >= RELEASE_GIL)
    if result.count == 1 and view.ndim == len(indices) and not any([index.ndim for index in indices]):        # one element
        return new_tensor(result.storage, 0, result.dtype_nr, 0, NULL, NULL)
    return result


cdef bint put_at(TensorImpl x, tuple items, TensorImpl value, bint adds) except -1:
    cdef Moves moves
    cdef list indices = []
    cdef TensorImpl view
    if items is None or adds and cg_loops_of[x.dtype_nr] != x.dtype_nr:
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


def taken_in_order(TensorImpl whole not None, TensorImpl places not None):
    """Return the elements at places in the order of elements, which may count from the end; None: there is a place outside."""
    cdef TensorImpl result = look_up(in_order(dense(whole, whole.dtype_nr)), (vector_of(dense(places, CG_INT64)),))
    return result if places.ndim or result is None else view_of(result, 0, 0, NULL, NULL)


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


cdef tuple part_sizes(TensorImpl x, tuple items):
    cdef Moves moves
    if items is None or read_lookup(x, items, TAKE, &moves, [], []) is None:
        return None
    return tuple([moves.axes[d].size for d in range(moves.ndim)])
