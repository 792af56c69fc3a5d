"""A scene, its tiles, and the rule: what every method of the study is given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class TileJob:
    """What every method is given."""

    image: NDArray[Any]  # (H, W) or (H, W, C) uint8 or uint16, the scene, on the host
    tiles: NDArray[np.int32]
    # A tile is kept if its mean divided by `scale` is above `threshold`
    scale: float
    threshold: float
    device: str  # {"cpu", "cuda"}

    @property
    def on_gpu(self) -> bool:
        """Whether there is a GPU to work on."""
        return self.device == "cuda"

    @property
    def pixels(self) -> NDArray[np.int64]:
        """Of each tile, (N,)."""
        sides = (self.tiles[:, 2:] - self.tiles[:, :2]).astype(np.int64)
        return sides[:, 0] * sides[:, 1]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each tile, (N,)."""
        return self.pixels * (self.image.nbytes // (self.image.shape[0] * self.image.shape[1]))

    @cached_property
    def device_image(self) -> Any:
        """The scene in the memory of the GPU, for all methods that find it there."""
        from octopus.backends.cuda.memory import upload

        return upload(self.image)

    @cached_property
    def reference(self) -> NDArray[np.float64]:
        """Brightness of each tile by NumPy, (N,)."""
        return (
            np.array([self.image[y1:y2, x1:x2].mean() for x1, y1, x2, y2 in self.tiles.tolist()]) / self.scale
        )

    @property
    def expected(self) -> NDArray[np.uint8]:
        """The right flags."""
        return (self.reference > self.threshold).astype(np.uint8)


def placed(image: NDArray[Any], device: str) -> NDArray[Any]:
    """A scene as the methods find it: page-locked where a GPU reads it."""
    if device == "cpu":
        return image
    from octopus.backends.cuda.memory import pinned

    copy = pinned(image.shape, image.dtype)
    copy[...] = image
    return copy
