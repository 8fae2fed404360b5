"""The common parts of the examples' pictures: where they are written, and how.

An example that uses it has one argument, `--output`, and writes the same file for the same numbers.
"""

import argparse
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # the picture goes to a file; no display is needed

import matplotlib.pyplot as plt

plt.rcParams.update({"svg.hashsalt": "cygrad", "svg.fonttype": "none", "font.size": 9, "axes.titlesize": 10, "legend.fontsize": 8,
                     "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True})


def output_argument(description: str, default: str) -> Path:
    """Return the path that the command line gives for the picture."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, default=Path(default), help="picture to write (%(default)s)")
    return parser.parse_args().output


def write(figure: Any, output: Path) -> None:
    """Write a figure, without the date."""
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=90, metadata={"Date": None} if output.suffix == ".svg" else None)
