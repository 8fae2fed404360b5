"""The command line: `python -m cygrad info` describes build and process, `bench` measures, `--version` names the version."""
from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence

import cygrad
from cygrad.bench import command as bench
from cygrad.config import describe, show_config


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m cygrad", description="Look at this installation of cygrad.")
    parser.add_argument("--version", action="version", version=f"cygrad {cygrad.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    info = commands.add_parser("info", help="show compiler, instruction set, threads, BLAS, memory and denormal mode, and why")
    info.add_argument("--json", action="store_true", help="as JSON, for programs")
    bench.add_arguments(commands.add_parser("bench", help="measure operators and programs against NumPy, and other libraries"))
    given = parser.parse_args(arguments)
    try:
        status = bench.run(given) if given.command == "bench" else _info(given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:     # whoever read has seen enough; the end of the process flushes what is left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return status


def _info(given: argparse.Namespace) -> int:
    print(json.dumps(describe(), indent=2) if given.json else show_config())
    return 0


if __name__ == "__main__":
    sys.exit(main())
