"""Octopus: one launch for batches whose items all differ in size.

>>> import numpy as np
>>> import octopus
>>> frame = np.zeros((1080, 1920, 3), np.uint8)
>>> octopus.crop_resize(frame, [[10, 20, 60, 90], [5, 5, 6, 6]], (224, 224), mean=127.5, std=127.5).shape
(2, 3, 224, 224)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from octopus.errors import DeviceError, InputError, MissingPackageError, OctopusError, OutOfMemoryError

if TYPE_CHECKING:
    from octopus import blockmap, images, ops
    from octopus.backends.cpu.threads import get_num_threads, set_num_threads
    from octopus.crop.api import CropPlan, crop_resize
    from octopus.crop.frame import NV12, P010
    from octopus.crop.framestream import FrameStream
    from octopus.crop.spec import FitHeight
    from octopus.crop.transforms import map_back, rotated_boxes
    from octopus.ragged.batch import RaggedBatch
    from octopus.ragged.plan import RaggedPlan
    from octopus.ragged.tuner import tune
    from octopus.tiles.api import TilePlan, best_within, keep_tiles, otsu_threshold, tile_means
    from octopus.warm import warm_up

__version__ = "0.2.0"
__all__ = [
    "NV12", "P010", "CropPlan", "DeviceError", "FitHeight", "FrameStream", "InputError", "MissingPackageError",
    "OctopusError", "OutOfMemoryError", "RaggedBatch", "RaggedPlan", "TilePlan", "best_within", "blockmap",
    "crop_resize", "get_num_threads", "images", "keep_tiles", "map_back", "ops", "otsu_threshold", "rotated_boxes",
    "set_num_threads", "tile_means", "tune", "warm_up",
]  # fmt: skip

_MODULES = ("blockmap", "images", "ops")
_NAMES = {  # of each module
    "backends.cpu.threads": ("get_num_threads", "set_num_threads"),
    "crop.api": ("CropPlan", "crop_resize"),
    "crop.frame": ("NV12", "P010"),
    "crop.framestream": ("FrameStream",),
    "crop.transforms": ("map_back", "rotated_boxes"),
    "crop.spec": ("FitHeight",),
    "ragged.batch": ("RaggedBatch",),
    "ragged.plan": ("RaggedPlan",),
    "ragged.tuner": ("tune",),
    "tiles.api": ("TilePlan", "best_within", "keep_tiles", "otsu_threshold", "tile_means"),
    "warm": ("warm_up",),
}
_LAZY = {name: module for module, names in _NAMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker would take any name for a good one

    def __getattr__(name: str) -> object:
        """Import the library's parts when they are first used, so that `import octopus` stays quick."""
        if name in _MODULES:
            return import_module(f"octopus.{name}")
        if name not in _LAZY:
            raise AttributeError(f"module 'octopus' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"octopus.{_LAZY[name]}"), name)
        return found


def __dir__() -> list[str]:
    """The public names, also of what has not been imported yet."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
