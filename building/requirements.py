"""What the build needs, and the sentence where it is not there: pip brings it, but not with `--no-build-isolation`."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def complaint(requirement: str) -> str | None:
    """Return what is wrong with a package that is needed in a version or a newer one."""
    name, _, oldest = requirement.partition(">=")
    try:
        found = version(name)
    except PackageNotFoundError:
        return f"{name} is missing"
    return f"{name} is {found}" if numbers(found) < numbers(oldest) else None


def unmet_requirements(pyproject: Path) -> str | None:
    """Return a sentence that names what is missing or too old, and how to get it; None where nothing is."""
    requirements = tomllib.loads(pyproject.read_text())["build-system"]["requires"]
    complaints = {requirement: wrong for requirement in requirements if (wrong := complaint(requirement))}
    if not complaints:
        return None
    wanted = " ".join(f"'{requirement}'" for requirement in complaints)
    return f"cygrad is built with {', '.join(requirements)}, and here {' and '.join(complaints.values())}: pip install --upgrade {wanted}"
