"""What the study of satellite tiles measures: one band of a scene, with the data set's name and a digest."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octopus_study.data.manifest import Manifest, read_manifest
from octopus_study.data.proof import require_pinned, require_present, require_unchanged
from octopus_study.data.sentinel2 import PINNED_WINDOW, pixel_digest, read_band
from octopus_study.errors import DataError, NotHeldError


@dataclass(frozen=True)
class Scene:
    """One band."""

    dataset: str  # ``sentinel2-b04`` or ``synthetic-sentinel2``
    synthetic: bool  # true for the generated sample
    pixels: NDArray[np.uint16]  # (H, W) uint16 digital numbers; 0 is no data
    sha256: str  # digest of the pixels, as they are measured


def load_scene(manifest_path: str | Path) -> Scene:
    """Load the band that a manifest of `octopus_study.data.fetch` points to.

    Raises
    ------
    DataError
        The manifest or the data are missing, damaged or changed since the fetch, or the manifest is of another kind.
    """
    manifest_path = Path(manifest_path)
    manifest = read_manifest(manifest_path)
    if "sentinel2" not in manifest.dataset:
        raise DataError(f"{manifest_path} is a manifest for {manifest.dataset}; a scene needs sentinel2-b04")
    file = manifest_path.parent / manifest.path
    require_present(file, manifest)
    pixels = read_band(file).pixels
    digest = pixel_digest(pixels)
    require_unchanged(file, manifest, digest)
    if not manifest.synthetic:
        _require_pinned(file, manifest)
    return Scene(manifest.dataset, manifest.synthetic, pixels, digest)


def _require_pinned(file: Path, manifest: Manifest) -> None:
    """The pinned window proves a file that holds it; other windows were proven when they were fetched."""
    with suppress(NotHeldError):
        require_pinned(file, manifest, pixel_digest(read_band(file, PINNED_WINDOW).pixels))
