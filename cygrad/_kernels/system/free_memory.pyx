# cython: boundscheck=True, wraparound=True
"""The memory that this process may use, and whether it runs short (see free_memory.pxd for the contract).

The files are looked for at import. `runs_short` is asked while memory is allocated, where no Python code may run: it reads in C the few
numbers that were found to matter. Each passes `number_at`, which checks both of its ends.
"""
from libc.stdio cimport FILE, fclose, fgets, fopen
from libc.string cimport strlen, strncmp

import os

from cygrad._kernels.system.machine import LARGEST as largest, memory_grants

cdef extern from *:
    """
    #include <unistd.h>
    #ifdef __linux__
    #include <sys/sysinfo.h>
    #endif
    static size_t cg_physical_memory(void) { return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE); }
    static size_t cg_swap_space(void) {
    #ifdef __linux__
        struct sysinfo system;
        return sysinfo(&system) == 0 ? (size_t)system.totalswap * system.mem_unit : 0;
    #else
        return 0;
    #endif
    }
    """
    size_t cg_physical_memory() noexcept
    size_t cg_swap_space() noexcept

cdef size_t NO_NUMBER = <size_t>-1
cdef size_t LARGEST = largest
RESERVE = 16            # memory is short where less than one part in so many is free

cdef size_t memory = 0
cdef size_t swap = cg_swap_space()
cdef tuple machine_free = ()    # (bytes, file, words before the number of KiB that are free)
cdef list cgroups = []          # (bytes granted, file of the bytes used, file of their parts, words before the parts that can be dropped)


cdef size_t number_at(const char** text, size_t most) noexcept:
    """Return the number, from 0 to `most`, that a text begins with after blanks, and move to its end; NO_NUMBER for anything else.

    There is no sign: the C library reads "-1" as its largest number, and a number that is too long as well.
    """
    cdef size_t number = 0
    while text[0][0] == c" " or text[0][0] == c"\t":
        text[0] += 1
    if not c"0" <= text[0][0] <= c"9":
        return NO_NUMBER
    while c"0" <= text[0][0] <= c"9":
        number = 10 * number + (text[0][0] - c"0")
        if number > most:
            return NO_NUMBER
        text[0] += 1
    return number


cdef size_t number_in(bytes path, bytes words, size_t most) noexcept:
    """Return the number, at most `most`, behind words that open a line of a file; NO_NUMBER if there is none."""
    cdef char[512] line
    cdef const char* rest
    cdef size_t length = strlen(words), number = NO_NUMBER
    cdef FILE* file = fopen(path, "re")
    if file is NULL:
        return number
    while fgets(line, sizeof(line), file) is not NULL:
        if strncmp(line, words, length) == 0:
            rest = line + length
            number = number_at(&rest, most)
            if rest[0] not in (c" ", c"\n", c"\0"):
                number = NO_NUMBER
            break
    fclose(file)
    return number


def measure(root: str = "") -> None:
    """Find out which memory this process may use, and where it says how much is free; `root` is where the files of the system are."""
    global memory, machine_free
    cdef size_t total
    cdef bytes meminfo = os.fsencode(f"{root}/proc/meminfo")
    total = number_in(meminfo, b"MemTotal:", LARGEST >> 10)
    memory = total << 10 if total != NO_NUMBER else cg_physical_memory()
    machine_free = memory, meminfo, b"MemAvailable:"
    cgroups.clear()
    for granted, directory in memory_grants(root):
        names = ("memory.current", "inactive_file ") if os.path.exists(f"{directory}/memory.current") else (
            "memory.usage_in_bytes", "total_inactive_file ")
        cgroups.append((granted, os.fsencode(f"{directory}/{names[0]}"), os.fsencode(f"{directory}/memory.stat"), names[1].encode()))
        memory = min(memory, granted)


measure()


cdef size_t granted_memory() noexcept:
    return memory


def granted_bytes() -> int:
    """Return the bytes of memory of the machine, or of the tightest cgroup."""
    return memory


cdef size_t attainable_memory() noexcept:
    return memory + swap


cdef bint runs_short(size_t nbytes) noexcept:
    cdef size_t granted = <size_t>machine_free[0], used, dropped
    cdef size_t free = number_in(<bytes>machine_free[1], <bytes>machine_free[2], LARGEST >> 10)
    if free != NO_NUMBER and (free << 10) < nbytes + granted // RESERVE:
        return True
    for group in cgroups:
        granted = <size_t>(<tuple>group)[0]
        used = number_in(<bytes>(<tuple>group)[1], b"", LARGEST)
        if used == NO_NUMBER or used + nbytes + granted // RESERVE <= granted:
            continue
        # Memory of the cache of files counts as used, but is given up first.
        dropped = number_in(<bytes>(<tuple>group)[2], <bytes>(<tuple>group)[3], LARGEST)
        if used - (0 if dropped == NO_NUMBER else min(dropped, used)) + nbytes + granted // RESERVE > granted:
            return True
    return False
