"""The receipt of a fetch: what the data are, where they came from, and their digest, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from octopus_study.errors import DataError
from octopus_study.measure._files import atomic_text


@dataclass(frozen=True)
class Receipt:
    """What `octopus_study.data.fetch.fetch` found.

    Attributes
    ----------
    dataset
        ``visdrone-val``, ``sentinel2-b04``, or ``synthetic-visdrone``, ``synthetic-sentinel2``.
    synthetic
        True for the generated sample; every row, figure and table that it touches says so.
    path
        The data's folder or file, relative to the receipt's folder.
    sha256
        Digest of the content, as defined for the data set.
    source
        ``download``, ``mirror``, ``generated``, or ``raw folder`` for data that lay there with no receipt.
    reason
        Why the sample was taken; empty for real data.
    fetched_at
        UTC time in ISO 8601.
    licence, citation
        Terms of use, and the line to cite or to print beside the data.
    """

    dataset: str
    synthetic: bool
    path: str
    sha256: str
    source: str
    reason: str
    fetched_at: str
    licence: str
    citation: str


def now() -> str:
    """The present time, UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_receipt(receipt: Receipt, path: str | Path) -> Path:
    """Write `receipt` as JSON; a reader sees the old file or the new one, never a part."""
    with atomic_text(Path(path)) as file:
        json.dump(asdict(receipt), file, indent=2, ensure_ascii=False)
        file.write("\n")
    return Path(path)


def read_receipt(path: str | Path) -> Receipt:
    """Read a receipt; raises `DataError` when it is missing or not a receipt."""
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"there is no receipt at {path}; run `octopus fetch all` first") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}); delete it and fetch again") from error
    expected = {field.name for field in fields(Receipt)}
    if not isinstance(content, dict) or set(content) != expected:
        raise DataError(f"{path} is no receipt: it must have exactly {sorted(expected)}; fetch again")
    return Receipt(**content)
