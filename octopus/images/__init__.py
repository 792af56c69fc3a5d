"""Images of any size in one launch: resized to one size, to sizes of their own, or cut into the patch rows of a model.

>>> import numpy as np
>>> from octopus import images
>>> pictures = [np.zeros((480, 640, 3), np.uint8), np.zeros((200, 100, 3), np.uint8)]
>>> images.resize(pictures, (224, 224), scale=255).shape
(2, 3, 224, 224)

All take a list of images, or a `RaggedBatch` of them, on the host or on the GPU, and return arrays of the same library.
An `ImagePlan` used again saves what is reserved and found anew at each call.
"""

from octopus.images.api import patch_rows, resize, resize_each
from octopus.images.plan import ImagePlan
from octopus.images.sizes import fit_sizes, smart_sizes

__all__ = ["ImagePlan", "fit_sizes", "patch_rows", "resize", "resize_each", "smart_sizes"]


def __dir__() -> list[str]:
    """The public names alone: the modules beside are how they are made."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
