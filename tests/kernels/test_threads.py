"""How many threads run, for which reason, and that fork and other threads get along with them.

Tests of the state of a fresh process run in one of its own, under a timeout, so that a hang is a failure.
"""

import functools
import importlib.util
import os
import re
import subprocess
import sys
import textwrap

import pytest

import cygrad
from cygrad._kernels.system import machine, threads
from cygrad._testing import threads_used

pytestmark = [pytest.mark.slow, pytest.mark.openmp]

# The start of each script: `measured()` is the size of the team that a large operation really gets.
PRELUDE = """
import os, sys, threading
import cygrad
from cygrad._kernels.system import threads
from cygrad._testing import threads_used

x = cygrad.ones(1 << 18)

def measured():
    with threads_used() as used:
        x.exp()
    return max(used.count, 1)

def in_new_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]
"""


def run(script, prelude=PRELUDE, affinity=None, timeout=60, **variables):
    """Run a script in a process without variables of OpenMP, launchers and cygrad but the arguments, and return its output, as words."""
    unwanted = {variable for _, variable, *_ in machine.LAUNCHERS} | {"CYGRAD_PROGRAMS"}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_")) and name not in unwanted}
    setting = f"import os; os.sched_setaffinity(0, {affinity})\n" if affinity else ""
    done = subprocess.run(
        [sys.executable, "-c", setting + prelude + textwrap.dedent(script)],
        timeout=timeout,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


LIMIT_AND_TEAM = "print(cygrad.get_num_threads(), measured())"


@pytest.mark.parametrize("count", ["1", "3", "5,2"])
def test_environment_sets_the_count(count):
    assert run(LIMIT_AND_TEAM, OMP_NUM_THREADS=count) == [count[0]] * 2


def test_an_absurd_environment_is_cut():
    """As many would not be started: libgomp ends the process."""
    assert run("print(cygrad.get_num_threads(), threads.thread_report()['source'])", OMP_NUM_THREADS="100000") == ["1024", "environment"]
    script = "print((cygrad.ones(2_000_000) * 2).sum().item(), threads.region_threads() <= 1024)"
    assert run(script, OMP_NUM_THREADS="100000") == ["4000000.0", "True"]


WRONG = ["", "  ", "0", "-3", "many", "1.5", "0x4", "+3", "\u0663", "\udcff", "4,", ",4", "4,many", "4,-2", "4 2",
         *map(str, (2**31, 2**31 + 5, 2**32 - 1, 2**32, 2**32 + 5, 2**63, 2**64 - 1, 2**64, 10**30)), f"{2**31},2", f"2,{2**32}"]


@pytest.mark.skipif("gomp" not in str(threads.thread_report()["openmp_runtime"]), reason="LLVM's runtime ends the process")
@pytest.mark.cases("wrong", WRONG, ids=ascii)
def test_wrong_environment_counts_as_unset(wrong):
    """libgomp takes 32 bits of a number that is too large: a negative count gave a large softmax no memory, and it wrote there."""
    script = "print(cygrad.get_num_threads(), threads.thread_report()['reason'].endswith('is no count, and ignored'))\n"
    used = "print(round(cygrad.ones(1000, 1000).softmax(1).sum().item()), measured())"
    ignored = bool(wrong.strip())
    assert run(script + used, OMP_NUM_THREADS=wrong) == [unset()[0], str(ignored), "1000", unset()[1]]


@functools.cache
def unset():
    """Return the words of a process without the variable."""
    return run(LIMIT_AND_TEAM)


@pytest.mark.parametrize("said", ["2147483647", " 5 ", "5 , 2", "5\n"])
def test_the_environment_is_read_as_openmp_reads_it(said):
    assert run("print(cygrad.get_num_threads(), threads.thread_report()['source'])", OMP_NUM_THREADS=said) == [
        str(min(int(said.partition(",")[0]), 1024)), "environment"]


@pytest.mark.cases("wrong", [word for word in WRONG if "," not in word], ids=ascii)
def test_a_wrong_limit_of_openmp_leaves_a_thread(wrong):
    """The runtime's own variable, which it checks itself."""
    assert int(run("print(cygrad.get_num_threads(), cygrad.ones(1000, 1000).softmax(1).sum())", OMP_THREAD_LIMIT=wrong)[0]) >= 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity masks here")
def test_affinity_mask_is_obeyed():
    one = min(os.sched_getaffinity(0))
    assert run(LIMIT_AND_TEAM, affinity={one}) == ["1", "1"]


def test_request_may_exceed_the_processors():
    assert run("cygrad.set_num_threads(7)\n" + LIMIT_AND_TEAM) == ["7", "7"]


def test_request_wins_over_the_environment():
    assert run("cygrad.set_num_threads(3)\n" + LIMIT_AND_TEAM, OMP_NUM_THREADS="2") == ["3", "3"]


def test_openmp_thread_limit_is_obeyed():
    assert run("cygrad.set_num_threads(7)\n" + LIMIT_AND_TEAM, OMP_THREAD_LIMIT="2") == ["2", "2"]


@pytest.mark.parametrize(("granted", "count"), [("0.4", 1), ("1.0", 1), ("1.5", 2), ("None", 3)])
def test_quota_is_rounded_up(granted, count):
    """OpenMP's own count is raised first, so that the quota is the limit on every machine."""
    script = f"""
        from threadpoolctl import threadpool_limits
        threads.cpu_quota = lambda: {granted}
        with threadpool_limits(3, user_api="openmp"):
            print(cygrad.get_num_threads(), measured())
    """
    pytest.importorskip("threadpoolctl")
    assert run(script) == [str(count)] * 2


def test_quota_yields_to_the_environment_and_to_a_request():
    script = "threads.cpu_quota = lambda: 1.0\n" + LIMIT_AND_TEAM
    assert run(script, OMP_NUM_THREADS="3") == ["3", "3"]
    assert run("cygrad.set_num_threads(4)\n" + script) == ["4", "4"]


# ----- Local ranks -----
@pytest.mark.parametrize("row", machine.LAUNCHERS, ids=lambda row: row[1])
def test_local_ranks_divide_the_processors(row):
    """By each row of the table of launchers: as many processes as CPUs, or CPUs of one process, are one thread."""
    _, variable, value, _ = row
    assert run(LIMIT_AND_TEAM, **{variable: str(machine.node_cpus()) if value == "processes" else "1"}) == ["1", "1"]


def test_local_ranks_yield_to_the_environment_and_to_a_request_and_nonsense_counts_for_nothing():
    node = str(machine.node_cpus())
    assert run(LIMIT_AND_TEAM, OMPI_COMM_WORLD_LOCAL_SIZE=node, OMP_NUM_THREADS="3") == ["3", "3"]
    assert run("cygrad.set_num_threads(4)\n" + LIMIT_AND_TEAM, OMPI_COMM_WORLD_LOCAL_SIZE=node) == ["4", "4"]
    assert run(LIMIT_AND_TEAM, OMPI_COMM_WORLD_LOCAL_SIZE="many") == run(LIMIT_AND_TEAM)


# How many CPUs OpenMP found in the mask, and processes share how many of the node (None: a quota of so many): the threads and whose word.
@pytest.mark.parametrize(("mask", "node", "processes", "quota", "expected"), [
    (8, 8, 2, None, "4 launcher"), (8, 8, 3, None, "2 launcher"), (8, 8, 9, None, "1 launcher"), (8, 8, 1, None, "8 affinity"),
    (2, 8, 4, None, "2 affinity"),      # bound to CPUs of its own
    (4, 8, 4, None, "2 launcher"),      # bound to a socket, which it shares
    (1, 8, 16, None, "1 affinity"),
    (8, 8, 2, 4.0, "2 launcher"), (8, 8, 1, 4.0, "4 cgroup"), (8, 8, 2, 1.5, "1 launcher"),
])
def test_a_mask_decides_where_all_processes_can_have_such(mask, node, processes, quota, expected):
    """OpenMP's own count is raised from 1, so that the machine does not matter."""
    script = f"""
        from cygrad._kernels.system import machine
        from threadpoolctl import threadpool_limits
        threads.cpu_quota = machine.cpu_quota = lambda *root: {quota}
        machine._cgroup_directories, os.cpu_count = lambda *where: (), lambda: {node}
        with threadpool_limits({mask}, user_api="openmp"):
            print(cygrad.get_num_threads(), threads.thread_report()["source"])
    """
    pytest.importorskip("threadpoolctl")
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("no affinity masks here")
    assert run(script, affinity={min(os.sched_getaffinity(0))}, OMPI_COMM_WORLD_LOCAL_SIZE=str(processes)) == expected.split()


@pytest.mark.parametrize("requested", [None, 2, 7])
def test_threadpoolctl_wins(requested):
    pytest.importorskip("threadpoolctl")
    script = f"""
        from threadpoolctl import threadpool_limits
        requested = {requested}
        if requested:
            cygrad.set_num_threads(requested)
        before = cygrad.get_num_threads()
        with threadpool_limits(1, user_api="openmp"):
            print(cygrad.get_num_threads(), measured())
        if requested == 7:
            with threadpool_limits(2, user_api="openmp"):
                print(cygrad.get_num_threads(), measured())
        assert cygrad.get_num_threads() == before
    """
    assert run(script) == ["1", "1"] + (["2", "2"] if requested == 7 else [])


@pytest.mark.parametrize("requested", [1, 7])
def test_request_holds_in_threads_started_later(requested):
    script = f"""
        cygrad.set_num_threads({requested})
        print(in_new_thread(cygrad.get_num_threads), in_new_thread(measured))
    """
    assert run(script) == [str(requested)] * 2


def test_request_made_in_another_thread_holds_here():
    script = """
        cygrad.set_num_threads(5)
        in_new_thread(lambda: cygrad.set_num_threads(3))
        print(cygrad.get_num_threads(), measured())
    """
    assert run(script) == ["3", "3"]


def test_threadpoolctl_in_one_thread_leaves_the_others_alone():
    pytest.importorskip("threadpoolctl")
    script = """
        from threadpoolctl import threadpool_limits
        cygrad.set_num_threads(4)
        with threadpool_limits(1, user_api="openmp"):
            print(cygrad.get_num_threads(), in_new_thread(cygrad.get_num_threads))
    """
    assert run(script) == ["1", "4"]


@pytest.mark.parametrize("wrong", [0, -1, 10**6])
def test_request_out_of_range(wrong):
    with pytest.raises(RuntimeError, match=f"^set_num_threads expects a positive integer.*but got {wrong}$"):
        cygrad.set_num_threads(wrong)


@pytest.mark.parametrize("wrong", [2.0, True, "3", None])
def test_request_of_another_type(wrong):
    with pytest.raises(RuntimeError, match=f"^set_num_threads expects an int, but got {type(wrong).__name__}$"):
        cygrad.set_num_threads(wrong)


@pytest.mark.parametrize(
    ("script", "variables", "reason"),
    [
        ("", {}, "affinity|cgroup"),
        ("", {"OMP_NUM_THREADS": "3"}, "OMP_NUM_THREADS=3"),
        ("cygrad.set_num_threads(6)", {}, r"set_num_threads\(6\)"),
        ("cygrad.set_num_threads(6)", {"OMP_THREAD_LIMIT": "2"}, "OMP_THREAD_LIMIT=2"),
    ],
)
def test_report_names_the_reason(script, variables, reason):
    printed = " ".join(run(script + "\nprint(threads.thread_report()['reason'])", **variables))
    assert re.search(reason, printed)


def test_backward_runs_in_as_many_threads_as_forward():
    """With each way to set the number of threads, the kernels of a backward of 1e6 elements have as many."""
    script = textwrap.dedent("""
        def both():
            leaf = cygrad.randn(1_000_000, requires_grad=True)
            with threads_used() as forward:
                total = leaf.tanh().sum()
                total.item()
            with threads_used() as backward:
                total.backward()
                leaf.grad.numpy()
            print(max(forward.count, 1), max(backward.count, 1))
        both()
    """)
    assert run(script, OMP_NUM_THREADS="3") == ["3", "3"]
    assert run(script, OMP_NUM_THREADS="1") == ["1", "1"]
    assert run("cygrad.set_num_threads(4)" + script) == ["4", "4"]
    if hasattr(os, "sched_setaffinity"):
        assert run(script, affinity={min(os.sched_getaffinity(0))}) == ["1", "1"]
    if importlib.util.find_spec("threadpoolctl"):
        limited = "from threadpoolctl import threadpool_limits\nwith threadpool_limits(2): both()\n"
        assert run(script + limited, OMP_NUM_THREADS="3") == ["3", "3", "2", "2"]


@pytest.mark.parametrize("change", ["x.sin_()", "x.zero_()", "bool(y.requires_grad_().sin().sum())"])
def test_a_kernel_that_keeps_the_gil_keeps_it_in_all_its_threads(change):
    """Without forced switches another thread of Python runs only where this one releases the GIL."""
    script = f"""
        x, y = cygrad.zeros(1 << 22), cygrad.ones(1 << 22)
        cygrad.set_num_threads(2)
        {change}        # imports are done then
        sys.setswitchinterval(1000)
        for _ in range(10):
            started, ran = threading.Event(), []
            thread = threading.Thread(target=lambda: (started.wait(), ran.append(1)))
            thread.start()
            started.set()
            {change}
            print(len(ran))
            thread.join()
    """
    assert run(script) == ["0"] * 10


def test_small_work_stays_serial():
    x = cygrad.ones(100)
    with threads_used() as used:
        x.exp()
    assert used.count <= 1


def test_one_line_is_the_work_of_one_thread():
    x = cygrad.ones(1 << 19)
    with threads_used() as used:
        x.cumsum(0)
    assert used.count <= 1


def test_grain_sizes_decide_and_come_back():
    script = """
        x = cygrad.rand(5000)
        alone = x.exp()
        with grains(1):
            with threads_used() as used:
                result = x.exp()
        print(used.count, (result == alone).all().item())
        with threads_used() as used:
            x.exp()
        print(max(used.count, 1))
    """
    assert run("from cygrad._testing import grains\n" + textwrap.dedent(script), OMP_NUM_THREADS="2") == ["2", "True", "1"]


def test_import_starts_no_thread_and_sets_nothing():
    script = """
        import os, signal, numpy
        def state():
            handlers = [signal.getsignal(number) for number in signal.valid_signals()]
            return len(os.listdir("/proc/self/task")), handlers, dict(os.environ), numpy.geterr()
        before = state()
        import cygrad
        from cygrad._kernels.system.threads import denormal_mode
        assert state() == before, (before, state())
        assert not any(denormal_mode().values())
    """
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("needs /proc")
    run(textwrap.dedent(script), prelude="")


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


@needs_fork
@pytest.mark.parametrize("requested", [2, 7])
def test_fork_after_parallel_work(requested):
    """Thirty children in a row, each of a parent with a live pool, run in parallel themselves and end."""
    script = f"""
        cygrad.set_num_threads({requested})
        for _ in range(30):
            assert measured() == {requested}
            child = os.fork()
            if child == 0:
                os._exit(measured())
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run(script) == [str(requested)] * 30


@needs_fork
def test_fork_of_a_fork():
    script = """
        cygrad.set_num_threads(3)
        measured()
        child = os.fork()
        if child == 0:
            measured()
            grandchild = os.fork()
            if grandchild == 0:
                os._exit(measured())
            os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run(script) == ["3"]


@needs_fork
def test_fork_while_other_threads_compute():
    script = """
        cygrad.set_num_threads(2)
        stop = threading.Event()
        def work():
            while not stop.is_set():
                x.exp()
        workers = [threading.Thread(target=work) for _ in range(2)]
        for worker in workers:
            worker.start()
        for _ in range(30):
            measured()
            child = os.fork()
            if child == 0:
                x.exp()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for worker in workers:
            worker.join()
        print("done")
    """
    assert run(script) == ["done"]


@needs_fork
def test_pool_of_forked_processes():
    """multiprocessing's fork after parallel work in the parent as data loaders use it."""
    script = """
        import multiprocessing
        cygrad.set_num_threads(3)
        def work(_):
            return measured()
        measured()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(*pool.map(work, range(4)))
    """
    assert run(script) == ["3"] * 4


# ----- First touch -----
MADE = ["cygrad.zeros(n)", "cygrad.zeros(n, dtype=cygrad.complex64)", "cygrad.ones(n)", "cygrad.full((n,), 3.)", "cygrad.zeros_like(x)",
        "x.clone()", "x + 1", "cygrad.empty(n).zero_()", "cygrad.empty(n).fill_(2)", "x.double()", "gradient(lambda leaf: leaf[3] * 2)",
        "gradient(lambda leaf: leaf.sum())", "gradient(lambda leaf: leaf[[5, 7]].sum())"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux which thread touched a page first")
@pytest.mark.resident
def test_new_memory_is_touched_first_by_the_threads_that_will_use_it():
    """Each of four threads faults in a quarter of the pages; the thread that asks cannot have more than its own."""
    script = """
        import resource
        cygrad.config.set_cache_limit(0)
        n = 1 << 24
        x = cygrad.ones(n)

        def faults(process):
            return resource.getrusage(process).ru_minflt

        def gradient(function):
            leaf = x.detach().requires_grad_()
            function(leaf).backward()
            return leaf.grad

        for expression in MADE:
            eval(expression)      # Python's own pages, and the threads
            own, all_threads = faults(resource.RUSAGE_THREAD), faults(resource.RUSAGE_SELF)
            result = eval(expression)
            result.data_ptr()
            own, all_threads = faults(resource.RUSAGE_THREAD) - own, faults(resource.RUSAGE_SELF) - all_threads
            assert all_threads >= result.nbytes >> 21, (expression, all_threads)
            assert own < 0.5 * all_threads, (expression, own, all_threads)
        print("done")
    """
    assert run(f"MADE = {MADE}\n" + textwrap.dedent(script), OMP_NUM_THREADS="4") == ["done"]


def test_an_interrupt_while_the_grants_are_read_is_not_lost():
    """They are read at the first large operation, by code of Python, within which the handler of a signal may be called."""
    script = """
        from cygrad._kernels.system import threads

        def interrupted(root=""):
            threads.cpu_quota = quota
            raise KeyboardInterrupt

        quota, threads.cpu_quota = threads.cpu_quota, interrupted
        try:
            for _ in range(1000):
                cygrad.ones(1 << 20).sin().sum().item()
        except KeyboardInterrupt:
            print("interrupted")
        print(threads.cpu_quota is quota, cygrad.ones(1 << 20).sum().item())
    """
    assert run(textwrap.dedent(script)) == ["interrupted", "True", "1048576.0"]
