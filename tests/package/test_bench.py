"""The measurements of bench: each row of its tables computes the same as its twin in NumPy; a run reports its own errors."""

import importlib.metadata
import itertools
import timeit

import numpy as np
import pytest

import bench_record
import cygrad
from cygrad.__main__ import main
from cygrad._testing import defer_from, pending_results
from cygrad.bench import ceilings, command, libraries, record, running, tasks, terminal, timing
from cygrad.bench.agreement import Disagreement, agree
from cygrad.bench.libraries import COMPILED, array, numpy_dtype, split
from cygrad.bench.operators import OPERATORS, Operator, square
from cygrad.bench.running import Benchmark, Plan
from cygrad.bench.timing import Rounds, interleave, noise
from cygrad.bench.work import BOTH, FORWARD
from cygrad.bench.workloads import WORKLOADS

OURS = ("cygrad", "numpy")
TINY = (4, 10, 50)
PROGRAM = 7


# ----- The tables -----
@pytest.mark.cases("direction", lambda row, dtype: row.directions(dtype))
@pytest.mark.cases("dtype", lambda row: row.dtypes())
@pytest.mark.cases("row", OPERATORS, ids=lambda row: f"{row.name}-{row.kinds}")
def test_operators_agree_with_their_twins(row, dtype, direction):
    if numpy_dtype(dtype) is None:
        pytest.skip("NumPy has no bfloat16 without ml_dtypes")
    for size in TINY:
        if size <= row.largest:
            result = tasks.work(row, dtype, size, direction).prepare(OURS).tasks
            agree(row.name, {name: task.results() for name, task in result.items()}, dtype)


@pytest.mark.cases("row", OPERATORS, ids=lambda row: f"{row.name}-{row.kinds}")
def test_the_timed_function_is_the_compared_one(row):
    """The statement runs again and again, and leaves no gradient that the next execution would add to."""
    dtype = row.dtypes()[-1]
    for direction in row.directions(dtype):
        for name, task in tasks.work(row, dtype, TINY[0], direction).prepare(OURS).tasks.items():
            timeit.Timer(task.statement, globals=task.names).timeit(2)
            if name == "cygrad":
                assert all(leaf.grad is None for leaf in task.names.values() if isinstance(leaf, cygrad.Tensor))
            first, again = task.results(), task.results()
            assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))


@pytest.mark.cases("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_programs_agree_with_gradients_by_hand(workload):
    result = workload.work(PROGRAM).prepare((*OURS, COMPILED)).tasks
    for _ in range(2):      # captured, then replayed
        agree(workload.name, {name: task.results() for name, task in result.items()}, workload.dtype)


def pending_after(task, executions):
    """Return how many results each execution leaves for later, where arrays of eight elements are large: dead ones are not computed."""
    results, before = [], defer_from(8)
    try:
        return [results.append(eval(task.statement, task.names)) or pending_results() for _ in range(executions)]
    finally:
        defer_from(before)


@pytest.mark.cases("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_programs_leave_no_results_for_later(workload):
    """All of the work is timed: eager, captured, replayed."""
    for task in workload.work(PROGRAM).prepare((*OURS, COMPILED)).tasks.values():
        assert pending_after(task, 3) == [0, 0, 0]


def test_other_libraries_agree_where_they_are_installed():
    result, _ = split(("jax", "autograd", "numexpr", "casadi"))
    if not result:
        pytest.skip("none of them is installed")
    workload = next(workload for workload in WORKLOADS if workload.name == "elementwise chain")
    result = workload.work(PROGRAM).prepare(("cygrad", *result)).tasks
    agree(workload.name, {name: task.results() for name, task in result.items()}, workload.dtype)


def test_each_row_is_there_once():
    works = Plan(threads=(1, 2)).works()
    keys = [(work.family, work.name, work.dtype, work.direction, work.size, threads) for work, threads in works]
    assert len(set(keys)) == len(keys) > 1000


@pytest.mark.parametrize("text, dtype, direction, nbytes, flops", [
    ("a + b", "float64", FORWARD, 3 * 800, 100),
    ("a + b", "float64", BOTH, 6 * 800, 200),
    ("x.sum()", "float32", FORWARD, 404, 100),
    ("a @ b", "float64", FORWARD, 3 * 800, 2000),
    ("a @ b", "complex64", BOTH, 6 * 800, 4 * 3 * 2000),
    ("linalg.inv(s)", "float64", FORWARD, 2 * 800, 2000),
])
def test_bytes_and_operations(text, dtype, direction, nbytes, flops):
    row = next(row for row in OPERATORS if row.name == text and dtype in row.dtypes())
    prepared = tasks.work(row, dtype, 100, direction).prepare(OURS)
    assert (prepared.bytes, prepared.flops) == (nbytes, flops)


# ----- Agreement -----
@pytest.mark.parametrize("spoil", [lambda x: x * 1.01, lambda x: x[:1], lambda x: x * float("nan"), lambda x: x.astype(np.int64) + 1],
                         ids=["value", "shape", "nan", "integer"])
def test_results_that_differ(spoil):
    ones = np.ones(3)
    with pytest.raises(Disagreement, match=r"a sum: cygrad and numpy differ"):
        agree("a sum", {"cygrad": [ones], "numpy": [spoil(ones)]})


def test_results_that_differ_by_rounding():
    ones = np.ones(3, np.float32)
    agree("a sum", {"cygrad": [ones], "numpy": [ones + np.float32(1e-6)]})
    with pytest.raises(Disagreement):
        agree("a sum", {"cygrad": [ones], "numpy": [ones + np.float32(1e-6)]}, "float64")


def test_results_of_tensors_are_read_without_their_graph():
    assert array(cygrad.ones(3, requires_grad=True) * 2).tolist() == [2, 2, 2]


# ----- The plan -----
def test_the_plan_has_the_requested_rows(monkeypatch):
    monkeypatch.setattr(running, "granted_bytes", lambda: 1 << 40)
    works = Plan(only="exp", threads=(2, 1), dtypes=("float32",)).works()
    assert {(work.dtype, threads) for work, threads in works} == {("float32", 1), ("float32", 2)}
    assert all("exp" in work.name for work, _ in works)
    assert {work.size for work, threads in works if threads == 1} >= {4, 10, 10_000_000}
    assert min(work.size for work, threads in works if threads == 2) == 100_000
    assert {work.direction for work, _ in works} == {FORWARD, BOTH}


def test_a_family_may_be_asked_for():
    assert {work.family for work, _ in Plan(only="linalg").works()} == {"linalg", "overhead"}
    assert {work.family for work, _ in Plan(only="programs").works()} == {"programs"}


def test_a_quick_plan_is_part_of_the_whole_one():
    quick = Plan(quick=True, threads=(1, 2)).works()
    assert len(quick) < len(Plan(threads=(1, 2)).works()) / 5
    assert {work.family for work, _ in quick} == {"overhead", "programs", *(row.family for row in OPERATORS)}
    assert {work.dtype for work, _ in quick} == {dtype for row in OPERATORS for dtype in row.dtypes() if running.has_twin(dtype)}
    assert {threads for _, threads in quick} == {1, 2}


def test_work_that_memory_has_no_room_for_is_left_out(monkeypatch):
    monkeypatch.setattr(running, "granted_bytes", lambda: 1 << 30)
    sizes = {dtype: {work.size for work, _ in Plan(only="a * b", dtypes=(dtype,), threads=(1,)).works()} for dtype in ("int8", "float64")}
    assert sizes["int8"] - sizes["float64"] == {10_000_000}


@pytest.mark.parametrize("fields, message", [
    ({"dtypes": ("float33",)}, "unknown dtype 'float33'"),
    ({"threads": (0,)}, "0 threads cannot be measured: set_num_threads expects a positive integer"),
    ({"threads": (1, 5000)}, "5000 threads cannot be measured"),
    ({"libraries": ("fortran",)}, "unknown library 'fortran'"),
    ({"only": "no such work"}, "no work has 'no such work' in its name"),
])
def test_a_plan_that_cannot_be(fields, message):
    with pytest.raises(ValueError, match=message):
        Plan(**fields)


def test_libraries_that_are_missing_are_named_with_their_cure(monkeypatch):
    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(libraries, "version", version)
    assert split(("torch",)) == ({}, {"torch": "pip install torch"})


def test_a_library_whose_import_fails_is_not_there(monkeypatch):
    def fails(name):
        raise ImportError(f"no symbol in {name}")

    benchmark = Benchmark(Plan(only="exp(x)", threads=(1,), quick=True), STEADY, lambda *_: ceiling())
    benchmark.installed = {"torch": "0"}
    monkeypatch.setattr(running, "entered", fails)
    benchmark.enter()
    assert benchmark.missing["torch"] == "its import fails, ImportError: no symbol in torch" and benchmark.installed == {}


def test_without_ml_dtypes_bfloat16_is_left_out(monkeypatch):
    monkeypatch.setattr(running, "has_twin", lambda dtype: dtype != "bfloat16")
    plan = Plan(quick=True, libraries=("numpy",))
    assert "bfloat16" not in {work.dtype for work, _ in plan.works()}
    assert Benchmark(plan).missing["ml_dtypes"] == "pip install ml_dtypes"


# ----- A run -----
HIGH = 1e30


def ceiling(bandwidth=HIGH, flops=HIGH):
    level = {"working_set": 1000, "bytes_per_second": bandwidth, "by": "a copy", "write_allocate": "avoided"}
    return {"bandwidth": {**level, "levels": []}, "flops": {"float64": flops}, "flops_by": {"float64": "a product"}}


def timer(seconds=1e-3, rounds=9):
    return lambda candidates, **_: Rounds({name: [seconds] * rounds for name in candidates}, doubtful=False)


STEADY = timer()


def run(only="exp(x)", timer=STEADY, measure=lambda *_: ceiling(), **fields):
    """Return a benchmark after its run, timed by a function; of few rows."""
    plan = Plan(only=only, threads=(1,), dtypes=("float64",), libraries=("numpy",), quick=True, **fields)
    benchmark = Benchmark(plan, timer=timer, measure_ceilings=measure)
    benchmark.events = list(benchmark)
    return benchmark


def test_a_run_and_its_record(tmp_path):
    benchmark = run()
    result = benchmark.record()
    record.write(result, tmp_path / "record.json")
    assert record.read(tmp_path / "record.json") == result
    assert result["complete"] and result["errors"] == []
    assert [event.number for event in benchmark.events] == [0, *range(1, len(result["rows"]) + 1)]
    assert {row["family"] for row in result["rows"]} == {"overhead", "elementwise"}
    for row in result["rows"]:
        assert row["times"]["numpy"] == {"median": 1e-3, "low": 1e-3, "high": 1e-3, "rounds": 9}
        assert row["ratios"]["numpy"] == {"median": 1, "low": 1, "high": 1}
        assert row["bytes"] > 0 and row["noise"] == [] and row["error"] is None


def test_a_run_really_measures():
    benchmark = run(timer=interleave, seconds=0.1)
    assert all(row["times"]["cygrad"]["median"] > 0 for row in benchmark.rows)


def test_the_record_of_a_run_that_ends_early():
    benchmark = Benchmark(Plan(only="exp(x)", libraries=("numpy",), threads=(1,), quick=True), STEADY, lambda *_: ceiling())
    for event in benchmark:
        if event.row:
            break
    assert [len(benchmark.record()["rows"]), benchmark.record()["complete"]] == [1, False]


def test_a_quick_run_ends_in_time():
    benchmark = run(seconds=1e-9)
    assert len(benchmark.rows) == 1 and not benchmark.complete


def test_a_run_restores_the_number_of_threads():
    before = cygrad.get_num_threads()
    plan = Plan(only="exp(x)", threads=(before + 1,), libraries=("numpy",), quick=True)
    list(Benchmark(plan, STEADY, lambda *_: ceiling()))
    assert cygrad.get_num_threads() == before


@pytest.mark.parametrize("limits, only, which", [((1e6, HIGH), "exp(x)", "bandwidth"), ((HIGH, 1e6), "a @ b", "flops")])
def test_above_a_ceiling_is_an_error(limits, only, which):
    measured = []

    def measure(*_):
        measured.append(ceiling(*limits))
        return measured[-1]

    benchmark = run(only, measure=measure)
    above = [row for row in benchmark.rows if row["error"]]
    assert len(measured) == 1 + running.ATTEMPTS        # since the first may have been disturbed
    assert above and all(f"% of the ceiling of {which}" in row["error"] and row["share"][which] > 1 for row in above)
    assert benchmark.errors == [row["error"] for row in above]


def test_a_run_that_ends_early_is_judged():
    benchmark = Benchmark(Plan(only="exp(x)", libraries=("numpy",), threads=(1,), quick=True), STEADY, lambda *_: ceiling(1.0))
    for event in benchmark:
        if event.row and event.row["share"]:
            break
    assert len(benchmark.errors) == 1


def test_a_ceiling_that_was_measured_too_low_is_measured_again():
    result = iter([ceiling(bandwidth=1e6), ceiling()])
    benchmark = run(measure=lambda *_: next(result))
    assert benchmark.errors == [] and benchmark.record()["ceilings"]["1"]["bandwidth"]["bytes_per_second"] == HIGH


def test_a_row_that_was_measured_in_a_better_moment_is_measured_again():
    seconds = itertools.chain([1e-9] * 3, itertools.repeat(1e-3))
    benchmark = run(timer=lambda candidates, **_: timer(next(seconds))(candidates), measure=lambda *_: ceiling(bandwidth=1e12))
    assert benchmark.errors == [] and max(row["share"]["bandwidth"] for row in benchmark.rows if row["share"]) <= 1


def test_a_ceiling_is_not_broken_by_less_than_it_is_measured_by():
    row = run().rows[-1]
    assert not running.above({**row, "share": {"bandwidth": 1 + ceilings.TOLERANCE / 2}})
    assert running.above({**row, "share": {"bandwidth": 1 + ceilings.TOLERANCE * 2}})


@pytest.mark.parametrize("times", [{}, {"cygrad": [], "numpy": []}, {"cygrad": [1.0], "numpy": []}])
def test_without_a_finished_round_there_is_no_figure(times):
    benchmark = run(timer=lambda candidates, **_: Rounds(times, doubtful=False))
    assert all("numpy was finished" in row["error"] and row["times"] == {} for row in benchmark.rows)
    assert len(benchmark.errors) == len(benchmark.rows)


def test_an_error_of_a_row_ends_the_row_alone():
    def fails(candidates, **_):
        raise MemoryError("no room")

    benchmark = run(timer=fails)
    assert benchmark.complete and all("MemoryError: no room" in row["error"] for row in benchmark.rows)


def test_a_row_that_differs_from_its_twin_is_not_timed(monkeypatch):
    wrong = Operator("a + a", "elementwise", square("a"), "multiply(a, 3, out=y)")
    monkeypatch.setattr(running, "OPERATORS", [wrong])
    running.leader.cache_clear()
    benchmark = run("a + a")
    running.leader.cache_clear()
    assert benchmark.rows and all("differ" in row["error"] and row["times"] == {} for row in benchmark.rows)


# ----- In a pipe -----
@pytest.mark.parametrize("quick", [False, True])
def test_tables_in_a_pipe_come_when_their_rows_are_measured(quick, monkeypatch, capsys):
    def marked(candidates, **_):
        print("[measured]")
        return STEADY(candidates)

    def benchmark(plan):
        result.append(Benchmark(plan, marked, lambda *_: ceiling()))
        return result[0]

    result = []
    for name in ("SIZES", "FEW"):
        monkeypatch.setattr(running, name, (10,))
    monkeypatch.setattr(running, "Benchmark", benchmark)
    assert main(["bench", "--only", "x", "--dtypes", "float64,int8", "--threads", "1", *["--quick"] * quick]) == 0
    parts = capsys.readouterr().out.split("[measured]\n")
    assert parts[0].startswith(f"cygrad {cygrad.__version__}") and parts[1].startswith("Ceilings")
    families = [row["family"] for row in result[0].rows]
    assert len(parts) - 1 == len(families) > 20
    last = {family: number for number, family in enumerate(families, 1)}
    assert len(last) > 3 and (quick or families == sorted(families, key=list(last).index))
    for family, number in last.items():
        title = f"{family.capitalize()}\n{'=' * len(family)}\n"
        assert [place for place, part in enumerate(parts) if title in part] == [number]
    assert "Ratios in short" in parts[-1]


def test_a_table_that_is_another_by_the_end_comes_again(capsys):
    result = bench_record.record(threads=(1,))
    shown = command._Shown(terminal.Plain())
    for _ in range(2):
        shown.show(result, ["overhead"])
    assert capsys.readouterr().out.count("Overhead\n") == 1
    result["rows"][0]["share"] = {"bandwidth": 0.123}
    shown.show(result)
    text = capsys.readouterr().out
    assert text.count("Overhead\n") == text.count("Elementwise\n") == text.count("12% bytes") == 1
    assert "Ceilings" not in text and result["info"]["processor"] not in text


# ----- Ceilings -----
def test_a_working_set_is_judged_by_the_ceiling_of_its_size():
    levels = [{"working_set": size, "bytes_per_second": rate, "by": "", "write_allocate": ""} for size, rate in
              ((100, 8.0), (1000, 4.0), (10_000, 2.0))]
    results = {"bandwidth": {**levels[-1], "levels": levels[:-1]}, "flops": {"float64": 16.0}, "flops_by": {}}

    def share(nbytes):
        return ceilings.shares(results, nbytes, 0, "float64", 1.0).get("bandwidth")

    assert share(99) is None        # in a cache below the smallest, where a call takes as long as its bytes
    assert share(200) == 200 / 8
    assert share(201) == 201 / 4
    assert share(20_000) == 20_000 / 2
    assert share(1_000_000) == 1_000_000 / 2
    assert ceilings.shares(results, 10, 8, "float64", 1.0) == {"flops": 0.5}
    assert ceilings.shares(results, 10, 8, "float16", 1.0) == {}


def test_the_higher_of_two_ceilings():
    result = ceilings.higher(ceiling(1.0, 4.0), ceiling(2.0, 3.0))
    assert (result["bandwidth"]["bytes_per_second"], result["flops"]) == (2.0, {"float64": 4.0})


def test_ceilings_are_measured(monkeypatch):
    monkeypatch.setattr(ceilings, "WORKING_SETS", (1 << 14, 1 << 15, 1 << 16))
    monkeypatch.setattr(ceilings, "SIDES", (8, 16, 32))
    monkeypatch.setattr(ceilings, "SECONDS", 0.0)
    before = cygrad.get_num_threads()
    for threads, quick in itertools.product((1, 2), (False, True)):
        result = ceilings.measured(threads, ("float64", "int8"), (), quick)
        assert result["flops"].keys() == result["flops_by"].keys() == {"float64"}
        assert [level["working_set"] for level in ceilings.levels_of(result)] == [1 << 14, 1 << 15, 1 << 16][:2 if quick else 3]
        assert all(level["bytes_per_second"] > 0 and level["by"] and level["write_allocate"] for level in ceilings.levels_of(result))
    cygrad.set_num_threads(before)


# ----- Rounds -----
def test_rounds_end_when_patience_does():
    rounds = interleave({"slow": ("sleep(0.01)", {"sleep": timing.time.sleep})}, seconds=0, round_seconds=1e-3, limit=0)
    assert len(rounds.times["slow"]) == 1
    rounds = interleave({"slow": ("sleep(0.001)", {"sleep": timing.time.sleep})}, seconds=0, round_seconds=1e-3)
    assert len(rounds.times["slow"]) == timing.MINIMUM_ROUNDS


@pytest.mark.parametrize("times, doubtful, said", [
    ([1.0] * 20, False, []),
    ([1.0] * 20, True, ["other processes needed the processors meanwhile"]),
    ([0.8, 1.2] * 10, False, ["cygrad: the deviation is 30% of the median"]),
    ([1.0] * 17 + [3.0] * 3, False, ["cygrad: one round in ten is 200% from the median"]),
    ([1.0] * 3, False, ["cygrad: 3 rounds"]),
])
def test_noise_is_said(times, doubtful, said):
    assert noise(Rounds({"cygrad": times}, doubtful)) == said


def test_a_spread_has_quartiles():
    assert timing.spread([1.0, 2.0, 3.0, 4.0, 5.0]) == {"median": 3.0, "low": 2.0, "high": 4.0}
    assert timing.spread([1.0]) == {"median": 1.0, "low": 1.0, "high": 1.0}


def test_events_have_the_work_that_is_left():
    events = run().events
    assert events[0].seconds_left is None and events[0].work == "ceilings of 1 thread"
    assert events[-1].seconds_left is not None and events[-1].number == events[-1].total
