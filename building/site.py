"""`python -m building.site`: the documentation as a site in `build/site`, by Sphinx, from the Markdown pages of the repository.

The pages stay as a reader of the repository sees them. Sphinx reads copies, `build/site-pages`, with two changes. A link to a file that is
no page of the site leads into the repository. Below an index page stand the pages that begin its rows and list items, in their order.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from building.gallery import gallery
from building.notebooks import NOTEBOOKS
from building.operators.pages import places as places_of_names

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES, SITE = ROOT / "build" / "site-pages", ROOT / "build" / "site"
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "recipes/README.md")      # pages beside docs/
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]*)(#[^)\s]*)?(?=\))")
FIRST_LINK = re.compile(r"^(?:\| |- )\[[^\]]+\]\(([^)#]+\.md)\)", re.MULTILINE)
FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
INDEXES = ("index.md", "start.md", "coming_from/README.md", "guides.md", "api/README.md", "api/operators.md", "examples.md", "project.md",
           "design.md")


def places() -> dict[Path, str]:
    """Return the place in the site of each page of the repository."""
    within = {path: path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))}
    return within | {ROOT / name: name for name in OUTSIDE} | {ROOT / "README.md": "index.md"}


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return a page with its parts between blocks of code changed."""
    return "".join(part if part.startswith("```") else change(part) for part in FENCE.split(text))


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield (file, anchor) of the links of a page to files of the repository."""
    text = outside_code(page.read_text(), lambda part: re.sub(r"`[^`\n]*`", "", part))
    for match in LINK.finditer(FENCE.sub("", text)):
        yield Path(os.path.normpath(page.parent / match[1])) if match[1] else page, (match[2] or "").removeprefix("#")


def for_site(page: Path, place: str, by_path: dict[Path, str], repository: str) -> str:
    """Return a page with links as the site has them."""
    def link(match: re.Match[str]) -> str:
        target, anchor = Path(os.path.normpath(page.parent / match[1])), match[2] or ""
        if target in by_path:
            return os.path.relpath(by_path[target], Path(place).parent) + anchor
        if not target.exists():
            raise FileNotFoundError(f"{page}: a link leads to {match[1]}, which is no file")
        if target.is_relative_to(DOCS) and target.is_file():
            return os.path.relpath(target.relative_to(DOCS), Path(place).parent)
        return f"{repository}/blob/HEAD/{target.relative_to(ROOT).as_posix()}"

    return outside_code(page.read_text(), lambda part: LINK.sub(link, part))


def with_contents(text: str, place: str, placed: set[str]) -> str:
    """Return an index page with the pages below it, those that no index before it has."""
    below = []
    for target in FIRST_LINK.findall(text):
        page = os.path.normpath(Path(place).parent / target)
        if page not in placed:
            placed.add(page)
            below.append(target)
    return text + "\n```{toctree}\n:hidden:\n" + "\n".join(below) + "\n```\n" if below else text


def write_names() -> None:
    """Write the address of each public name for Sphinx's search, and for other projects that refer to cygrad."""
    (PAGES / "names.json").write_text(json.dumps({name: [f"api/{place.page}", place.anchor] for name, place in places_of_names().items()}))


def write_pages() -> int:
    """Write Sphinx's pages and return their number."""
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    by_path = places()
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(DOCS, PAGES, ignore=shutil.ignore_patterns("*.md", "__pycache__"))
    write_names()
    texts = {place: for_site(path, place, by_path, repository) for path, place in by_path.items() if path != ROOT / "README.md"}
    shutil.copytree(NOTEBOOKS, PAGES / "downloads")
    texts["examples.md"] = gallery(texts["examples.md"], PAGES / "downloads")
    placed = {"index.md"}
    for index in INDEXES:
        texts[index] = with_contents(texts[index], index, placed)
    for place, text in texts.items():
        (PAGES / place).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / place).write_text(text)
    return len(texts)


def main(options: list[str]) -> int:
    if not NOTEBOOKS.exists():
        print("the gallery needs notebooks that ran: python -m building.notebooks", file=sys.stderr)
        return 1
    print(f"{write_pages()} pages")
    checks = ["--fail-on-warning", "--keep-going", "--nitpicky"]
    return subprocess.run([sys.executable, "-m", "sphinx", *checks, "--jobs", "auto", *options, str(PAGES), str(SITE)]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
