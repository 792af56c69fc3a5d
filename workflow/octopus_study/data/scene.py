"""What the study of satellite tiles measures: one band of a scene, with the data set's name and a digest."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octopus_study.data.proof import require_pinned, require_present, require_unchanged
from octopus_study.data.receipt import Receipt, read_receipt
from octopus_study.data.sentinel2 import PINNED_WINDOW, pixel_digest, read_band
from octopus_study.errors import DataError, NotHeldError


@dataclass(frozen=True)
class Scene:
    """One band."""

    dataset: str  # ``sentinel2-b04`` or ``synthetic-sentinel2``
    synthetic: bool  # true for the generated sample
    pixels: NDArray[np.uint16]  # (H, W) uint16 digital numbers; 0 is no data
    sha256: str  # digest of the pixels, as they are measured


def load_scene(receipt_path: str | Path) -> Scene:
    """Load the band that a receipt of `octopus_study.data.fetch` points to.

    Raises
    ------
    DataError
        The receipt or the data are missing, damaged or changed since the fetch, or the receipt is of another kind.
    """
    receipt_path = Path(receipt_path)
    receipt = read_receipt(receipt_path)
    if "sentinel2" not in receipt.dataset:
        raise DataError(f"{receipt_path} is a receipt for {receipt.dataset}; a scene needs sentinel2-b04")
    file = receipt_path.parent / receipt.path
    require_present(file, receipt)
    pixels = read_band(file).pixels
    digest = pixel_digest(pixels)
    require_unchanged(file, receipt, digest)
    if not receipt.synthetic:
        _require_pinned(file, receipt)
    return Scene(receipt.dataset, receipt.synthetic, pixels, digest)


def _require_pinned(file: Path, receipt: Receipt) -> None:
    """The pinned window proves a file that holds it; other windows were proven when they were fetched."""
    with suppress(NotHeldError):
        require_pinned(file, receipt, pixel_digest(read_band(file, PINNED_WINDOW).pixels))
