"""Ctrl-C while Python imports the package for one of its commands: Python would show where the import was.

`python -m cygrad` imports the package before anything of the command itself runs, and this module before all others, so its own imports are
modules that are built into Python.
"""
import _signal  # type: ignore[import-not-found]
import sys


def end_at_once() -> None:
    """Let Ctrl-C end this process at once where `python -m` runs a command of the package."""
    module = sys.orig_argv[-len(sys.argv)]
    name = module.partition("m")[2] if module.startswith("-") else module
    if name.partition(".")[0] == "cygrad" and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
