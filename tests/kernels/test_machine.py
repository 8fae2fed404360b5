"""A process's share of the machine: quotas, granted and free memory, and the cache of freed blocks that depends on them.

Files of the system are written under a folder of the test, variables of launchers into its environment.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cygrad
from cygrad import config
from cygrad._kernels.system import allocator, free_memory, machine

MIB, GIB = 1024**2, 1024**3
SYSTEM = Path(__file__).resolve().parents[2] / "cygrad" / "_kernels" / "system"


@pytest.fixture(autouse=True)
def this_machine_afterwards(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    config.empty_cache()
    yield
    monkeypatch.undo()
    free_memory.measure()
    config.set_cache_limit(None)
    config.empty_cache()


# ----- Numbers -----
NO_NUMBERS = ["", "  ", "-1", "+1", "1.5", "1e3", "many", "0x4", "1 2", "1,2", "1\0", "\0", "\u0663", "\udcff", "1_0", "9" * 5000,
              *map(str, (2**60 + 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 10**30))]


@pytest.mark.cases("text", NO_NUMBERS, ids=lambda text: ascii(text[:30]))
def test_texts_that_are_no_numbers_are_none(text):
    assert machine.whole_number(text, 0, 2**60) is None


@pytest.mark.parametrize(("text", "least", "most", "expected"), [
    ("0", 0, 9, 0), ("0", 1, 9, None), ("9", 1, 9, 9), ("10", 1, 9, None), (" 7\n", 1, 9, 7), ("007", 1, 9, 7),
    (str(2**31 - 1), 1, 2**31 - 1, 2**31 - 1), (str(2**31), 1, 2**31 - 1, None), (str(2**60), 0, 2**60, 2**60), ("5", 1, 2**90, 5),
])
def test_both_ends_of_a_number_are_checked(text, least, most, expected):
    assert machine.whole_number(text, least, most) == expected


@pytest.mark.parametrize("text", [*NO_NUMBERS, "0", str(2**60)], ids=lambda text: ascii(text[:30]))
def test_no_number_of_a_file_is_more_than_it_says(tmp_path, text):
    """Any text in place of each number: texts that are no numbers are ignored."""
    group, text = "/sys/fs/cgroup/job", text.encode("utf-8", "surrogateescape").decode("latin-1")
    for name, line in (("cpu.max", "{} 100000"), ("cpu.max", "100000 {}"), ("memory.max", "{}"), ("cpuset.cpus.effective", "{}"),
                       ("cpuset.cpus.effective", "0-{}"), ("cpuset.cpus.effective", "{}-3"), ("memory.current", "{}"),
                       ("memory.stat", "inactive_file {}")):
        limit_memory(tmp_path, total=64 * GIB, available=60 * GIB, granted=4 * GIB, used=GIB)
        cpus_of(tmp_path, "0-7")
        write(tmp_path, {"/proc/self/cgroup": "0::/job\n", f"{group}/{name}": line.format(text) + "\n"})
        free_memory.measure(str(tmp_path))
        assert 0 <= free_memory.granted_bytes() <= 64 * GIB
        assert 1 <= machine.node_cpus(str(tmp_path)) <= 2**20
        assert machine.cpu_quota(str(tmp_path)) is None or machine.cpu_quota(str(tmp_path)) > 0
        assert (machine.memory_limit(str(tmp_path)) or 0) <= 2**60
        assert free_memory.granted_bytes() < GIB or keeps_its_cache() in (True, False)
    for name in ("MemTotal", "MemAvailable"):
        write(tmp_path, {"/proc/meminfo": f"{name}: {text} kB\n"})
        free_memory.measure(str(tmp_path))
        assert 0 <= free_memory.granted_bytes() <= 2**60
        assert free_memory.granted_bytes() < GIB or keeps_its_cache() in (True, False)


@pytest.mark.parametrize(("cgroup", "mounts"), [
    ("", ""), ("\n", "\n"), ("0", "31 23"), ("0::/job", "31 23 0:28 / /sys/fs/cgroup rw -"), ("x:y:z", " - - - "), ("0::/\0", "\0 - \0"),
    ("0::/job", "31 23 0:28 / /sys\0 rw - cgroup2 cgroup2 rw"), ("0::/job", "- cgroup2 cgroup2 rw"), ("0::/job", "- cgroup2"),
])
def test_damaged_lists_of_groups_name_none(tmp_path, cgroup, mounts):
    write(tmp_path, {"/proc/self/cgroup": cgroup, "/proc/self/mountinfo": mounts})
    assert (machine.cpu_quota(str(tmp_path)), machine.memory_limit(str(tmp_path))) == (None, None)


@pytest.mark.skipif(not SYSTEM.exists(), reason="looks at the sources, and runs beside none")
def test_numbers_of_the_environment_and_of_files_are_read_by_one_function():
    """No reader of a variable or a file of the system converts text by itself."""
    reading = re.compile(r"os\.environ|getenv|/proc/|/sys/|fopen")
    converting = re.compile(r'(?<![<\w.])(?:int|float)\((?!\)|"inf")|\bmap\(int|\bstrto|\bato[ilf]+\b|\bsscanf|\.isdecimal\(|\.isdigit\(')
    readers = {path.name: path.read_text() for path in SYSTEM.parents[1].rglob("*") if path.suffix in (".py", ".pyx", ".pxd", ".h")
               and "generated" not in path.parts and reading.search(path.read_text())}
    assert {"machine.py", "free_memory.pyx", "threads.pyx", "config.py", "timing.py", "terminal.py"} <= readers.keys()
    assert {name: result for name, text in readers.items() if (result := converting.findall(text))} == {"machine.py": ["int("]}


# ----- Control groups -----
def write(root, files):
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="latin-1", newline="")


V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
V1_MOUNTS = (
    "32 31 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)
V1_MEMBERSHIP = "5:memory:/docker/abc\n4:cpuset:/\n3:cpu,cpuacct:/docker/abc\n0::/\n"


@pytest.mark.parametrize(
    ("own", "outer", "expected"),
    [
        ("150000 100000", "max 100000", 1.5),
        ("max 100000", "50000 100000", 0.5),
        ("300000 100000", "200000 100000", 2.0),
        ("max 100000", "max 100000", None),
    ],
)
def test_quota_of_version_2(tmp_path, own, outer, expected):
    """The tightest of the groups from the process's own up to the root counts."""
    write(
        tmp_path,
        {
            "/proc/self/cgroup": "0::/user.slice/job\n",
            "/proc/self/mountinfo": V2_MOUNT,
            "/sys/fs/cgroup/user.slice/job/cpu.max": own + "\n",
            "/sys/fs/cgroup/user.slice/cpu.max": outer + "\n",
            "/sys/fs/cgroup/user.slice/job/memory.max": "max\n",
            "/sys/fs/cgroup/user.slice/memory.max": "1000000\n",
        },
    )
    assert machine.cpu_quota(str(tmp_path)) == expected
    assert machine.memory_limit(str(tmp_path)) == 1000000


@pytest.mark.parametrize("membership", ["0::/\n", "0::/../../outside\n"])
def test_quota_of_version_2_in_a_namespace(tmp_path, membership):
    write(
        tmp_path,
        {
            "/proc/self/cgroup": membership,
            "/proc/self/mountinfo": V2_MOUNT,
            "/sys/fs/cgroup/cpu.max": "250000 100000\n",
        },
    )
    assert machine.cpu_quota(str(tmp_path)) == 2.5
    assert machine.memory_limit(str(tmp_path)) is None


@pytest.mark.parametrize(("root", "below"), [("/", "/docker/abc"), ("/docker/abc", ""), ("/", "")])
def test_quota_of_version_1(tmp_path, root, below):
    """Seen from the host, from a container that mounts its own group, and from one that sees the host's path only."""
    write(
        tmp_path,
        {
            "/proc/self/cgroup": V1_MEMBERSHIP,
            "/proc/self/mountinfo": V1_MOUNTS.format(root=root),
            f"/sys/fs/cgroup/cpu,cpuacct{below}/cpu.cfs_quota_us": "150000\n",
            f"/sys/fs/cgroup/cpu,cpuacct{below}/cpu.cfs_period_us": "100000\n",
            f"/sys/fs/cgroup/memory{below}/memory.limit_in_bytes": "5000000\n",
        },
    )
    assert machine.cpu_quota(str(tmp_path)) == 1.5
    assert machine.memory_limit(str(tmp_path)) == 5000000


def test_no_quota_in_version_1(tmp_path):
    write(
        tmp_path,
        {
            "/proc/self/cgroup": V1_MEMBERSHIP,
            "/proc/self/mountinfo": V1_MOUNTS.format(root="/"),
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert machine.cpu_quota(str(tmp_path)) is None
    assert machine.memory_limit(str(tmp_path)) is None


def test_no_cgroups_at_all(tmp_path):
    assert machine.cpu_quota(str(tmp_path)) is None


# ----- Processes on the node -----
# Values of a launcher's variable, the node (Slurm's number), and their meaning.
COUNTS = [("64", "", 64), ("1", "", 1), (" 2 ", "", 2)]
LISTS = [("2(x3),1", "0", 2), ("2(x3),1", "2", 2), ("2(x3),1", "3", 1), ("2(x3),1", "4", 2), ("1,16(x2)", "", 16), ("1,16(x2)", "x", 16),
         ("7", "0", 7), ("3(x1000000000),5", "1000000000", 5),
         *(("2(x3),1", node, 2) for node in ("-1", "\u0663", "\udcff", "9" * 5000, *map(str, (2**31, 2**32 - 1, 2**64, 10**30))))]
NONSENSE = ["0", "-3", "many", "4,", "(x2)", "2(x0)", "2(y3)", "2 (x3)", "2(x3", "1.5", "0x4", "²", "\u0663", "\udcff", "9" * 5000,
            *map(str, (2**31, 2**32 - 1, 2**64, 10**30))]
READ = [(launcher, variable, field, *case) for launcher, variable, field, read in machine.LAUNCHERS
        for case in (LISTS if "TASKS_PER_NODE" in variable and "NTASKS" not in variable else COUNTS)]
VARIABLES = [variable for _, variable, *_ in machine.LAUNCHERS]


@pytest.mark.parametrize(("launcher", "variable", "field", "text", "node", "expected"), READ)
def test_variables_of_launchers_are_read(monkeypatch, launcher, variable, field, text, node, expected):
    monkeypatch.setenv(variable, text)
    monkeypatch.setenv("SLURM_NODEID", node)
    report = machine.launcher_report()
    assert (report["launcher"], report[field], report[f"{field}_variable"], report["ignored"]) == (launcher, expected, variable, {})
    other = {"processes": "cpus", "cpus": "processes"}[field]
    assert (report[other], report[f"{other}_variable"]) == (None, None)


@pytest.mark.parametrize("wrong", NONSENSE)
@pytest.mark.parametrize("variable", VARIABLES)
def test_nonsense_of_a_launcher_is_ignored_and_named(monkeypatch, variable, wrong):
    monkeypatch.setenv(variable, wrong)
    report = machine.launcher_report()
    assert report.pop("ignored") == {variable: wrong}
    assert set(report.values()) == {None}
    assert machine.local_processes() == (1, None)
    assert machine.process_share() is None


def test_the_inner_launcher_counts_and_nonsense_does_not_hide_the_outer_one(monkeypatch):
    monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "4")
    assert machine.local_processes() == (4, "SLURM_NTASKS_PER_NODE")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2")
    assert machine.local_processes() == (2, "OMPI_COMM_WORLD_LOCAL_SIZE")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "two")
    assert machine.local_processes() == (4, "SLURM_NTASKS_PER_NODE")


def test_the_share_of_the_cache_limit(monkeypatch, tmp_path):
    write(tmp_path, {"/proc/meminfo": f"MemTotal: {256 * MIB} kB\n"})
    free_memory.measure(str(tmp_path))
    for count in (2, 64):
        monkeypatch.setenv("SLURM_STEP_TASKS_PER_NODE", f"{count}(x2)")
        config.set_cache_limit(None)
        assert config.get_cache_limit() == min(256 * GIB // 8 // count, 2 * GIB)
        report = allocator.allocator_report()["cache_limit_reason"]
        assert report == (f"an eighth of the memory for {count} processes, SLURM_STEP_TASKS_PER_NODE" if count > 16 else "the default")


# ----- CPUs of the node -----
def cpus_of(root, cpuset, quota="max", version=2):
    """Lay out the files of a cgroup with CPUs of its own, inside one with more."""
    if version == 2:
        write(root, {"/proc/self/cgroup": "0::/slurm/step\n", "/proc/self/mountinfo": V2_MOUNT,
                     "/sys/fs/cgroup/cpuset.cpus.effective": "0-63\n", "/sys/fs/cgroup/slurm/step/cpu.max": f"{quota} 100000\n",
                     "/sys/fs/cgroup/slurm/step/cpuset.cpus.effective": f"{cpuset}\n"})
    else:
        write(root, {"/proc/self/cgroup": "3:cpuset:/job\n", "/sys/fs/cgroup/cpuset/cpuset.cpus": "0-63\n",
                     "/proc/self/mountinfo": "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
                     "/sys/fs/cgroup/cpuset/job/cpuset.cpus": f"{cpuset}\n"})


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("cpuset", "count"), [("0-7", 8), ("0", 1), ("0-3,8-11,15", 9), ("", 64)])
def test_cpus_of_the_cgroup(tmp_path, version, cpuset, count):
    """A group that names none has the CPUs of the group around it."""
    cpus_of(tmp_path, cpuset, version=version)
    assert machine.node_cpus(str(tmp_path)) == count


def test_cpus_of_the_machine_and_of_a_quota(tmp_path):
    assert machine.node_cpus(str(tmp_path)) == os.cpu_count()
    cpus_of(tmp_path, "0-7", quota="350000")
    assert machine.node_cpus(str(tmp_path)) == 4


@pytest.mark.parametrize(("variables", "share"), [
    ({"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, 4), ({"OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, 2), ({"OMPI_COMM_WORLD_LOCAL_SIZE": "100"}, 1),
    ({"OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, None), ({"SLURM_CPUS_PER_TASK": "3"}, 3), ({}, None),
    ({"SLURM_CPUS_PER_TASK": "3", "SLURM_STEP_TASKS_PER_NODE": "4"}, 2), ({"SLURM_CPUS_PER_TASK": "1", "PMI_LOCAL_SIZE": "2"}, 1),
])
def test_the_cpus_of_a_process(monkeypatch, tmp_path, variables, share):
    cpus_of(tmp_path, "0-7")
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    result = machine.process_share(str(tmp_path))
    assert (result and result[0]) == share
    assert result is None or any(name in result[1] for name in variables)


# ----- The limit of the cache -----
def test_the_limit_follows_the_cgroup(tmp_path):
    limit_memory(tmp_path, total=64 * GIB, available=60 * GIB, granted=4 * GIB, used=0)
    config.set_cache_limit(None)
    assert config.get_cache_limit() == GIB // 2
    assert allocator.allocator_report()["cache_limit_reason"] == "an eighth of the memory"


def test_info_shows_the_limit_and_its_reason(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1000000")
    printed = subprocess.run([sys.executable, "-m", "cygrad", "info"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert "(an eighth of the memory for 1000000 processes, OMPI_COMM_WORLD_LOCAL_SIZE) cached" in printed
    config.set_cache_limit(3 * MIB)
    assert "0 B of at most 3 MiB (set_cache_limit) cached" in config.show_config()


# ----- Memory runs short -----
def limit_memory(root, total, available, granted=None, used=0, droppable=0, version=2):
    """Lay the files out for a machine and the cgroup that this process is in."""
    files = {"/proc/meminfo": f"MemTotal:       {total // 1024} kB\nMemFree: 1 kB\nMemAvailable:   {available // 1024} kB\n"}
    if granted is not None and version == 2:
        group = "/sys/fs/cgroup/job"
        files |= {"/proc/self/cgroup": "0::/job\n", "/proc/self/mountinfo": V2_MOUNT, f"{group}/memory.max": f"{granted}\n",
                  f"{group}/memory.current": f"{used}\n", f"{group}/memory.stat": f"anon 5\ninactive_file {droppable}\n"}
    elif granted is not None:
        group = "/sys/fs/cgroup/memory/docker/abc"
        files |= {"/proc/self/cgroup": V1_MEMBERSHIP, "/proc/self/mountinfo": V1_MOUNTS.format(root="/"),
                  f"{group}/memory.limit_in_bytes": f"{granted}\n", f"{group}/memory.usage_in_bytes": f"{used}\n",
                  f"{group}/memory.stat": f"inactive_file 0\ntotal_inactive_file {droppable}\n"}
    write(root, files)
    free_memory.measure(str(root))


def keeps_its_cache():
    """Return True if blocks that were freed are still there after others were mapped."""
    config.set_cache_limit(GIB)
    cygrad.empty(2 * MIB)       # 8 MiB
    cached = allocator.cached_bytes()
    assert cached >= 8 * MIB
    mapped = [cygrad.empty(10 * MIB) for _ in range(2)]
    return allocator.cached_bytes() == cached and len(mapped) == 2


@pytest.mark.parametrize(("available", "keeps"), [(32 * GIB, True), (5 * GIB, True), (4 * GIB, False), (GIB, False)])
def test_cached_blocks_go_back_when_the_machine_runs_short(tmp_path, available, keeps):
    limit_memory(tmp_path, total=64 * GIB, available=available)
    assert keeps_its_cache() is keeps


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("used", "droppable", "keeps"), [(0, 0, True), (14 * GIB, 0, True), (15 * GIB, 0, False), (16 * GIB, 0, False),
                                                         (16 * GIB, 8 * GIB, True), (15 * GIB, GIB // 4, True), (GIB, 2 * GIB, True)])
def test_cached_blocks_go_back_when_the_cgroup_runs_short(tmp_path, version, used, droppable, keeps):
    limit_memory(tmp_path, total=640 * GIB, available=600 * GIB, granted=16 * GIB, used=used, droppable=droppable, version=version)
    assert keeps_its_cache() is keeps


def test_memory_without_a_report_is_not_short(tmp_path):
    free_memory.measure(str(tmp_path))
    assert keeps_its_cache()


def test_few_bytes_do_not_ask(tmp_path):
    limit_memory(tmp_path, total=64 * GIB, available=0)
    config.set_cache_limit(GIB)
    cygrad.empty(10 * MIB)      # asks, so the count begins again
    assert keeps_its_cache() is False
    cygrad.empty(2 * MIB)
    cached, later = allocator.cached_bytes(), cygrad.empty(MIB // 2)
    assert allocator.cached_bytes() == cached > later.nbytes


# ----- Setting the limit -----
def test_config_sets_and_empties_the_cache():
    config.set_cache_limit(64 * MIB)
    cygrad.empty(2 * MIB)
    assert 8 * MIB <= allocator.cached_bytes() <= config.get_cache_limit() == 64 * MIB
    config.empty_cache()
    assert allocator.cached_bytes() == 0
    cygrad.empty(32 * MIB)
    assert allocator.cached_bytes() == 0
