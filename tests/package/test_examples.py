"""The page of the examples: it has them all, and quotes them as they are."""

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "examples.md"
EXAMPLES = {path.name: path.read_text() for path in (ROOT / "examples").glob("*.py") if "def main(" in path.read_text()}

pytestmark = pytest.mark.skipif(not EXAMPLES, reason="needs the sources")


def lines(text):
    """Return the lines of a text without their indentation."""
    return [line.strip() for line in textwrap.dedent(text).splitlines()]


def test_every_example_is_on_the_page_and_in_the_demo():
    rows = set(re.findall(r"^\| `examples/(\w+\.py)` \|", PAGE.read_text(), re.MULTILINE))
    run = set(re.findall(r"^\t\$\(RUN\) examples/(\w+\.py)$", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert rows == run == set(EXAMPLES)


def quotations(page):
    """Return the blocks of code of a page that are no doctests."""
    return [block for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL) if ">>>" not in block]


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "coming_from").glob("[!R]*.md")), ids=lambda page: page.name)
def test_quotations_of_other_libraries_are_the_measured_ones(page):
    source = "\n".join(lines((ROOT / "benchmarks" / "ported.py").read_text()))
    blocks = quotations(page)
    assert blocks
    assert [block for block in blocks if "\n".join(lines(block)) not in source] == []


@pytest.mark.parametrize("page", [PAGE, ROOT / "docs" / "scipy.md"], ids=lambda page: page.name)
def test_quotations_of_a_page_stand_in_an_example(page):
    blocks = quotations(page)
    sources = ["\n".join(lines(text)) for text in EXAMPLES.values()]
    assert blocks
    assert [block for block in blocks if not any("\n".join(lines(block)) in source for source in sources)] == []
