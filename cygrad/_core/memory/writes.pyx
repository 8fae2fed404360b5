# cython: cdivision=True
"""Writes that other version counters than a saved tensor's have counted (see writes.pxd for the contract).

A part is a run of dense bytes, repeated along dims. A part that a later write covers is forgotten, so a memory that is written as a whole,
or always in the same places, has as many parts as places. There are at most LIMIT; then the two oldest become all that lies between them.
So nothing is forgotten, and up to LIMIT parts are exact.
"""
from libc.stdint cimport intptr_t
from libc.stdlib cimport realloc
from libc.string cimport memcmp, memmove

from cygrad._core.memory.storage cimport VISIBLE_BITS, Storage, owner_of
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS

cdef enum:
    PART_DIMS = 8           # of a part; of a stranger one the innermost dims count as dense
    LIMIT = 1024            # parts of a memory: 200 KiB
    WORK = 1 << 20          # steps of one comparison; longer ones count as an overlap

cdef struct Part:
    unsigned long long moment
    intptr_t start          # address of the first byte
    intptr_t run            # bytes that lie dense
    int ndim
    intptr_t[PART_DIMS] sizes
    intptr_t[PART_DIMS] steps       # in bytes, the largest first; each larger than the run

cdef struct Writes:
    int count, capacity
    Part[1] parts           # the oldest first


# ----- Parts -----
cdef intptr_t part_extent(const Part* part, int first) noexcept nogil:
    """Return the bytes from the first to the last one, in the dims from `first` on."""
    cdef intptr_t nbytes = part.run
    cdef int d
    for d in range(first, part.ndim):
        nbytes += (part.sizes[d] - 1) * part.steps[d]
    return nbytes


cdef bint describe_part(Part* part, char* data, int itemsize, int ndim, const intptr_t* sizes, const intptr_t* strides) noexcept nogil:
    """Set a part to the bytes of a tensor; False if there are none."""
    cdef intptr_t[MAX_DIMS] lengths
    cdef intptr_t[MAX_DIMS] steps
    cdef intptr_t step
    cdef int d, k, count = 0
    part.start, part.run = <intptr_t>data, itemsize
    for d in range(ndim):
        if sizes[d] == 0:
            return False
        step = strides[d] * itemsize
        if sizes[d] == 1 or step == 0:
            continue
        if step < 0:
            step = -step
            part.start -= (sizes[d] - 1) * step
        k = count
        while k > 0 and steps[k - 1] < step:
            steps[k], lengths[k] = steps[k - 1], lengths[k - 1]
            k -= 1
        steps[k], lengths[k] = step, sizes[d]
        count += 1
    # Runs that touch are one run, and so are dims that continue each other.
    while count and (steps[count - 1] <= part.run or count > PART_DIMS):
        count -= 1
        part.run += (lengths[count] - 1) * steps[count]
    part.ndim = 0
    for d in range(count):
        k = part.ndim - 1
        if k >= 0 and part.steps[k] == lengths[d] * steps[d]:
            part.sizes[k], part.steps[k] = part.sizes[k] * lengths[d], steps[d]
        else:
            part.sizes[k + 1], part.steps[k + 1] = lengths[d], steps[d]
            part.ndim += 1
    return True


cdef bint covers(const Part* new, const Part* old) noexcept nogil:
    """Return True if all bytes of an older part are in a newer one, where that is seen at once."""
    cdef size_t nbytes = new.ndim * sizeof(intptr_t)
    if new.ndim == 0:
        return new.start <= old.start and old.start + part_extent(old, 0) <= new.start + new.run
    return (new.start == old.start and new.run == old.run and new.ndim == old.ndim
            and memcmp(new.sizes, old.sizes, nbytes) == 0 and memcmp(new.steps, old.steps, nbytes) == 0)


cdef inline intptr_t floor_of(intptr_t a, intptr_t b) noexcept nogil:
    return a // b - (a % b < 0)


cdef bint meet(const Part* a, int i, intptr_t a_start, const Part* b, int j, intptr_t b_start, intptr_t* work) noexcept nogil:
    """Return True if two parts, in their dims from i and j on and from these addresses on, have a byte in common.

    The dim of the largest step is split into the pieces that reach the other part. Where both have it, only the distance
    between two pieces matters, of which few are small enough.
    """
    cdef intptr_t a_extent = part_extent(a, i), b_extent = part_extent(b, j), step, first, last, k
    cdef bint together
    if a_start >= b_start + b_extent or b_start >= a_start + a_extent:
        return False
    if i == a.ndim and j == b.ndim:
        return True
    if i == a.ndim or j < b.ndim and b.steps[j] > a.steps[i]:
        return meet(b, j, b_start, a, i, a_start, work)
    step, together = a.steps[i], j < b.ndim and b.steps[j] == a.steps[i]
    a_extent -= (a.sizes[i] - 1) * step
    if together:
        b_extent -= (b.sizes[j] - 1) * step
    first = max(-(b.sizes[j] - 1) if together else 0, floor_of(b_start - a_start - a_extent, step) + 1)
    last = min(a.sizes[i] - 1, floor_of(b_start + b_extent - a_start - 1, step))
    for k in range(first, last + 1):
        work[0] -= 1
        if work[0] < 0 or meet(a, i + 1, a_start + k * step, b, j + together, b_start, work):
            return True
    return False


# ----- Notes -----
cdef void join_oldest(Writes* writes) noexcept:
    """Make one dense part of the two oldest ones and all between them, as of the later moment."""
    cdef Part* first = &writes.parts[0]
    cdef Part* second = &writes.parts[1]
    cdef intptr_t end = max(first.start + part_extent(first, 0), second.start + part_extent(second, 0))
    second.start = min(first.start, second.start)
    second.run, second.ndim = end - second.start, 0
    writes.count -= 1
    memmove(first, second, writes.count * sizeof(Part))


cdef void note_write(Storage storage, char* data, int itemsize, int ndim, const intptr_t* sizes, const intptr_t* strides) noexcept:
    """Note that a tensor over a storage was written; where there is no memory for a note, all of the storage counts as changed."""
    cdef Storage owner = owner_of(storage)
    cdef Writes* writes = <Writes*>owner.writes
    cdef Part new
    cdef int k, remaining = 0, capacity
    if not describe_part(&new, data, itemsize, ndim, sizes, strides):
        return
    owner.version += 1ULL << VISIBLE_BITS
    new.moment = owner.version >> VISIBLE_BITS
    if writes is not NULL:
        for k in range(writes.count):
            if not covers(&new, &writes.parts[k]):
                if remaining < k:
                    writes.parts[remaining] = writes.parts[k]
                remaining += 1
        writes.count = remaining
    if writes is NULL or writes.count == writes.capacity:
        capacity = 1 if writes is NULL else min(4 * writes.capacity, LIMIT)
        if writes is not NULL and writes.capacity == LIMIT:
            join_oldest(writes)
        else:
            writes = <Writes*>realloc(writes, sizeof(Writes) + (capacity - 1) * sizeof(Part))
            if writes is NULL:
                owner.version += 1
                return
            writes.count, writes.capacity = remaining, capacity
            owner.writes = writes
    writes.parts[writes.count] = new
    writes.count += 1


cdef bint written_since(Storage storage, unsigned long long version, char* data, int itemsize, int ndim, const intptr_t* sizes,
                        const intptr_t* strides) noexcept:
    """Return True if bytes of a tensor were written under another counter since the memory had a version."""
    cdef Storage owner = owner_of(storage)
    cdef Writes* writes = <Writes*>owner.writes
    cdef unsigned long long now = owner.version >> VISIBLE_BITS, moments = 1ULL << (64 - VISIBLE_BITS)
    cdef unsigned long long since = (now - (version >> VISIBLE_BITS)) % moments
    cdef intptr_t work = WORK
    cdef Part part
    cdef int k
    if writes is NULL or not describe_part(&part, data, itemsize, ndim, sizes, strides):
        return False
    for k in range(writes.count - 1, -1, -1):
        if (now - writes.parts[k].moment) % moments >= since:
            break
        if meet(&writes.parts[k], 0, writes.parts[k].start, &part, 0, part.start, &work):
            return True
    return False


# ----- Copies in place of views -----
cdef int add_part_copy(dict copies, Storage storage, Storage whole) except -1:
    copies[id(storage)] = (storage, *(<tuple>copies[id(whole)])[1:]) if id(whole) in copies else (storage, whole, whole.version)
    storage.readonly = True
    return 0


cdef bint is_stale(dict copies, Storage storage) except -1:
    if id(storage) not in copies:
        return False
    _, whole, version = copies[id(storage)]
    return (<Storage>whole).version != version
