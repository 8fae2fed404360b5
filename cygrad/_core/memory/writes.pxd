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
