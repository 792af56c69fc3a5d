"""An RO-Crate of the results: one archive in which each file says what it is, and which run it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from octopus.errors import MissingPackageError
from octopus_study import __version__

DATE = "ended"


class Kind(NamedTuple):
    """Files of one kind: where they are, and what a reader is told of them."""

    pattern: str
    title: str
    media_type: str


KINDS = (
    Kind(
        "paper/build/*.pdf",
        "The paper, with the numbers of this machine beside the reference",
        "application/pdf",
    ),
    Kind("paper/build/numbers.csv", "Every number shown, with interval and origin", "text/csv"),
    Kind("paper/build/claims.csv", "The verdict on each claim", "text/csv"),
    Kind("paper/build/tables/*.md", "A table of the paper", "text/markdown"),
    Kind("figures/*.p[dn][fg]", "A figure of the paper", ""),
    Kind("figures/report.html", "All results in one page", "text/html"),
    Kind("data/results/**/*.csv", "Measured rows, one per block", "text/csv"),
    Kind("data/results/**/*.json", "Provenance of the rows beside it", "application/json"),
    Kind("data/reference/*/*.csv", "Rows of a committed reference, one per block", "text/csv"),
    Kind("data/reference/*/*.json", "Provenance of a committed reference", "application/json"),
    Kind("config/*.*", "Settings, data sets and rules of the claims", ""),
    Kind("LICENSE", "Licence of code and results", "text/plain"),
    Kind("CITATION.cff", "How to cite", "text/yaml"),
)


def files(root: Path) -> Iterator[tuple[Path, Kind]]:
    """Yield each file of the crate once, by its path from the root."""
    for kind in KINDS:
        for path in sorted(root.glob(kind.pattern)):
            yield path.relative_to(root), kind


def write_crate(root: Path, out: Path) -> Path:
    """Pack the results of a checkout.

    Raises
    ------
    MissingPackageError
        rocrate is not installed.
    """
    try:
        from rocrate.rocrate import ROCrate
    except ImportError:
        raise MissingPackageError("A crate needs rocrate: install the extra `release`.") from None
    crate = ROCrate()
    crate.name = f"Octopus {__version__}: results"
    crate.description = (
        "One launch for batches whose items all differ in size: rows, numbers, claims, figures and paper"
    )
    crate.license = "https://spdx.org/licenses/MIT"
    for path, kind in files(root):
        said = {"name": kind.title, "encodingFormat": kind.media_type} | _measured(root / path)
        crate.add_file(
            root / path, path.as_posix(), properties={key: text for key, text in said.items() if text}
        )
    crate.write_zip(out)
    return out


def _measured(path: Path) -> dict[str, Any]:
    """Return when the rows or their provenance were measured."""
    record = path.with_suffix(".json")
    if not {"results", "reference"} & {*path.parts} or not record.is_file():
        return {}
    return {"dateCreated": json.loads(record.read_text(encoding="utf-8"))[DATE]}
