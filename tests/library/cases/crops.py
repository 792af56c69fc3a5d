"""Calls of `crop_resize` and what they must answer: by the reference in float64, and a table for all devices."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from octopus import NV12, P010, CropPlan, crop_resize
from octopus_study.reference import crops as reference

TOLERANCE = 2e-4  # of the frame's range: a fifth of what the library promises
TIE = 1e-3  # of a pixel: beside its edge the nearest one is decided by rounding
HALF_END = 65_520.0  # what is larger is infinite as float16
PER_PIXEL = 8.0  # ranges by which a bicubic sample may change per pixel along the two axes
TOPS = {"uint8": 255.0, "uint16": 65535.0, "float32": 300.0, "nv12": 255.0, "p010": 255.0}
BOXED = {"letterbox": True, "return_transform": True}
VIDEO = {"nv12": (NV12, np.uint8), "p010": (P010, np.uint16)}

LAYOUTS, DTYPES, PAD_MODES = (("NCHW", "NHWC"), ("float32", "float16", "uint8"), ("constant", "edge", "reflect"))
SETS = [
    {"edge": edge, "antialias": antialias, "letterbox": boxed, "return_transform": boxed}
    for edge, antialias, boxed in product(("box", "image"), (False, True), (False, True))
]
BEYOND = [{}, *({"outside": "pad", "pad_mode": mode} for mode in PAD_MODES)]


def name_of(options: dict[str, Any]) -> str:
    """A set of options in words."""
    return "-".join([str(value) if value is not True else name for name, value in options.items() if value]) or "plain"


class Crops(NamedTuple):
    """A call: arrays on the host, NV12 or P010, and options of `crop_resize`."""

    frame: Any
    boxes: Any
    size: tuple[int, int]
    options: dict[str, Any]

    @property
    def pixels(self) -> np.ndarray:
        """The frame as the reference takes it."""
        if isinstance(self.frame, np.ndarray):
            return reference.reordered(self.frame, self.options.get("channels", "RGB"))
        return reference.rgb_of_video(self.frame.y, self.frame.uv, *self.frame.coding[1:])

    @property
    def normalised(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation in values of the frame, (N or 1, channels or 1)."""
        pair = (self.options.get("mean"), 0), (self.options.get("std"), 1)
        numbers = (np.float64(default if value is None else value) for value, default in pair)
        scaled = [np.float64(self.options.get("scale") or 1) * number for number in numbers]
        own = all(number.ndim == 2 and len(number) == len(single(self.boxes)) for number in scaled)
        return tuple(scaled if own else (number.reshape(1, -1) for number in scaled))

    def right(self, boxes: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Crops in float64, neither rounded nor saturated, and the ways back."""
        given, pixels = self.options, self.pixels
        boxes, channels = single(self.boxes) if boxes is None else boxes, pixels.shape[-1]
        mean, std = self.normalised
        pad = np.broadcast_to(np.ravel(np.float64(given.get("pad_value", 114.0))), channels)
        names, make = ["filter", "outside", "pad_mode"], reference.warp
        if boxes.ndim == 2:
            names, make = [*names, "edge", "antialias", "letterbox"], reference.crop_resize
        chosen = {name: given[name] for name in names if given.get(name) is not None}
        if chosen.get("outside") == "error":  # which takes no boxes that are cut
            del chosen["outside"]
        index = None if pixels.ndim == 3 else np.asarray(given["frame_index"], int)
        ones = np.zeros(channels), np.ones(channels)
        items = make(pixels, boxes, self.size, *ones, "NHWC", pad_value=pad, frame_index=index, **chosen)
        items = (items - mean[:, None, None]) / std[:, None, None]
        frame = pixels if pixels.ndim == 3 else pixels[0]
        cut = boxes if boxes.ndim == 3 or chosen.get("outside") == "pad" else reference.cut(boxes, frame)
        ways = reference.transforms(cut, self.size) if given.get("letterbox") else np.zeros((len(boxes), 4))
        for item, flip, way in zip(items, np.asarray(given.get("flip", np.zeros(len(boxes), int))), ways, strict=True):
            item[...] = item[:: -1 if flip & 2 else 1, :: -1 if flip & 1 else 1].copy()
            turned = np.array([flip & 1, flip >> 1], bool)
            way[2:] += turned * way[:2] * self.size[::-1]
            way[:2] *= np.where(turned, -1, 1)
        return items.transpose(0, 3, 1, 2) if given.get("layout", "NCHW") == "NCHW" else items, ways

    def check(self, answer: Any, right: tuple[np.ndarray, np.ndarray] | None = None) -> float:
        """The largest error of an answer on the host, as a part of the tolerance, which must not be above 1. `right` is
        `self.right()`, for a call that is checked twice."""
        given, boxes = self.options, single(self.boxes)
        exact, ways = self.right() if right is None else right
        dtype, made = given.get("dtype", "float32"), int(np.squeeze(given.get("count", len(boxes))))
        found, way = answer if given.get("letterbox") else (answer, None)
        if dtype == "bfloat16":
            found = (found.astype(np.uint32) << 16).view(np.float32)
        assert found.shape == exact.shape, (found.shape, exact.shape)
        assert dtype == "bfloat16" or found.dtype == dtype, found.dtype
        found, exact, ways = found[:made], exact[:made], ways[:made]
        if way is not None:
            close = np.allclose(way[:made], ways, rtol=1e-5, atol=1e-5 * np.abs(ways).max(initial=1.0))
            assert close and way.dtype == np.float32, (way, ways)
        if not exact.size:
            return 0.0
        kind = self.frame.dtype.name if isinstance(self.frame, np.ndarray) else self.frame.kind
        top, (mean, std) = max(TOPS[kind], np.abs(given.get("pad_value", 0)).max()), self.normalised
        far = np.spacing(np.float32(np.abs(_ends(boxes, self.size)).max(initial=1)))
        limit = (TOLERANCE + PER_PIXEL * far * (boxes.ndim == 3)) * top / std + TOLERANCE * np.abs(mean / std)
        limit = np.broadcast_to(limit, (len(boxes), self.pixels.shape[-1]))[:made, None, None]
        if given.get("layout", "NCHW") == "NCHW":
            limit = limit.transpose(0, 3, 1, 2)
        if given.get("filter") == "nearest":  # a sample on the edge of two pixels may take either
            exact = self._nearest_to(found, exact, boxes, dtype, limit)
        right, rounding = stored(exact, dtype)
        with np.errstate(invalid="ignore"):
            error = (np.abs(found.astype(np.float64) - right) - rounding) / limit
        error[found == right] = 0  # also where both are infinite
        if dtype == "float16":  # between the largest number and infinity either is right
            error[(np.abs(np.abs(exact) - HALF_END) <= limit) & (np.abs(found) >= 65_504)] = 0
        worst = float(error.max(initial=0))
        assert worst <= 1, f"{worst} of the tolerance at {np.unravel_index(error.argmax(), error.shape)}"
        return worst

    def _nearest_to(self, found: np.ndarray, exact: np.ndarray, boxes: np.ndarray, dtype: str, limit: np.ndarray):
        """Of the answers for boxes beside the given ones, value by value the one that is next to what was found."""
        outside, shape = self.options.get("outside", "clip"), self.pixels.shape
        for by in np.array([(x, y) for x in (-TIE, 0, TIE) for y in (-TIE, 0, TIE)]):
            right, rounding = stored(exact, dtype)
            if (np.abs(found - right) <= limit + rounding).all():
                break
            affine = by[:, None] * [0, 0, 1]
            moved = boxes + {(4,): np.tile(by, 2), (2, 3): affine, (4, 2): by}[boxes.shape[1:]]
            if boxes.ndim == 2:
                inside = [usable(*box, shape, outside) for box in moved.tolist()]
                moved = np.where(np.array(inside, bool)[:, None], moved, boxes)
            other = self.right(moved)[0][: len(found)]
            apart = [np.abs(found - stored(values, dtype)[0]) for values in (other, exact)]
            exact = np.where(apart[0] < apart[1], other, exact)
        return exact


def single(boxes: Any) -> np.ndarray:
    """Boxes as the library reads them."""
    with np.errstate(over="ignore"):
        read = np.asarray(boxes).astype(np.float32).astype(np.float64)
        return read if read.ndim == 3 else read.reshape(-1, 4)


def stored(right: np.ndarray, dtype: str) -> tuple[np.ndarray, Any]:
    """What a result of a dtype should hold, and how far it may be from it by rounding."""
    if dtype == "uint8":
        return right.clip(0, 255), 0.5
    if dtype == "bfloat16":
        return right, np.abs(right) * 2.0**-8
    if dtype == "float16":
        step = np.spacing(np.abs(right).clip(0, 65_000).astype(np.float16)).astype(np.float64)
        return np.where(np.abs(right) < HALF_END, right, np.copysign(np.inf, right)), step / 2
    return right, 0.0


def usable(x1: float, y1: float, x2: float, y2: float, shape: tuple[int, ...], outside: str) -> bool:
    """The rule by which boxes on the host are taken."""
    height, width = shape[-3:-1]
    if not (np.isfinite([x1, y1, x2, y2]).all() and x1 < x2 and y1 < y2):
        return False
    if outside == "pad":
        return max(x2 - x1, y2 - y1) <= 16384 and max(map(abs, (x1, y1, x2, y2))) <= 2**24
    if outside == "error" and (x1 < 0 or y1 < 0 or x2 > width or y2 > height):
        return False
    inside = np.maximum((x1, y1), 0), np.minimum((x2, y2), (width, height))
    return bool((inside[0] < inside[1]).all() and (inside[1] - inside[0]).max() <= 16384)


def _ends(boxes: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Positions of the corners' samples of affine maps; of boxes their ends."""
    if boxes.ndim == 2 or boxes.shape[1:] == (4, 2):
        return boxes
    corners = np.array([(x, y, 1) for x in (0, size[1] - 1) for y in (0, size[0] - 1)]).T
    return boxes @ corners


# The table. In a small scene, which the simulator can do, and in a large one; sizes of results whose rows are made of
# vectors and others, growing and shrinking.
SCENES = {"small": (26, 40), "large": (120, 180)}
SIZES = {"small": [(11, 8), (7, 5), (4, 2), (5, 3)], "large": [(33, 48), (17, 47), (128, 224), (1, 1)]}
MEAN, STD = (10.0, 20.0, 30.0), (2.0, 4.0, 8.0)


def random_frame(height=200, width=300, channels=3, dtype=np.uint8, seed=0):
    """Every value of a dtype."""
    top = np.iinfo(dtype).max
    return np.random.default_rng(seed).integers(0, top, (height, width, channels), dtype, endpoint=True)


@lru_cache(8)  # cases of a kind follow each other
def frame_of(kind: str, height: int, width: int) -> Any:
    """A frame such as "uint8x3": "-odd" if its rows begin anywhere, "-frames" if there are three with gaps."""
    name, _, form = kind.partition("-")
    if name in VIDEO:
        make, dtype = VIDEO[name]
        luma = random_frame(height, width + 6, 1, dtype, 1)[:, :width, 0]
        chroma = random_frame(height // 2, width + 10, 1, dtype, 2)[:, 2 : 2 + width, 0]
        coding = ("bt709", "limited") if name == "nv12" else ("bt2020", "full")
        return make(luma, chroma, matrix=coding[0], range=coding[1])
    dtype, _, channels = name.partition("x")
    shape = (3, height + 2, width + 4, int(channels))
    if dtype == "float32":
        frames = np.random.default_rng(4).normal(40, 90, shape).clip(-300, 300).astype(np.float32)
    else:
        frames = np.random.default_rng(1).integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    if form == "frames":
        return frames[:, 1:-1, 4:]
    return frames[0, 1:-1, 1 : 1 + width] if form == "odd" else np.ascontiguousarray(frames[0, 2:, 4:])


def boxes_of(height: int, width: int, outside: str) -> np.ndarray:
    """All of the frame, pixels, rows and columns at its ends, between pixels, and beyond if that is allowed."""
    boxes = [
        (0, 0, width, height), (0.07 * width, 0.3 * height, 0.9 * width, 0.85 * height), (5, 7, 9, 10),
        (width - 1, 0, width, height), (width - 1, height - 1, width, height), (0, 0, width, 1),
        (1, 1, width - 1, height - 1),
    ][: 3 if height < 99 else None]  # fmt: skip
    if outside != "error":
        boxes += [(-0.3, -2, 0.4 * width, 0.6 * height), (width - 3.5, height - 9, width + 0.25, height + 7)]
    if outside == "pad":
        boxes += [(-3 * width, -3.5 * height, -2.7 * width, -3.25 * height), (-9, -30, 1.1 * width, height + 25)]
    return np.array(boxes, np.float32)


def maps_of(height: int, width: int, size: tuple[int, int]) -> np.ndarray:
    """Turned and shrunk inside the frame, mirrored, across its border, far outside, all of one pixel, and sheared."""
    unit = np.array([[width / size[1], 1, width], [1, height / size[0], height]])
    return np.array(
        [
            [[0.5, 0.23, 0.2], [-0.11, 0.6, 0.25]], [[-0.8, 0.11, 0.83], [0.05, 0.7, 0.07]],
            [[1.1, -1.7, 0.07], [1.9, 1.03, -0.2]], [[0.9, 0.1, 7.3], [0.2, 0.8, -9.1]], [[0, 0, 0.06], [0, 0, 0.15]],
            [[1.3, 2.1, -0.3], [0.003, 0.002, 0.5]],
        ]
    ) * unit + [[[0, 0, 0.037], [0, 0, 0.041]]]  # fmt: skip


class Case(NamedTuple):
    """A row of the table: a kind of frame, options, whether boxes are maps, and what items have of their own."""

    kind: str
    options: dict[str, Any]
    maps: bool = False
    items: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        parts = [self.kind, "maps" * self.maps, name_of(self.options), *self.items]
        return "-".join(filter(None, parts))

    def calls(self, scene: str) -> list[Crops]:
        """One for each size."""
        (height, width), calls = SCENES[scene], []
        usual = self.kind.startswith("uint8x3") and not self.items and not {"dtype", "layout"} & set(self.options)
        sizes = SIZES[scene][: None if usual else 2]
        if scene == "small":  # one, and under a filter one that shrinks
            sizes = sizes[len(self.name) % 2 :: 2] if self.options.get("antialias") else sizes[len(self.name) % 2 :][:1]
        for size in sizes:
            options, outside = dict(self.options), self.options.get("outside", "clip")
            boxes = maps_of(height, width, size) if self.maps else boxes_of(height, width, outside)
            frame = frame_of(self.kind, height, width)
            channels = 3 if self.kind in VIDEO or "channels" in options else frame.shape[-1]
            if isinstance(frame, np.ndarray) and frame.ndim == 4:
                options["frame_index"] = np.arange(2, 2 + len(boxes)) % 3
            unit = TOPS[self.kind.partition("x")[0]] / 255 if isinstance(frame, np.ndarray) else 1.0
            if options.get("dtype") != "uint8" or self.kind.startswith(("uint16", "float32")):
                every = np.arange(channels) % 3
                options |= {"mean": np.take(MEAN, every) * unit, "std": np.take(STD, every) * unit}
            if options.get("letterbox") or (outside, options.get("pad_mode", "constant")) == ("pad", "constant"):
                options["pad_value"] = np.arange(channels) * 7.0 % 200 * unit
            numbers = np.arange(len(boxes) * channels).reshape(-1, channels) % 29
            if "own" in self.items:
                options |= {"mean": numbers * 5.0 * unit, "std": (3.0 + numbers) * unit}
            if "flipped" in self.items:
                options["flip"] = np.arange(len(boxes)) % 4
            if "counted" in self.items:
                options["count"] = np.array(len(boxes) - 1, np.int32)
            calls.append(Crops(frame, boxes, size, options))
        return calls

    def check(self, scene: str, runner: Any) -> None:
        """Make all calls by a runner, boxes from the host and on its device, and compare."""
        for number, call in enumerate(self.calls(scene), len(self.name) // 2):
            right = call.right()
            for there in (number % 2, 1 - number % 2)[: 1 if scene == "small" else 2]:
                call.check(runner.crops(call, bool(there)), right)


def pairs(choices: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Some rows of `product(*choices)` that have every two values of two choices together, as few as are found."""

    def of(row):
        return set(combinations(enumerate(row), 2))

    rows = list(product(*(range(len(values)) for values in choices)))
    left = set().union(*map(of, rows))
    while left:
        row = max(rows, key=lambda row: len(left & of(row)))
        left -= of(row)
        yield tuple(values[index] for values, index in zip(choices, row, strict=True))


def _table() -> list[Case]:
    def all_of(kinds, *choices, **more):
        for kind, *options in pairs([kinds, *choices]):
            yield Case(kind, {name: value for one in options for name, value in one.items()}, **more)

    def each(name, values):
        return [{name: value} for value in values]

    dtypes, layouts = each("dtype", DTYPES), each("layout", LAYOUTS)
    edges, filtered, boxed = each("edge", ("box", "image")), [{}, {"antialias": True}], [{}, BOXED]
    geometry, ends, plain = [edges, filtered, boxed], [SETS[0], SETS[-1]], [{}, {"antialias": True, "edge": "image"}]
    cases = [*all_of(("uint8x3",), SETS)]
    cases += all_of(("uint8x3-odd", "uint8x3-frames"), *geometry)
    cases += all_of(("uint8x3-frames",), BEYOND[1:], *geometry)
    kinds = ("uint8x1", "uint8x3-frames", "uint8x4", "uint16x1", "uint16x3-frames", "uint16x4")
    cases += all_of(kinds, layouts, dtypes, plain)
    cases += all_of(("uint16x3-frames", "uint8x4-frames"), layouts, dtypes, [SETS[-1], SETS[-3]])
    cases += all_of(("uint8x3",), layouts, [{"dtype": "bfloat16"}], plain)
    cases += all_of(("float32x3",), dtypes, *geometry)
    cases += all_of(("uint8x2", "uint8x13", "uint16x5", "float32x64"), layouts, ends)
    cases += all_of(("float32x5",), BEYOND[3:], layouts, ends)
    filters = each("filter", ("nearest", "bicubic"))
    cases += all_of(("uint8x3-frames",), filters, edges, boxed, BEYOND)
    cases += all_of(("uint8x3",), each("filter", ("nearest", "bilinear", "bicubic")), BEYOND, maps=True)
    for kinds, results in (
        (("uint8x1", "uint8x4", "uint8x7"), dtypes), (("uint16x3-frames", "float32x2", "float32x5-frames"), dtypes[:1]),
    ):  # fmt: skip
        cases += all_of(kinds, results, layouts, filters)
        cases += all_of(kinds, results, layouts, [*filters, {"filter": "bilinear"}], maps=True)
    # Of video and of other orders of channels some results alone: each is a kernel of its own.
    usual = [{}, BOXED, {"antialias": True}, {"edge": "image", "outside": "pad"}]
    cases += all_of(("nv12",), layouts, dtypes[::2], usual)
    cases += all_of(("p010",), layouts, usual)
    for kind, order, results in (
        ("uint8x3", "BGR", dtypes[:1]), ("uint8x4", "RGBA", dtypes[:1]), ("uint8x4", "BGRA", dtypes[::2]),
        ("uint16x4", "BGRA", dtypes[:1]), ("float32x4", "RGBA", dtypes[:1]),
    ):  # fmt: skip
        cases += all_of((kind,), [{"channels": order}], layouts, results, usual)
    own = ("own", "flipped", "counted")
    cases += all_of(("uint8x3",), layouts, dtypes, usual, items=own)
    cases += all_of(("nv12", "float32x5-frames"), layouts, usual, items=own)
    cases += all_of(("uint8x3",), filters, items=own)
    cases += all_of(("uint8x3",), filters, maps=True, items=own)
    for item in own:
        cases += all_of(("uint8x3", "uint16x3"), boxed, items=(item,))
    return cases


CASES = {case.name: case for case in _table()}


def planned(frame: Any, boxes: Any, size: tuple[int, int], **options: Any) -> Any:
    """The answer of a plan that is made for the call."""
    runs = {name: options.pop(name) for name in ("frame_index", "flip", "count", "out", "stream") if name in options}
    if np.ndim(options.get("mean")) == 2:
        runs |= {name: options.pop(name) for name in ("mean", "std")}
    shape = tuple(boxes.shape[1:]) if hasattr(boxes, "shape") else (4,)
    plan = CropPlan(frame, len(boxes) + 1, size, allocate="out" not in runs, box_shape=shape, **options)
    return plan.run(frame, boxes, **runs)


def called(frame: Any, boxes: Any, size: tuple[int, int], **options: Any) -> Any:
    """The answer of the function; of bfloat16 only a plan takes memory without torch."""
    if options.get("dtype") == "bfloat16":
        return planned(frame, boxes, size, **options)
    return crop_resize(frame, boxes, size, **options)
