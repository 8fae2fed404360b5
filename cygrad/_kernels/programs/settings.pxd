"""How programs run, by the environment variable CYGRAD_PROGRAMS: fused, not at all, or checked."""
from libc.stdint cimport intptr_t

cdef enum Mode:
    FUSED
    EAGER       # no operator is pending, no formula is fused: each one runs when it is called
    CHECKED     # each program runs a second time, step by step and in other memory, and each kernel: the bits are compared

cdef Mode mode
cdef intptr_t large     # bytes of a result from which it may be pending; elements of an array from which its reductions and replays join
cdef intptr_t grouped   # elements of an array from which maps of a captured program run block by block
cdef bint fuses         # results may be pending, and formulas are fused
cdef bint noted         # each kernel is noted or checked, and takes no short cut

cdef int noting_threads

# One thread more, or less, notes its kernels.
cdef void count_noting(int change) noexcept
