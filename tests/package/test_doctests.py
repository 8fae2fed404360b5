"""Every example in the docstrings, compiled functions included, and in the Markdown pages prints the text it shows."""

import ast
import doctest
import re

import pytest

import public

# The examples of cygrad.mpi run in tests/mpi, in processes of their own.
EXAMPLES = {name: text for name, text in public.docstrings().items() if ">>>" in text and not name.startswith("cygrad.mpi")}
# Pages whose blocks are programs, or parts of them: neither signatures nor excerpts of tables.
PROGRAMS = [page for page in public.pages() if not {"api", "design", "design.md", "add_an_operator.md"} & {page.parent.name, page.name}]


def run(text, name):
    """Run the examples of a text in one fresh namespace and fail with doctest's report."""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    report = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", EXAMPLES)
def test_docstring(name):
    run(EXAMPLES[name], name)


@pytest.mark.parametrize("page", public.pages(), ids=lambda page: page.name)
def test_page(page):
    """Blocks of one page continue each other."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    run("\n".join(block for block in blocks if ">>>" in block), page.name)


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.name)
def test_blocks_without_prompts_are_python(page):
    for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        if ">>>" not in block:
            ast.parse(block)


def test_most_functions_have_an_example():
    assert len(EXAMPLES) > 100
