"""Memory for tensors: `allocate` and `release` of padded blocks, a bounded cache of large ones, and counters.

The callers hold the GIL, which is the only lock: nothing here may be called without it (hence no `nogil`).
`release` gets the same nbytes as `allocate`. Storage objects that hold small data inside themselves count as
allocations too: they ask `allocation_should_fail` before they are made and report through `count_live`.
"""

ctypedef void (*memory_observer)(Py_ssize_t delta) noexcept

cdef enum:
    PADDING = 64                # bytes that may be read and written after each block
    ALIGNED_BLOCK = 4096        # from here on blocks begin at a cache line, so that no vector that is read or written lies in two
    CACHED_BLOCK = 32 * 1024    # from here on freed blocks are kept for reuse
    MAPPED_BLOCK = 256 * 1024   # from here on blocks are mapped; smaller ones are malloc's

cdef void* allocate(size_t nbytes) noexcept               # PADDING zero bytes follow; NULL if there is no memory
cdef void release(void* pointer, size_t nbytes) noexcept  # NULL is allowed
cdef bint allocation_should_fail() noexcept               # counts down fail_after(); true once
cdef void count_live(Py_ssize_t delta) noexcept           # one block of delta bytes more, or of -delta bytes fewer
cdef void observe_memory(memory_observer observer) noexcept   # called with each delta; NULL: no function
