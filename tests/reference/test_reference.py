"""promises.csv: each promise has tests that exist, or names its gap; each sentence of the reference documents is a promise.

document_lines.csv names lines, not text, and the promise that each sentence, signature and printed example makes, or why it makes none:
`12-14` from the sentence's first line to its last. Rows are in the order of the sentences, so two that meet within a line both name it.
A heading that belongs to one sentence only (Note, Parameters, Example) counts with it.
The documents are not part of the project: CYGRAD_REFERENCE names their directory, the default is ../shared/reference.
"""

import ast
import functools
import os
import re
from collections import Counter
from pathlib import Path

import pytest

import promises
from promises import FOLDER, PAGE, PROMISES, read_table

ROOT = FOLDER.parents[1]
DOCUMENTS = Path(os.environ.get("CYGRAD_REFERENCE") or ROOT.parent / "shared" / "reference")
KINDS = {"sentence", "example", "signature", "heading"}
ROWS = read_table("document_lines.csv")
BY_ID = {promise["id"]: promise for promise in PROMISES}

FILES = sorted({row["file"] for row in ROWS})
# A full stop behind a word, a number or a name, before a capital, a bracket or the end of the line; not the ones in "i.e." and "w.r.t.".
END_OF_SENTENCE = re.compile(r"(?:[a-z)]{2}|[0-9A-Z`])\.\)?(?= [A-Z(]|$|[A-Z][a-z]+ )")

with_documents = pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the reference documents are not here: set CYGRAD_REFERENCE")


def lines_of(row):
    first, _, last = row["line"].partition("-")
    return range(int(first), int(last or first) + 1)


def rows_of(name):
    return [row for row in ROWS if row["file"] == name]


def place(row):
    return f"{row['file']}:{row['line']}"


@functools.cache
def names_of_tests(path):
    return {node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)}


# ----- Promises -----
def test_each_promise_is_a_sentence_and_has_tests_or_names_the_gap():
    assert len(BY_ID) == len({promise["promise"] for promise in PROMISES}) == len(PROMISES)
    for promise in PROMISES:
        assert promise["promise"].endswith("."), promise
        assert not promise["differently"].endswith("."), promise
        assert bool(promise["tests"]) != promise["differently"].startswith("not kept"), promise


def test_each_test_named_exists():
    named = {name for path in FOLDER.parent.glob("*/test_*.py") for name in names_of_tests(path.relative_to(ROOT).as_posix())}
    missing = []
    for promise in PROMISES:
        for identifier in promise["tests"].split():
            path, _, name = identifier.partition("::")
            if not name.startswith("test_") or not (ROOT / path).is_file() or name not in names_of_tests(path):
                missing.append((promise["id"], identifier))
        missing += [(promise["id"], name) for name in re.findall(r"test_\w+", promise["differently"]) if name not in named]
    assert missing == []


@pytest.mark.skipif(not PAGE.parent.is_dir(), reason="the documentation is not here")
def test_the_page_is_made_of_the_table():
    assert PAGE.read_text() == promises.page(), "run `python tests/reference/promises.py`"


# ----- Documents -----
def test_each_row_makes_a_promise_or_has_a_reason():
    assert [place(row) for row in ROWS if bool(row["promise"]) == bool(row["reason"]) or row["kind"] not in KINDS] == []
    assert {row["promise"] for row in ROWS} - {""} == set(BY_ID)


def test_each_printed_example_has_a_test_of_the_examples_or_a_reason():
    examples = [row for row in ROWS if row["kind"] == "example"]
    tests = "tests/reference/test_reference_examples.py::"
    assert [place(row) for row in examples if not row["reason"] and not BY_ID[row["promise"]]["tests"].startswith(tests)] == []


@with_documents
def test_the_rows_name_the_documents():
    assert sorted(path.name for path in DOCUMENTS.iterdir()) == FILES


@with_documents
@pytest.mark.parametrize("name", FILES)
def test_each_line_of_a_document_has_a_row(name):
    text = [line.strip() for line in (DOCUMENTS / name).read_text().splitlines()]
    covered = set()
    before = 1
    for row in rows_of(name):
        lines = lines_of(row)
        assert before <= lines[0] <= lines[-1] <= len(text), f"{place(row)} overlaps the row before it, or leaves the document"
        assert text[lines[0] - 1], f"{place(row)} starts at a blank line"
        assert text[lines[-1] - 1], f"{place(row)} ends at a blank line"
        before = lines[-1]
        covered.update(lines)
    assert [number for number, line in enumerate(text, 1) if line and number not in covered] == []


@with_documents
@pytest.mark.parametrize("name", FILES)
def test_a_line_has_at_least_a_row_for_each_sentence_that_ends_in_it(name):
    rows_on = Counter(number for row in rows_of(name) for number in lines_of(row))
    prose = {number for row in rows_of(name) if row["kind"] == "sentence" for number in lines_of(row)}
    for number, line in enumerate((DOCUMENTS / name).read_text().splitlines(), 1):
        ends = END_OF_SENTENCE.findall(line.strip())
        assert number not in prose or rows_on[number] >= len(ends), f"{name}:{number}"
