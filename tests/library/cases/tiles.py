"""Means and flags of tiles and what they must be: NumPy's, bit for bit; and a table for all devices."""

from typing import Any, NamedTuple

import numpy as np

from cases.crops import pairs
from octopus import TilePlan, keep_tiles, tile_means


class Tiles(NamedTuple):
    """A call: an image on the host, tiles, the threshold of flags, and options."""

    image: np.ndarray
    tiles: Any
    threshold: float
    options: dict[str, Any]

    def call(self, image: Any, tiles: Any, kind: str, **more: Any) -> tuple[Any, Any]:
        """Flags and means by `keep_tiles`, a plan, or means alone."""
        options = self.options | more
        if kind == "plan":
            plan = TilePlan(image, tiles, **options)
            plan.run(image, self.threshold)
            return plan.run(image, self.threshold)  # whose memory for sums must be left as it was found
        if kind == "means":
            return None, tile_means(image, tiles, **options)
        return keep_tiles(image, tiles, self.threshold, **options)

    def check(self, flags: Any, means: np.ndarray) -> None:
        """Bit for bit; tiles that reach beyond the image are cut, which those on a GPU alone may."""
        nodata, right = self.options.get("nodata"), []
        scale = self.options.get("scale") or np.iinfo(self.image.dtype).max
        height, width = self.image.shape[:2]
        for x1, y1, x2, y2 in np.asarray(self.tiles).reshape(-1, 4).tolist():
            values = self.image[max(y1, 0) : max(min(y2, height), 0), max(x1, 0) : max(min(x2, width), 0)]
            values = values if nodata is None else values[values != nodata]
            right.append(values.mean() / scale if values.size else np.nan)
        right = np.array(right, np.float64)
        assert means.dtype == np.float64 and np.array_equal(means, right, equal_nan=True), (means, right)
        assert flags is None or (flags.dtype == bool and np.array_equal(flags, right > self.threshold)), (flags, right)


def tiles_of(width: int, height: int, count: int, beyond: bool = False) -> np.ndarray:
    """Tiles of all kinds: pixels, rows, columns, the whole image, its corners, overlapping ones; and beyond it."""
    random = np.random.default_rng(2)
    x, y = (np.sort(random.integers(0, side + 1, (count, 2)), axis=1) for side in (width, height))
    tiles = np.column_stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]])
    tiles = tiles[(tiles[:, 0] < tiles[:, 2]) & (tiles[:, 1] < tiles[:, 3])]
    fixed = [
        (0, 0, 1, 1), (width - 1, height - 1, width, height), (0, 0, width, height), (0, 0, width, 1),
        (0, 0, 1, height), (0, height // 2, max(width - 1, 1), height),
    ]  # fmt: skip
    if beyond:
        fixed += [(-5, -7, width + 9, height + 2), (5, 5, 5, 9), (9, 9, 3, 12), (width, 0, width + 6, 5),
                  (0, 0, -(2**63), 5), (2**62, 0, 3, 5)]  # fmt: skip
    return np.concatenate([np.array(fixed, np.int64), tiles])


class Case(NamedTuple):
    """A row of the table; an image that is `wide` is a part of a wider one, whose rows begin anywhere."""

    dtype: str
    width: int
    channels: int
    wide: bool
    nodata: int | None

    @property
    def name(self) -> str:
        return f"{self.dtype}-{self.width}x{self.channels}{'-wide' * self.wide}-{self.nodata}"

    def check(self, scene: str, runner: Any) -> None:
        """Make the calls by a runner, tiles from the host and on its device, and compare."""
        height, times = (9, 1) if scene == "small" else (301, 7)
        width, top = self.width * times, 100 if self.nodata is not None else np.iinfo(self.dtype).max + 1
        shape = (height, width + 12 * self.wide, *[self.channels] * bool(self.channels))
        pixels = np.random.default_rng(1).integers(0, top, shape, self.dtype)
        pixels[5:8] = self.nodata or 3
        options = {"scale": 7.3} | ({} if self.nodata is None else {"nodata": self.nodata})
        image = pixels[:, 3 : 3 + width] if self.wide else pixels
        for beyond, kind in ((False, "keep"), (True, "plan"), (False, "means")):
            beyond &= runner.device == "cuda"
            call = Tiles(image, tiles_of(width, height, 3 if scene == "small" else 200, beyond), 6.0, options)
            call.check(*runner.tiles(call, kind, beyond))


CASES = {
    case.name: case for case in [
        *(Case(dtype, 41, *rest) for dtype, *rest in pairs([("uint8", "uint16"), (1, 3), (False, True), (None, 3)])),
        # Rows a multiple of 16 bytes apart, with more loads than a block has threads, of a few bytes, and no channels.
        Case("uint8", 48, 0, False, None), Case("uint8", 36, 4, True, 3), Case("uint16", 304, 1, False, 3),
        Case("uint8", 208, 5, False, None), Case("uint16", 300, 1, True, 3), Case("uint8", 3, 1, False, 3),
    ]
}  # fmt: skip
