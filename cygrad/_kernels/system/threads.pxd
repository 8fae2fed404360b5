"""The one door to threads: how many the next parallel region uses, and whether a region is worth its start.

A driver asks `threads_for(n, cost)` once, before its region: it answers 1 or the limit, nothing between, because
libgomp ends and starts threads whenever num_threads changes. Either call first sees to it that fork is safe.
The region is `run_in_parts`. A caller that has the GIL keeps it meanwhile, so its kernel is one step for other threads of Python;
Cython's `prange` would give it away.
Safe from every thread, with or without the GIL; in a build without OpenMP the answer is always 1.
"""
from libc.stdint cimport intptr_t

# Cost classes of `threads_for`: about 0.3, 2 and 15 ns an element.
cdef enum:
    COST_ARITHMETIC = 0
    COST_TRANSCENDENTAL = 1
    COST_HEAVY = 2

# A part of a job: its elements from first to last.
ctypedef void (*job_part)(const void* job, intptr_t first, intptr_t last) noexcept nogil

cdef int thread_limit() noexcept nogil                      # threads of the next region, decided at each call
cdef int threads_for(intptr_t n, int cost) noexcept nogil   # 1 below the grain size, else thread_limit()
# All of a job at once where `threads` is 1, or it is one part; else in parts of `chunk` elements, each by one of `thread_limit()` threads.
# `uneven`: a thread takes the next part when it has ended one.
cdef void run_in_parts(job_part part, const void* job, intptr_t count, intptr_t chunk, int threads, bint uneven=*) noexcept nogil
