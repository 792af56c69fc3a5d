"""Wrong calls of what looks at tiles: `keep_tiles`, `tile_means`, `TilePlan`, and the rules that choose."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
from wrong_calls import NO_GPU, Equal, python, rows, same, torch

import octopus
from octopus import TilePlan

NAN, INF = np.nan, np.inf
IMAGE = np.random.default_rng(4).integers(0, 256, (6, 8), np.uint8)
COLOUR = np.random.default_rng(4).integers(0, 256, (6, 8, 3), np.uint8)
TILES = [[0, 0, 4, 3], [4, 3, 8, 6]]
MEANS = [0.9, 0.5, NAN, 0.1]


def plan(image=IMAGE, tiles=TILES, **options):
    return TilePlan(image, tiles, **{"device": "cpu", **options}).run(IMAGE)


def run(image=IMAGE, threshold=0.5, **options):
    return TilePlan(IMAGE, TILES, device="cpu").run(image, threshold, **options)


keep = partial(octopus.keep_tiles, image=IMAGE, tiles=TILES, threshold=0.5, device="cpu")
means = partial(octopus.tile_means, image=IMAGE, tiles=TILES, device="cpu")
within = partial(octopus.best_within, means=MEANS, sizes=[60, 50, 10, 40], budget=100)
ROWS = [
    *rows("keep_tiles", keep, "image",
        (None, "image is None"), ("scene.tif", "image is a str"),
        (IMAGE[0], "image must have shape (H, W) or (H, W, C), found (8,)"),
        (np.zeros((4, 70, 80), np.uint16), "pass a contiguous copy of image.transpose(1, 2, 0)"),
        (IMAGE.astype(np.float32), "image must be uint8 or uint16 in the machine's byte order, found float32"),
        (IMAGE[:0], "image sides must lie between 1 and"), (IMAGE[:, ::2], "numpy.ascontiguousarray"),
        (np.broadcast_to(np.zeros(1 << 24, np.uint8), (1 << 9, 1 << 24)), "next to each other"),
        (np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (4097, 1 << 20), (1 << 20, 1)), "is too large"),
        (np.ma.masked_array(IMAGE, IMAGE > 9), "image is a masked array"),
        (torch(lambda t: t.from_numpy(IMAGE.copy()).to_sparse(), "sparse"), "make it dense first"),
        (torch(lambda t: t.from_numpy(IMAGE.copy()), "tensor"), same()), (np.pad(IMAGE, 1)[1:-1, 1:-1], same()),
        (IMAGE[..., None], same())),
    *rows("keep_tiles", keep, "tiles",
        (None, "tiles is None"), ([0, 0, 4, 3], "tiles must have shape (N, 4), found (4,)"),
        ([[0, 0, 4, 3], [1]], "tiles must be an array, found rows of different length"),
        ([[0.0, 0.0, 4.5, 3.0]], "tiles cover whole pixels and must be integers, found float64"),
        ([[0, 0, 0, 3]], "tile 0 = (0, 0, 0, 3) is empty"),
        ([[-1, 0, 4, 3]], "tile 0 = (-1, 0, 4, 3) reaches outside the image of 8x6 pixels"),
        ([[0, 0, 4, 3], [0, 0, 9, 3]], "; wrong tiles: 1 of 2"),
        (np.ma.masked_array(TILES, np.array(TILES) > 3), "tiles is a masked array"),
        (SimpleNamespace(xyxy=np.array(TILES)), same()),
        (SimpleNamespace(xyxy=np.array(TILES, np.float32)), "must be integers, found float32"),
        ([], same(tiles=np.empty((0, 4), int))), (np.empty(0, int), same(tiles=np.empty((0, 4), int))),
        (np.array([[0, 0, 2**64 - 1, 2]], np.uint64), "reaches outside"), (np.array(TILES, np.uint8), same()),
        (np.array(TILES, ">i8"), same())),
    *rows("keep_tiles", keep, "threshold",
        (None, "threshold must be a number, found None"), (NAN, "threshold is not a number"), (True, "found True"),
        (10**400, "threshold leaves the range"), (np.float32(0.5), same()), (np.array(0.5), same()),
        (torch(lambda t: t.tensor(0.5), "tensor"), same()), (INF, Equal((np.array([False, False]), means())))),
    *rows("keep_tiles", keep, "scale",
        (0, "scale must be positive and finite, found 0"), (NAN, "scale must be positive and finite"),
        ("a", "scale must be a number, found 'a'"), (10**400, "scale leaves the range"), (None, same(scale=255)),
        (np.uint8(255), same()), (np.array(255.0), same())),
    *rows("keep_tiles", keep, "nodata",
        (-1, "nodata must be None or a value of uint8, found -1"), (1.5, "found 1.5"),
        (np.array(True), "nodata must be None"), (np.uint16(0), same(nodata=0))),
    *rows("keep_tiles", keep, "**",
        ({"device": "gpu"}, "device='gpu' is unknown"), ({"device": None}, "device=None is unknown"),
        ({"device": "cuda"}, NO_GPU), ({"stream": "x"}, "leave stream out"), ({"no_data": 0}, python("keep_tiles"))),
    *rows("tile_means", means, "**",
        ({"image": IMAGE.astype(np.int64)}, "found int64"), ({"tiles": [[3, 0, 3, 1]]}, "is empty"),
        ({"scale": "a"}, "scale must be a number"),
        ({"nodata": 999}, "nodata must be None or a value of uint8, found 999"), ({"stream": 1}, "leave stream out"),
        ({"threshold": 0.5}, python("tile_means")), ({"tiles": np.empty((0, 4), int)}, Equal(np.empty(0)))),
    *rows("TilePlan", plan, "**",
        ({"image": None}, "image is None"), ({"tiles": [[0, 0, 4]]}, "tiles must have shape (N, 4)"),
        ({"scale": 0}, "scale must be positive"), ({"image": IMAGE[:5]}, "tile 1 = (4, 3, 8, 6) reaches outside"),
        ({"image": COLOUR}, "the plan is for images of (side, shape, dtype)"), ({"device": "cuda"}, NO_GPU),
        ({"threshold": 0.5}, python("TilePlan"))),
    *rows("TilePlan.run", run, "**",
        ({"image": IMAGE[:5]}, "the plan is for images of (side, shape, dtype) ('cpu', (6, 8), 'uint8')"),
        ({"image": None}, "image is None"), ({"threshold": NAN}, "threshold is not a number"),
        ({"threshold": "x"}, "threshold must be a number"), ({"stream": "x"}, "leave stream out"),
        ({"image": np.pad(IMAGE, 2)[2:-2, 2:-2]}, same())),
    *rows("otsu_threshold", octopus.otsu_threshold, "means",
        (None, "means is None"), ("abc", "means is a str"), (0.5, "means is a float"), ([], "at least one mean"),
        ([NAN], "at least one mean"), ([0.5, INF], "none that is infinite"),
        ([[0.1, 0.2]], "means must be a flat array of numbers, found float64 of shape (1, 2)"),
        ([0.5, [0.1]], "means must be an array, found rows of different length"),
        (np.ma.masked_array([0.1, 0.9], [0, 1]), "means is a masked array"), ([0, 1, 9, 10], Equal(5.0)),
        ([0.5, NAN, 0.5], Equal(0.5))),
    *rows("best_within", within, "means",
        (None, "means is None"), ([0.5] * 3, "sizes must hold one number per mean, (3,), found (4,)"),
        (["a"] * 4, "means must be a flat array of numbers"), ([MEANS], "means must be a flat array")),
    *rows("best_within", within, "sizes",
        (None, "sizes is None"), ([60, 50, -10, 40], "neither sizes nor budget may be negative"),
        ([60, 50, INF, 40], "sizes must be finite"), (np.array([60, 50, 10, 40], np.uint8), same())),
    *rows("best_within", within, "budget",
        (None, "budget must be a number, found None"), (-1, "neither sizes nor budget may be negative"),
        (NAN, "budget"), (10**400, "budget leaves the range"), (math.inf, Equal(np.array([True, True, False, True]))),
        *((form(100), Equal(np.array([True, False, False, True]))) for form in (np.int32, np.array))),
]  # fmt: skip
