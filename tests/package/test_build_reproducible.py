"""The same sources and tools give the same bytes, wherever and whenever they are built; and loops for one processor name it."""

import importlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from types import SimpleNamespace

import pytest

from test_build import ROOT, checkout, compiler, setup  # noqa: F401
from test_build import pytestmark as pytestmark


@pytest.fixture
def here_and_there(checkout, tmp_path):  # noqa: F811
    """Return two copies of the sources: places, ages and permissions differ."""
    folders = shutil.copytree(checkout, tmp_path / "here"), shutil.copytree(checkout, tmp_path / "somewhere else" / "there")
    for path in folders[1].rglob("*"):
        path.chmod(0o775 if path.is_dir() else 0o664)
        os.utime(path, (1e9, 1e9))
    return folders


def built(folders, *arguments, status, **environment):
    """Run setup.py in both, whose sets and dictionaries of strings have other orders."""
    for folder, seed, zone in zip(folders, "12", ("UTC", "Asia/Tokyo"), strict=True):
        result, output = setup(folder, *arguments, PYTHONHASHSEED=seed, TZ=zone, **environment)
        assert result == status, output


def contents(folder, pattern):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob(pattern) if path.is_file()}


def test_source_archives_are_alike(here_and_there):
    built(here_and_there, "sdist", status=0, CC="/no/compiler/needed")
    here, there = (contents(folder, "dist/*") for folder in here_and_there)
    assert len(here) == 1
    assert here == there


def test_sources_and_objects_are_alike(here_and_there, tmp_path):
    """The generated sources, one of their objects with its debug data, and Cython's first output; the rest is left out."""
    path = compiler(tmp_path, """
        case " $* " in *" -dM "*|*" -shared "*|*/shared_*.c*) exec gcc "$@";; *_kernels/generated/*) ;; *) exit 1;; esac
        while [ $# -gt 0 ]; do case "$1" in -o) object=$2;; -MF) listing=$2;; esac; shift; done
        : > "$object"; echo "object: setup.py" > "$listing" """)
    built(here_and_there, "build_ext", "--parallel", "1", status=1, CC=path, CFLAGS="-O0")
    for pattern, least in (("cygrad/_kernels/generated/*", 50), ("build/**/shared_*.o", 1), ("build/**/*.c", 1)):
        here, there = (contents(folder, pattern) for folder in here_and_there)
        assert sum(map(bool, here.values())) >= least
        assert here == there, pattern


# ----- For one processor -----
def test_a_processor_without_the_features_of_the_loops_is_refused(tmp_path):
    """A build of `CYGRAD_ISA_BUILD=native`, for an instruction that no processor of the last years has."""
    (tmp_path / "generated").mkdir()
    needs = 'needed("sse2") needed("xop")'
    (tmp_path / "generated" / "native.h").write_text(
        f'#define CG_NATIVE "bdver4"\n#define CG_NATIVE_VECTOR_BYTES 64\n#define CG_NATIVE_NEEDS(needed) {needs}\n')
    source = tmp_path / "asks.c"
    source.write_text("""#include "system/isa.h"
        #include <stdio.h>
        int main(void) {
            printf("%d %s %s %s", cg_isa_supported(0), cg_isa_name(0), cg_isa_lacking(), cg_isa_built_for());
            return 0;
        }""")
    program = tmp_path / "asks"
    process = subprocess.run(["gcc", f"-I{tmp_path}", f"-I{ROOT}/cygrad/_kernels", source, "-o", program], capture_output=True, text=True)
    if process.returncode and "__builtin_cpu_supports" in process.stderr:
        pytest.skip("a compiler that asks processors is one for x86-64")
    assert process.returncode == 0, process.stderr
    assert subprocess.run([program], capture_output=True, text=True).stdout == "0 native xop bdver4"


def found_compiler(name):
    """Return the path of a compiler, which may be called by its version."""
    result = next(filter(None, map(shutil.which, [name, *(f"{name}-{version}" for version in range(25, 11, -1))])), "")
    return result or pytest.skip(f"there is no {name} here")


def test_clang_takes_all_loops(checkout):  # noqa: F811
    command = [found_compiler("clang"), "-fsyntax-only", "-w",
               *(f"-I{folder}" for folder in (sysconfig.get_path("include"), "cygrad/_core", "cygrad/_kernels"))]
    code = "from building.command import load_generator; print(*load_generator().generate(('baseline',)))"
    units = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=checkout, text=True, check=True).stdout.split()
    assert len(units) > 10
    for unit in units:
        process = subprocess.run([*command, unit], cwd=checkout, capture_output=True, text=True)
        assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_gcc_and_clang_take_all_flags(monkeypatch, tmp_path, name):
    result = found_compiler(name)
    monkeypatch.setenv("CYGRAD_OPENMP", "0")
    monkeypatch.syspath_prepend(ROOT)
    building = importlib.import_module("building.compiler")
    tools = SimpleNamespace(compiler_so=[result], linker_so=[result], include_dirs=[sysconfig.get_path("include")])
    process = building.Compiler(tools, [], False)
    source = tmp_path / "nothing.c"
    source.write_text("int nothing(void) { return 0; }\n")
    levels = {key: value for key, value in vars(building).items() if isinstance(value, list) and value and str(value[0]).startswith("-O")}
    assert {"LOOPS", "CALLS", "SELDOM"} <= levels.keys()
    for optimization in levels.values():
        command = [result, "-c", source, "-o", tmp_path / "nothing.o", *process.compile_flags(optimization)]
        assert subprocess.run(command, capture_output=True, text=True).returncode == 0, optimization


def test_native_loops_need_the_features_of_this_processor(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    native, building = importlib.import_module("building.native"), importlib.import_module("building.compiler")
    result = SimpleNamespace(compiler_so=["gcc"], linker_so=["gcc", "-shared"], include_dirs=[sysconfig.get_path("include")])
    gcc = building.Compiler(result, [], False)
    if not gcc.levelled:
        pytest.skip("levels are a matter of GCC for x86-64")
    assert native.known_features(gcc, ["avx2", "no-such-thing", "sse4.1", "sse4_1"]) == ["avx2", "sse4.1"]
    text = native.header(gcc)
    assert re.search(r'#define CG_NATIVE "\w', text)
    assert re.search(r"#define CG_NATIVE_VECTOR_BYTES (16|32|64)\n", text)
    assert 'needed("sse4.2")' in text


@pytest.mark.parametrize("wish, sentence", [("fast", "CYGRAD_ISA_BUILD='fast' is nothing to build for: say native, or .*"),
                                            ("native", "CYGRAD_ISA_BUILD=native is for GCC on x86-64; elsewhere .*")])
def test_other_wishes_are_refused(checkout, tmp_path, wish, sentence):  # noqa: F811
    path = compiler(tmp_path, 'exec gcc "$@" -D__clang__ 2> /dev/null')
    status, output = setup(checkout, "build_ext", CC=path, CYGRAD_ISA_BUILD=wish)
    assert status == 1
    assert re.fullmatch(f"error: {sentence}", output.strip().splitlines()[-1])


def test_the_wheelhouse_covers_the_targets_of_a_release(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT)
    wheelhouse = importlib.import_module("building.wheelhouse")
    assert wheelhouse.minor_versions() == sorted(wheelhouse.minor_versions())
    assert set(wheelhouse.minor_versions()) >= {11, 12, 13, 14}
    (target,) = wheelhouse.targets([sys.executable, "no-such-python"])
    assert target.name == f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert target.version == platform.python_version()
    assert capsys.readouterr().out == "no-such-python: not here, or without venv\n"


@pytest.mark.parametrize("step", ["pip install", "pip wheel", "building.repair", "too large", "[test]", "-m pytest", "silence"])
def test_a_wheel_that_fails_keeps_its_line_and_the_others(monkeypatch, tmp_path, step):
    monkeypatch.syspath_prepend(ROOT)
    wheelhouse = importlib.import_module("building.wheelhouse")
    terminal, heard = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), {}
    names = {"cp311": "3.11.9", "cp312": "3.12.4", "cp313": "3.13.1"}
    for folder in ("WORK", "DIST"):
        monkeypatch.setattr(wheelhouse, folder, tmp_path / folder)
    monkeypatch.setattr(wheelhouse, "targets", lambda process: [wheelhouse.Target(*names, sys.executable) for names in names.items()])
    monkeypatch.setattr(wheelhouse, "LIMIT", 1000)
    monkeypatch.setattr(sys, "argv", ["wheelhouse"])
    monkeypatch.setattr(sys, "stdout", terminal)

    def outcome(*words, **options):
        command = " ".join(map(str, words))
        name = next((name for name in names if name in f"{command} {options.get('cwd')}"), "")
        heard.setdefault(name, terminal.buffer.getvalue().decode())         # the text flushed when the target's first command runs
        if name == "cp312" and (step in command or step == "silence" and "-m pytest" in command):
            return ("" if step == "silence" else "some output\n2 failed, 3 passed"), 1
        if "--sdist" in command:
            (tmp_path / "WORK").mkdir()
            (tmp_path / "WORK" / "cygrad.tar.gz").write_text("archive")
        elif "pip wheel" in command:
            (tmp_path / "WORK" / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / "WORK" / name / "raw.whl").write_text("wheel")
        elif "building.repair" in command:
            wheel = tmp_path / "DIST" / f"cygrad-0-{name}-{name}-any.whl"
            wheel.write_text("wheel" * (201 if name == "cp312" and step == "too large" else 1))
            return f"repaired\n{wheel}", 0
        return "5 passed", 0

    monkeypatch.setattr(wheelhouse, "outcome", outcome)
    with pytest.raises(SystemExit, match=r"^failed: Python 3\.12\.4$"):
        wheelhouse.main()
    terminal.flush()
    lines = terminal.buffer.getvalue().decode().splitlines()
    for name, version in names.items():
        (row,) = [line for line in lines if line.startswith(version)]
        assert ("FAILED: " in row) == (name == "cp312") and re.search(r" \d+ s$", row)
        assert (f" {name}-{name}-any " in row and re.search(r" bytes  [0-9a-f]{64}  ", row) is not None) \
            == (name != "cp312" or step not in ("pip install", "pip wheel", "building.repair"))
    assert "3.11.9" in heard["cp312"] and "3.12.4" in heard["cp313"]
