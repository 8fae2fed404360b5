"""Records that others have written, or spoiled: each ends in tables or in a sentence, and its contents control nothing."""

import copy
import functools
import json
import operator
import random
import re
import sys

import pytest

import bench_record
from cygrad.__main__ import main
from cygrad.bench import layout, record, schema

SMALL = bench_record.record(works=bench_record.WORKS[2:7:2], directions=("forward",))
SMALL["rows"] = SMALL["rows"][::3]
DEEP = functools.reduce(lambda inside, _: [inside], range(50), 1)
TEXTS = ["", "x", "1", "_x", "\x1b[31mred\x1b]0;title\x07", "a\nb\tc\r", "\x9b2J", "\u202eabc", "\u2028", "\ud800", "\x00",
         "$\\frac{$", "$x$", "<script>alert(1)</script>", "|`|``|", "# *b* _c_ [d](e) ![f](g)", "{value}", "%s", "9" * 5000, "x" * 100_001]
NUMBERS = [True, None, -1, 0, 1, 0.5, -0.0, 5e-324, 1e30, 1e308, float("inf"), float("nan"), 2**31, 2**63, 2**64, 10**30, 10**400]
FACTORS = [0, 0.3, 1, 2, 1e3, 1e6]
VALUES = [*TEXTS, *NUMBERS, [], {}, [0], {"a": 1}, DEEP, [DEEP]]


def nodes(tree, path=()):
    """Yield the path to each part of a tree."""
    yield path
    for name, element in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from nodes(element, (*path, name))


def at(tree, path):
    return functools.reduce(operator.getitem, path, tree)


def varied(value, chance):
    """Return another value of the same type."""
    if isinstance(value, str):
        return chance.choice(TEXTS)
    if isinstance(value, (bool, type(None))):
        return not value if isinstance(value, bool) else "x"
    return type(value)(value * chance.choice(FACTORS)) if isinstance(value, (int, float)) else copy.deepcopy(value)


def mutated(seed):
    """Return a record with up to three parts varied, replaced, removed, repeated, renamed or exchanged for other parts."""
    chance, mutant = random.Random(seed), copy.deepcopy(SMALL)
    for _ in range(chance.choice((1, 1, 2, 3))):
        paths = list(nodes(mutant))[1:]
        if not paths:
            break
        *parents, name = chance.choice(paths)
        holder = at(mutant, parents)
        match chance.choice([*["vary"] * 8, *["replace"] * 3, "remove", "repeat", "rename", "exchange"]):
            case "vary":
                holder[name] = varied(holder[name], chance)
            case "replace":
                holder[name] = copy.deepcopy(chance.choice(VALUES))
            case "remove":
                del holder[name]
            case "repeat" if isinstance(holder, list):
                holder.extend(copy.deepcopy(holder[name]) for _ in range(chance.choice((1, 60))))
            case "rename" if isinstance(holder, dict):
                holder[chance.choice(TEXTS)] = holder.pop(name)
            case _:
                holder[name] = copy.deepcopy(at(mutant, chance.choice(paths)))
    return mutant


def controlling(text):
    """Return the characters that do more than show."""
    return [character for character in text if not character.isprintable() and character != "\n"]


def shown(arguments, capsys):
    """Return the status of the benchmark's command and its output, after a check of its sentences."""
    try:
        status = main(["bench", *map(str, arguments)])
    except SystemExit as ended:
        status = ended.code
    text = capsys.readouterr()
    assert controlling(text.out + text.err) == []
    if status == 2:
        assert re.search(r"error: .* (is no record of a benchmark: |is damaged: record|is damaged: a name in record|has format )", text.err)
        assert len(text.err) < 3000
    else:
        assert status in (0, 1) and text.out and not text.err
    return status, text.out


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return a place for a record, one that is sound, and a place for a page, where no picture is drawn."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "sound.json").write_text(json.dumps(SMALL))
    return tmp_path / "record.json", tmp_path / "sound.json", tmp_path / "page.md"


@pytest.mark.slow
def test_mutated_records_end_in_tables_or_in_a_sentence(files, capsys):
    file, sound, page = files
    counts = [0, 0, 0]
    commands = ["--from", file, "--page", page], ["--compare", file, sound], ["--compare", sound, file]
    for seed in range(600):
        file.write_text(json.dumps(mutated(seed)))
        page.unlink(missing_ok=True)
        status, _ = shown(commands[seed % len(commands)], capsys)
        counts[status] += 1
        if page.exists():
            text = page.read_text()
            assert controlling(text) == [] and "<" not in re.sub("(`+) ?.*?\\1", "", text)      # but in code
    assert counts[0] > 90 and counts[2] > 90


@pytest.mark.slow
def test_pictures_of_mutated_records_are_drawn(tmp_path, capsys):
    """Of those that are read, the first few that lie in different places."""
    pytest.importorskip("matplotlib")
    file, sound, drawn = tmp_path / "record.json", json.loads(json.dumps(SMALL)), 0
    for seed in range(1000):
        file.write_text(json.dumps(mutated(seed)))
        try:
            mutant = record.read(file)
        except record.RecordError:
            continue
        if any(mutant[part] != sound[part] for part in ("rows", "ceilings", "version")):
            drawn += 1
            assert main(["bench", "--from", str(file), "--plot", str(tmp_path / f"bench.{'png' if drawn % 2 else 'svg'}")]) in (0, 1)
        if drawn == 20:
            break
    assert drawn == 20


@pytest.mark.slow
@pytest.mark.parametrize("text", [text for text in TEXTS if len(text) <= 100] + ["x" * 100, "W" * 100], ids=lambda text: ascii(text[:20]))
def test_any_text_is_drawn(text, tmp_path):
    pytest.importorskip("matplotlib")
    mutant = copy.deepcopy(SMALL)
    mutant["info"]["processor"] = mutant["version"] = text
    for row in mutant["rows"]:
        row["work"], row["family"] = f"{text}{row['work']}"[:100], text
    (tmp_path / "record.json").write_text(json.dumps(mutant))
    assert main(["bench", "--from", str(tmp_path / "record.json"), "--plot", str(tmp_path / "bench.svg")]) == 0
    picture = (tmp_path / "bench.svg").read_text()
    assert [character for character in picture if ord(character) < 32 and character != "\n"] == []


# ----- The declarations -----
def without(path):
    mutant = copy.deepcopy(SMALL)
    del at(mutant, path[:-1])[path[-1]]
    return mutant


def having(path, value):
    mutant = copy.deepcopy(SMALL)
    at(mutant, path[:-1])[path[-1]] = value
    return mutant


ROW, TIMES = ("rows", 1), ("rows", 1, "times")
FAULTS = [
    (having(("seconds",), 10**400), "record.seconds is 1000"), (having((*ROW, "size"), 10**400), "record.rows.1.size is 1000"),
    (having((*ROW, "size"), 0), "record.rows.1.size is 0, not from 1 to 9223372036854775807"),
    (having((*ROW, "threads"), 2**31), "record.rows.1.threads is 2147483648, not from 1 to 2147483647"),
    (having((*TIMES, "numpy", "median"), 5e-324), "record.rows.1.times.numpy.median is 5e-324, not from 1e-30 to 1e+30"),
    (having((*TIMES, "numpy", "low"), None), "record.rows.1.times.numpy.low is None, not a number"),
    (having(("ceilings", "1", "bandwidth", "bytes_per_second"), -1), "record.ceilings.1.bandwidth.bytes_per_second is -1, not from"),
    (having(("ceilings", "1", "bandwidth"), {}), "record.ceilings.1.bandwidth lacks 'by'"),
    (having(("ceilings", "many"), SMALL["ceilings"]["1"]), "a name in record.ceilings is 'many', not a number of threads"),
    (having(("ceilings", "01"), SMALL["ceilings"]["1"]), "a name in record.ceilings is '01', not a number of threads"),
    (without(("ceilings", "2")), "record.ceilings lacks '2', the threads of a row"),
    (without((*TIMES, "numpy")), "record.rows.1.times lacks 'numpy', which .ratios has"),
    (without((*TIMES, "cygrad")), "record.rows.1.times lacks 'cygrad'"),
    (having((*ROW, "times"), {}), "record.rows.1.times lacks 'cygrad'"),
    (having((*ROW, "direction"), "sideways"), "record.rows.1.direction is 'sideways', not 'forward' or 'forward + backward'"),
    (having((*ROW, "work"), "x" * 101), "record.rows.1.work has a length of 101, more than 100"),
    (having((*ROW, "error"), 3), "record.rows.1.error is 3"), (having((*ROW, "note"), True), "record.rows.1.note is True"),
    (having(("complete",), 1), "record.complete is 1, not true or false"), (having(("info",), []), "record.info is [], not an object"),
    (having(("info", "more"), DEEP), "objects and lists lie more than 20 deep in each other"),
    (having(("rows",), [{**SMALL["rows"][0], "work": str(number)} for number in range(1001)]), "record.rows has 1001 works, more than"),
    (having(("rows",), [{**SMALL["rows"][0], "family": str(number)} for number in range(51)]), "record.rows has 51 families, more"),
    (having(("format",), "\x1b" * 1000), r"has format '\\x1b\\x1b"),
    (having(("version",), "\x1b" * 30), "record.version has a length of 120"),
    (having((*ROW, "share"), {"\x1b": -1}), r"record.rows.1.share.\x1b is -1"),
]


@pytest.mark.parametrize(("mutant", "said"), FAULTS, ids=[said for _, said in FAULTS])
def test_faults_are_named_with_their_fields(mutant, said, files, capsys):
    file, sound, _ = files
    file.write_text(json.dumps(mutant))
    with pytest.raises(record.RecordError, match=re.escape(said)):
        record.read(file)
    for arguments in (["--from", file], ["--compare", sound, file]):
        assert shown(arguments, capsys)[0] == 2


@pytest.mark.parametrize(("text", "expected"), [
    ("exp(x) ±3% é 表", "exp(x) ±3% é 表"), ("a\nb\r\nc\td", "a b  c d"), ("\x1b[31m", r"\x1b[31m"), ("\x9b\x7f\x00", r"\x9b\x7f\x00"),
    ("\u202e\u200b", r"\u202e\u200b"), ("\ud800", r"\ud800"), ("\u2028\xa0", "  "), ("\U000e0001", r"\U000e0001"),
])
def test_texts_can_be_shown_anywhere(text, expected):
    assert schema.printable({text: [text, 1, None]}) == {expected: [expected, 1, None]}
    assert schema.printable(text).encode() and schema.printable(text).isprintable()


@pytest.mark.parametrize(("text", "escaped", "code"), [
    ("where(x > 0, x, y)", "where(x &gt; 0, x, y)", "`where(x > 0, x, y)`"), ("a|b", r"a\|b", r"`a\|b`"), ("", "", "`  `"),
    ("<b>&amp;</b>", "&lt;b&gt;&amp;amp;&lt;/b&gt;", "`<b>&amp;</b>`"), ("`a`", r"\`a\`", "`` `a` ``"), ("a``b", r"a\`\`b", "``` a``b ```"),
    ("[a](b) *c* _d_ \\", r"[a](b) *c* _d_ \\".replace("[", r"\[").replace("]", r"\]").replace("*", r"\*").replace("_", r"\_"),
     "`[a](b) *c* _d_ \\`"),
])
def test_markdown_shows_texts_and_nothing_else(text, escaped, code):
    assert (layout.escaped(text), layout.code(text)) == (escaped, code)
