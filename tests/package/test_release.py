"""Texts by hand about a release agree with the package: its version, its repository, its requirements."""

import re
import tomllib
from pathlib import Path

import pytest

import cygrad

ROOT = Path(__file__).resolve().parents[2]
SPACK = "recipes/spack/spack_repo/cygrad/packages/py_cygrad/package.py"
RECIPES = {
    path: pattern for path, pattern in (
        ("CITATION.cff", r"^version: (.*)$"),
        ("recipes/conda/recipe.yaml", r'^  version: "(.*)"$'),
        (SPACK, r'^    version\("([\d.]+)"'),
        ("recipes/easybuild/cygrad-0.2.0-gfbf-2025b.eb", r"^version = '(.*)'$"),
        ("recipes/apptainer/cygrad.def", r"^    version (.*)$"),
        ("recipes/module/cygrad.lua", r'^local version = "(.*)"$'),
        ("recipes/module/cygrad.tcl", r"^set version (.*)$"),
    )
}
pytestmark = pytest.mark.skipif(not (ROOT / "CITATION.cff").exists(), reason="looks at the sources, and runs beside none")


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize("path", RECIPES)
def test_versions_equal_the_version_of_the_package(path):
    """Between releases the next one's."""
    release, _, _ = cygrad.__version__.partition(".dev")
    assert re.findall(RECIPES[path], (ROOT / path).read_text(), re.MULTILINE) == [release]


def test_the_changelog_begins_with_the_version_and_its_state():
    release, development, _ = cygrad.__version__.partition(".dev")
    headings = re.findall("(?m)^## (.*)$", (ROOT / "CHANGELOG.md").read_text())
    assert headings[0] == release.removesuffix(".0") + (" (not released yet)" if development else "")


@pytest.mark.parametrize("path", ["CITATION.cff", "SECURITY.md", "recipes/conda/recipe.yaml", SPACK,
                                  "recipes/easybuild/cygrad-0.2.0-gfbf-2025b.eb", "recipes/module/cygrad.lua", "recipes/module/cygrad.tcl"])
def test_there_is_one_repository(path):
    repository = project()["project"]["urls"]["Repository"]
    assert {link for link in re.findall(r"https://github\.com/\w+/cygrad\b", (ROOT / path).read_text())} == {repository}


def needs():
    """Return {package: the oldest version} of the requirements of a build, and of Python."""
    tables = project()
    requirements = [*tables["build-system"]["requires"], f"python{tables['project']['requires-python']}"]
    return dict(requirement.lower().split(">=") for requirement in requirements)


def test_recipes_have_the_requirements_of_the_build():
    conda = (ROOT / "recipes" / "conda" / "recipe.yaml").read_text().lower()
    spack = (ROOT / SPACK).read_text()
    for name, oldest in needs().items():
        assert re.search(rf"- {name} >={re.escape(oldest)}\b", conda) or f"{name}_min: \"{oldest}" in conda, name
        spelled = name if name == "python" else f"py-{name}"
        assert f'depends_on("{spelled}@{oldest}:"' in spack, name
