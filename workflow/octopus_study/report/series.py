"""Series, traces and pictures: files of their own in the folder ``series`` beside ``numbers.csv``."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from octopus_study.measure._files import atomic_text

FOLDER = "series"


class Series(NamedTuple):
    """Columns of equal length, or a picture, that one figure draws."""

    machine: str
    study: str
    name: str  # the file is ``series/<machine>.<study>.<name>.csv``, and a picture's ``.npy``
    columns: dict[str, list]  # by name: floats, or texts
    picture: np.ndarray | None = None  # pixels, any shape and dtype

    def __getitem__(self, column: str) -> list:  # type: ignore[override]
        return self.columns[column]

    def rows(self) -> Iterator[tuple]:
        """Yield the rows."""
        return zip(*self.columns.values(), strict=True)

    def write(self, folder: Path) -> Path:
        """Write it below the folder of ``numbers.csv``."""
        stem = _stem(folder, self.machine, self.study, self.name)
        stem.parent.mkdir(parents=True, exist_ok=True)
        with atomic_text(Path(f"{stem}.csv")) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows([repr(float(v)) if isinstance(v, float) else v for v in row] for row in self.rows())
        if self.picture is not None:
            np.save(f"{stem}.npy", self.picture, allow_pickle=False)
        return Path(f"{stem}.csv")

    @classmethod
    def read(cls, folder: Path, machine: str, study: str, name: str) -> Self | None:
        """Read it from below the folder of ``numbers.csv``; None where there is none."""
        stem = _stem(folder, machine, study, name)
        if not Path(f"{stem}.csv").is_file():
            return None
        with open(f"{stem}.csv", newline="", encoding="utf-8") as stream:
            header, *rows = csv.reader(stream)
        columns = {column: [_value(row[place]) for row in rows] for place, column in enumerate(header)}
        pixels = Path(f"{stem}.npy")
        return cls(machine, study, name, columns, np.load(pixels) if pixels.is_file() else None)


def _stem(folder: Path, machine: str, study: str, name: str) -> Path:
    return Path(folder) / FOLDER / f"{machine}.{study}.{name}"


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
