"""The share of the machine that this process may use: the grants of its control groups, and the processes beside it on the node.

Each number of a file or of the environment passes `whole_number`, which checks both of its ends. `root` is where the files of the system
are.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from math import ceil
from typing import Any

LARGEST_INT = 2**31 - 1
LARGEST_CPU = 1 << 20       # number of a processor
LARGEST = 1 << 60           # number that means something; cgroups write larger ones for "no limit"


def whole_number(text: str, least: int = 1, most: int = LARGEST_INT) -> int | None:
    """Return the number that a text is, from `least` to `most` (at most 2**60), without a sign; None for other texts and numbers."""
    digits = re.fullmatch("0*([0-9]{1,19})", text.strip())
    number = int(digits[1]) if digits else -1
    return number if least <= number <= min(most, LARGEST) else None


# ----- Control groups -----
def _words(path: str) -> list[str]:
    """Words of a small file; none if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().split()
    except (OSError, ValueError):       # a nul, which no path has
        return []


def _cgroup_directories(controller: str, root: str) -> Iterator[str]:
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
        numbers = [number for word in words if (number := whole_number(word, most=LARGEST))]    # "max" and "-1" are none
        if len(words) == len(numbers) == 2:
            granted.append(numbers[0] / numbers[1])
    return min(granted, default=None)


def memory_grants(root: str) -> list[tuple[int, str]]:
    """Bytes that each cgroup above this process grants, where it limits them, and its directory."""
    granted = [(whole_number(word, 0, LARGEST), directory) for directory in _cgroup_directories("memory", root)
               for file in ("memory.max", "memory.limit_in_bytes") for word in _words(f"{directory}/{file}")]
    return [(limit, directory) for limit, directory in granted if limit is not None]


def memory_limit(root: str = "") -> int | None:
    """Bytes the tightest cgroup above this process grants, or None."""
    return min((granted for granted, _ in memory_grants(root)), default=None)


# ----- Processes -----
def _count_here(text: str) -> int | None:
    """Return the count of this node from Slurm's of all nodes, "2(x3),1"; the largest where no variable says which node this is."""
    counts, repeats = [], []
    for part in text.split(","):
        run = re.fullmatch(r"(\w+)(?:\(x(\w+)\))?", part)
        count, repeat = (whole_number(run[1]), whole_number(run[2] or "1")) if run else (None, None)
        if count is None or repeat is None:
            return None
        counts.append(count)
        repeats.append(repeat)
    node = whole_number(os.environ.get("SLURM_NODEID", ""), 0)
    ends = zip(counts, itertools.accumulate(repeats), strict=True)
    return next((count for count, end in ends if node is not None and node < end), max(counts))


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


def launcher_report() -> dict[str, Any]:
    """Return how many processes a launcher has started on this node and the CPUs of each, with the variables that say so; None: no
    launcher.

    `ignored` has the variables that hold something else.
    """
    names = "launcher", "processes", "processes_variable", "cpus", "cpus_variable"
    report: dict[str, Any] = {**dict.fromkeys(names), "ignored": {}}
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
    ranges = next(lists, "").split(",")
    ends = [[end for word in part.split("-") if (end := whole_number(word, 0, LARGEST_CPU)) is not None] for part in ranges]
    is_list = all(len(pair) == part.count("-") + 1 <= 2 and pair[0] <= pair[-1] for part, pair in zip(ranges, ends, strict=True))
    count = min(sum(pair[-1] - pair[0] + 1 for pair in ends), LARGEST_CPU) if is_list else os.cpu_count() or 1
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
