"""The pages: each is below an index, every public name has its place, tables are narrow, the gallery has each example."""

import ast
import importlib
import json
import re
import string

import pytest

import public
from cygrad.ops import ELEMENTWISE, formula

exports = importlib.import_module("cygrad.operators._written.exports")
latex = pytest.importorskip("building.operators.latex", reason="needs the sources")
pages = importlib.import_module("building.operators.pages")

DOCS = public.ROOT / "docs"
PAGES = public.pages()


def prose(page):
    """Return a page without its blocks of code."""
    return re.sub(r"^(`{3,}).*?^\1$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """Return the anchors of a page: of its headings, as GitHub has them, and those that are written."""
    text, counts, results = prose(page), {}, set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", "")).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = counts[anchor] = counts.get(anchor, -1) + 1
        results.add(f"{anchor}-{number}" if number else anchor)
    return results | set(re.findall(r'<a id="([^"]+)">', text))


# ----- Pages -----
def test_every_page_is_below_an_index():
    site = importlib.import_module("building.site")
    by_path = {path: place for path, place in site.places().items() if path.name != "README.md" or path.parent != public.ROOT}
    below = {"index.md"}
    for index in site.INDEXES:
        source = next(path for path, place in by_path.items() if place == index)
        for target in site.FIRST_LINK.findall(source.read_text()):
            file = (source.parent / target).resolve()
            below.add(by_path[file])
    assert below == set(by_path.values())


@pytest.mark.cases("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=str)
def test_rows_of_tables_are_short(page):
    """At most 160 characters, so that a row is read as a line."""
    assert [line for line in page.read_text().splitlines() if line.startswith("|") and len(line) > 160] == []


# ----- Names -----
def test_every_public_name_has_its_place():
    names = {export.path for export in exports.exports()} | {path for path, _ in exports.modules()}
    names |= {f"{export.path}.{member}" for export in exports.exports() if isinstance(export.thing, type) and export.module == "cygrad"
              for member in exports.members(export.thing)}
    places = pages.places()
    assert sorted(names - places.keys()) == []
    assert sorted(name for name, _ in public.public() if name not in places) == []
    by_page = {}
    for place in places.values():
        by_page.setdefault(place.page, set()).add(place.anchor)
    for page, used in by_page.items():
        assert used <= anchors(pages.FOLDER / page), page


def test_names_that_are_exported_are_the_ones_a_type_checker_sees():
    """The stub of the package names the exports; helpers of modules are not."""
    stub = ast.parse((pages.FOLDER.parents[1] / "cygrad" / "__init__.pyi").read_text())
    listed = {alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names if alias.name == alias.asname}
    listed |= {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")}
    listed |= {node.targets[0].id for node in stub.body if isinstance(node, ast.Assign) and not node.targets[0].id.startswith("_")}
    listed |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_")}
    assert listed == set(exports.names(importlib.import_module("cygrad")))


# ----- Mathematics -----
EXAMPLES = {
    "1 - y * y": "1 - y^{2}",
    "-(a / b) / b": r"-\frac{a}{b^{2}}",
    "0.5 / y": r"\frac{1}{2\,y}",
    "1 / sqrt((1 - x) * (1 + x))": r"\frac{1}{\sqrt{\left(1 - x\right)\,\left(1 + x\right)}}",
    "a - (b - x)": r"a - \left(b - x\right)",
    "exp(x) * (a + b)": r"e^{x}\,\left(a + b\right)",
    "0 if x <= 0 else 1": r"\begin{cases} 0 & \text{if } x \le 0 \\ 1 & \text{otherwise} \end{cases}",
    "1 if x > 0 else exp(0 if x > 0 else x)": r"\begin{cases} 1 & \text{if } x > 0 \\ e^{x} & \text{otherwise} \end{cases}",
    "expm1(x) * a": r"\left(e^{x} - 1\right)\,a",
    "1.1283791670955126 * x": r"\frac{2\,x}{\sqrt{\pi}}",
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_a_formula_is_written_as_mathematics(text):
    assert latex.latex(formula.parse(text)) == EXAMPLES[text]


def test_every_row_has_mathematics():
    for row in ELEMENTWISE.values():
        for text in (row.y, *row.partials.values(), *row.conjugates.values(), *row.let.values()):
            written = latex.latex(formula.parse(text))
            assert written.count("{") == written.count("}") and written.count(r"\left(") == written.count(r"\right)")
            assert set(written) <= {*string.printable} and "None" not in written


# ----- Versions -----
def test_a_served_site_lists_its_versions(tmp_path, capsys):
    versions = importlib.import_module("building.versions")
    for name in ("0.9.0", "dev", "0.10.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("")
    (tmp_path / "not built").mkdir()
    assert versions.main([str(tmp_path), "https://somewhere/"]) == 0
    listed = json.loads((tmp_path / "switcher.json").read_text())
    assert [row["version"] for row in listed] == ["dev", "0.10.0", "0.9.0"] and listed[1]["url"] == "https://somewhere/0.10.0/"
    assert [row["preferred"] for row in listed] == [False, True, False] and 'url=0.10.0/"' in (tmp_path / "index.html").read_text()
    assert versions.folder_of("0.2.0.dev0") == "dev" and versions.folder_of("0.2.0") == "0.2.0"


# ----- The gallery -----
SMALL = '''"""A picture."""

import sys


def main():
    open(sys.argv[2], "w").write("<svg/>")
    print(6 * 7)


main()
'''


def test_a_notebook_has_the_code_of_its_script():
    notebooks = importlib.import_module("building.notebooks")
    for script in notebooks.scripts():
        cells = notebooks.notebook(script)["cells"]
        code = [cell["source"] for cell in cells if cell["cell_type"] == "code"][1:-1]
        assert ast.dump(ast.parse("\n".join(code))) == ast.dump(ast.Module(ast.parse(script.read_text()).body[1:], []))


@pytest.mark.slow
def test_a_notebook_has_the_output_of_its_run(tmp_path):
    pytest.importorskip("nbclient", reason="nbclient runs the notebooks of the site")
    pytest.importorskip("ipykernel", reason="ipykernel runs the cells of a notebook")
    notebooks, gallery = importlib.import_module("building.notebooks"), importlib.import_module("building.gallery")
    script, downloads = tmp_path / "small.py", tmp_path / "downloads"
    downloads.mkdir()
    script.write_text(SMALL)
    (downloads / script.name).write_text(script.read_text())
    notebooks.run(script, downloads)
    *_, call, picture = json.loads((downloads / "small.ipynb").read_text())["cells"]
    assert call["outputs"][0]["text"] == ["42\n"] and picture["outputs"][0]["data"]["image/svg+xml"] == ["<svg/>"]
    page = "| example | subject | checked against |\n|---|---|---|\n| `examples/small.py` | a number | nothing |\n"
    text = gallery.gallery(page, downloads)
    assert "downloads/small.ipynb" in text and f"{len(SMALL.splitlines())} lines" in text
    script.write_text('"""A failure."""\n\nimport sys\n\nsys.exit("wrong")\n')
    with pytest.raises(Exception, match="wrong"):
        notebooks.run(script, downloads)
