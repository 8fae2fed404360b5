"""The examples of `cygrad.mpi`, of its page and of its docstrings, in one process; and its names."""

import doctest
import re
from pathlib import Path

import public
from checking import run

HERE = Path(__file__).resolve().parent


def check_examples():
    texts = {name: text for name, text in public.docstrings().items() if name.startswith("cygrad.mpi")}
    page = public.ROOT / "docs" / "mpi.md"
    if page.exists():       # where there are sources
        blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
        texts["docs/mpi.md"] = "\n".join(block for block in blocks if ">>>" in block)
    assert sum(">>>" in text for text in texts.values()) > 20
    for name, text in texts.items():
        report = []
        test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
        assert not report, "".join(report)


def check_every_operator_is_checked():
    from cygrad.operators import modules_of
    from cygrad.operators._written import registry

    texts = "".join(path.read_text() for path in HERE.glob("*.py"))
    assert {name for name in modules_of(registry.MPI) if f"mpi.{name.removeprefix('mpi_')}" not in texts} == set()


if __name__ == "__main__":
    run(globals())
