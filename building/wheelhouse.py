"""Wheels for each Python that is here: built from the source archive, repaired, measured, and tested where there is no compiler.

    python -m building.wheelhouse [--tests OPTIONS] [python ...]

Without a name all that `pyproject.toml` has wheels of are looked for. Wheels are in `dist`, all else in `build/wheelhouse`.
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

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORK, DIST = ROOT / "build" / "wheelhouse", ROOT / "dist"
LIMIT = 3_000_000
COMPILERS = "cc", "c99", "gcc", "g++", "clang", "ld"


@dataclass(frozen=True)
class Target:
    """What a wheel is for: the Python that it is built with, and what the build has in its environment."""

    name: str
    python: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A wheel, as the table shows it."""

    wheel: Path
    tests: str
    passed: bool

    @property
    def nbytes(self) -> int:
        return self.wheel.stat().st_size

    def text(self) -> str:
        tag = self.wheel.stem.split("-", 2)[2]
        return f"{tag:<48} {self.nbytes / 1000:7.0f} kB  {sha256(self.wheel.read_bytes()).hexdigest()}  {self.tests}"


def outcome(*command: str | Path, **options: object) -> tuple[str, int]:
    """Run a command and return what it prints, and its exit code."""
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, **options)      # type: ignore[call-overload]
    return str(result.stdout), int(result.returncode)


def run(*command: str | Path, **options: object) -> str:
    """Run a command and return what it prints; end where it fails, with all of that."""
    shown, code = outcome(*command, **options)
    if code:
        sys.exit(f"{shown}\n{shlex.join(map(str, command))} failed with exit code {code}")
    return shown


# ----- What can be built -----
def minor_versions() -> list[int]:
    """Return n of each Python 3.n that has wheels."""
    return [int(minor) for minor in re.findall(r"cp3(\d+)-", " ".join(PROJECT["tool"]["cibuildwheel"]["build"]))]


def targets(pythons: Sequence[str]) -> Iterator[Target]:
    """Yield a target for each Python that is named, or for each that is found, with a line for those that are not."""
    for python in pythons or [f"python3.{minor}" for minor in minor_versions()]:
        found = shutil.which(python)
        asked = found and subprocess.run([found, "-c", "import ensurepip, sys; print('cp%d%d' % sys.version_info[:2])"],
                                         capture_output=True, text=True)
        if asked and asked.returncode == 0:
            yield Target(asked.stdout.strip(), str(found))
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
    programs = environment_of(folder / "build", target.python, *PROJECT["build-system"]["requires"])
    run(programs / "python", "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, archive,
        env={**os.environ, **target.environment})
    (raw,) = folder.glob("*.whl")
    return Path(run(sys.executable, "-m", "building.repair", "--strip", raw, DIST, cwd=ROOT).splitlines()[-1])


def tested(target: Target, wheel: Path, options: Sequence[str]) -> Row:
    """Install a wheel where there are neither sources nor a compiler, and run the suite; where that fails, other wheels follow."""
    folder = WORK / target.name
    programs = environment_of(folder / "test", target.python, f"{wheel}[test]")
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    if found := [name for name in COMPILERS if shutil.which(name, path=str(programs))]:
        sys.exit(f"there is a compiler where the wheel is tested: {', '.join(found)}")
    shown, code = outcome(programs / "python", "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *options, cwd=folder,
                          env={**os.environ, "PATH": str(programs)})
    if code:
        print(shown, flush=True)
    return Row(wheel, shown.strip().splitlines()[-1].strip("= "), code == 0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m building.wheelhouse", description=__doc__.partition("\n")[0])
    parser.add_argument("--tests", default="--numprocesses auto --dist worksteal", help="options of pytest")
    parser.add_argument("python", nargs="*", help="interpreters; without one all that are found")
    arguments = parser.parse_args()
    archive, rows = source_archive(), []
    for target in targets(arguments.python):
        print(f"{target.name}: building", flush=True)
        wheel = wheel_for(target, archive)
        if wheel.stat().st_size > LIMIT:
            sys.exit(f"{wheel.name} has {wheel.stat().st_size} bytes, more than {LIMIT}")
        print(f"{target.name}: testing {wheel.name}", flush=True)
        rows.append(tested(target, wheel, shlex.split(arguments.tests)))
    print(f"\n{archive.name}  {sha256(archive.read_bytes()).hexdigest()}", *(row.text() for row in rows), sep="\n")
    if not rows:
        sys.exit("no wheel was built")
    if failed := [row.wheel.name for row in rows if not row.passed]:
        sys.exit(f"tests failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
