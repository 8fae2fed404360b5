"""The tables and files of `python -m cygrad bench`, of records that were not measured."""

import functools
import json
import operator
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bench_record
from cygrad.__main__ import main
from cygrad.bench import comparison, layout, record, tables, terminal
from cygrad.bench.page import write as write_page
from cygrad.bench.running import Stage

LIBRARIES = tuple(bench_record.LIBRARIES)
RECORDS = {
    "ordinary": bench_record.record(),
    "all libraries": bench_record.record(libraries=LIBRARIES, threads=(1, 2, 4)),
    "errors": bench_record.with_error(),
    "one row": bench_record.record(threads=(1,), works=bench_record.WORKS[:1], directions=("forward",)),
    "no peer": bench_record.record(libraries=()),
    "nothing": bench_record.record() | {"rows": [], "ceilings": {}, "complete": False},
}


@pytest.fixture(autouse=True)
def plain_width(monkeypatch):
    """As in a pipe of no width, unless a test says another."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def saved(tmp_path):
    def save(sample, name="record.json"):
        record.write(sample, tmp_path / name)
        return str(tmp_path / name)

    return save


def hide(monkeypatch, *packages):
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)


# ----- Files -----
@pytest.mark.parametrize("name", RECORDS)
def test_records_are_read_as_they_were_written(name, saved):
    file = Path(saved(RECORDS[name]))
    assert record.read(file) == json.loads(file.read_text()) == RECORDS[name]


def spoiled(**fields):
    return json.dumps(bench_record.record() | fields)


def spoiled_row(**fields):
    sample = bench_record.record()
    sample["rows"][1] |= fields
    return json.dumps(sample)


@pytest.mark.parametrize("text, said", [
    ("", "no record of a benchmark"), ("\xff", "no record of a benchmark"), ("[1]", "no record of a benchmark"),
    ("{}", "no record of a benchmark"), (spoiled(format=99), "has format 99, this version of cygrad reads 1"),
    (spoiled(rows=3), "record.rows is 3"), (spoiled(seconds=True), "record.seconds is True"), (spoiled(rows=[{}]), "record.rows.0 lacks"),
    (spoiled(seconds=float("nan")), "record.seconds is nan"), (spoiled_row(error=3), "record.rows.1.error is 3"),
    (spoiled_row(times={"cygrad": {"median": "1", "low": 1, "high": 1, "rounds": 1}}), "record.rows.1.times.cygrad.median is '1'"),
    (spoiled_row(noise="?"), "record.rows.1.noise is '?'"), ("[" * 100_000, "no record of a benchmark"),
])
def test_files_that_are_no_record_are_refused(text, said, tmp_path, capsys):
    file = tmp_path / "record.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(record.RecordError, match=re.escape(said)):
        record.read(file)
    with pytest.raises(SystemExit) as ended:
        main(["bench", "--from", str(file)])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def places(value, path=()):
    """Yield the path to each number of a record."""
    if isinstance(value, (dict, list)):
        for name, element in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(element, (*path, name))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


@pytest.mark.parametrize("number", [0, -1, 10**30])
def test_no_number_of_a_record_breaks_a_table_or_a_picture(number, tmp_path, saved, capsys, monkeypatch):
    hide(monkeypatch, "matplotlib", "rich")
    for path in places(sample := bench_record.record(works=bench_record.WORKS[3:4], threads=(1,), directions=("forward",))):
        *parents, name = path
        holder = functools.reduce(operator.getitem, parents, sample)
        before, holder[name] = holder[name], number
        file = saved(sample)
        holder[name] = before
        for arguments in (["--from", file, "--page", str(tmp_path / "page.md")], ["--compare", file, file]):
            try:
                main(["bench", *arguments])
            except SystemExit as ended:     # refused, and the number named
                assert ended.code == 2 and str(number) in capsys.readouterr().err


# ----- Tables -----
def shown(sample, width, monkeypatch, capsys, saved):
    if width:
        monkeypatch.setenv("COLUMNS", str(width))
    status = main(["bench", "--from", saved(sample)])
    return status, capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80, 120, None])
@pytest.mark.parametrize("name", RECORDS)
def test_plain_text_keeps_within_the_width(name, width, monkeypatch, capsys, saved):
    sample = RECORDS[name]
    status, text = shown(sample, width, monkeypatch, capsys, saved)
    assert max(map(len, text.splitlines())) <= (width or 10_000)
    assert "\x1b" not in text and "\r" not in text
    assert [row["work"] for row in sample["rows"] if row["work"] not in text] == []
    assert status == (1 if sample["errors"] else 0)


@pytest.mark.parametrize("width", [1, 20, 40, 80, 120])
@pytest.mark.parametrize("name", RECORDS)
def test_rich_keeps_within_the_width_and_cuts_nothing(name, width, monkeypatch, capsys):
    """A column that is too wide even beside the keys alone is the terminal's to break."""
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", str(width))
    screen = terminal.Rich()
    for table in tables.tables(RECORDS[name]):
        screen.table(table)
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= width or width < 80
        assert "…" not in text
        for line in table.lines():
            assert all(cell.text in text for cell in line)


def test_parts_of_a_wide_table_begin_with_its_keys_and_have_each_column_once():
    sample = RECORDS["all libraries"]
    (family,) = {"elementwise"} & tables.families(sample).keys()
    table = tables.family_table(family, tables.families(sample)[family], tables.peers(sample))
    parts = list(table.parts(80, layout.GAP))
    keys = [column for column in table.columns if column.key]
    assert len(parts) > 1
    assert all(list(part.columns[:len(keys)]) == keys for part in parts)
    assert [column for part in parts for column in part.columns[len(keys):]] == [column for column in table.columns if not column.key]
    assert [part.title for part in parts] == ["Elementwise"] + ["Elementwise, continued"] * (len(parts) - 1)


@pytest.mark.parametrize("columns", ["", "0", "-1", "1", "many", "²", *map(str, (2**31, 2**64, 10**30)), "9" * 5000])
def test_no_width_of_the_environment_breaks_the_tables(columns, monkeypatch, capsys, saved):
    assert shown(RECORDS["one row"], columns, monkeypatch, capsys, saved)[0] == 0
    hide(monkeypatch, "rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with terminal.display().progress() as progress:
        progress.show(Stage(1, 2, "x + y", None, 1.5))


@pytest.mark.parametrize("columns", ["", "0", "-1", "many", "²", *map(str, (2**31, 2**64, 10**30)), "9" * 5000])
def test_no_width_of_the_environment_breaks_rich(columns, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", columns)
    assert 0 < terminal.Rich().console.width <= terminal.WIDEST


def test_errors_of_the_benchmark_stand_out_without_colours(monkeypatch, capsys, saved):
    sample = RECORDS["errors"]
    status, text = shown(sample, 80, monkeypatch, capsys, saved)
    assert status == 1
    assert "ERRORS OF THE BENCHMARK: 2 rows not to be believed" in text
    assert len(re.findall(r"^.*1e5  ERROR .* 142% bytes.*$|^.*  ERROR  +not measured.*$", text, re.MULTILINE)) == 2
    assert all(" ".join(error.split()) in " ".join(text.split()) for error in sample["errors"])


def test_noisy_rows_and_interrupted_runs_are_marked(monkeypatch, capsys, saved):
    _, text = shown(bench_record.record(complete=False), None, monkeypatch, capsys, saved)
    assert len(re.findall(r"^x \+ y +4  \?", text, re.MULTILINE)) == 1
    assert f"1 of {len(RECORDS['ordinary']['rows'])} rows" in text and "Not complete" in text


def test_rows_are_chosen_from_a_saved_record(capsys, saved):
    file = saved(RECORDS["ordinary"])
    main(["bench", "--from", file, "--only", "exp", "--threads", "2", "--dtypes", "float32"])
    text = capsys.readouterr().out
    assert "exp(x)" in text and "x + y" not in text and "float32, forward, 2 threads" in text
    assert "float64, forward" not in text and "1 thread" not in text
    with pytest.raises(SystemExit):
        main(["bench", "--from", file, "--only", "nothing of the kind"])
    assert "no such rows" in capsys.readouterr().err


def test_one_line_names_the_packages_to_install(monkeypatch, capsys, saved):
    hide(monkeypatch, "rich", "matplotlib")
    _, text = shown(RECORDS["one row"], None, monkeypatch, capsys, saved)
    assert 'For colours and a progress bar and pictures: pip install "cygrad[bench]" (rich, matplotlib)' in text.splitlines()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert isinstance(terminal.display(), terminal.Plain)


@pytest.mark.parametrize("value, text", [
    (1.2e-9, "1.20 ns"), (9.996e-7, "1.00 us"), (1.5e-3, "1.50 ms"), (0.5, "500 ms"), (100, "100 s"), (0, "0 ns"),
])
def test_seconds_have_three_digits(value, text):
    assert tables.quantity(value, "s") == text


@pytest.mark.parametrize("ratio, text", [(0.00042, "0.00042"), (0.0099, "0.00990"), (0.5, "0.500"), (2, "2.000"), (12.34, "12.3")])
def test_no_ratio_is_shown_as_nothing(ratio, text):
    assert tables.part(ratio) == text


# ----- Two records -----
def changed(position, **fields):
    """Return a record in which one row differs."""
    sample = bench_record.record()
    sample["rows"][position] |= fields
    return sample


def meanings(after):
    return [each.meaning for each in comparison.Comparison(bench_record.record(), after).changes]


@pytest.mark.parametrize("fields, meaning", [
    ({}, ""),
    ({"ratios": {"numpy": bench_record.spread(0.5)}}, "slower"),        # it was 0.25
    ({"ratios": {"numpy": bench_record.spread(0.1)}}, "faster"),
    ({"ratios": {"numpy": bench_record.spread(0.5, part=0.6)}}, ""),    # quartiles that overlap
    ({"ratios": {"numpy": bench_record.spread(0.26, part=0.001)}}, ""),     # less than the least that counts
    ({"ratios": {"numpy": bench_record.spread(0.5)}, "noise": ["disturbed"]}, ""),
    ({"ratios": {}, "times": {"cygrad": {**bench_record.spread(1.0), "rounds": 9}}}, "slower"),     # judged by its time
])
def test_a_row_has_changed_if_it_did_so_beyond_noise(fields, meaning):
    result = meanings(changed(0, **fields))
    assert result[0] == meaning
    assert not any(result[1:])


def test_a_slower_node_is_no_change_of_rows():
    after = bench_record.record()
    for row in after["rows"]:
        row["times"] = {name: {**time, "median": 3 * time["median"]} for name, time in row["times"].items()}
    assert not any(meanings(after))


def test_the_comparison_names_the_differences_of_info(capsys, saved):
    before, after = bench_record.record(), changed(0, ratios={"numpy": bench_record.spread(5.0)})
    after["info"] = after["info"] | {"blas": {"name": "OpenBLAS", "version": "0.3.31", "kernels": "Haswell"}}
    del before["rows"][-1], after["rows"][5]
    assert main(["bench", "--compare", saved(before), saved(after, "after.json")]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^blas\.kernels +SkylakeX +Haswell$", text, re.MULTILINE)
    assert "platform" not in text
    assert "Only in A: 1 row: x.sum()" in text and "Only in B: 1 row: pairwise potential" in text
    assert f"{len(after['rows']) - 1} rows in both: 0 faster, 1 slower, 1 not judged" in text
    assert text.count("SLOWER") == 2 and comparison.RULE.split(":")[0] in text


# ----- Pages and pictures -----
@pytest.mark.parametrize("name", RECORDS)
def test_a_page_is_made_of_any_record(name, monkeypatch, tmp_path, saved):
    hide(monkeypatch, "matplotlib")
    main(["bench", "--from", saved(RECORDS[name]), "--page", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text()
    assert "Some Processor 9000" in text and "![" not in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count(" | ") for line in block.splitlines()}) == 1


SMALL = bench_record.record(threads=(1, 2), works=bench_record.WORKS[2:7:2], directions=("forward",))


@pytest.mark.parametrize("sample, count", [
    (SMALL, 4), (RECORDS["one row"], 1), (SMALL | {"rows": SMALL["rows"][:1]}, 1), (RECORDS["nothing"], 0),
], ids=["ordinary", "one thread", "one size", "nothing"])
def test_pictures_are_drawn_of_any_rows(sample, count, tmp_path):
    pytest.importorskip("matplotlib")
    from cygrad.bench.figures import drawable, plot

    assert len(plot(sample, tmp_path / "bench.svg")) == len(drawable(sample)) == count
    assert (tmp_path / "bench.svg").exists() == bool(count)
    assert not count or (tmp_path / "bench.svg").read_text().count("Some Processor 9000") == count


def test_a_page_has_its_pictures_beside_it(tmp_path):
    pytest.importorskip("matplotlib")
    pictures = write_page(RECORDS["one row"], tmp_path / "page.md")
    assert re.findall(r"\]\((\S+)\)", (tmp_path / "page.md").read_text()) == [picture.name for picture in pictures] == ["page_ratios.svg"]
    assert all(picture.exists() for picture in pictures)


# ----- Arguments -----
class Run:
    """In place of a run: yields one row, then ends as planned."""

    end = None

    def __init__(self, plan):
        self.plan, self.sample = plan, bench_record.record()

    def __iter__(self):
        yield Stage(1, 2, "x + y", self.sample["rows"][0], 1.5)
        if self.end:
            self.end()

    def done_families(self):
        return []

    def record(self):
        return self.sample | {"complete": self.end is None}


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr("cygrad.bench.running.Benchmark", Run)


@pytest.mark.parametrize("arguments, said", [
    (["--threads", "1,1025"], "1025 threads cannot be measured"), (["--threads", f"{1 << 70}"], "threads cannot be measured"),
    (["--threads", "0"], "'0': give counts of at least 1"), (["--threads", "1,x"], "'1,x': give counts"), (["--threads", "-1"], "counts"),
    (["--dtypes", "float31"], "unknown dtype 'float31'"), (["--only", "no such row"], "no such row"),
    (["--json", "{folder}/none/a.json"], "none/a.json: No such file or directory"), (["--json", "{folder}"], "Is a directory"),
    (["--page", "{folder}/none/a.md"], "none/a.md: No such file"), (["--from", "{folder}/none.json"], "none.json: No such file"),
    (["--compare", "{folder}/none.json", "{folder}/none.json"], "none.json: No such file"), (["--compare", "a.json"], "expected 2"),
    (["--compare", "a", "b", "--json", "c"], "takes no --json"), (["--from", "a", "--quick"], "takes no --quick"),
    (["--json", "{folder}/a", "--page", "{folder}/../{folder.name}/a"], "a would write over --json"),
    (["--from", "{folder}/a", "--page", "{folder}/a"], "would write over --from"),
    (["--from", "a", "--compare", "a", "b"], "not allowed with"), (["--plot", "{folder}/a.xyz"], "--plot"),
])
def test_bad_arguments_are_refused_before_anything_is_measured(arguments, said, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("cygrad.bench.running.Benchmark.__iter__", lambda self: pytest.fail("measures"))
    with pytest.raises(SystemExit) as ended:
        main(["bench", *(argument.format(folder=tmp_path) for argument in arguments)])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source, copies", [("--from", 1), ("--compare", 2)])
def test_rows_that_no_record_has_are_refused(source, copies, capsys, saved):
    with pytest.raises(SystemExit) as ended:
        main(["bench", source, *[saved(RECORDS["ordinary"])] * copies, "--only", "no such row"])
    assert ended.value.code == 2
    assert "no such rows" in capsys.readouterr().err


def test_a_format_that_matplotlib_cannot_write_here_is_refused_before_anything_is_measured(monkeypatch, tmp_path, capsys):
    """LaTeX, Ghostscript, codecs of Pillow: the requirements of a format show when it is written, and that is too late after a run."""
    figure = pytest.importorskip("matplotlib.figure")

    def savefig(self, file, format, **options):
        raise RuntimeError("'xelatex' not found")

    monkeypatch.setattr(figure.Figure, "savefig", savefig)
    test_bad_arguments_are_refused_before_anything_is_measured(
        ["--plot", "{folder}/a.PGF"], "a.PGF: Matplotlib cannot write .pgf here: 'xelatex' not found", tmp_path, capsys, monkeypatch)


def test_a_run_is_shown_and_written(run, tmp_path, capsys):
    assert main(["bench", "--quick", "--json", str(tmp_path / "a.json")]) == 0
    assert record.read(tmp_path / "a.json")["complete"]
    assert "Ratios in short" in (text := capsys.readouterr().out)
    assert "\r" not in text and "left" not in text


ENDS = {
    "Ctrl-C": lambda: signal.default_int_handler(signal.SIGINT, None),      # where no handler is, as in the background, there is no Ctrl-C
    "the end of a job": lambda: signal.raise_signal(signal.SIGTERM),
    "an error": lambda: 1 / 0,
}


@pytest.mark.parametrize("place", ["cygrad.bench.command._prepared", "cygrad.bench.command._show", "cygrad.__main__._info"])
def test_an_interruption_at_any_time_ends_with_the_status_that_says_so(place, run, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(place, lambda *arguments: ENDS["Ctrl-C"]())
    assert main(["info"] if place.endswith("info") else ["bench", "--json", str(tmp_path / "a.json")]) == 130
    assert (tmp_path / "a.json").exists() == place.endswith("_show")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("end", ENDS)
def test_rows_measured_before_an_interruption_are_written(end, run, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(Run, "end", staticmethod(ENDS[end]))
    arguments = ["bench", "--json", str(tmp_path / "a.json")]
    if end != "an error":
        assert main(arguments) == 130
        assert "Not complete" in capsys.readouterr().out
    else:
        with pytest.raises(ZeroDivisionError):
            main(arguments)
    assert not record.read(tmp_path / "a.json")["complete"]


def test_a_full_disk_does_not_hide_the_measured_rows(run, monkeypatch, tmp_path, capsys):
    def fail(sample, file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cygrad.bench.record.write", fail)
    assert main(["bench", "--json", str(tmp_path / "a.json")]) == 1
    text = capsys.readouterr()
    assert "Ratios in short" in text.out
    assert text.err == f"{tmp_path / 'a.json'} is not written: No space left on device\n"


def test_a_terminal_shows_how_far_the_run_is(run, monkeypatch, capsys):
    hide(monkeypatch, "rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    main(["bench"])
    line = capsys.readouterr().out.split("\r")[1]
    assert line.startswith(" 50%  0:02 left  x + y") and len(line) == 79


def test_importing_the_package_imports_no_benchmark():
    code = "import sys, cygrad, cygrad.__main__; print([name for name in sys.modules if name.startswith(('rich', 'matplotlib', 'torch'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
