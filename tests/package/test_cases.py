"""The plugin that walks tables inside of items: items that it runs, names, counts, skips and refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

SEEN = []

@pytest.mark.cases("size", lambda count: range(count))
@pytest.mark.cases("word, call", [("low", len), pytest.param("high", len, id="named"), ("none", None)])
@pytest.mark.parametrize("count", [2, 40])
def test_table(count, word, call, size):
    SEEN.append((count, word, size))
    if word == "none":
        pytest.skip("nothing to call")
    assert size != 1, "one is wrong"

def test_each_combination_ran_once_in_order():
    assert SEEN == [(count, word, size) for count in (2, 40) for word in ("low", "high", "none") for size in range(count)]

@pytest.mark.cases("a", [1, 2])
def test_shared(a, tmp_path):
    pass

@pytest.mark.cases("a", [1, 2])
def test_skipped(a):
    pytest.skip("never")

@pytest.mark.slow
def test_slow():
    pass
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs those tests with some options, and returns the report."""
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    cases\n    slow\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    environment.pop("CI", None)     # with it pytest repeats whole messages in its summary

    def run(*options):
        command = [sys.executable, "-m", "pytest", "-p", "cases", "-p", "no:cacheprovider", "-rA", *options]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False).stdout

    return run


@pytest.mark.slow
def test_cases_that_fail_are_named_and_all_are_counted(run):
    report = run()
    assert "FAILED test_it.py::test_table[2] - 2 of 6 cases: low-len-1, named-1: Asser" in report
    assert report.count("in the case named-1\n") == report.count("in the case low-len-1\n") == 2
    assert "SKIPPED [42 cases] test_it.py: nothing to call" in report
    assert "SKIPPED [1] test_it.py:24: never" in report
    assert "its cases would share a fixture of function scope" in report
    assert "PASSED test_it.py::test_each_combination_ran_once_in_order" in report
    assert "131 cases in 6 items" in report


@pytest.mark.slow
def test_options_choose_cases(run):
    report = run("--quick", "-k", "table or slow")
    assert "6 cases in 2 items" in report
    assert "test_slow" not in report
    assert "no case is named 'high-7'" in run("--case", "high-7", "-k", "40")
    assert "PASSED test_it.py::test_table[40]" in run("--case", "named-7", "-k", "40")
