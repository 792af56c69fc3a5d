"""Random tiles of random images on the CPU."""

import numpy as np
from cases.tiles import Tiles

from octopus import tile_means


def warm_up(kind):
    for dtype in (np.uint8, np.uint16):
        tile_means(np.ones((1, 1), dtype), [[0, 0, 1, 1]], device="cpu")


def draw(drawn, kind):
    dtype, channels = np.dtype(drawn.pick(np.uint8, np.uint16)), drawn.pick(0, 1, 2, 3, 4, 5)
    height, width = (drawn.upto(drawn.pick(1, 8, 40, 90, *[500] * drawn.few(0.1))) for _ in range(2))
    row = width * max(channels, 1)
    pitch = row + (drawn.upto(40) if drawn.few(0.4) else 0)
    flat = drawn.array("image", (pitch * (height - 1) + row,), dtype)
    flat[:] = drawn.random.integers(0, drawn.pick(1, 2, np.iinfo(dtype).max), flat.size, dtype, endpoint=True)
    steps, cut = [step * dtype.itemsize for step in (pitch, max(channels, 1), 1)], 3 if channels else 2
    image = drawn.frozen(np.lib.stride_tricks.as_strided(flat, (height, width, channels)[:cut], steps[:cut]))
    rows = []
    for _ in range(drawn.pick(0, 1, 3, 9)):
        ends = []
        for limit in (width, height):
            low = drawn.upto(limit - 1, 0)
            ends.append((0, limit) if drawn.few(0.1) else (low, drawn.upto(limit, low + 1)))
        rows.append([ends[0][0], ends[1][0], ends[0][1], ends[1][1]])
    tiles, form = (np.array(rows, int).reshape(-1, 4), drawn.pick("list", "i2", "i4", "i8", "u2", ">i4", "columns"))
    tiles = rows if form == "list" and rows else np.asfortranarray(tiles) if len(form) > 3 else tiles.astype(form)
    options = {}
    if drawn.few(0.5):
        value = drawn.random.choice(image.ravel()) if drawn.few(0.7) else drawn.upto(2, 0)
        options["nodata"] = drawn.pick(int, dtype.type)(value)
    if drawn.few(0.5):
        options["scale"] = drawn.pick(float, np.float32)(drawn.random.uniform(0.5, 10_000))
    threshold = drawn.pick(-np.inf, np.inf, 0.0) if drawn.few(0.1) else float(drawn.random.uniform(0, 1))
    call, by = Tiles(image, tiles, threshold, options), drawn.pick("keep", "means", "plan")

    def make():
        call.check(*call.call(image, tiles, by, device="cpu"))
        return 0.0

    return (f"image {dtype} {image.shape} by {image.strides} bytes, above {threshold}, {options}, {by}, {rows}", make)
