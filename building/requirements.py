"""The requirements of the build, and the sentence where one is missing: pip brings packages, but not with `--no-build-isolation`.

Imports nothing but the standard library, which may be all that is there.
"""

import re
import sys
import sysconfig
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def complaint(requirement: str) -> str | None:
    """Return the complaint about a package that is needed in a version or a newer one."""
    name, _, oldest = requirement.partition(">=")
    try:
        result = version(name)
    except PackageNotFoundError:
        return f"{name} is missing"
    return f"{name} is {result}" if numbers(result) < numbers(oldest) else None


def unmet_requirements() -> str | None:
    """Return a sentence that names missing and too old packages, and how to get it; None where nothing is."""
    requirements = tomllib.loads(PROJECT.read_text())["build-system"]["requires"]
    complaints = {requirement: wrong for requirement in requirements if (wrong := complaint(requirement))}
    if not complaints:
        return None
    packages = " ".join(f"'{requirement}'" for requirement in complaints)
    return f"cygrad is built with {', '.join(requirements)}, and here {' and '.join(complaints.values())}: pip install --upgrade {packages}"


def unsuitable_python() -> str | None:
    """Return a sentence where Python itself is another than cygrad is for."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    return "cygrad has no build for free-threaded Python, since the GIL is its lock: " \
        f"use the ordinary Python {'.'.join(map(str, sys.version_info[:2]))}"


def exit_unless_met() -> None:
    """End the process with the sentence where the build cannot be."""
    if sentence := unsuitable_python() or unmet_requirements():
        sys.exit(sentence)
