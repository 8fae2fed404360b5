"""How commands end where the output takes nothing, and where Ctrl-C comes while Python still imports."""

import json
import os
import signal
import subprocess
import sys

import pytest

import bench_record
import cygrad
from cygrad import _commands
from cygrad.__main__ import main
from cygrad.bench import record as bench_file

FULL = "/dev/full"
COMMANDS = ["cygrad", "cygrad --help", "cygrad --version", "cygrad info", "cygrad info --json", "cygrad bench --help",
            "cygrad bench --from {record}", "cygrad bench --compare {record} {record}"]
CLOSED = "the output is closed: > /dev/null throws it away"


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    file = tmp_path_factory.mktemp("commands") / "record.json"
    file.write_text(json.dumps(bench_record.record()))
    return file


def ended(command, record, redirection="", **variables):
    """Return the status of a command in a shell, and its messages beside its output."""
    line = f"{sys.executable} -m {command.format(record=record)} {redirection}; exit ${{PIPESTATUS[0]}}"
    process = subprocess.run(line, shell=True, executable="/bin/bash", env=os.environ | variables,
                             capture_output=True, text=True, timeout=60)
    return process.returncode, process.stderr


# ----- The output -----
@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists(FULL), reason="needs a device that is always full")
@pytest.mark.cases("command", COMMANDS)
def test_a_full_disk_is_said_in_a_sentence(command, record):
    """At once, or at the end, where the output waits until then."""
    for unbuffered in ("", "1"):
        sentence = "python -m cygrad: error: the output cannot be written: No space left on device\n"
        assert ended(command, record, f"> {FULL}", PYTHONUNBUFFERED=unbuffered) == (1, sentence)


@pytest.mark.slow
@pytest.mark.cases("command", [*COMMANDS, "cygrad bench --quick"])
def test_a_closed_output_is_said_in_a_sentence(command, record):
    name = f"python -m {command.partition(' ')[0]}"
    assert ended(command, record, ">&-") == (1, f"{name}: error: {CLOSED}\n")
    assert ended(command, record, ">&- 2>&-") == (1, "")


@pytest.mark.slow
@pytest.mark.cases("command", COMMANDS)
def test_a_reader_may_close_the_pipe(command, record):
    status, said = ended(command, record, "| true")
    assert status in (0, 141) and said == ""


def test_a_file_that_cannot_be_written_is_named(capsys):
    def command():
        os.stat("/no/such/folder/file")

    assert _commands.ended(command, "name") == 1
    assert capsys.readouterr().err == "name: error: /no/such/folder/file: No such file or directory\n"


def test_without_a_command_the_commands_are_listed(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    assert [name for name in ("info", "bench", "--version") if name not in text] == []
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"cygrad {cygrad.__version__}\n"


# ----- Ctrl-C -----
# Code that starts with Python and sends the signal when a module is looked for, or when the process ends.
INTERRUPTING = """
import atexit, os, signal, sys

class Finder:
    def find_spec(name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder)
if os.environ["INTERRUPT_AT"] == "the end":
    atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
"""
MOMENTS = ["cygrad._imports", "numpy", "numpy._core.multiarray", "cygrad.tensor", "cygrad.operators", "cygrad.__main__",
           "cygrad._commands", "cygrad.bench.command", "cygrad.config", "platform", "the end"]


def heeding_interruptions():
    """Undo, in a new process, that the shell of the tests has them ignored: it does for a command in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupted(command, moment, folder, preexec_fn=heeding_interruptions):
    (folder / "sitecustomize.py").write_text(INTERRUPTING)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, *command.split()], env=os.environ | {"INTERRUPT_AT": moment, "PYTHONPATH": path}, timeout=60,
                          capture_output=True, text=True, preexec_fn=preexec_fn)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["-m cygrad info", "-mcygrad info", "-Bm cygrad info"])
def test_an_interruption_of_imports_leaves_no_traceback(command, tmp_path):
    for moment in MOMENTS if command.startswith("-m c") else ["numpy"]:
        done = interrupted(command, moment, tmp_path)
        assert (done.returncode, done.stderr) == (-signal.SIGINT, ""), moment


@pytest.mark.slow
def test_programs_of_others_are_interrupted_as_ever(tmp_path):
    """Also those that `python -m` starts, and that import the package while they are looked for."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "__init__.py").write_text("import cygrad")
    (tmp_path / "theirs" / "__main__.py").write_text("")
    for command in ("-c __import__('cygrad')", "-m theirs", "-m theirs cygrad"):
        done = interrupted(command, "cygrad.tensor", tmp_path)
        assert "KeyboardInterrupt" in done.stderr


@pytest.mark.slow
def test_a_benchmark_in_a_pipe_begins_to_speak_at_once_and_writes_its_record_when_it_is_interrupted(tmp_path):
    file = tmp_path / "record.json"
    command = [sys.executable, "-m", "cygrad", "bench", "--only", "exp(x)", "--json", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeding_interruptions) as process:
        assert process.stdout.readline().startswith(f"cygrad {cygrad.__version__}")
        process.send_signal(signal.SIGINT)
        output, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "")
    assert "Not complete" in output and not bench_file.read(file)["complete"]


@pytest.mark.slow
def test_ignored_interruptions_stay_ignored(tmp_path):
    """As a command that a shell started in the background."""
    done = interrupted("-m cygrad info", "numpy", tmp_path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert (done.returncode, done.stderr) == (0, "")


def test_signals_interrupt_where_they_may_and_are_restored():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt), _commands.interrupted_by(signal.SIGINT, signal.SIGTERM):
        signal.raise_signal(signal.SIGTERM)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)
    assert signal.signal(signal.SIGTERM, before[1]) is signal.SIG_IGN
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
