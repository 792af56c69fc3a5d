"""Whether data are still those that were fetched, and those that are pinned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from octopus_study.data.manifest import Manifest
from octopus_study.data.registry import find_dataset
from octopus_study.errors import DataError

FETCHES = "run `snakemake --cores 1`, which fetches them again"


def require_present(data: Path, manifest: Manifest) -> None:
    """Raise `DataError` when the data of a manifest are gone."""
    if not data.exists():
        raise DataError(f"the data of {manifest.dataset} are gone from {data}; {FETCHES}")


def require_unchanged(data: Path, manifest: Manifest, digest: str, changed: Sequence[str] = ()) -> None:
    """Raise `DataError` unless the data have the content digest of their manifest.

    Parameters
    ----------
    digest
        Of the data as they are now.
    changed
        The files that differ, where they are known.
    """
    if digest != manifest.sha256:
        which = f" ({', '.join(changed[:3])}{', ...' if len(changed) > 3 else ''})" if changed else ""
        raise DataError(
            f"{data}: {manifest.dataset} has been changed since it was fetched{which}: its content digest is {digest} "
            f"instead of {manifest.sha256}; delete {data} and {FETCHES}"
        )


def require_pinned(data: Path, manifest: Manifest, digest: str) -> None:
    """Raise `DataError` unless real data have the digest that ``config/datasets.tsv`` pins."""
    pinned = find_dataset(manifest.dataset).content_sha256
    if digest != pinned:
        raise DataError(
            f"{data} is not the real {manifest.dataset}, though its manifest says so: the digest is {digest}, that in "
            f"config/datasets.tsv {pinned}; delete {data} and {FETCHES}"
        )
