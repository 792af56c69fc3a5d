"""Whether data are still those that were fetched, and those that are pinned."""

from collections.abc import Callable
from pathlib import Path

from octopus_study.data.manifest import Manifest, read_manifest
from octopus_study.data.registry import find_dataset
from octopus_study.errors import DataError

FETCHES = "run `snakemake --cores 1`, which fetches them again"


def require_fetched(
    path: str | Path, names: tuple[str, ...], digest_of: Callable[[Path], str]
) -> tuple[Manifest, Path]:
    """Return a manifest and the place of its data, which have the content digest of that manifest. The data set's name
    must end in one of `names`, of which the last one is told. Raises `DataError` where the manifest or the data are
    missing, damaged or changed since the fetch, or the manifest is of another kind."""
    manifest = read_manifest(path)
    data = Path(path).parent / manifest.path
    if not manifest.dataset.endswith(names):
        raise DataError(f"{path} is a manifest for {manifest.dataset}; what is wanted is {names[-1]}")
    if not data.exists():
        raise DataError(f"the data of {manifest.dataset} are gone from {data}; {FETCHES}")
    digest = digest_of(data)
    if digest != manifest.sha256:
        raise DataError(
            f"{data}: {manifest.dataset} has been changed since it was fetched: its content digest is {digest} "
            f"instead of {manifest.sha256}; delete {data} and {FETCHES}"
        )
    return manifest, data


def require_pinned(data: Path, manifest: Manifest, digest: str) -> None:
    """Raise `DataError` unless real data have the digest that ``config/datasets.tsv`` pins."""
    pinned = find_dataset(manifest.dataset).content_sha256
    if digest != pinned:
        raise DataError(
            f"{data} is not the real {manifest.dataset}, though its manifest says so: the digest is {digest}, that in "
            f"config/datasets.tsv {pinned}; delete {data} and {FETCHES}"
        )
