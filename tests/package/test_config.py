"""`python -m cygrad info` names the choices and, where there was a choice, why."""

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cygrad
from cygrad import config
from cygrad._kernels.drivers.elementwise import available_isas
from cygrad._kernels.system import machine

LEVELS = available_isas()
LINES = ["Python", "processor", "compiler", "instruction set", "threads", "launcher", "OpenMP", "BLAS", "LAPACK", "memory", "denormals",
         "package"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "clusters.md"


def parsed(text):
    """Return the lines of a description as a dict."""
    head, *lines = text.splitlines()
    assert head == f"cygrad {cygrad.__version__}"
    return {name: value.strip() for name, _, value in (line.strip().partition(":") for line in lines)}


def printed(*command, affinity=None, **variables):
    """Return the output of a process with these variables, without others that would change it."""
    command = [sys.executable, *(command or ("-m", "cygrad", "info"))]
    unwanted = ("OMP_", "GOMP_", "OPENBLAS_", "CYGRAD_ISA", *(variable for _, variable, *_ in machine.LAUNCHERS))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    process = subprocess.run(command, env=environment | variables, timeout=60, capture_output=True, text=True, check=True,
                          preexec_fn=affinity and (lambda: os.sched_setaffinity(0, affinity)))
    return process.stdout


def info(*command, **settings):
    return parsed(printed(*command, **settings))


def test_every_line_is_there():
    lines = info()
    assert list(lines) == LINES
    assert lines["instruction set"].partition(", built for")[0] == f"{LEVELS[-1]} of {', '.join(LEVELS)}"
    assert re.search(r"GCC \d|Clang \d", lines["compiler"])


@pytest.mark.parametrize("level", LEVELS)
def test_instruction_set_that_was_asked_for(level):
    assert info(CYGRAD_ISA=level)["instruction set"] == f"{level} of {', '.join(LEVELS)} (CYGRAD_ISA={level})"


def test_instruction_set_that_there_is_none_of():
    with pytest.raises(subprocess.CalledProcessError) as failed:
        info(CYGRAD_ISA="bogus")
    assert re.search(rf"ImportError: CYGRAD_ISA='bogus' names no .* or unset it for {LEVELS[-1]}$", failed.value.stderr.strip())


@pytest.mark.openmp
def test_threads_and_why():
    assert info(OMP_NUM_THREADS="3")["threads"] == "3 (OMP_NUM_THREADS=3)"
    if hasattr(os, "sched_setaffinity"):
        assert re.match(r"1 \(CPUs in the affinity mask.*: 1\)", info(affinity={min(os.sched_getaffinity(0))})["threads"])


@pytest.mark.openmp
def test_threads_that_threadpoolctl_lowered():
    pytest.importorskip("threadpoolctl")
    script = """if True:
        import cygrad, threadpoolctl
        with threadpoolctl.threadpool_limits(1, user_api="openmp"):
            print(cygrad.show_config())
    """
    assert info("-c", script, OMP_NUM_THREADS="3")["threads"] == "1 (lowered for the calling thread, as threadpoolctl does)"


def test_narrow_kernels_of_blas_are_named_with_the_remedy():
    blas = info(OPENBLAS_CORETYPE="Nehalem")["BLAS"]
    if "Nehalem kernels" not in blas:
        pytest.skip("not an OpenBLAS with kernels for several processors")
    if LEVELS[-1] in ("x86-64-v3", "x86-64-v4"):
        assert re.search(r"16-byte vectors where this processor has (32|64): OPENBLAS_CORETYPE=\w+ may be faster$", blas)
    assert "may be faster" not in info()["BLAS"]


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="sets the register as glibc keeps it")
@pytest.mark.parametrize(("bits", "said"), [(0x8000, "results are flushed to zero"), (0x40, "operands are read as zero"),
                                            (0x8040, "results are flushed to zero and operands are read as zero")])
def test_denormals_that_a_library_turned_off(bits, said):
    script = f"""if True:
        import ctypes, cygrad
        libm, state = ctypes.CDLL("libm.so.6"), (ctypes.c_uint32 * 8)()
        libm.fegetenv(state)
        state[7] |= {bits}
        libm.fesetenv(state)
        print(cygrad.show_config())
    """
    assert info()["denormals"] == "kept"
    assert info("-c", script)["denormals"] == f"{said}: a library in this process has set that for this thread"


# ----- JSON -----
SOME = {"str": str, "int": int, "bool": bool, "number": (int, float), "str?": (str, type(None)), "int?": (int, type(None)),
        "number?": (int, float, type(None))}
SCHEMA = {
    "version": "str", "numpy": "str", "platform": "str", "processor": "str", "compiler": "str", "node_cpus": "int",
    "python": {"version": "str", "implementation": "str", "executable": "str"},
    "instruction_set": {"chosen": "str", "available": ["str"], "requested": "str?", "built_for": "str?", "reason": "str"},
    "openmp": {"version": "int", "runtime": "str?"},
    "threads": {"threads": "int", "source": "str", "reason": "str", "requested": "int?", "affinity": "int", "cgroup_quota": "number?",
                "share": "int?", "OMP_NUM_THREADS": "str?", "OMP_THREAD_LIMIT": "str?"},
    "launcher": {"launcher": "str?", "processes": "int?", "processes_variable": "str?", "cpus": "int?", "cpus_variable": "str?",
                 "ignored": {}},
    "blas": {"name": "str", "version": "str?", "kernels": "str?", "threads": "int?", "library": "str?", "hint": "str?"},
    "lapack": {"looked_up": "bool", "library": "str?", "integer_bits": "int?", "reason": "str"},
    "memory": {"live_bytes": "int", "live_blocks": "int", "cached_bytes": "int", "cache_limit": "int", "cache_limit_reason": "str",
               "hits": "int", "misses": "int", "granted": "int", "cgroup_limit": "int?", "huge_pages": "str?"},
    "denormals": {"flush_results": "bool", "zero_operands": "bool"},
    "files": {"package": "str", "library": "str"},
}


def check(schema, value, path="info"):
    if isinstance(schema, dict):
        assert isinstance(value, dict) and set(schema) == set(value), path
        for key in schema:
            check(schema[key], value[key], f"{path}.{key}")
    elif isinstance(schema, list):
        assert isinstance(value, list) and value, path
        for element in value:
            check(schema[0], element, path)
    else:
        assert isinstance(value, SOME[schema]) and (schema == "bool" or not isinstance(value, bool)), (path, value)


def test_json_has_these_keys_and_types():
    result = json.loads(printed("-m", "cygrad", "info", "--json"))
    check(SCHEMA if result["openmp"] else SCHEMA | {"openmp": "str?"}, result)
    assert result["version"] == cygrad.__version__
    assert result["instruction_set"]["available"] == LEVELS
    assert os.path.samefile(result["files"]["package"], os.path.dirname(cygrad.__file__))
    assert os.path.dirname(result["files"]["library"]) == result["files"]["package"]


def test_whoever_reads_may_close_the_pipe():
    done = subprocess.run(f"{sys.executable} -m cygrad info --json | true; echo ${{PIPESTATUS[0]}}", shell=True, executable="/bin/bash",
                          capture_output=True, text=True, check=True)
    assert (done.stdout.strip() in ("0", "141"), done.stderr) == (True, "")


@pytest.mark.openmp
def test_json_of_a_process_of_a_launcher():
    variables = {"OMPI_COMM_WORLD_LOCAL_SIZE": "1000", "SLURM_CPUS_PER_TASK": "two", "CYGRAD_ISA": LEVELS[0]}
    result = json.loads(printed("-m", "cygrad", "info", "--json", **variables))
    threads = result["threads"]
    assert (threads["threads"], threads["source"], threads["share"]) in [(1, "launcher", 1), (1, "affinity", 1)]
    assert result["launcher"] == {"launcher": "Open MPI", "processes": 1000, "processes_variable": "OMPI_COMM_WORLD_LOCAL_SIZE",
                                 "cpus": None, "cpus_variable": None, "ignored": {"SLURM_CPUS_PER_TASK": "two"}}
    assert result["instruction_set"]["requested"] == LEVELS[0]
    assert result["blas"]["threads"] in (None, 1) or "OPENBLAS_NUM_THREADS=1 may be faster" in result["blas"]["hint"]


@pytest.mark.skipif(not PAGE.exists(), reason="looks at the documentation, and runs beside none")
def test_the_page_names_every_key_and_every_variable_of_launchers_in_order():
    text = PAGE.read_text()
    assert [key for key in SCHEMA if f"`{key}`" not in text and f'"{key}"' not in text] == []
    rows = [line.split("|") for line in text.partition("## Launchers")[2].splitlines() if re.match(r"\|[^|]+\| `[A-Z]", line)]
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row[2])] == [variable for _, variable, *_ in machine.LAUNCHERS]
    example = json.loads(re.search(r'"threads": (\{.*?\})', text, re.DOTALL)[1])
    check(SCHEMA["threads"], example)


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "SLURM_NTASKS_PER_NODE"])
def test_texts_that_are_no_counts_are_shown_without_control_characters(variable):
    line = {"OMP_NUM_THREADS": "threads", "SLURM_NTASKS_PER_NODE": "launcher"}[variable]
    assert rf"{variable}='\x1b[31m\udcff' is no count, and ignored" in info(**{variable: "\x1b[31m\udcff"})[line]


def test_the_text_is_made_from_the_same_data(monkeypatch):
    assert json.loads(json.dumps(config.describe())) == config.describe()
    result = config.describe()
    result["threads"] |= {"threads": 77, "reason": "of this test"}
    result["launcher"] |= {"launcher": "Slurm", "processes": 5, "processes_variable": "A", "ignored": {"B": "c"}}
    monkeypatch.setattr(config, "describe", lambda: result)
    lines = parsed(config.show_config())
    assert lines["threads"] == "77 (of this test)"
    assert lines["launcher"] == "Slurm, processes on this node: 5 (A), B='c' is no count, and ignored"


def test_lapack_is_named_once_it_is_found():
    script = "import cygrad; x = cygrad.linalg.ldl_factor(cygrad.eye(300)); print(cygrad.show_config())"
    assert info("-c", script)["LAPACK"] != info()["LAPACK"] == "looked for when the first large matrix needs it"
