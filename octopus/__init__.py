"""Octopus: one launch for batches whose items all differ in size.

>>> import numpy as np
>>> import octopus
>>> frame = np.zeros((1080, 1920, 3), np.uint8)
>>> octopus.crop_resize(frame, [[10, 20, 60, 90], [5, 5, 6, 6]], (224, 224), mean=127.5, std=127.5).shape
(2, 3, 224, 224)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from octopus.errors import (
    DataError,
    DeviceError,
    InputError,
    MeasureError,
    MissingPackageError,
    OctopusError,
    OutOfMemoryError,
)

if TYPE_CHECKING:
    from octopus.crop import CropPlan, crop_resize
    from octopus.framestream import FrameStream
    from octopus.ragged import RaggedBatch
    from octopus.tiles import TilePlan, best_within, keep_tiles, otsu_threshold, tile_means
    from octopus.transforms import map_back
    from octopus.tuner import tune

__version__ = "0.1.0"
__all__ = [
    "CropPlan",
    "DataError",
    "DeviceError",
    "FrameStream",
    "InputError",
    "MeasureError",
    "MissingPackageError",
    "OctopusError",
    "OutOfMemoryError",
    "RaggedBatch",
    "TilePlan",
    "best_within",
    "crop_resize",
    "keep_tiles",
    "map_back",
    "ops",
    "otsu_threshold",
    "tile_means",
    "tune",
]

_LAZY = {
    "CropPlan": "octopus.crop",
    "FrameStream": "octopus.framestream",
    "RaggedBatch": "octopus.ragged",
    "TilePlan": "octopus.tiles",
    "best_within": "octopus.tiles",
    "crop_resize": "octopus.crop",
    "keep_tiles": "octopus.tiles",
    "map_back": "octopus.transforms",
    "otsu_threshold": "octopus.tiles",
    "tile_means": "octopus.tiles",
    "tune": "octopus.tuner",
}


def __getattr__(name: str) -> Any:
    """Import the library's parts when they are first used, so that `import octopus` stays quick."""
    if name == "ops":
        return import_module("octopus.ops")
    if name not in _LAZY:
        raise AttributeError(f"module 'octopus' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
