"""What a source of a data set must offer, and the file handling that sources share."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from octopus_study.errors import DataError


@dataclass(frozen=True)
class Found:
    """Data in the raw folder, checked: the folder or file, and the digest of its content."""

    path: Path
    sha256: str


class Source(Protocol):
    """The ways in which one data set can get into the raw folder; each raises `DataError` when it can't."""

    synthetic_name: str
    target: Path
    """Where the real data lie."""

    def present(self, trusted: frozenset[str]) -> Found:
        """The real data that lie in the raw folder, if their digest is pinned or, where none is, among `trusted`."""

    def from_mirror(self, mirror: Path) -> Found:
        """A checked copy out of a mirror folder; raises `NotHeldError` when that has nothing of the data set."""

    def from_network(self) -> Found:
        """A checked download."""

    def generated(self) -> Found:
        """The sample."""


@contextmanager
def new_path(target: Path) -> Iterator[Path]:
    """Give a temporary path to build a file or folder at; on success it takes the place of `target`. A half-built
    `target` is never seen, and whatever fails leaves no trace."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        # The suffix stays the same: libraries choose the file format by it.
        building = Path(folder) / f"new{target.suffix}"
        try:
            yield building
        except DataError as error:  # without the name of a path that is gone
            raise type(error)(str(error).replace(str(building), str(target))) from error
        if target.is_dir():
            os.replace(target, Path(folder) / "old")
        os.replace(building, target)


def copy_files(origin: Path, patterns: tuple[str, ...], target: Path) -> None:
    """Copy the files of `origin` that match, without their permissions: a mirror may be read-only."""
    for pattern in patterns:
        for file in sorted(origin.glob(pattern)):
            copy = target / file.relative_to(origin)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def require(condition: bool, message: str) -> None:
    """Raise `DataError` unless `condition` holds."""
    if not condition:
        raise DataError(message)
