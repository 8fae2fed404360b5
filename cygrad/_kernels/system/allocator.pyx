# cython: annotation_typing=False
"""Memory for tensors; see the header for the contract and the lock, which is the GIL.

Small blocks are malloc's. Large ones are mapped with huge pages, because page faults are the dearest part of a large
operation. Blocks from 32 KiB on are kept when freed (malloc gives the end of its heap back at each turn): per size
class, the last one freed is the first reused; beyond the limit the one that lay longest goes back to where it came
from, and all do before an allocation fails or where machine or cgroup run short of memory. A class is at most 12.5 %
above the size asked for. glibc's aligned allocation is avoided, since before 2.38 it does not reuse freed memory.
"""
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import operator
import sys

from cygrad._kernels.system.free_memory cimport attainable_memory, granted_memory, runs_short

from cygrad._kernels.system.journal import note
from cygrad._kernels.system.machine import local_processes

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <stddef.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #ifndef MAP_ANONYMOUS
    #define MAP_ANONYMOUS MAP_ANON
    #endif

    static void *cg_map(size_t size) {
        void *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return start == MAP_FAILED ? NULL : start;
    }
    static void cg_advise_huge_pages(void *start, size_t size) {
    #ifdef MADV_HUGEPAGE
        madvise(start, size, MADV_HUGEPAGE);
    #else
        (void)start; (void)size;
    #endif
    }
    static size_t cg_page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }
    static int cg_highest_bit(size_t n) { return 63 - __builtin_clzll((unsigned long long)n); }
    """
    void* cg_map(size_t size) noexcept
    void cg_advise_huge_pages(void* start, size_t size) noexcept
    int munmap(void* start, size_t size) noexcept
    size_t cg_page_size() noexcept
    int cg_highest_bit(size_t n) noexcept

cdef extern from "system/poison.h":
    void cg_poison(const void* start, size_t size) noexcept
    void cg_unpoison(const void* start, size_t size) noexcept

cdef enum:
    HUGE_PAGE = 2 * 1024 * 1024
    LINE = 64
    BETWEEN_LOOKS = 32 * 1024 * 1024        # page faults for so many take milliseconds, a look microseconds
    STEPS = 8                               # classes per power of two: 12.5 % is one part in eight
    CLASSES = 64 * STEPS

# Written into the first bytes of a block while it lies in the cache. `newer` and `older` link the blocks of one
# class; `younger` and `elder` link all blocks, so that the one that lay longest is found at once.
cdef struct Cached:
    Cached* newer
    Cached* older
    Cached* younger
    Cached* elder
    int size_class

cdef (Cached*)[CLASSES] newest_of_class
cdef Cached* youngest = NULL
cdef Cached* eldest = NULL

cdef size_t page = cg_page_size()
cdef size_t cached = 0, hits = 0, misses = 0
cdef Py_ssize_t live = 0, live_blocks = 0
cdef size_t countdown = 0                   # allocations until the injected failure; 0: none
cdef size_t largest_default = <size_t>2 << 30
cdef size_t limit = 0                       # of the cache, in bytes
cdef size_t unlooked = 0                    # bytes mapped since the memory of the machine was last looked at
cdef object limit_reason = None


cdef int size_class(size_t nbytes) noexcept:
    """Smallest class that holds nbytes: number STEPS * k + j holds (STEPS + j + 1) / STEPS * 2^k."""
    cdef int power = cg_highest_bit(nbytes - 1)
    return STEPS * power + <int>((nbytes - 1) >> (power - 3)) - STEPS


cdef int first_mapped = size_class(MAPPED_BLOCK)


cdef size_t block_size(int number) noexcept:
    """Bytes of a block of a class; the padding of a mapped one has a page of its own, or powers of two would need the next class."""
    return (<size_t>(number % STEPS + STEPS + 1) << (number // STEPS - 3)) + (page if number >= first_mapped else PADDING)


cdef void* malloc_aligned(size_t size) noexcept:
    """Memory from malloc that begins at a cache line; the byte before has the distance to malloc's own beginning."""
    cdef char* memory = <char*>malloc(size + LINE)
    cdef size_t distance
    if memory is NULL:
        return NULL
    distance = LINE - <uintptr_t>memory % LINE
    memory[distance - 1] = <char>distance
    return memory + distance


cdef void free_aligned(void* block) noexcept:
    free(<char*>block - (<char*>block - 1)[0])


cdef void* new_block(int number) noexcept:
    return map_block(block_size(number)) if number >= first_mapped else malloc_aligned(block_size(number))


cdef void give_back(void* block, int number) noexcept:
    cg_unpoison(block, block_size(number))
    if number >= first_mapped:
        munmap(block, block_size(number))
    else:
        free_aligned(block)


cdef void* map_block(size_t size) noexcept:
    """Fresh zeroed memory from the system, on a huge page's boundary where it can hold one."""
    cdef char* start
    cdef size_t head
    if size < HUGE_PAGE:
        start = <char*>cg_map(size)
    else:
        start = <char*>cg_map(size + HUGE_PAGE)
        if start is not NULL:
            head = -<uintptr_t>start % HUGE_PAGE
            if head > 0:
                munmap(start, head)
            munmap(start + head + size, HUGE_PAGE - head)
            start += head
    if start is not NULL:
        cg_advise_huge_pages(start, size)
    return start


cdef void unlink_block(Cached* block) noexcept:
    global youngest, eldest, cached
    if block.newer is not NULL:
        block.newer.older = block.older
    else:
        newest_of_class[block.size_class] = block.older
    if block.older is not NULL:
        block.older.newer = block.newer
    if block.younger is not NULL:
        block.younger.elder = block.elder
    else:
        youngest = block.elder
    if block.elder is not NULL:
        block.elder.younger = block.younger
    else:
        eldest = block.younger
    cached -= block_size(block.size_class)


cdef void link_block(Cached* block, int number) noexcept:
    global youngest, eldest, cached
    block.size_class = number
    block.newer = NULL
    block.older = newest_of_class[number]
    block.younger = NULL
    block.elder = youngest
    if block.older is not NULL:
        block.older.newer = block
    if youngest is not NULL:
        youngest.younger = block
    else:
        eldest = block
    newest_of_class[number] = youngest = block
    cached += block_size(number)
    cg_poison(block + 1, block_size(number) - sizeof(Cached))


cdef void shrink_cache(size_t bound) noexcept:
    cdef Cached* block
    while cached > bound:
        block = eldest
        unlink_block(block)
        give_back(block, block.size_class)


cdef void make_room(size_t size) noexcept:
    """Give the cache back where mapping more would leave machine or cgroup short; files have these numbers, so it reads them seldom."""
    global unlooked
    unlooked += size
    if cached > 0 and unlooked >= BETWEEN_LOOKS:
        unlooked = 0
        if runs_short(size):
            shrink_cache(0)


cdef void* allocate_large(size_t nbytes) noexcept:
    global hits, misses
    cdef int number
    cdef Cached* block
    cdef void* pointer
    # Overcommit would grant this and call the out-of-memory killer when it is written to.
    if nbytes > attainable_memory():
        return NULL
    number = size_class(nbytes)
    block = newest_of_class[number]
    if block is not NULL:
        hits += 1
        unlink_block(block)
        cg_unpoison(block, block_size(number))
        memset(<char*>block + nbytes, 0, PADDING)
        cg_poison(<char*>block + nbytes, block_size(number) - nbytes)
        return block
    misses += 1
    if number >= first_mapped:
        make_room(block_size(number))
    pointer = new_block(number)
    if pointer is NULL and cached > 0:
        shrink_cache(0)
        pointer = new_block(number)
    if pointer is not NULL:
        if number < first_mapped:
            memset(<char*>pointer + nbytes, 0, PADDING)
        cg_poison(<char*>pointer + nbytes, block_size(number) - nbytes)
    return pointer


cdef void* new_small(size_t nbytes) noexcept:
    return malloc(nbytes + PADDING) if nbytes < ALIGNED_BLOCK else malloc_aligned(nbytes + PADDING)


cdef void* allocate_small(size_t nbytes) noexcept:
    cdef void* pointer = new_small(nbytes)
    if pointer is NULL and cached > 0:
        shrink_cache(0)
        pointer = new_small(nbytes)
    if pointer is not NULL:
        memset(<char*>pointer + nbytes, 0, PADDING)
        cg_poison(<char*>pointer + nbytes, PADDING)
    return pointer


cdef bint allocation_should_fail() noexcept:
    global countdown
    if countdown == 0:
        return False
    countdown -= 1
    return countdown == 0


cdef memory_observer memory_changed = NULL


cdef void observe_memory(memory_observer observer) noexcept:
    global memory_changed
    memory_changed = observer


cdef void count_live(Py_ssize_t delta) noexcept:
    global live, live_blocks
    live += delta
    live_blocks += 1 if delta > 0 else -1 if delta < 0 else 0
    if memory_changed is not NULL:
        memory_changed(delta)


cdef void* allocate(size_t nbytes) noexcept:
    cdef void* pointer
    if allocation_should_fail():
        return NULL
    pointer = allocate_small(nbytes) if nbytes < CACHED_BLOCK else allocate_large(nbytes)
    if pointer is not NULL:
        count_live(<Py_ssize_t>nbytes)
    return pointer


cdef void release(void* pointer, size_t nbytes) noexcept:
    cdef size_t size
    cdef int number
    if pointer is NULL:
        return
    count_live(-<Py_ssize_t>nbytes)
    if nbytes < ALIGNED_BLOCK:
        free(pointer)
        return
    if nbytes < CACHED_BLOCK:
        free_aligned(pointer)
        return
    number = size_class(nbytes)
    size = block_size(number)
    if size > limit:
        give_back(pointer, number)
    else:
        shrink_cache(limit - size)
        link_block(<Cached*>pointer, number)


def live_bytes() -> int:
    """Return the bytes of tensor data allocated now, without the cache."""
    return live


def cached_bytes() -> int:
    """Return the bytes of freed blocks kept for reuse."""
    return cached


def get_cache_limit() -> int:
    """Return how many bytes of freed blocks this process may keep for reuse.

    >>> import cygrad.config
    >>> cygrad.config.get_cache_limit() <= 2 * 1024**3
    True
    """
    return limit


def set_cache_limit(nbytes: int | None) -> None:
    """Set how many bytes of freed blocks this process may keep, and give back the excess; 0 turns the cache off.

    None is the value at the start: an eighth of the memory of the machine, or of its cgroup's grant, divided by the number of
    processes that a launcher (MPI, Slurm, torchrun) has started on the node; at most 2 GiB. Raises TypeError if nbytes is no int and
    ValueError if it is negative.

    >>> import cygrad.config
    >>> cygrad.config.set_cache_limit(256 * 1024**2)
    >>> cygrad.config.get_cache_limit()
    268435456
    >>> cygrad.config.set_cache_limit(None)
    """
    global limit, limit_reason
    if nbytes is None:
        processes, variable = local_processes()
        share = <size_t>(granted_memory() // 8 // <size_t>processes)
        limit = min(share, largest_default)
        limit_reason = ("the default" if limit < share else "an eighth of the memory" if variable is None else
                        f"an eighth of the memory for {processes} processes, {variable}")
    else:
        limit_bytes = operator.index(nbytes)
        if limit_bytes < 0:
            raise ValueError(f"set_cache_limit expects a number of bytes, 0 or more, but got {limit_bytes}")
        limit = min(limit_bytes, sys.maxsize)
        limit_reason = "set_cache_limit"
    shrink_cache(limit)
    note("cache of freed memory", f"at most {limit} bytes, {limit_reason}")


def empty_cache() -> None:
    """Give all freed blocks back to the system.

    >>> import cygrad.config
    >>> cygrad.config.empty_cache()
    """
    shrink_cache(0)


def fail_after(n: int) -> int:
    """Make the n-th allocation from now on fail, once; 0 for none. Return how many a former call still waited for."""
    global countdown
    pending = countdown
    countdown = n
    return pending


def allocator_report() -> dict:
    """Return the allocator's counters; hits and misses are of large blocks in the cache."""
    return {"live_bytes": live, "live_blocks": live_blocks, "cached_bytes": cached, "cache_limit": limit,
            "cache_limit_reason": limit_reason, "hits": hits, "misses": misses}


set_cache_limit(None)
