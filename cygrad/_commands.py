"""How the commands of the package end: with their status, or with a sentence, where Ctrl-C, a full disk or a closed output end them early.
"""
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

FAILED, INTERRUPTED, UNREAD = 1, 128 + signal.SIGINT, 128 + signal.SIGPIPE


@contextmanager
def interrupted_by(*numbers: int) -> Iterator[None]:
    """Let signals raise KeyboardInterrupt, but those that this process was started to ignore."""
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ended(command: Callable[[], int], name: str) -> int:
    """Run a command to its end, and return its exit status; a sentence under its name states an error of the output or a file."""
    if sys.stdout is None:
        return _refused(name, "the output is closed: > /dev/null throws it away")
    try:
        try:
            return command()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:     # the reader has seen enough
        status = UNREAD
    except OSError as error:
        status = _refused(name, f"{error.filename or 'the output cannot be written'}: {error.strerror or error}")
        if error.filename:
            return status
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())      # where the end of the process flushes the rest
    return status


def _refused(name: str, sentence: str) -> int:
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"{name}: error: {sentence}", file=sys.stderr, flush=True)
    return FAILED
