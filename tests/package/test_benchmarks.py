"""Benchmarks run: each module is imported, and each program gives the same again, at a size that costs nothing."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import cygrad

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="runs beside no benchmarks")
SMALL = 7


@pytest.fixture(autouse=True, scope="module")
def importable():
    """Benchmarks lie beside the package, in no folder that is imported from."""
    sys.path.insert(0, str(ROOT))
    yield
    sys.path.remove(str(ROOT))


def programs():
    return [*import_module("benchmarks.shapes").PROGRAMS, *import_module("benchmarks.programs").PROGRAMS]


def test_each_benchmark_has_rows_and_is_run_unless_it_is_a_command_of_its_own():
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__", "__main__"}
    with_rows = {name for name in modules if hasattr(import_module(f"benchmarks.{name}"), "rows")}
    assert with_rows == set(import_module("benchmarks.__main__").NAMES)


def test_programs_agree_with_themselves():
    agreement = import_module("benchmarks.agreement")
    for program in programs():
        results = {name: program.make(cygrad, SMALL)() for name in ("once", "again")}
        agreement.agree(program.work, results)
        assert all(np.isfinite(np.asarray(result)).all() for result in results["once"]), program.work


@pytest.mark.parametrize("spoil", [lambda x: x * 1.01, lambda x: x[:1], lambda x: x * float("nan")], ids=["value", "shape", "nan"])
def test_programs_that_differ_are_not_timed(spoil):
    agreement = import_module("benchmarks.agreement")
    results = {"cygrad": [cygrad.ones(3)], "peer": [spoil(cygrad.ones(3))]}
    with pytest.raises(RuntimeError, match="differ"):
        agreement.agree("a sum", results)


def test_only_selected_rows_are_measured(monkeypatch):
    timing = import_module("benchmarks.timing")
    monkeypatch.setattr(timing, "_selected", "")
    timing.select("pair")
    assert timing.selected("pairwise potential") and not timing.selected("heat")
    names = {"x": 1.0}
    assert timing.compare("heat", "undefined_here", {"cygrad": names, "torch": names}, {"torch": 1}) == []


def test_scaling_fits_the_measured_times():
    scaling = import_module("benchmarks.scaling")
    for family in scaling.FAMILIES:
        family.make(400)()
    assert scaling.exponent([10, 100, 1000], [3.0, 300.0, 30000.0]) == pytest.approx(2)


def test_the_crossing_of_two_threads_lies_between_the_sizes_measured():
    crossing = import_module("benchmarks.threads").crossing
    assert crossing([10, 20, 40], [1.0, 1.0, 1.0], [1.5, 1.5, 0.5]) == 30
    assert crossing([10, 20, 40], [1.0, 1.0, 1.0], [0.9, 1.5, 0.5]) == 30
    assert crossing([10, 20], [1.0, 1.0], [0.9, 0.5]) == 10
    assert crossing([10, 20], [1.0, 1.0], [0.9, 1.0]) == float("inf")
