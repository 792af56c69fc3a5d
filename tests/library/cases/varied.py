"""Calls of `crop_resize` whose items differ in frame or size, or are quadrilaterals: each as a call of its own says."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cases import crops
from cases.crops import BEYOND, BOXED, SCENES, SIZES, TOPS, Crops, boxes_of, frame_of, maps_of, name_of, pairs, stored
from octopus import CropPlan, FitHeight, RaggedBatch, crop_resize
from octopus.blockmap import STRATEGIES
from octopus.crop import varied

PAD = 7.0


def quads_of(height: int, width: int) -> np.ndarray:
    """Upright, turned, in perspective, mirrored, across the border, outside, and all of the frame."""
    unit = [
        [(0.1, 0.2), (0.7, 0.2), (0.7, 0.9), (0.1, 0.9)], [(0.5, 0.1), (0.9, 0.5), (0.6, 0.8), (0.2, 0.4)],
        [(0.3, 0.2), (0.6, 0.25), (0.95, 0.9), (0.02, 0.8)], [(0.8, 0.3), (0.2, 0.1), (0.1, 0.7), (0.9, 0.9)],
        [(-0.2, 0.5), (0.4, -0.3), (1.2, 0.4), (0.5, 1.3)], [(2, 2.1), (3, 2.3), (3.1, 3), (2.2, 3.3)],
        [(0, 0), (1, 0), (1, 1), (0, 1)],
    ]  # fmt: skip
    return (np.array(unit) * (width, height)).astype(np.float32)


class Case(NamedTuple):
    """A row of the table: a kind of frame, "boxes", "maps" or "quads", "one" frame or a "list", sizes that
    are "one", each's "own", by a "rule" or "padded", and options."""

    kind: str
    form: str
    frames: str
    sizes: str
    options: dict[str, Any]

    @property
    def name(self) -> str:
        return "-".join([*self[:4], name_of(self.options)])

    def check(self, scene: str, runner: Any) -> None:
        """Make the call, boxes from the host and on the runner's device, by the function and a plan, and compare."""
        (height, width), options = SCENES[scene], dict(self.options)
        shapes = [(height, width), (height - 2, width), (height - 5, width - 9)][: 1 if self.frames == "one" else 3]
        frames = [frame_of(self.kind, *shape) for shape in shapes]
        sizes = SIZES[scene]
        boxes = [
            quads_of(*shape) if self.form == "quads" else maps_of(*shape, sizes[0]) if self.form == "maps"
            else boxes_of(*shape, options.get("outside", "clip"))
            for shape in shapes
        ]  # fmt: skip
        boxes[1:2] = [boxes[1][:0]] if len(boxes) > 2 else []  # a frame of which nothing is wanted
        numbers = np.repeat(np.arange(len(frames)), [len(each) for each in boxes])
        every = np.concatenate(boxes)
        unit = TOPS[self.kind.partition("x")[0]] / 255
        channels = 3 if "channels" in options else frames[0].shape[-1]
        if options.get("dtype") != "uint8":
            options |= {"mean": np.resize(crops.MEAN, channels) * unit, "std": np.resize(crops.STD, channels) * unit}
        if self.sizes == "padded" or options.get("letterbox") or options.get("pad_mode") == "constant":
            options["pad_value"] = PAD * unit
        wanted = np.array([sizes[i % len(sizes)] for i in range(len(every))])
        size = {"one": sizes[0], "rule": FitHeight(sizes[1][0], 2 * sizes[0][1], 4)}.get(self.sizes, wanted)
        for there in (False, True) if scene == "large" else (len(self.name) // 4 % 2 == 0,):
            answer = self.call(runner, there, frames, boxes, numbers, size, options)
            self.compare(runner, answer, frames, every, numbers, size, options)

    def call(self, runner, there, frames, boxes, numbers, size, options):
        """The answer of a plan for boxes on the device, of the function for those from the host."""
        given = [runner.put(frame) for frame in frames]
        placed = [runner.put(np.ascontiguousarray(each)) if there else each for each in boxes]
        if self.frames == "one":
            (given,), (placed,) = given, placed
        made = {**options, "pad_to": tuple(np.max(size, axis=0) + 2)} if self.sizes == "padded" else options
        if not there:
            return crop_resize(given, placed, size, device=runner.device, **made)
        shape = boxes[0].shape[1:]
        if runner.device == "cpu":
            return CropPlan(given, len(numbers), size, device="cpu", box_shape=shape, **made).run(given, placed)
        like, strategy = varied.planned(given, shape, made), STRATEGIES[len(self.name) % len(STRATEGIES)]
        plan = varied.VariedPlan(like, len(numbers), size, "cuda", strategy=strategy, **made)
        return plan.call(given, placed, None, None, {})

    def compare(self, runner, answer, frames, boxes, numbers, size, options):
        """Each item with a call of its own."""
        options, way, channels = dict(options), None, 3 if "channels" in options else frames[0].shape[-1]
        last = options.get("layout") == "NHWC"
        sizes = None if isinstance(size, FitHeight) else np.broadcast_to(size, (len(boxes), 2))
        if isinstance(answer, RaggedBatch):
            sides = answer.shapes[:, :2] if last else answer.shapes[:, 1:]
            values, offsets = runner.get(answer.values), answer.offsets
            items = [values[a:b].reshape(s) for a, b, s in zip(offsets, offsets[1:], answer.shapes, strict=False)]
            if self.sizes == "own":
                assert np.array_equal(sides, sizes)
            sizes = sides
        elif self.sizes == "padded":
            padded, found = runner.get(answer[0]), answer[1]
            assert np.array_equal(found, sizes)
            items = []
            for item, (rows, columns) in zip(padded, sizes, strict=True):
                first = item if last else item.transpose(1, 2, 0)
                value = options["pad_value"] - options.get("mean", np.zeros(channels))
                pad, _ = stored(value / options.get("std", 1), options.get("dtype"))
                for rest in (first[rows:], first[:, columns:]):
                    assert np.allclose(rest, pad, rtol=1e-3)
                items.append(first[:rows, :columns] if last else item[:, :rows, :columns])
        else:
            items, way = map(runner.get, answer) if isinstance(answer, tuple) else (runner.get(answer), None)
        if self.sizes == "padded" and options.get("pad_mode") != "constant":
            del options["pad_value"]
        assert len(items) == len(boxes)
        for i, item in enumerate(items):
            own = Crops(frames[numbers[i]], boxes[i : i + 1], tuple(sizes[i].tolist()), options)
            own.check(item[None] if way is None else (item[None], way[i : i + 1]))


def _table() -> Iterator[Case]:
    def all_of(kinds, forms, frames, sizes, *choices):
        for kind, form, frame, size, *options in pairs([kinds, forms, frames, sizes, *choices]):
            yield Case(kind, form, frame, size, {name: value for one in options for name, value in one.items()})

    several, own, layouts = ("one", "list"), ("one", "own", "rule", "padded"), [{}, {"layout": "NHWC"}]
    yield from all_of(("uint8x3", "uint8x3-odd"), ("boxes", "quads"), several, own, BEYOND, layouts)
    dtypes = [{"dtype": "uint8"}, {"dtype": "float16"}]
    yield from all_of(("uint8x3",), ("boxes", "quads"), several, own, dtypes, layouts)
    yield from all_of(("uint16x1", "float32x5"), ("boxes", "quads"), several, own, layouts)
    yield from all_of(("uint8x3",), ("boxes",), several, own, [{"antialias": True}, {"edge": "image"}], BEYOND[::3])
    yield from all_of(("uint8x3",), ("boxes",), several, ("one",), [BOXED], layouts)
    yield from all_of(("uint8x3",), ("maps",), several, ("one",), layouts)
    yield from all_of(("uint8x3",), ("boxes", "quads"), several, own, [{"filter": "nearest"}, {"filter": "bicubic"}])
    yield from all_of(("uint8x4",), ("boxes", "quads"), several, own[1:2], [{"channels": "BGRA"}])


CASES = {case.name: case for case in _table()}
