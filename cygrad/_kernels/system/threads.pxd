"""The one door to threads: how many the next parallel region uses, and whether a region is worth its start.

A driver asks `threads_for(n, cost)` once, before its region: it answers 1 or the limit, nothing between, because
libgomp ends and starts threads whenever num_threads changes. Either call first sees to it that fork is safe.
Safe from every thread, with or without the GIL; in a build without OpenMP the answer is always 1.
"""
from libc.stdint cimport intptr_t

# Cost classes of `threads_for`: about 0.3, 2 and 15 ns an element.
cdef enum:
    COST_ARITHMETIC = 0
    COST_TRANSCENDENTAL = 1
    COST_HEAVY = 2

cdef int thread_limit() noexcept nogil                      # threads of the next region, decided at each call
cdef int threads_for(intptr_t n, int cost) noexcept nogil   # 1 below the grain size, else thread_limit()
cdef void note_threads(int n) noexcept nogil                # drivers, inside a region: omp_get_num_threads()
