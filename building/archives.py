"""The archives hold the same bytes at any place and time, and for any user.

They hold the contents of files, and which are programs. All are as old as SOURCE_DATE_EPOCH says, which setuptools and auditwheel
ask for, too.
"""

import os
import re
import sys
import tarfile
from gzip import GzipFile
from pathlib import Path
from typing import Any

from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.sdist import sdist

from building import EPOCH

SECONDS = os.environ.setdefault("SOURCE_DATE_EPOCH", EPOCH)
if not (re.fullmatch("[0-9]{9,10}", SECONDS) and 315_532_800 <= int(SECONDS) < 4_354_819_200):      # the range of a wheel
    sys.exit(f"SOURCE_DATE_EPOCH={SECONDS!r} is no time of a file: give seconds since 1970, of the years 1980 to 2107, or unset it")


def plain_mode(mode: int) -> int:
    """Return a file's permissions without the umask of the user."""
    return 0o755 if mode & 0o100 else 0o644


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = int(SECONDS)
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = plain_mode(member.mode)
    return member


class SourceArchive(sdist):
    def make_archive(self, base_name: str, format: str, root_dir: Any = None, base_dir: Any = None, owner: Any = None,
                     group: Any = None) -> str:
        """Pack a folder into `base_name`.tar.gz, the one form that package indexes take."""
        target = f"{base_name}.tar.gz"
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        with (open(target, "wb") as file, GzipFile("", "wb", fileobj=file, mtime=0) as packed,
              tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive):
            for path in sorted([Path(base_dir), *Path(base_dir).rglob("*")]):
                archive.add(path, recursive=False, filter=anonymous)
        return target


class Wheel(bdist_wheel):
    def write_wheelfile(self, *arguments: Any, **options: Any) -> None:
        """Write the last of the files that are packed."""
        super().write_wheelfile(*arguments, **options)
        for path in Path(self.bdist_dir).rglob("*"):
            path.chmod(plain_mode(path.stat().st_mode))
