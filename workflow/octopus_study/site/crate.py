"""An RO-Crate of the results: one archive in which each file says what it is, and which run it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from mimetypes import guess_type
from pathlib import Path
from typing import NamedTuple

from octopus.errors import MissingPackageError
from octopus_study import __version__

DATE = "ended"


class Kind(NamedTuple):
    """Files of one kind: where they are, and what a reader is told of them."""

    pattern: str
    title: str


KINDS = (
    Kind("paper/build/octopus.pdf", "The paper, with the numbers of this machine beside the reference"),
    Kind("paper/build/supplement.pdf", "Every table and figure, study by study"),
    Kind("paper/build/numbers.csv", "Every number shown, with interval and origin"),
    Kind("paper/build/claims.csv", "The verdict on each claim"),
    Kind("paper/build/tables/*.md", "A table of the paper or its supplement"),
    Kind("figures/*.p[dn][fg]", "A figure of the paper or its supplement"),
    Kind("figures/report.html", "All results in one page"),
    Kind("data/results/**/*.csv", "Measured rows, one per block"),
    Kind("data/results/**/*.json", "Provenance of the rows beside it"),
    Kind("data/reference/*/*.csv", "Rows of a committed reference, one per block"),
    Kind("data/reference/*/*.json", "Provenance of a committed reference"),
    Kind("config/*.*", "Settings, data sets and rules of the claims"),
    Kind("LICENSE", "Licence of code and results"),
    Kind("CITATION.cff", "How to cite"),
)
LICENCE = "https://spdx.org/licenses/MIT"


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
        from rocrate.model import ContextEntity
        from rocrate.rocrate import ROCrate
    except ImportError:
        raise MissingPackageError("A crate needs rocrate: install the extra `release`.") from None
    crate = ROCrate()
    crate.name = f"Octopus {__version__}: results"
    crate.description = (
        "One launch for batches whose items all differ in size: rows, numbers, claims, figures and paper"
    )
    licence = {"@type": "CreativeWork", "name": "MIT License", "description": "Of code and results"}
    crate.license = crate.add(ContextEntity(crate, LICENCE, properties=licence))
    authors = {"@type": "Organization", "name": "The Octopus authors"}
    crate.publisher = crate.add(ContextEntity(crate, "#authors", properties=authors))
    for path, kind in files(root):
        crate.add_file(root / path, path.as_posix(), properties=_about(root / path, kind))
    crate.write_zip(out)
    return out


def _about(path: Path, kind: Kind) -> dict[str, str]:
    return {
        "name": path.name,
        "description": kind.title,
        "encodingFormat": guess_type(path.name)[0] or "text/plain",
        "contentSize": str(path.stat().st_size),
        **_measured(path),
    }


def _measured(path: Path) -> dict[str, str]:
    """Return when the rows or their provenance were measured."""
    record = path.with_suffix(".json")
    if not {"results", "reference"} & {*path.parts} or not record.is_file():
        return {}
    return {"dateCreated": json.loads(record.read_text(encoding="utf-8"))[DATE]}
