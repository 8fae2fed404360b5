"""Which bytes of a memory were written, and when, while several version counters count its changes.

A Storage has one counter, and `.data` and `set_` lay further ones over its memory. A change through the counter that a saved tensor
has is found by comparing versions. Changes through the others are noted here, as strided parts of the memory with the moment of the
write, so that a saved tensor counts as changed where its own bytes were. Where no other counter exists nothing is noted, and a Storage
has no such notes. Needs the GIL.
"""
from libc.stdint cimport intptr_t

from cygrad._core.memory.storage cimport Storage

cdef void note_write(Storage storage, char* data, int itemsize, int ndim, const intptr_t* sizes, const intptr_t* strides) noexcept
cdef bint written_since(Storage storage, unsigned long long version, char* data, int itemsize, int ndim, const intptr_t* sizes,
                        const intptr_t* strides) noexcept

# Copies in place of views: the results of `x[i]` while notes follow the place that a tensor i names. A program has no views at places that
# it reads. A copy has the same values as long as neither is written: so its memory is read-only, and a copy whose whole was written since
# is stale. `copies`, of some notes: number of a storage -> the storage, the storage of the whole, and its version then.
cdef int add_part_copy(dict copies, Storage storage, Storage whole) except -1
cdef bint is_stale(dict copies, Storage storage) except -1
