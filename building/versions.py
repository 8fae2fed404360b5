"""`python -m building.versions FOLDER ADDRESS`: the list of versions of a folder with a built site for each, which the switcher reads.

The folder "dev" is the site of the sources, all others are named by their release. A page beside them leads to the newest release.
"""

import json
import sys
from pathlib import Path

DEVELOPMENT = "dev"
PAGE = """\
<!doctype html>
<meta charset="utf-8">
<title>cygrad</title>
<meta http-equiv="refresh" content="0; url={0}/">
<a href="{0}/">{0}</a>
"""


def folder_of(version: str) -> str:
    """Return the folder of a version: "0.2.0", or "dev" where it is not released."""
    return DEVELOPMENT if ".dev" in version else version


def versions(names: list[str], address: str) -> list[dict[str, object]]:
    """Return the switcher's list for the names of folders: the sources, then releases, newest first, of which the first is preferred."""
    released = (name for name in names if name != DEVELOPMENT)
    releases = sorted(released, key=lambda name: [int(word) for word in name.split(".")], reverse=True)
    ordered = [name for name in names if name == DEVELOPMENT] + releases
    newest = (releases or ordered)[0]
    return [{"version": name, "url": f"{address}/{name}/", "preferred": name == newest} for name in ordered]


def main(arguments: list[str]) -> int:
    folder, address = Path(arguments[0]), arguments[1].rstrip("/")
    listed = versions([path.parent.name for path in folder.glob("*/index.html")], address)
    (folder / "switcher.json").write_text(json.dumps(listed, indent=1) + "\n")
    (folder / "index.html").write_text(PAGE.format(next(row["version"] for row in listed if row["preferred"])))
    print(*(f"{row['version']}: {row['url']}" for row in listed), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
