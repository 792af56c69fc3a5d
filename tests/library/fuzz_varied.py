"""Random calls of `crop_resize` and `CropPlan` on the CPU whose items differ in frame, size or shape."""

from itertools import product

import numpy as np
from cases.crops import Crops, single, usable
from fuzz_crops import boxes_of, frame_of

import octopus
from octopus import FitHeight, InputError
from octopus.kernels.geometry import quad_is_usable

RESULTS = ("float32", "uint8")
BENT = 0.02  # what a corner turns by at least, as a part of the diagonals' squares, where the reference is as exact


def warm_up(kind):
    choices = ({}, {"antialias": True}, {"box_shape": (4, 2)}, {"box_shape": (4, 2), "filter": "nearest"})
    for frame, dtype, options in product((np.uint8, np.float32), RESULTS, choices):
        octopus.CropPlan([np.zeros((2, 2, 3), frame)], 1, 2, dtype=dtype, device="cpu", allocate=False, **options)


def draw(drawn, kind):
    dtype, channels, quads = drawn.pick("uint8", "float32"), drawn.pick(3, 1, 4, 5), drawn.few(0.6)
    listed = drawn.few(0.7)
    frames = [
        frame_of(drawn, f"frame{i}", (0, drawn.upto(50, 5), drawn.upto(70, 5), channels), np.dtype(dtype))
        for i in range(drawn.pick(1, 2, 3) if listed else 1)
    ]
    outside, layout, result = drawn.pick("clip", "pad", "error"), drawn.pick("NCHW", "NHWC"), drawn.pick(*RESULTS)
    options = {"outside": outside, "layout": layout, "dtype": result}
    if outside == "pad":
        options["pad_mode"] = drawn.pick("constant", "edge", "reflect")
    if quads:
        options["filter"] = drawn.pick("bilinear", "nearest")
        boxes = [quads_of(drawn, frame.shape, drawn.pick(0, 1, 2, 4), outside) for frame in frames]
    else:
        options |= {"antialias": drawn.few(0.3), "edge": drawn.pick("box", "image")}
        boxes = []
        for frame in frames:
            made = boxes_of(drawn, frame.shape[:2], drawn.pick(0, 1, 2, 4), outside)
            # The next ones may be made in the same memory.
            boxes.append(made.copy() if listed and isinstance(made, np.ndarray) else made)
    every = np.concatenate([single(each).reshape(-1, *((4, 2) if quads else (4,))) for each in boxes])
    numbers = np.repeat(np.arange(len(frames)), [len(each) for each in boxes])
    wide = 300 if drawn.few(0.1) else 40
    sizes = np.array([(drawn.upto(33), drawn.upto(wide)) for _ in every], int).reshape(-1, 2)
    form = drawn.pick("own", "padded", "rule", "one")
    size = {"one": (9, 31), "rule": FitHeight(drawn.upto(20), drawn.upto(90, 20), drawn.upto(5))}.get(form, sizes)
    sizes = np.broadcast_to((9, 31), sizes.shape) if form == "one" else sizes
    pad_to = tuple((sizes.max(axis=0, initial=1) + drawn.upto(4, 0)).tolist()) if form == "padded" else None
    if dtype == "float32" and (pad_to or options.get("pad_mode") == "constant"):
        options["pad_value"] = 114.0
    memory, planned = None, drawn.few(0.4)
    if form != "rule" and drawn.few(0.7):
        side = pad_to or (9, 31)
        shape = (len(every), channels, *side) if layout == "NCHW" else (len(every), *side, channels)
        memory = drawn.array("out", (int(sizes.prod(axis=1).sum()) * channels,) if form == "own" else shape, result)

    def good(i):
        shape = frames[numbers[i]].shape
        if not quads:
            return usable(*every[i].tolist(), shape, outside)
        inside = (every[i] >= 0).all() and (every[i] <= shape[1::-1]).all()
        return quad_is_usable(*every[i].ravel().tolist()) and (inside or outside != "error")

    def answer():
        given = (frames, boxes) if listed else (frames[0], boxes[0])
        if not planned:
            return octopus.crop_resize(*given, size, device="cpu", pad_to=pad_to, out=memory, **options)
        shape = (4, 2) if quads else (4,)
        plan = octopus.CropPlan(given[0], len(every), size, device="cpu", pad_to=pad_to, box_shape=shape, **options)
        return plan.run(*given, out=memory)

    def make():
        if not all(map(good, range(len(every)))):
            try:
                answer()
            except InputError as error:
                assert str(error).startswith(("box ", "quadrilateral ", "of frame ")), error
                return None
            raise AssertionError("unusable boxes were taken")
        found, worst = answer(), 0.0
        items, found_sizes = found, sizes
        if form == "padded":
            items, found_sizes = found
            before = (...,) if layout == "NCHW" else ()
            items = [item[*before, :rows, :columns] for item, (rows, columns) in zip(items, sizes, strict=True)]
        elif form == "rule":
            found_sizes = found.shapes[:, :2] if layout == "NHWC" else found.shapes[:, 1:]
        assert form == "rule" or np.array_equal(found_sizes, sizes)
        for i, item in enumerate(items):
            if quads and not bent(every[i]):
                continue
            call = Crops(np.asarray(frames[numbers[i]]), every[i : i + 1], tuple(found_sizes[i].tolist()), options)
            worst = max(worst, call.check(item[None]))
        return worst

    shown = f"{dtype} {[frame.shape for frame in frames]} by {[frame.strides for frame in frames]}, listed {listed}"
    return f"{shown}\nboxes {[np.asarray(each).tolist() for each in boxes]!r}\nsize {size}, {pad_to}, {options}", make


def bent(quad):
    """Whether no corner is nearly straight or closed."""
    onward, backward = (np.roll(quad, by, axis=0) - quad for by in (-1, 1))
    turns = np.abs(onward[:, 0] * backward[:, 1] - backward[:, 0] * onward[:, 1])
    return turns.min() > BENT * ((quad[2:] - quad[:2]) ** 2).sum()


def quads_of(drawn, shape, count, outside):
    """Quadrilaterals of any kind, of which a few may be unusable."""
    height, width = shape[:2]
    found = np.zeros((count, 4, 2), np.float32)
    for quad in found:
        kind = drawn.pick("convex", "upright", "any", "beyond", "far", *["bad"] * drawn.few(0.1))
        unit = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float)
        unit = np.roll(unit, drawn.upto(3, 0), axis=0)[:: drawn.pick(1, -1)]
        if kind in ("convex", "beyond"):
            unit = unit * 0.6 + drawn.random.uniform(0, 0.39, (4, 2))
        elif kind == "any" and drawn.few(0.3):
            unit = drawn.random.uniform(0, 1, (4, 2))
        quad[:] = unit * (width, height)
        if kind == "beyond" and outside != "error":
            quad[:] = (quad - (width / 2, height / 2)) * drawn.random.uniform(0.5, 3)
        if kind == "far" and outside == "pad":
            quad += np.float32(drawn.pick(-1000, 1000, 1e6))
        if kind == "bad":
            quad[drawn.upto(3, 0)] = drawn.pick(np.nan, np.inf, -np.inf, 2.0**25)
    array = drawn.array(f"boxes{len(drawn.regions)}", found.shape, drawn.pick(np.float32, np.float64))
    array[...] = found
    return array
