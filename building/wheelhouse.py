"""Wheels for each Python that is here: built from the source archive, repaired, measured, and tested where there is no compiler.

    python -m building.wheelhouse [--tests OPTIONS] [python ...]

Without a name all that `pyproject.toml` has wheels of are looked for. Wheels are in `dist`, all else in `build/wheelhouse`.
Each wheel has a line when it is done; one that fails is no reason to leave out the others.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORK, DIST = ROOT / "build" / "wheelhouse", ROOT / "dist"
LIMIT = 4_000_000
COMPILERS = "cc", "c99", "gcc", "g++", "clang", "ld"


@dataclass(frozen=True)
class Target:
    """The target of a wheel: the Python that it is built with, and the environment of the build."""

    name: str
    version: str
    python: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """The outcome of a target: its wheel, if there is one, the last line of the suite or of the failed command, and its seconds."""

    target: Target
    wheel: Path | None
    outcome: str
    succeeded: bool
    seconds: float

    def text(self) -> str:
        words = [f"{self.target.version:<8}"]
        if self.wheel:
            tag = self.wheel.stem.split("-", 2)[2]
            words += [f"{tag:<48}", f"{self.wheel.stat().st_size:9,} bytes", sha256(self.wheel.read_bytes()).hexdigest()]
        return "  ".join([*words, self.outcome if self.succeeded else f"FAILED: {self.outcome}", f"{self.seconds:.0f} s"])


class Failure(Exception):
    """There is no such wheel, or it is not as it should be; the last line says why."""


def outcome(*command: str | Path, **options: object) -> tuple[str, int]:
    """Run a command and return its output, and its exit code."""
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, **options)      # type: ignore[call-overload]
    return str(result.stdout), int(result.returncode)


def run(*command: str | Path, **options: object) -> str:
    """Run a command and return its output; where it fails, Failure holds all of that."""
    shown, code = outcome(*command, **options)
    if code:
        raise Failure(f"{shown}\n{shlex.join(map(str, command))} failed with exit code {code}")
    return shown


# ----- Targets -----
def minor_versions() -> list[int]:
    """Return n of each Python 3.n that has wheels."""
    return [int(minor) for minor in re.findall(r"cp3(\d+)-", " ".join(PROJECT["tool"]["cibuildwheel"]["build"]))]


def targets(pythons: Sequence[str]) -> Iterator[Target]:
    """Yield a target for each Python that is named, or for each that is found, with a line for those that are not."""
    for python in pythons or [f"python3.{minor}" for minor in minor_versions()]:
        result = shutil.which(python)
        process = result and subprocess.run([result, "-c", "import ensurepip, platform, sys; "
                                          "print('cp%d%d' % sys.version_info[:2], platform.python_version())"],
                                         capture_output=True, text=True)
        if process and process.returncode == 0:
            name, version = process.stdout.split()
            yield Target(name, version, str(result))
        else:
            print(f"{python}: not here, or without venv", flush=True)


# ----- Building and testing -----
def environment_of(folder: Path, python: str, *packages: str) -> Path:
    """Make a virtual environment with some packages and return its folder of programs."""
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "--only-binary", ":all:", *packages)
    return folder / "bin"


def source_archive() -> Path:
    for folder in (WORK, DIST):
        shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", WORK, ROOT)
    (archive,) = WORK.glob("*.tar.gz")
    DIST.mkdir()
    return Path(shutil.copy(archive, DIST))


def wheel_for(target: Target, archive: Path) -> Path:
    """Build a wheel as others would, and let it bring the libraries that not every system has."""
    folder = WORK / target.name
    shutil.rmtree(folder, ignore_errors=True)
    programs = environment_of(folder / "build", target.python, *PROJECT["build-system"]["requires"])
    run(programs / "python", "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, archive,
        env={**os.environ, **target.environment})
    (raw,) = folder.glob("*.whl")
    return Path(run(sys.executable, "-m", "building.repair", "--strip", raw, DIST, cwd=ROOT).splitlines()[-1])


def tested(target: Target, wheel: Path, options: Sequence[str]) -> str:
    """Install a wheel where there are neither sources nor a compiler, run the suite, and return its last line."""
    folder = WORK / target.name
    programs = environment_of(folder / "test", target.python, f"{wheel}[test]")
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    if result := [name for name in COMPILERS if shutil.which(name, path=str(programs))]:
        raise Failure(f"there is a compiler where the wheel is tested: {', '.join(result)}")
    shown, code = outcome(programs / "python", "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *options, cwd=folder,
                          env={**os.environ, "PATH": str(programs)})
    last = (shown.strip() or f"pytest ended with {code}, without a word").splitlines()[-1].strip("= ")
    if code:
        raise Failure(f"{shown}\n{last}")
    return last


def row_of(target: Target, archive: Path, options: Sequence[str]) -> Row:
    """Build and test the wheel of a target, and print the progress."""
    began, wheel = monotonic(), None
    try:
        print(f"{target.name}: building", flush=True)
        wheel = wheel_for(target, archive)
        if (nbytes := wheel.stat().st_size) > LIMIT:
            raise Failure(f"{wheel.name} has more than {LIMIT:,} bytes: {nbytes:,}")
        print(f"{target.name}: testing {wheel.name}", flush=True)
        last, succeeded = tested(target, wheel, options), True
    except (Failure, OSError) as failure:
        print(failure, flush=True)
        last, succeeded = str(failure).splitlines()[-1], False
    return Row(target, wheel, last, succeeded, monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m building.wheelhouse", description=__doc__.partition("\n")[0])
    parser.add_argument("--tests", default="--numprocesses auto --dist worksteal", help="options of pytest")
    parser.add_argument("python", nargs="*", help="interpreters; without one all that are found")
    arguments = parser.parse_args()
    try:
        archive = source_archive()
    except Failure as failure:
        sys.exit(str(failure))
    print(f"{archive.name}  {sha256(archive.read_bytes()).hexdigest()}", flush=True)
    rows = []
    for target in targets(arguments.python):
        rows.append(row_of(target, archive, shlex.split(arguments.tests)))
        print(rows[-1].text(), flush=True)
    if not rows:
        sys.exit("no wheel was built")
    if failed := [row.target.version for row in rows if not row.succeeded]:
        sys.exit(f"failed: Python {', '.join(failed)}")


if __name__ == "__main__":
    main()
