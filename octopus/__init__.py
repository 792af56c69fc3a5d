"""Octopus: one launch for batches whose items all differ in size.

>>> import octopus
>>> crops = octopus.crop_resize(frame, boxes, (224, 224), mean=127.5, std=127.5)   # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from octopus.errors import (
    DataError,
    DeviceError,
    InputError,
    MeasureError,
    OctopusError,
    OutOfMemoryError,
)

if TYPE_CHECKING:
    from octopus.crop import CropPlan, crop_resize
    from octopus.ragged import RaggedBatch

__version__ = "0.1.0"
__all__ = [
    "CropPlan",
    "DataError",
    "DeviceError",
    "InputError",
    "MeasureError",
    "OctopusError",
    "OutOfMemoryError",
    "RaggedBatch",
    "crop_resize",
]

_LAZY = {"CropPlan": "octopus.crop", "crop_resize": "octopus.crop", "RaggedBatch": "octopus.ragged"}


def __getattr__(name: str) -> Any:
    """Import the library's parts when they are first used, so that `import octopus` stays quick."""
    if name not in _LAZY:
        raise AttributeError(f"module 'octopus' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
