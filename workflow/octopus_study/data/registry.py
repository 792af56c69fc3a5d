"""The data sets that the artifact can fetch, read from ``config/datasets.tsv``."""

import csv
from dataclasses import dataclass, fields
from pathlib import Path

from octopus_study.errors import DataError
from octopus_study.measure._files import repository_root

DATASETS_TSV = repository_root() / "config" / "datasets.tsv"


@dataclass(frozen=True)
class Dataset:
    """One data set: its address and what proves that a copy is the right one."""

    name: str
    kind: str  # which loader reads it: ``visdrone`` or ``sentinel2``
    # Public address, and the file's name in a mirror or in the raw folder
    url: str
    filename: str
    # Bytes and SHA-256 of the file behind `url`; None where its publisher states none
    size: int | None
    sha256: str | None
    # Of the content, the same for an archive and for a mirror that holds it unpacked: `visdrone.content_digest`, or
    # `sentinel2.pixel_digest` of the pinned window
    content_sha256: str
    mirror: str  # folder or glob pattern, relative to a mirror, where the unpacked data lie
    # Terms of use, and the line to cite or to print beside the data
    licence: str
    citation: str


def load_registry(path: str | Path | None = None) -> dict[str, Dataset]:
    """Read a tab-separated table with the columns of `Dataset`; a missing or malformed one is a `DataError`."""
    path = Path(path or DATASETS_TSV)
    if not path.is_file():
        raise DataError(
            f"looked for the table of data sets at {path} and found no file; run from a checkout of the "
            "repository (pip install -e .), or pass the table's path"
        )
    with path.open(encoding="utf-8", newline="") as table:
        reader = csv.DictReader(table, delimiter="\t")
        expected = [field.name for field in fields(Dataset)]
        if reader.fieldnames != expected:
            raise DataError(f"{path} has the columns {reader.fieldnames}; expected {expected}")
        datasets = [_parse(row, f"{path}, line {reader.line_num}") for row in reader]
    return {dataset.name: dataset for dataset in datasets}


def find_dataset(name: str, registry: dict[str, Dataset] | None = None) -> Dataset:
    """Look a data set up by name; raises `DataError` with the known names."""
    registry = load_registry() if registry is None else registry
    if name not in registry:
        raise DataError(f"there is no data set {name!r}; known: {', '.join(sorted(registry))}")
    return registry[name]


def _parse(row: dict[str, str], where: str) -> Dataset:
    if None in row or None in row.values():
        raise DataError(f"{where}: expected {len(fields(Dataset))} tab-separated values")
    try:
        size = int(row["size"]) if row["size"] else None
    except ValueError as error:
        raise DataError(f"{where}: size is {row['size']!r}; expected a number of bytes") from error
    return Dataset(**{**row, "size": size, "sha256": row["sha256"] or None})
