# cython: cdivision=True
"""Elements at places along a dim, and places in the order of elements (see places.pxd for the contract)."""
from libc.stdint cimport INT64_MIN, UINT64_MAX, int8_t, int16_t, int32_t, int64_t, intptr_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from cygrad._core.compute.moving cimport ADD, EITHER, PUT, SUBTRACT, TAKE, Change, Moves, begin_moves, launch_moves, parts_of_element
from cygrad._core.graph.constants cimport zero
from cygrad._core.graph.launches cimport STEADY, Launch, add_input, add_output, begin_launch, clear_arguments, run_decision, run_launch
from cygrad._core.graph.tensor cimport CONTIGUOUS, SPECIAL, TensorImpl, empty, look_address, view_of
from cygrad._core.memory.sizes cimport parse_sizes, wrap_dim
from cygrad._core.memory.storage cimport dtypes
from cygrad._core.operands.operands cimport RELEASE_GIL, copy_of, fill_from
from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, CG_FLOAT32, CG_FLOAT64, CG_INT32, CG_INT64, MAX_DIMS, cg_is_complex,
                                                  cg_is_floating_point, cg_itemsize, cg_loops_of)

cdef TensorImpl dense(TensorImpl tensor, int dtype):
    cdef TensorImpl result
    if tensor.flags & CONTIGUOUS and tensor.dtype_nr == dtype:
        return tensor
    result = empty(dtype, tensor.ndim, tensor.sizes)
    fill_from(result, tensor)
    return result


cdef TensorImpl stored(TensorImpl result, int dtype):
    return result if result.dtype_nr == dtype else copy_of(result, dtype)


cdef void change_at(const char* name, TensorImpl whole, int dim, TensorImpl index, const intptr_t* sizes, const intptr_t* strides,
                    TensorImpl part, Change change) noexcept:
    """Move or add elements at the checked places that an index of sizes and strides names along a dim. All have as many dims."""
    cdef Moves moves
    cdef int parts = parts_of_element(whole.dtype_nr), d
    begin_moves(&moves, whole.dtype_nr, whole.ndim, change)
    moves.indices, moves.lengths[0], moves.along[0] = 1, whole.sizes[dim], whole.strides[dim] * parts
    for d in range(whole.ndim):
        moves.axes[d].size, moves.axes[d].step = sizes[d], whole.strides[d] * parts if d != dim else 0
        moves.axes[d].own, moves.axes[d].places[0] = part.strides[d] * parts, strides[d]
    launch_moves(name, &moves, whole, part, [index], False)


cdef void change_along(TensorImpl whole, int dim, TensorImpl index, TensorImpl part, Change change) noexcept:
    """Move or add elements at checked places of a row-major index. All have as many dims, at least one."""
    change_at("elements", whole, dim, index, index.sizes, index.strides, part, change)


cdef TensorImpl vector_of(TensorImpl tensor):
    """Return a 0-d tensor as a vector."""
    cdef intptr_t one = 1
    return tensor if tensor.ndim else view_of(tensor, 0, 1, &one, &one)


cdef TensorImpl in_order(TensorImpl tensor):
    """Return a row-major tensor as a vector."""
    cdef intptr_t one = 1
    return view_of(tensor, 0, 1, &tensor.count, &one)


cdef struct Bounds:
    intptr_t count, least, size


cdef int find_outside(void* arguments, char** data) noexcept nogil:
    """Return 1 if a place is outside of a dim."""
    cdef Bounds* bounds = <Bounds*>arguments
    cdef const int64_t* numbers = <const int64_t*>data[0]
    cdef intptr_t k
    cdef bint outside = False
    for k in range(bounds.count):      # without a branch, as nearly all are inside
        outside |= (numbers[k] < bounds.least) | (numbers[k] >= bounds.size)
    return outside


cdef TensorImpl with_dim(TensorImpl tensor, int dim, int ndim):
    """Return a tensor that has one dim fewer with that dim, of one element."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef intptr_t strides[MAX_DIMS]
    cdef int d
    if tensor.ndim != max(ndim, 1) - 1 or not 0 <= dim <= tensor.ndim:
        return tensor
    for d in range(tensor.ndim):
        sizes[d + (d >= dim)], strides[d + (d >= dim)] = tensor.sizes[d], tensor.strides[d]
    sizes[dim] = strides[dim] = 1
    return view_of(tensor, 0, tensor.ndim + 1, sizes, strides)


cdef bint any_outside(TensorImpl places, intptr_t size, bint from_end=False) noexcept:
    cdef Bounds bounds
    clear_arguments(&bounds, sizeof(bounds))
    bounds.count, bounds.least, bounds.size = places.count, -size if from_end else 0, size
    return run_decision("bounds", find_outside, &bounds, sizeof(bounds), places)


def is_outside(TensorImpl index not None, intptr_t size, bint from_end=False):
    """Return True if one of the places that an index names is outside of a dim; `from_end`: negative ones count from the end."""
    return any_outside(dense(index, CG_INT64), size, from_end)


cdef TensorImpl checked_places(TensorImpl index, int dim, intptr_t size, error=RuntimeError, str prefix=""):
    """Return an index as a row-major tensor of int64; an error for a place outside of a dim."""
    cdef TensorImpl places = dense(index, CG_INT64)
    cdef const int64_t* numbers
    cdef intptr_t k
    if any_outside(places, size):
        numbers = <const int64_t*>look_address(places)
        for k in range(places.count):
            if not 0 <= numbers[k] < size:
                raise error(f"{prefix}index {numbers[k]} is out of bounds for dimension {dim} with size {size}")
    return places


cdef int change_checked(TensorImpl whole, int dim, TensorImpl index, TensorImpl part, Change change) except -1:
    """Check sizes and places, which arguments that were read meanwhile may have changed, and run."""
    cdef int d
    cdef bint fits = whole.ndim == index.ndim == part.ndim and 0 <= dim < whole.ndim
    for d in range(index.ndim if fits else 0):
        fits = fits and part.sizes[d] >= index.sizes[d] and (d == dim or whole.sizes[d] >= index.sizes[d])
    if not fits:
        raise RuntimeError("the sizes of the index are no longer within the sizes of the tensors")
    change_along(whole, dim, checked_places(index, dim, whole.sizes[dim]), part, change)
    return 0


def elements_at(TensorImpl input not None, int dim, TensorImpl index not None, bint keepdim=False):
    """Return the elements at places along a dim, each at its own place in the other dims; RuntimeError for a place outside.

    An index without the dim has one place along it; the result has the dim if it is kept.
    """
    cdef int ndim = input.ndim
    cdef TensorImpl places = with_dim(index, dim, ndim), result
    if keepdim:
        index = places
    result = empty(input.dtype_nr, index.ndim, index.sizes)
    if result.count:
        change_checked(vector_of(input), dim, places, with_dim(result, dim, ndim), TAKE)
    return result


def spread_at(TensorImpl input not None, int dim, TensorImpl index not None, sizes):
    """Return zeros of some sizes, with the elements added at places along a dim: the transpose of `elements_at`."""
    cdef intptr_t shape[MAX_DIMS]
    cdef int dtype = cg_loops_of[input.dtype_nr], ndim = parse_sizes(sizes, shape)
    cdef TensorImpl result = empty(dtype, ndim, shape), part = input if input.dtype_nr == dtype else dense(input, dtype)
    zero(result)
    if index.count:
        change_checked(vector_of(result), dim, with_dim(index, dim, ndim), with_dim(part, dim, ndim), ADD)
    return stored(result, input.dtype_nr)


cdef Change change_named(str name, int dtype) except *:
    """Return how elements of a dtype change, by a word."""
    if name == "put":
        return PUT
    if name == "subtract":
        return SUBTRACT
    if name != "add":
        raise ValueError(f"elements are put, added or subtracted: no change is named {name!r}")
    return EITHER if dtype == CG_BOOL else ADD


def changed_at(TensorImpl whole not None, int dim, TensorImpl index not None, TensorImpl part not None, str change not None):
    """"put" elements of a part at places along a dim of a tensor, or "add" or "subtract" them there; RuntimeError for a place outside."""
    cdef int ndim = whole.ndim
    if index.count:
        part = part if part.dtype_nr == whole.dtype_nr else dense(part, whole.dtype_nr)
        change_checked(vector_of(whole), dim, with_dim(index, dim, ndim), with_dim(part, dim, ndim), change_named(change, whole.dtype_nr))


def names_elements(TensorImpl input not None, int dim, TensorImpl index not None, TensorImpl source=None):
    """Return True if an index of int64 or int32 names elements along a dim, each at its own place in the other dims, and as many elements
    of a source, if there is one."""
    cdef int ndim = max(input.ndim, 1), d
    if index.dtype_nr not in (CG_INT64, CG_INT32) or max(index.ndim, 1) != ndim or source is not None and max(source.ndim, 1) != ndim:
        return False
    for d in range(min(input.ndim, index.ndim)):
        if d != dim and index.sizes[d] > input.sizes[d]:
            return False
    return True


def names_classes(TensorImpl scores not None, TensorImpl target not None):
    """Return True if a dense target of int64 names a class, along dim 1 of scores, for each sample and each place in the dims behind."""
    cdef bint outside = (target.dtype_nr != CG_INT64 or target.flags & (CONTIGUOUS | SPECIAL) != CONTIGUOUS or scores.ndim < 2
                         or target.ndim != scores.ndim - 1)
    cdef int d
    for d in range(0 if outside else target.ndim):
        outside |= target.sizes[d] != scores.sizes[d + (d > 0)]
    return not outside and not any_outside(target, scores.sizes[1])


# ----- Slices -----
def names_slices(TensorImpl input not None, int dim, TensorImpl index not None, TensorImpl source not None):
    """Return True if a vector of int64 or int32 names slices along a dim, as many as a source of the same dtype and other sizes has."""
    cdef int d
    if (index.dtype_nr not in (CG_INT64, CG_INT32) or index.ndim > 1 or input.dtype_nr != source.dtype_nr or input.ndim != source.ndim
            or input.ndim == 0 and index.count != 1):
        return False
    for d in range(input.ndim):
        if source.sizes[d] != (index.count if d == dim else input.sizes[d]):
            return False
    return True


cdef void change_slices(TensorImpl whole, int dim, TensorImpl places, TensorImpl part, Change change) noexcept:
    """Move or add whole slices at checked places along a dim."""
    cdef intptr_t[MAX_DIMS] strides
    cdef int d
    for d in range(whole.ndim):
        strides[d] = d == dim
    change_at("slices", whole, dim, places, part.sizes, strides, part, change)


def slices_at(TensorImpl input not None, int dim, TensorImpl index not None):
    """Return the slices at places along a dim, which a vector names; IndexError for a place outside. A 0-d tensor is a vector."""
    cdef intptr_t shape[MAX_DIMS]
    cdef TensorImpl whole = vector_of(input), places, result
    cdef int d
    if not 0 <= dim < whole.ndim:
        raise RuntimeError("the dims of the tensor have changed")
    places = checked_places(index, dim, whole.sizes[dim], IndexError, "index out of range in self: ")
    for d in range(whole.ndim):
        shape[d] = places.count if d == dim else whole.sizes[d]
    result = empty(whole.dtype_nr, whole.ndim, shape)
    if result.count:
        change_slices(dense(whole, whole.dtype_nr), dim, places, result, TAKE)
    return result


def changed_slices_at(TensorImpl whole not None, int dim, TensorImpl index not None, TensorImpl part not None, str change not None):
    """Change slices of a tensor at places along a dim by the slices of a part, as `changed_at` changes elements."""
    cdef TensorImpl places
    cdef int d
    error, words = (IndexError, "index out of range in self: ") if whole.ndim == 1 else (RuntimeError, "")      # torch's
    whole, part = vector_of(whole), vector_of(part)
    cdef bint fits = whole.ndim == part.ndim and 0 <= dim < whole.ndim
    for d in range(whole.ndim if fits else 0):
        fits = fits and part.sizes[d] == (index.count if d == dim else whole.sizes[d])
    if not fits:
        raise RuntimeError("the sizes of the slices no longer fit the tensor")
    places = checked_places(index, dim, whole.sizes[dim], error, words)
    if part.count:
        change_slices(whole, dim, places, dense(part, whole.dtype_nr), change_named(change, whole.dtype_nr))


# ----- In the last dims, which count as one -----
cdef TensorImpl with_one_dim(TensorImpl tensor, int outer_ndim):
    """Return the matrix over a row-major tensor that has a row for each place in the first dims."""
    cdef intptr_t[2] sizes, strides
    cdef int d
    sizes[0], sizes[1] = 1, 1
    for d in range(tensor.ndim):
        sizes[d >= outer_ndim] *= tensor.sizes[d]
    strides[0], strides[1] = sizes[1], 1
    return view_of(tensor, 0, 2, sizes, strides)


def elements_behind(TensorImpl input not None, TensorImpl places not None, int dims):
    """Return the elements at places in the last dims."""
    cdef TensorImpl result = empty(input.dtype_nr, places.ndim, places.sizes)
    cdef int outer = places.ndim - dims
    cdef TensorImpl whole
    if result.count:
        whole = with_one_dim(dense(input, input.dtype_nr), outer)
        change_checked(whole, 1, with_one_dim(dense(places, CG_INT64), outer), with_one_dim(result, outer), TAKE)
    return result


def added_behind(TensorImpl input not None, TensorImpl places not None, sizes):
    """Return zeros, of some sizes in the last dims, with the elements added at places in these dims."""
    cdef intptr_t shape[MAX_DIMS]
    cdef int dims = <int>len(sizes), outer = places.ndim - dims, dtype = cg_loops_of[input.dtype_nr], d
    cdef TensorImpl result, whole
    for d in range(outer):
        shape[d] = places.sizes[d]
    parse_sizes(sizes, &shape[outer])
    result = empty(dtype, places.ndim, shape)
    zero(result)
    if places.count:
        whole = with_one_dim(result, outer)
        change_checked(whole, 1, with_one_dim(dense(places, CG_INT64), outer), with_one_dim(dense(input, dtype), outer), ADD)
    return stored(result, input.dtype_nr)


# ----- Places in the order of elements, of rows that fit into the first cache -----
# Elements become keys, unsigned integers of the same order, with NaN last. They are sorted by insertion in runs, which are merged (Knuth,
# The Art of Computer Programming 3, 5.2.1 and 5.2.4); equal ones keep their order.
cdef enum:
    MOST = 512          # elements of a row
    RUN = 16            # elements that are sorted by insertion
    STEPS = 8           # of a sort, by element

cdef struct Item:
    uint64_t key
    int64_t place

cdef struct Ranking:
    intptr_t rows, count, apart, first      # apart: elements of a row; first: how many places are returned
    int dtype
    bint is_signed, descending


cdef uint64_t key_of(const char* element, int dtype, bint is_signed) noexcept nogil:
    """Return an unsigned integer that has the order of an element."""
    cdef double number
    cdef uint64_t bits
    cdef int size = cg_itemsize[dtype]
    if dtype == CG_FLOAT64 or dtype == CG_FLOAT32:
        number = (<const double*>element)[0] if dtype == CG_FLOAT64 else (<const float*>element)[0]
        if number != number:
            return UINT64_MAX
        number += 0.0       # -0 is 0
        memcpy(&bits, &number, sizeof(double))
        return ~bits if bits >> 63 else bits ^ <uint64_t>INT64_MIN
    if is_signed:
        bits = <uint64_t>((<const int64_t*>element)[0] if size == 8 else (<const int32_t*>element)[0] if size == 4
                          else (<const int16_t*>element)[0] if size == 2 else (<const int8_t*>element)[0])
        return bits ^ <uint64_t>INT64_MIN
    return ((<const uint64_t*>element)[0] if size == 8 else (<const uint32_t*>element)[0] if size == 4
            else (<const uint16_t*>element)[0] if size == 2 else (<const uint8_t*>element)[0])


cdef void insert_items(Item* items, intptr_t count) noexcept nogil:
    cdef intptr_t k, j
    cdef Item item
    for k in range(1, count):
        item, j = items[k], k
        while j > 0 and items[j - 1].key > item.key:
            items[j] = items[j - 1]
            j -= 1
        items[j] = item


cdef void merge_runs(const Item* one, intptr_t ones, const Item* other, intptr_t others, Item* result) noexcept nogil:
    cdef intptr_t a = 0, b = 0
    cdef bint smaller
    while a < ones and b < others:      # without a branch, which would be mispredicted half the times
        smaller = other[b].key < one[a].key
        result[a + b] = (other + b if smaller else one + a)[0]
        a += not smaller
        b += smaller
    memcpy(result + a + b, one + a, (ones - a) * sizeof(Item))
    memcpy(result + ones + b, other + b, (others - b) * sizeof(Item))


cdef int rank_rows(void* arguments, char** data) noexcept nogil:
    cdef Ranking* ranking = <Ranking*>arguments
    cdef Item[MOST] one
    cdef Item[MOST] other
    cdef Item* items
    cdef Item* merged
    cdef intptr_t row, k, width, start, middle, count = ranking.count, apart = ranking.apart
    cdef int size = cg_itemsize[ranking.dtype]
    cdef const char* source
    cdef int64_t* target
    for row in range(ranking.rows):
        items, merged, width = one, other, RUN
        source = data[0] + (row // apart * apart * count + row % apart) * size
        for k in range(count):
            items[k].key, items[k].place = key_of(source + k * apart * size, ranking.dtype, ranking.is_signed), k
            if ranking.descending:
                items[k].key = ~items[k].key
        for k in range((count + RUN - 1) // RUN):
            insert_items(items + k * RUN, min(RUN, count - k * RUN))
        while width < count:
            for k in range((count + 2 * width - 1) // (2 * width)):
                start, middle = 2 * k * width, min((2 * k + 1) * width, count)
                merge_runs(items + start, middle - start, items + middle, min(width, count - middle), merged + start)
            items, merged, width = merged, items, 2 * width
        target = <int64_t*>data[1] + row // apart * apart * ranking.first + row % apart
        for k in range(ranking.first):
            target[k * apart] = items[k].place
    return 0


def fits_ranking(TensorImpl input not None, int dim):
    """Return True if the elements along a dim are ranked here."""
    return not cg_is_complex[input.dtype_nr] and input.sizes[wrap_dim(dim, input.ndim)] < MOST if input.ndim else True


def ranked(TensorImpl input not None, int dim, bint descending, intptr_t first):
    """Return the places of the first elements along a dim in their order, or the other one, equal ones as they stand."""
    cdef int dtype = cg_loops_of[input.dtype_nr] if cg_is_floating_point[input.dtype_nr] else input.dtype_nr
    cdef TensorImpl x = dense(input, dtype), result
    cdef Ranking ranking
    cdef Launch launch
    cdef intptr_t shape[MAX_DIMS]
    cdef int d, along = wrap_dim(dim, input.ndim)
    cdef bint exist = 0 <= first <= input.sizes[along] if input.ndim else first == 1
    clear_arguments(&ranking, sizeof(ranking))
    if not fits_ranking(input, dim) or not exist:
        raise RuntimeError(f"no {first} places of elements along dim {dim} of {tuple(input.shape)}")
    ranking.rows = ranking.apart = 1
    ranking.count, ranking.first, ranking.dtype, ranking.descending = 1, first, x.dtype_nr, descending
    ranking.is_signed = dtypes[x.dtype_nr].is_signed
    for d in range(x.ndim):
        shape[d] = first if d == along else x.sizes[d]
        if d == along:
            ranking.count = x.sizes[d]
        else:
            ranking.rows *= x.sizes[d]
            ranking.apart *= x.sizes[d] if d > along else 1
    result = empty(CG_INT64, x.ndim, shape)
    if result.count:
        begin_launch(&launch, "ranking", rank_rows, &ranking, sizeof(Ranking))
        launch.traits = &STEADY
        add_input(&launch, x)
        add_output(&launch, result)
        run_launch(&launch, STEPS * x.count >= RELEASE_GIL)
    return result
