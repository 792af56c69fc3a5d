"""What the study of satellite tiles measures: one band of a scene, with the data set's name and a digest."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octopus_study.data.proof import require_fetched, require_pinned
from octopus_study.data.sentinel2 import PINNED_WINDOW, SCENE_SIZE, pixel_digest, read_band
from octopus_study.errors import NotHeldError


@dataclass(frozen=True)
class Scene:
    """One band."""

    dataset: str  # ``sentinel2-b04`` or ``synthetic-sentinel2``
    synthetic: bool  # true for the generated sample
    pixels: NDArray[np.uint16]  # (H, W) uint16 digital numbers; 0 is no data
    sha256: str  # digest of the pixels, as they are measured

    @property
    def whole(self) -> bool:
        """Whether it is the whole scene, and no window of it."""
        return self.pixels.shape == (SCENE_SIZE, SCENE_SIZE)


def load_scene(manifest_path: str | Path) -> Scene:
    """Load the band that a manifest of `octopus_study.data.fetch` points to; `DataError` as
    `octopus_study.data.proof.require_fetched` raises it."""
    manifest, file = require_fetched(
        manifest_path, ("sentinel2", "sentinel2-b04"), lambda file: pixel_digest(read_band(file).pixels)
    )
    # The pinned window proves a file that holds it; other windows were proven when they were fetched.
    with suppress(NotHeldError):
        if not manifest.synthetic:
            require_pinned(file, manifest, pixel_digest(read_band(file, PINNED_WINDOW).pixels))
    return Scene(manifest.dataset, manifest.synthetic, read_band(file).pixels, manifest.sha256)
