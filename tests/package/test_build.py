"""Building and packaging: the contents of archives, generated files, and one clear sentence where it cannot work."""

import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from email import message_from_string
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest

import cygrad

ROOT = Path(__file__).resolve().parents[2]
TOOLS = shutil.which("gcc") and all(importlib.util.find_spec(name) for name in ("Cython", "setuptools"))
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (TOOLS and (ROOT / "setup.py").exists()), reason="no sources, or no tools to build")]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Return a copy of the sources, without anything that is built."""
    folder = tmp_path_factory.mktemp("cygrad") / "checkout"
    unwanted = shutil.ignore_patterns(".*", "build", "dist", "generated", "*.egg-info", "__pycache__", "*.c", "*.so")
    return shutil.copytree(ROOT, folder, ignore=unwanted)


def setup(folder, *arguments, **environment):
    """Run setup.py, as pip does, and return its exit status and output."""
    result = subprocess.run([sys.executable, "setup.py", *arguments], cwd=folder, env={**os.environ, **environment},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return result.returncode, result.stdout


# ----- Compilers -----
def compiler(folder, script):
    """Write a compiler and return its path."""
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


UNABLE = {
    "none": ("", r"cygrad needs a C compiler, and '\S+/cc' cannot be run \(.+\): install one .* or name it in CC"),
    "without OpenMP": (
        'for word in "$@"; do [ "$word" = -fopenmp ] && exit 1; done; exec gcc "$@"',
        r"the C compiler '\S+/cc' has no OpenMP: install .* or set CYGRAD_OPENMP=0 for a build without threads",
    ),
    "without headers": (
        'echo "python.c:1:10: fatal error: Python.h: No such file" >&2; exit 1',
        r"the C compiler '\S+/cc' cannot read Python's headers .*: python.c:1:10: fatal error: Python.h: No such file",
    ),
    "old": (
        'exec gcc "$@" -U__GNUC__ -D__GNUC__=11 2> /dev/null',
        r"cygrad needs GCC 12 or newer, or Clang, and '\S+/cc' is GCC 11: name a newer one in CC",
    ),
}


@pytest.mark.parametrize("case", UNABLE)
def test_a_missing_tool_is_named_in_one_sentence(checkout, tmp_path, case):
    script, sentence = UNABLE[case]
    if case == "old" and platform.machine() != "x86_64":
        pytest.skip("a matter of the levels of x86-64")
    path = compiler(tmp_path, script) if script else str(tmp_path / "cc")
    status, output = setup(checkout, "build_ext", CC=path, CYGRAD_OPENMP="1")
    assert status == 1
    assert "Traceback" not in output
    assert re.fullmatch(f"error: {sentence}", output.strip().splitlines()[-1])


def backend(folder, *options):
    """Call the functions that pip calls, as pip does with `--no-build-isolation`."""
    script = f"import sys; sys.path.insert(0, {str(folder)!r}); import building.backend as backend; backend.get_requires_for_build_wheel()"
    result = subprocess.run([sys.executable, *options, "-c", script], cwd=folder, capture_output=True, text=True, timeout=60)
    return result.returncode, result.stderr


@pytest.mark.parametrize("ask", [lambda folder: setup(folder, "build_ext"), backend], ids=["setup.py", "backend"])
def test_packages_that_the_build_needs_are_named_where_they_are_missing(checkout, tmp_path, ask):
    folder = shutil.copytree(checkout, tmp_path / "copy")
    project = folder / "pyproject.toml"
    needs = 'requires = ["setuptools>=77", "Cython>=99.1", "no-such-package>=1"]'
    project.write_text(re.sub("(?m)^requires = .*", needs, project.read_text()))
    status, output = ask(folder)
    assert status == 1
    assert re.fullmatch(r"cygrad is built with setuptools>=77, Cython>=99.1, no-such-package>=1, and here Cython is [\d.]+ and "
                        r"no-such-package is missing: pip install --upgrade 'Cython>=99.1' 'no-such-package>=1'\n", output)


def test_packages_are_named_where_there_is_none_at_all(checkout):
    """Not even setuptools, which pip asks first where a project says nothing else."""
    status, output = backend(checkout, "-S", "-E")
    assert status == 1
    assert re.fullmatch(r"cygrad is built with .*, and here setuptools is missing and Cython is missing and numpy is missing: .*\n", output)


def test_a_python_without_the_lock_is_refused(checkout, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sysconfig\nsysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1\n")
    status, output = setup(checkout, "build_ext", PYTHONPATH=str(tmp_path))
    assert status == 1
    assert re.fullmatch(r"cygrad has no build for free-threaded Python, .*: use the ordinary Python 3\.\d+\n", output)


@pytest.mark.parametrize("debug", [False, True])
def test_compiler_and_flags_are_respected(checkout, tmp_path, debug):
    """A compiler that only writes its arguments down."""
    log = tmp_path / "log"
    path = compiler(tmp_path, f'echo "$@" >> {log}; case " $* " in *" -dM "*) exec gcc "$@";; esac; exit 1')
    arguments = ["--debug"] if debug else []
    status, _ = setup(checkout, "build_ext", *arguments, CC=f"{path} -pipe", CFLAGS="-O1 -DMARK='a b'", CYGRAD_OPENMP="0")
    assert status == 1
    lines = [line for line in log.read_text().splitlines() if " -c " in line]
    assert lines
    assert all(line.startswith("-pipe ") and line.endswith(" -O1 -DMARK=a b") for line in lines)
    assert all("-fopenmp-simd" in line and "-fopenmp " not in line for line in lines)
    assert all(("-UNDEBUG" in line) == debug for line in lines)


# ----- Archives -----
def test_the_source_archive_is_complete_and_holds_nothing_generated(checkout, tmp_path):
    for built in ("_core/graph/tensor.c", "_core/graph/tensor.o", "_native.so", "_kernels/generated/loops.h"):
        path = checkout / "cygrad" / built
        path.parent.mkdir(exist_ok=True)
        path.touch()
    status, output = setup(checkout, "sdist", "--dist-dir", str(tmp_path), CC="/no/compiler/needed")
    assert status == 0, output
    assert "warning" not in output
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames() if "." in name}
    expected_values = {path for suffix in ("py", "pyx", "pxd", "h", "pyi") for path in ROOT.glob(f"cygrad/**/*.{suffix}")}
    expected_values |= {*ROOT.glob("tests/**/*.py"), *ROOT.glob("building/**/*.py")}
    expected_values |= {path for suffix in ("md", "svg", "css", "py") for path in ROOT.glob(f"docs/**/*.{suffix}")}
    expected_values = {str(path.relative_to(ROOT)) for path in expected_values if "generated" not in path.parts}
    assert expected_values | {"cygrad/py.typed", "setup.py", "pyproject.toml", "README.md"} <= packed
    assert not {name for name in packed if name.endswith((".c", ".so", ".o", ".pyc")) or "/generated" in name}


@pytest.mark.parametrize("seconds", ["", "-1", "0", "many", "1e9", "315532799", *map(str, (2**32 + 2**28, 2**64, 10**30)), "9" * 5000])
def test_a_time_that_no_file_can_have_is_refused(checkout, seconds):
    status, output = setup(checkout, "--version", SOURCE_DATE_EPOCH=seconds)
    assert status == 1
    assert re.fullmatch(r"SOURCE_DATE_EPOCH='.*' is no time of a file: give seconds since 1970, .*\n", output)


def test_links_of_the_description_lead_to_files_of_the_repository(checkout):
    """A package index shows README.md without the files beside it."""
    status, output = setup(checkout, "egg_info", CC="/no/compiler/needed")
    assert status == 0, output
    information = message_from_string((checkout / "cygrad.egg-info" / "PKG-INFO").read_text())
    places = dict(line.split(", ") for line in information.get_all("Project-URL"))
    links = re.findall(r"\]\(([^)]*)\)", information.get_payload())
    files = [link.removeprefix(f"{places['Repository']}/blob/HEAD/") for link in (*links, places["Documentation"], places["Changelog"])]
    assert len(files) > 10
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_the_installed_package_needs_nothing_but_numpy():
    try:
        requirements = requires("cygrad")
    except PackageNotFoundError:
        pytest.skip("built in place, not installed")
    assert cygrad.__version__ == version("cygrad")
    assert [re.match(r"[\w-]+", line)[0] for line in requirements if "extra ==" not in line] == ["numpy"]


# ----- Building again -----
@pytest.fixture
def made_file(monkeypatch, tmp_path):
    """Return the class of files that are made of others, in an empty folder."""
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.chdir(tmp_path)
    return importlib.import_module("building.files").MadeFile


def copy_of(source):
    return lambda partial: [Path(shutil.copy(source, partial)) and Path(source)]


def test_a_file_is_made_again_when_the_result_would_be_another(made_file):
    Path("source").write_text("a")
    artifact = made_file(Path("folder/copy"), ["cp"], copy_of("source"))
    assert not artifact.is_current()
    artifact.update()
    assert artifact.target.read_text() == "a"
    assert artifact.is_current()
    Path("source").touch()
    assert artifact.is_current()
    for change in (lambda: Path("source").write_text("b"), lambda: Path("source").unlink(), lambda: artifact.target.write_text("half"),
                   artifact.target.unlink, lambda: artifact.record.write_text("{")):
        Path("source").write_text("a")
        artifact.update()
        assert artifact.is_current()
        change()
        assert not artifact.is_current()
    assert not made_file(artifact.target, ["cp", "-a"], copy_of("source")).is_current()


def test_a_row_that_moved_in_its_table_is_not_compiled_again(made_file):
    Path("source").write_text('#line 3 "table.py"\na\n')
    artifact = made_file(Path("copy"), ["cp"], copy_of("source"))
    artifact.update()
    Path("source").write_text('#line 40 "table.py"\na\n')
    assert artifact.is_current()
    Path("source").write_text('#line 40 "table.py"\nb\n')
    assert not artifact.is_current()


def test_neither_half_a_file_counts_nor_one_whose_source_was_edited_meanwhile(made_file):
    def interrupted(partial):
        partial.write_text("half")
        raise KeyboardInterrupt

    def edited(partial):
        shutil.copy("source", partial)
        later = partial.stat().st_mtime + 10
        os.utime("source", (later, later))
        return [Path("source")]

    Path("source").write_text("a")
    artifact = made_file(Path("copy"), ["cp"], interrupted)
    with pytest.raises(KeyboardInterrupt):
        artifact.update()
    assert not artifact.target.exists()
    artifact = made_file(Path("copy"), ["cp"], edited)
    artifact.update()
    assert artifact.target.exists()
    assert not artifact.is_current()


def test_a_module_is_translated_again_when_a_module_that_it_imports_changed(made_file):
    translation_of = importlib.import_module("building.translation").translation_of
    Path("one.pyx").write_text("from two cimport number\ndef f():\n    return <int>number\n")
    Path("two.pxd").write_text("cdef enum:\n    number = 2\n")
    artifact = translation_of(Path("one.pyx"), Path("build"), debug=False)
    artifact.update()
    assert artifact.is_current()
    assert not translation_of(Path("one.pyx"), Path("build"), debug=True).is_current()
    for path, text in (("two.pxd", "cdef enum:\n    number = 3\n"), ("one.pxd", "cdef int other\n"), ("build/one.c", "half")):
        before = Path(path).read_text() if Path(path).exists() else None
        Path(path).write_text(text)
        assert not artifact.is_current(), path
        Path(path).unlink() if before is None else Path(path).write_text(before)
        assert artifact.is_current(), path


def test_a_build_goes_on_where_it_stopped(checkout, tmp_path):
    """A compiler of empty objects that fails after a few; modules come after the loops, so that Cython is not asked."""
    log = tmp_path / "log"
    path = compiler(tmp_path, f'''
        case " $* " in *" -dM "*|*" -shared "*) exec gcc "$@";; esac
        while [ $# -gt 0 ]; do case "$1" in -o) object=$2;; -MF) listing=$2;; -c) source=$2;; esac; shift; done
        echo "$source" >> {log}
        [ $(wc -l < {log}) -gt 5 ] && exit 1
        : > "$object"; echo "object: $source" > "$listing"''')
    status, output = setup(checkout, "build_ext", "--parallel", "1", CC=path)
    assert status == 1
    first, *lines = re.findall(r".*files to build.*|\[.*", output)
    total = int(re.fullmatch(r"(\d+) of \1 files to build, 1 at a time: about two minutes on two cores", first)[1])
    assert lines == [f"[{number}/{total}] {source}" for number, source in enumerate(log.read_text().splitlines()[:5], 1)]
    status, output = setup(checkout, "build_ext", "--parallel", "1", CC=path)
    assert status == 1
    assert f"{total - 5} of {total} files to build, 1 at a time\n" in output
    assert len(set(log.read_text().splitlines())) == len(log.read_text().splitlines()) - 1
    for arguments, environment in (((), {"CFLAGS": "-DOTHER"}), (("--debug",), {})):
        _, output = setup(checkout, "build_ext", "--parallel", "1", *arguments, CC=path, **environment)
        assert f"{total} of {total} files to build" in output


# ----- Generated loops -----
@pytest.fixture
def generator(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(ROOT)
    codegen = importlib.import_module("building.command").load_generator()
    monkeypatch.setattr(codegen, "OUTPUT", tmp_path / "generated")
    return codegen


def test_unchanged_files_are_not_written_again(generator):
    def times():
        return {path.name: path.stat().st_mtime_ns for path in generator.OUTPUT.iterdir()}

    generator.generate(("v2", "v3"))
    written = times()
    generator.generate(("v2", "v3"))
    assert times() == written
    assert {"floats_0_v2.c", "floats_7_v3.c", "others_3_v3.c", "rare_0_v2.c", "floats_reduction_v2.c", "others_casts_v3.c"} < set(written)


def test_a_changed_row_changes_one_unit(generator, monkeypatch):
    def texts():
        return {path.name: re.sub("#line.*", "", path.read_text()) for path in generator.OUTPUT.iterdir()}

    generator.generate(("v2",))
    before = texts()
    row = sys.modules["_cygrad_ops"].ELEMENTWISE["tanh"]
    monkeypatch.setattr(row, "y", "2 * tanh(x)")
    generator.generate(("v2",))
    changed = [name for name, text in texts().items() if text != before[name]]
    assert set(changed) == {f"{kind}_{generator.loops.unit_of(row, kind)}_loops.h" for kind in ("floats", "others")}


@pytest.mark.parametrize("family", ["elementwise", "reduction"])
def test_messages_of_the_compiler_name_the_row(generator, family):
    generator.generate(("baseline",))
    rows = (ROOT / "cygrad" / "ops" / f"{family}.py").read_text().splitlines()
    units = {"elementwise": "*_[0-9]_loops.h", "reduction": "*_reduction_loops.h"}[family]
    loops = "".join(path.read_text() for path in generator.OUTPUT.glob(units))
    numbers = {int(number) for number in re.findall(rf'#line (\d+) "cygrad/ops/{family}\.py"', loops)}
    assert len(numbers) > 5
    assert all(rows[number - 1].startswith(f'{family}("') for number in numbers)
