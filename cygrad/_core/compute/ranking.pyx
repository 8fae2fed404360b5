# cython: cdivision=True
"""Places of elements along a dim in the order of the elements, of rows that fit into the first cache. Nothing is recorded.

Elements become keys, unsigned integers of the same order, with NaN last. They are sorted by insertion in runs, which are merged (Knuth, The
Art of Computer Programming 3, 5.2.1 and 5.2.4); equal ones keep their order.
"""
from libc.stdint cimport INT64_MIN, UINT64_MAX, int16_t, int32_t, int64_t, int8_t, intptr_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy

from cygrad._core.compute.places cimport dense
from cygrad._core.graph.launches cimport Launch, STEADY, add_input, add_output, begin_launch, run_launch
from cygrad._core.graph.tensor cimport TensorImpl, empty
from cygrad._core.memory.sizes cimport wrap_dim
from cygrad._core.memory.storage cimport dtypes
from cygrad._core.operands.operands cimport RELEASE_GIL
from cygrad._kernels.drivers.elementwise cimport (CG_FLOAT32, CG_FLOAT64, CG_INT64, MAX_DIMS, cg_is_complex, cg_is_floating_point,
                                                  cg_itemsize, cg_loops_of)

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
    """Say whether the elements along a dim are ranked here."""
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
