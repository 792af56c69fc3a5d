"""The manifest of a fetch: what the data are, where they came from, and their digest, as JSON."""

import json
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from octopus_study.data.registry import find_dataset
from octopus_study.errors import DataError
from octopus_study.measure._files import atomic_text

SAMPLE_WANTED = "the sample was asked for (data mode 'sample')"
"""The reason in the manifest of a sample that stands for no missing data."""


@dataclass(frozen=True)
class Manifest:
    """What `octopus_study.data.fetch.fetch` found."""

    dataset: str  # ``visdrone-val``, ``sentinel2-b04``, or ``synthetic-visdrone``, ``synthetic-sentinel2``
    synthetic: bool  # true for the generated sample; every row, figure and table that it touches says so
    path: str  # the data's folder or file, relative to the manifest's folder
    sha256: str  # digest of the content, as defined for the data set
    # ``download``, ``mirror``, ``generated``, or ``raw folder`` for data that lay there with no manifest
    source: str
    reason: str  # why the sample was taken, or a window in place of the whole scene; else empty
    fetched_at: str  # UTC time in ISO 8601
    # Terms of use, and the line to cite or to print beside the data
    licence: str
    citation: str


def kept_manifest(data: Path) -> Path:
    """Where a manifest's copy lies, with the data: Snakemake, which deletes the manifest before a job, leaves it."""
    return data / "manifest.json" if data.suffix == "" else data.with_suffix(".manifest.json")


def why_stale(path: str | Path, mode: str, mirror: str | None) -> str | None:
    """Why a manifest must be made anew: its data are gone, or what stood in for the real or for the whole data needn't.
    Where real data came from plays no part: they stay what they are when a mirror moves. None if there is no
    manifest."""
    if not Path(path).is_file():
        return None
    try:
        manifest = read_manifest(path)
    except DataError as error:
        return str(error)
    if not (Path(path).parent / manifest.path).exists():
        return f"its data are gone from {manifest.path}"
    if not manifest.reason or manifest.reason == SAMPLE_WANTED or mode == "sample":
        return None
    if manifest.synthetic:
        wanted = mode == "real" or mirror is not None
        return "real data are asked for, and it is the sample's" if wanted else None
    whole = find_dataset(manifest.dataset).filename
    places = [Path(path).parent / f"{whole}.part", *([Path(mirror, whole)] if mirror else [])]
    had = any(place.is_file() for place in places)
    return "the whole scene is in the mirror or on its way, and it is a window's" if had else None


def now() -> str:
    """The present time, UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_manifest(manifest: Manifest, path: str | Path) -> Path:
    """Write `manifest` as JSON; a reader sees the old file or the new one, never a part."""
    with atomic_text(Path(path)) as file:
        json.dump(asdict(manifest), file, indent=2, ensure_ascii=False)
        file.write("\n")
    return Path(path)


def read_manifest(path: str | Path) -> Manifest:
    """Read a manifest; raises `DataError` when it is missing or not a manifest."""
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"there is no manifest at {path}; run `octopus fetch all` first") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}); delete it and fetch again") from error
    expected = {field.name for field in fields(Manifest)}
    if not isinstance(content, dict) or set(content) != expected:
        raise DataError(f"{path} is no manifest: it must have exactly {sorted(expected)}; fetch again")
    return Manifest(**content)
