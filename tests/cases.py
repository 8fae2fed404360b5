"""A plugin for tests that walk a table inside of one item, and the quick part of the suite.

`@pytest.mark.cases("dtype", DTYPES)` reads as `parametrize` does, but makes no item for a value: the test is one item that runs once for
each combination. So a table costs nothing until its item runs. It may be a function of earlier arguments: `lambda row: row.dtypes`.
Each case that fails is reported with its name, and the number of cases is printed at the end. They share the fixtures of their item,
so a test that asks for a fixture of function scope is refused.

`--case TEXT` runs the cases whose name holds the text. `--quick` runs a few cases of each item, others from item to item, and leaves out
the items marked `slow`.
"""

import gc
import inspect
import itertools
import zlib
from collections import Counter
from dataclasses import dataclass, field

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprFileLocation
from _pytest.mark import ParameterSet


def pytest_addoption(parser):
    group = parser.getgroup("cases")
    group.addoption("--quick", action="store_true", help="run few cases of each item, and nothing that is marked slow")
    group.addoption("--case", metavar="TEXT", default="", help="run the cases of an item whose name holds this text")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Disable the collector: collected items are no garbage, so it need not search them, neither now nor in tests that call it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config, items):
    if config.option.quick:
        slow = [item for item in items if item.get_closest_marker("slow")]
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)


# ----- Cases -----
ONE_IN = 24     # of the cases of an item, `--quick` runs one in so many, and at least one


@dataclass
class Tally:
    """The outcomes of the cases of an item."""
    count: int = 0
    skipped: list = field(default_factory=list)
    failures: list = field(default_factory=list)


class CasesFailed(Exception):
    """Some cases of an item failed; the report shows each."""


TALLY = pytest.StashKey[Tally]()
TOTAL = pytest.StashKey[Counter]()
SKIPPED = pytest.StashKey[Counter]()


def names_of(mark):
    names = mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def pytest_generate_tests(metafunc):
    """Keep pytest from looking for fixtures by the names of the cases' arguments."""
    for mark in metafunc.definition.iter_markers("cases"):
        names = names_of(mark)
        metafunc.parametrize(names, [pytest.param(*[None] * len(names), id=pytest.HIDDEN_PARAM)])


def label(value, names, position, ids):
    """Return the name of a value: its id, or the names of its parts; else its place in the table."""
    if isinstance(value, ParameterSet) and value.id:
        return value.id
    if ids is not None:
        return str(ids(value) if callable(ids) else list(ids)[position])
    parts = value if len(names) > 1 else [value]
    words = [str(part) if isinstance(part, str | int | float | None) else getattr(part, "__name__", "") for part in parts]
    return "-".join(word for word in words if word not in ("", "<lambda>")) or f"{names[0]}{position}"


def combinations(marks, previous):
    """Yield (name, arguments) of each case; a table that is a function is called with arguments of the tables before it."""
    if not marks:
        yield "", {}
        return
    first, *others = marks
    names, table = names_of(first), first.args[1]
    if inspect.isfunction(table):
        table = table(**{name: previous[name] for name in inspect.getfullargspec(table).args})
    for position, value in enumerate(table):
        name = label(value, names, position, first.kwargs.get("ids"))
        if isinstance(value, ParameterSet) and value.marks:
            raise pytest.UsageError("a case has no marks: let the test skip it")
        values = value.values if isinstance(value, ParameterSet) else value if len(names) > 1 else [value]
        arguments = dict(zip(names, values, strict=True))
        for rest, more in combinations(others, previous | arguments):
            yield "-".join(filter(None, (name, rest))), arguments | more


def chosen(item, cases):
    """Return the cases that the options select."""
    cases = [case for case in cases if item.config.option.case in case[0]]
    if not cases:
        pytest.skip(f"no case is named {item.config.option.case!r}" if item.config.option.case else "the table has no cases")
    if not item.config.option.quick:
        return cases
    step = min(len(cases), ONE_IN)
    return cases[zlib.crc32(item.nodeid.encode()) % step::step]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    marks = list(pyfuncitem.iter_markers("cases"))
    if not marks:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    fixtures = [pyfuncitem._fixtureinfo.name2fixturedefs[name][-1] for name in set(arguments) - set(pyfuncitem.callspec.params)]
    if any(fixture.scope == "function" for fixture in fixtures):
        raise pytest.UsageError(f"{pyfuncitem.nodeid}: its cases would share a fixture of function scope")
    tally = pyfuncitem.stash[TALLY] = Tally()
    at_once = pyfuncitem.config.getvalue("maxfail") == 1 or pyfuncitem.config.getvalue("usepdb")
    for name, values in chosen(pyfuncitem, combinations(marks, arguments)):
        tally.count += 1
        try:
            pyfuncitem.obj(**arguments | values)
        except pytest.skip.Exception as skipped:
            tally.skipped.append(skipped)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"in the case {name}")
            if at_once:
                raise
            tally.failures.append((name, pytest.ExceptionInfo.from_current()))
    if tally.failures:
        raise CasesFailed
    if len(tally.skipped) == tally.count:
        raise tally.skipped[0]
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    tally = item.stash.get(TALLY, None)
    if call.when == "call" and tally:
        report.cases, report.skipped_cases = tally.count, [skipped.msg for skipped in tally.skipped]
        if call.excinfo is not None and call.excinfo.errisinstance(CasesFailed):
            report.longrepr = representation(item, tally)
    return report


def representation(item, tally):
    """Return the tracebacks of all cases that failed, and a line that names them."""
    shown = [item.repr_failure(excinfo) for _, excinfo in tally.failures]
    names = ", ".join(name for name, _ in tally.failures)
    crash = tally.failures[0][1]._getreprcrash()
    place = ReprFileLocation(crash.path, crash.lineno, f"{len(tally.failures)} of {tally.count} cases: {names}: {crash.message}")
    return ExceptionChainRepr([*itertools.chain(*(part.chain for part in shown[:-1])), *shown[-1].chain[:-1],
                               (shown[-1].chain[-1][0], place, None)])


# ----- Numbers -----
def pytest_configure(config):
    config.stash[TOTAL], config.stash[SKIPPED] = Counter(), Counter()
    config.pluginmanager.register(Counts(config), "counts of cases")


class Counts:
    """Adds up the cases of all items, in the process that gets all reports (the controller of parallel workers)."""

    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or (report.when == "setup" and report.skipped):
            self.config.stash[TOTAL].update(items=1, cases=getattr(report, "cases", 1))
            if not report.skipped:
                self.config.stash[SKIPPED].update((report.location[0], reason) for reason in getattr(report, "skipped_cases", ()))

    def pytest_terminal_summary(self, terminalreporter):
        total = self.config.stash[TOTAL]
        for (path, reason), count in self.config.stash[SKIPPED].items():
            terminalreporter.line(f"SKIPPED [{count} cases] {path}: {reason}")
        if total["cases"] != total["items"]:
            terminalreporter.line(f"{total['cases']} cases in {total['items']} items")
