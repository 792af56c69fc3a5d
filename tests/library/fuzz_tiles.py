"""Random tiles of random images on the CPU: means as NumPy makes them, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dice import Dice
from guarded import READ, Guard

from octopus import TilePlan, keep_tiles, set_num_threads, tile_means


@dataclass
class Case:
    """An image in guarded memory, tiles, options, and by which door."""

    image: np.ndarray = field(repr=False)
    tiles: Any
    threshold: float
    options: dict[str, Any]
    door: str
    threads: int
    region: Any = field(repr=False)

    def __str__(self) -> str:
        return (
            f"image {self.image.dtype} {self.image.shape} by {self.image.strides} bytes, above {self.threshold}, "
            f"{self.options}, {self.door}, {self.threads} threads\ntiles {np.asarray(self.tiles).tolist()}"
        )

    def check(self) -> float:
        """Call, and compare with NumPy."""
        set_num_threads(self.threads)
        flags, means = self._call()
        right = self._right()
        assert means.dtype == np.float64 and np.array_equal(means, right, equal_nan=True), (means, right)
        if flags is not None:
            assert flags.dtype == bool and np.array_equal(flags, right > self.threshold), (flags, right)
        assert self.region.is_intact(), "something was written beside the image"
        return 0.0

    def _call(self) -> tuple[np.ndarray | None, np.ndarray]:
        options = {**self.options, "device": "cpu"}
        if self.door == "plan":
            return TilePlan(self.image, self.tiles, **options).run(self.image, self.threshold)
        if self.door == "means":
            return None, tile_means(self.image, self.tiles, **options)
        return keep_tiles(self.image, self.tiles, self.threshold, **options)

    def _right(self) -> np.ndarray:
        nodata = self.options.get("nodata")
        scale = self.options.get("scale") or np.iinfo(self.image.dtype).max
        means = []
        for x1, y1, x2, y2 in np.asarray(self.tiles).reshape(-1, 4).tolist():
            values = self.image[y1:y2, x1:x2]
            values = values if nodata is None else values[values != nodata]
            means.append(values.mean() / scale if values.size else np.nan)
        return np.array(means, np.float64)


def warm_up() -> None:
    """Compile or load all kernels."""
    for dtype in (np.uint8, np.uint16):
        tile_means(np.ones((1, 1), dtype), [[0, 0, 1, 1]], device="cpu")


def make(dice: Dice, guard: Guard) -> Case:
    """Any call."""
    dtype, channels = np.dtype(dice.pick(np.uint8, np.uint16)), int(dice.pick(0, 1, 2, 3, 4, 5))
    sides = (1, 8, 40, 90) if not dice.few(0.05) else (400, 700)
    height, width = (dice.upto(dice.pick(*sides)) for _ in range(2))
    image = _image(dice, guard, (height, width, channels), dtype)
    region = guard.last
    tiles = _tiles(dice, height, width)
    options: dict[str, Any] = {}
    if dice.few(0.5):
        options["nodata"] = dice.pick(int, dtype.type)(
            dice.random.choice(image.ravel()) if dice.few(0.7) else dice.random.integers(0, 3)
        )
    if dice.few(0.5):
        options["scale"] = dice.pick(float, np.float32)(dice.random.uniform(0.5, 10_000))
    threshold = float(dice.random.uniform(0, 1) if dice.few(0.9) else dice.pick(-np.inf, np.inf, 0))
    door, threads = dice.pick("call", "call", "means", "plan"), int(dice.pick(1, 1, 2, 3))
    return Case(image, tiles, threshold, options, door, threads, region)


def _image(dice: Dice, guard: Guard, shape: tuple[int, int, int], dtype: np.dtype) -> np.ndarray:
    """An image whose first or last value touches the guard page; rows may be apart."""
    height, width, channels = shape
    row = width * max(channels, 1)
    pitch = row + (dice.upto(40) if dice.few(0.4) else 0)
    flat = guard.array("image", (pitch * (height - 1) + row,), dtype, dice.few(0.6))
    top = dice.pick(1, 2, np.iinfo(dtype).max)
    flat[:] = dice.random.integers(0, top, flat.size, dtype, endpoint=True)
    item = dtype.itemsize
    strides = (pitch * item, max(channels, 1) * item, item)
    if channels:
        image = np.lib.stride_tricks.as_strided(flat, (height, width, channels), strides)
    else:
        image = np.lib.stride_tricks.as_strided(flat, (height, width), strides[:2])
    if dice.few(0.3):
        image.flags.writeable = False
        guard.last.allow(READ)
    return image


def _tiles(dice: Dice, height: int, width: int) -> Any:
    """Tiles inside an image; all of it, single pixels, and a grid among them."""
    rows = []
    for _ in range(int(dice.pick(0, 1, 3, 9))):
        ends = []
        for limit in (width, height):
            low = int(dice.random.integers(0, limit))
            ends.append((0, limit) if dice.few(0.1) else (low, int(dice.random.integers(low, limit)) + 1))
        rows.append([ends[0][0], ends[1][0], ends[0][1], ends[1][1]])
    array = np.array(rows, int).reshape(-1, 4)
    kind = dice.pick("list", "int16", "int32", "int64", "uint16", ">i4", "columns")
    if kind == "list" and rows:
        return rows
    return np.asfortranarray(array) if kind in ("columns", "list") else array.astype(kind)
