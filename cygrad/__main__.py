"""The command line: `python -m cygrad info` describes the build and the process, `--version` names the version."""
from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import cygrad
from cygrad.config import describe, show_config


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m cygrad", description="Look at this installation of cygrad.")
    parser.add_argument("--version", action="version", version=f"cygrad {cygrad.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    info = commands.add_parser("info", help="show compiler, instruction set, threads, BLAS, memory and denormal mode, and why")
    info.add_argument("--json", action="store_true", help="as JSON, for programs")
    given = parser.parse_args(arguments)
    print(json.dumps(describe(), indent=2) if given.json else show_config())


if __name__ == "__main__":
    main()
