"""The command line: `python -m cygrad info` describes build and process, `bench` measures, `--version` names the version."""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import cygrad
from cygrad import _commands
from cygrad.bench import command as bench
from cygrad.config import describe, show_config

NAME = "python -m cygrad"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit status."""
    return _commands.ended(lambda: _run(arguments), NAME)


def _run(arguments: Sequence[str] | None) -> int:
    parser = _Parser(prog=NAME, description="Look at this installation of cygrad.", epilog=f"{NAME} COMMAND --help shows its arguments.")
    parser.add_argument("--version", action="store_true", help="show the version")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    info = commands.add_parser("info", help="show the build, threads, BLAS and memory, and why")
    info.add_argument("--json", action="store_true", help="as JSON, for programs")
    bench.add_arguments(commands.add_parser("bench", help="measure operators and programs beside NumPy"))
    options = parser.parse_args(arguments)
    if options.command == "bench":
        return bench.run(options)
    if options.command == "info":
        return _info(options)
    print(f"cygrad {cygrad.__version__}" if options.version else parser.format_help().rstrip())
    return 0


def _info(options: argparse.Namespace) -> int:
    print(json.dumps(describe(), indent=2) if options.json else show_config())
    return 0


class _Parser(argparse.ArgumentParser):
    def print_help(self, file: Any = None) -> None:
        """Print the help; argparse's own passes over an output that takes nothing."""
        print(self.format_help(), end="", file=file)


if __name__ == "__main__":
    sys.exit(main())
