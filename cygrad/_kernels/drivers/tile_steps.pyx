# cython: cdivision=True, initializedcheck=False
"""Decisions that tiles, rows and passes share (see tile_steps.pxd for the contract)."""
from cygrad._kernels.drivers.elementwise cimport STREAM_BYTES
from cygrad._kernels.system.threads cimport threads_for

cdef enum:
    VECTOR = 64


cdef bint find_rows(const Tiles* tiles, intptr_t* row, intptr_t* rows) noexcept nogil:
    cdef bint seen = False
    cdef int d
    row[0] = rows[0] = 1
    for d in range(tiles.ndim):
        seen = seen or tiles.is_reduced[d]
        if not seen:
            rows[0] *= tiles.shape[d]
        elif tiles.is_reduced[d] or tiles.shape[d] == 1:
            row[0] *= tiles.shape[d]
        else:
            return False
    return seen


cdef bint is_repeated_scalar(const Tiles* tiles, const Slot* slot) noexcept nogil:
    cdef int d
    for d in range(tiles.ndim):
        if slot.array.strides[d] and tiles.shape[d] > 1:
            return False
    return True


cdef intptr_t streamed_above(const Tiles* tiles, intptr_t total) noexcept nogil:
    return STREAM_BYTES * max(threads_for(total, tiles.cost), 1) // max(total, 1)


cdef void provide(Tiles* tiles, intptr_t elements, intptr_t total) noexcept nogil:
    """Decide about threads, and the memory of each for a tile of some elements."""
    tiles.slot_bytes = (elements * tiles.itemsize + 2 * VECTOR) // VECTOR * VECTOR
    tiles.threads = threads_for(total, tiles.cost) if tiles.count > 1 else 1
