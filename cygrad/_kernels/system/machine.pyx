# cython: boundscheck=True, wraparound=True
"""The share of the machine that this process may use: the cgroup's grants, the memory that is free, the processes it shares the node with.

Files are read by Python code at import and by `info`. `runs_short` is asked while memory is allocated, where no Python code may
run: it reads in C the few numbers that were found to matter. Each number of a file or of the environment passes `number_at`, which checks
both of its ends. Needs the GIL.
"""
from libc.limits cimport INT_MAX
from libc.stdio cimport FILE, fclose, fgets, fopen
from libc.string cimport strlen, strncmp

import itertools
import os
import re
from math import ceil

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

cdef enum:
    LARGEST_CPU = 1 << 20           # number of a processor

cdef size_t NO_NUMBER = <size_t>-1
cdef size_t LARGEST = <size_t>1 << 60       # number that means something; cgroups write larger ones for "no limit"
RESERVE = 16            # memory is short where less than one part in so many is free

cdef size_t memory = 0
cdef size_t swap = cg_swap_space()
cdef tuple machine_free = ()    # (bytes, file, words before the number of KiB that are free)
cdef list cgroups = []          # (bytes granted, file of the bytes used, file of their parts, words before the parts that can be dropped)


# ----- Numbers -----
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


def whole_number(text: str, least: int = 1, most: int = INT_MAX) -> int | None:
    """Return the number that a text is, from `least` to `most` (at most 2**60); None for other texts and numbers."""
    cdef bytes encoded = text.strip().encode("utf-8", "replace")
    cdef const char* begin = encoded
    cdef const char* end = begin
    cdef size_t number = number_at(&end, min(most, LARGEST))
    return None if number == NO_NUMBER or end - begin != len(encoded) or number < least else number


# ----- Control groups -----
def _words(path: str) -> list[str]:
    """Words of a small file; none if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().split()
    except (OSError, ValueError):       # a nul, which no path has
        return []


def _cgroup_directories(controller: str, root: str):
    """Directories of this process's cgroup and those above it, in version 2 or in version 1's `controller` tree."""
    try:
        with open(f"{root}/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
            memberships = re.findall(r"(?m)^\d+:([^:\n]*):(.*)$", file.read())
        with open(f"{root}/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            mounts = [[part.split() for part in line.split(" - ")] for line in file]
    except OSError:
        return
    own = {name: path for names, path in memberships for name in names.split(",")}
    for mount, (kind, _, options) in (parts for parts in mounts if list(map(len, parts))[1:] == [3] and len(parts[0]) > 4):
        name = "" if kind == "cgroup2" else controller
        if kind not in ("cgroup", "cgroup2") or name not in own or name not in ["", *options.split(",")]:
            continue
        path = os.path.relpath(own[name], mount[3])
        # Inside a container the path may be the host's, not visible here; the mount point is then the cgroup.
        parts = [] if path.startswith(".") else path.split("/")
        for depth in range(len(parts), -1, -1):
            yield "/".join([root + mount[4], *parts[:depth]])


def cpu_quota(root: str = "") -> float | None:
    """CPUs' worth of time the tightest cgroup above this process grants, or None."""
    granted = []
    for directory in _cgroup_directories("cpu", root):
        words = _words(f"{directory}/cpu.max") or [
            word for file in ("quota", "period") for word in _words(f"{directory}/cpu.cfs_{file}_us")]
        numbers = [whole_number(word, most=LARGEST) for word in words]      # "max" and "-1" are none
        if len(numbers) == 2 and None not in numbers:
            granted.append(numbers[0] / numbers[1])
    return min(granted, default=None)


def _memory_limits(root: str) -> list[tuple[int, str]]:
    """Bytes that each cgroup above this process grants, where it limits them, and its directory."""
    granted = [(whole_number(word, 0, LARGEST), directory) for directory in _cgroup_directories("memory", root)
               for file in ("memory.max", "memory.limit_in_bytes") for word in _words(f"{directory}/{file}")]
    return [(limit, directory) for limit, directory in granted if limit is not None]


def memory_limit(root: str = "") -> int | None:
    """Bytes the tightest cgroup above this process grants, or None."""
    return min((granted for granted, _ in _memory_limits(root)), default=None)


# ----- Memory -----
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
    for granted, directory in _memory_limits(root):
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


# ----- Processes -----
def _count_here(text: str) -> int | None:
    """Return the count of this node from Slurm's of all nodes, "2(x3),1"; the largest where no variable says which node this is."""
    runs = [re.fullmatch(r"(\w+)(?:\(x(\w+)\))?", part) for part in text.split(",")]
    if not all(runs):
        return None
    counts, repeats = [whole_number(run[1]) for run in runs], [whole_number(run[2] or "1") for run in runs]
    if None in counts or None in repeats:
        return None
    node = whole_number(os.environ.get("SLURM_NODEID", ""), 0)
    return next((n for n, end in zip(counts, itertools.accumulate(repeats)) if node is not None and node < end), max(counts))


# Launchers that may have started this process, the variable with its share of the node, and how that is read. The first that can be
# read counts: a launcher that runs within another comes before it. Slurm's variable of a job, not of a step, comes last.
LAUNCHERS = (
    ("torchrun", "LOCAL_WORLD_SIZE", "processes", whole_number),
    ("Open MPI", "OMPI_COMM_WORLD_LOCAL_SIZE", "processes", whole_number),
    ("MPICH or Intel MPI", "MPI_LOCALNRANKS", "processes", whole_number),
    ("MVAPICH", "MV2_COMM_WORLD_LOCAL_SIZE", "processes", whole_number),
    ("PMI", "PMI_LOCAL_SIZE", "processes", whole_number),
    ("PALS", "PALS_LOCAL_SIZE", "processes", whole_number),
    ("jsrun", "JSM_NAMESPACE_LOCAL_SIZE", "processes", whole_number),
    ("Slurm", "SLURM_STEP_TASKS_PER_NODE", "processes", _count_here),
    ("Slurm", "SLURM_NTASKS_PER_NODE", "processes", whole_number),
    ("Slurm", "SLURM_TASKS_PER_NODE", "processes", _count_here),
    ("Slurm", "SLURM_CPUS_PER_TASK", "cpus", whole_number),
)


def launcher_report() -> dict:
    """Return how many processes a launcher has started on this node and the CPUs of each, with the variables that say so; None: no
    launcher.

    `ignored` has the variables that hold something else.
    """
    report = {"launcher": None, "processes": None, "processes_variable": None, "cpus": None, "cpus_variable": None, "ignored": {}}
    for launcher, variable, field, read in LAUNCHERS:
        text = os.environ.get(variable, "").strip()
        number = read(text) if text else None
        if text and number is None:
            report["ignored"][variable] = text
        elif number is not None and report[field] is None:
            report[field], report[f"{field}_variable"] = number, variable
            report["launcher"] = report["launcher"] or launcher
    return report


def local_processes() -> tuple[int, str | None]:
    """Return how many processes a launcher has started on this node, this one included, and which variable says so."""
    report = launcher_report()
    return (report["processes"], report["processes_variable"]) if (report["processes"] or 1) > 1 else (1, None)


def node_cpus(root: str = "") -> int:
    """CPUs that the processes on this node share: the cgroup's, where it has some of its own, else all; at most its quota."""
    lists = (word for directory in _cgroup_directories("cpuset", root) for file in ("cpus.effective", "effective_cpus", "cpus")
             for word in _words(f"{directory}/cpuset.{file}"))
    ranges = [[whole_number(end, 0, LARGEST_CPU) for end in part.split("-")] for part in next(lists, "").split(",")]
    is_list = all(None not in ends and len(ends) <= 2 and ends[0] <= ends[-1] for ends in ranges)
    count = min(sum(ends[-1] - ends[0] + 1 for ends in ranges), LARGEST_CPU) if is_list else os.cpu_count() or 1
    quota = cpu_quota(root)
    return count if quota is None else max(1, min(count, ceil(quota)))


def process_share(root: str = "") -> tuple[int, str] | None:
    """CPUs for each of the processes that a launcher has started on this node, and why so many; None without a launcher."""
    report, shares = launcher_report(), []
    if (report["processes"] or 1) > 1:
        cpus = node_cpus(root)
        shares.append((max(1, cpus // report["processes"]), f"{cpus} CPUs for {report['processes']} processes of {report['launcher']}, "
                                                            f"{report['processes_variable']}"))
    if report["cpus"]:
        shares.append((report["cpus"], f"{report['cpus_variable']}={report['cpus']}"))
    return min(shares, default=None)
