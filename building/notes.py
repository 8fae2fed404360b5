"""`python -m building.notes VERSION`: the notes of a release, which are its section of CHANGELOG.md."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def notes(changelog: str, version: str) -> str:
    """Return the section of a version, "0.2.0" or "v0.2.0"; ValueError where there is none, or where it says that it is not released."""
    title = version.removeprefix("v").removesuffix(".0")
    section = re.search(rf"^## {re.escape(title)}(?: \((.*?)\))?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None or section[1]:
        raise ValueError(f"CHANGELOG.md has no released {title}: {section[1] if section else 'there is no such heading'}")
    return section[2].strip() + "\n"


def main(versions: list[str]) -> int:
    try:
        (version,) = versions
        print(notes((ROOT / "CHANGELOG.md").read_text(), version), end="")
    except ValueError as error:
        print(f"python -m building.notes: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
