"""Wrong calls of what works with crops: `CropPlan`, `FrameStream`, `map_back`, threads and warming up."""

from functools import partial

import numpy as np
from wrong_calls import NO_GPU, TOO_MUCH, Equal, python, rows, same, torch
from wrong_crops import BOXES, FRAME, FRAMES, SHAPE

import octopus
from octopus import CropPlan, FrameStream, map_back, rotated_boxes

NAN = np.nan


def plan(frame=FRAME, max_boxes=3, **options):
    made = CropPlan(frame, max_boxes, **{"size": (4, 5), "device": "cpu", **options})
    return made.run(FRAME, BOXES)


def run(frame=FRAME, boxes=BOXES, allocate=True, **given):
    return CropPlan(FRAME, 2, (4, 5), device="cpu", allocate=allocate).run(frame, boxes, **given)


def stream(frame=FRAME, max_boxes=3, **options):
    made = FrameStream(frame, max_boxes, **{"size": (4, 5), "device": "cpu", **options})
    made.buffer()[...] = FRAME
    return made.submit(BOXES)


def set_threads(count):
    before = octopus.set_num_threads(count)
    return octopus.set_num_threads(before)


rotated = partial(rotated_boxes, boxes=[[4.0, 3, 2, 2, 30]], size=(4, 5))
TRANSFORM = np.array([[2.0, 2.0, 10.0, 20.0]], np.float32)
back = partial(map_back, positions=[[1.0, 2.0]], transform=TRANSFORM)
ROWS = [
    *rows("CropPlan", plan, "max_boxes",
        (-1, "max_boxes must be a non-negative integer, found -1"), (np.ones(500), "max_boxes must be"),
        (2**29, "536870912 boxes are more than one launch can address"), (np.int64(2), same())),
    *rows("CropPlan", plan, "**",
        ({"frame": None}, "frame is None"), ({"frame": [FRAME]}, same()),
        ({"frame": FRAMES}, "the plan is for frames of"), ({"box_dtype": "float16"}, "box_dtype='float16' is unknown"),
        ({"dtype": "bfloat16"}, "makes tensors of torch, but the arrays are of numpy"),
        ({"index_dtype": "int8"}, "index_dtype='int8' is unknown"),
        ({"letterbox": True, "box_shape": (2, 3)}, "affine maps, which take no letterbox"),
        ({"stream": 5}, "works on the CPU; leave stream out"), ({"device": "cuda"}, NO_GPU),
        ({"frame_index": [0, 0]}, python("CropPlan")),
        ({"max_boxes": 1}, "there is room for max_boxes=1, found 2 boxes"), ({"allocate": False}, "pass out="),
        ({"max_boxes": 100_000, "size": 4096}, TOO_MUCH)),
    *rows("CropPlan.run", run, "**",
        ({"frame": FRAME.astype(np.uint16)}, "the plan is for frames of"),
        ({"frame": FRAMES, "frame_index": [0, 0]}, "the plan is for frames of"),
        ({"boxes": [[1, 1, 1, 4]]}, "is empty"), ({"frame_index": [0, 0]}, "a single frame takes none"),
        ({"out": np.zeros(SHAPE)}, "out must be a contiguous float32 array"), ({"stream": "x"}, "leave stream out"),
        ({"letterbox": True}, python("run")), ({"allocate": False, "out": np.zeros(SHAPE, np.float32)}, same())),
    *rows("FrameStream", stream, "**",
        ({"frame": FRAMES}, "a stream takes frames (H, W, C) from the host"),
        ({"frame": FRAME.astype(int)}, "found int64"), ({"buffers": 0}, "buffers must be a positive integer, found 0"),
        ({"dtype": "bfloat16"}, "a stream's results can't be of bfloat16"), ({"buffers": 1.5}, "found 1.5"),
        ({"buffers": True}, "buffers must be a positive integer, found True"),
        ({"max_boxes": 1}, "there is room for max_boxes=1, found 2 boxes"), ({"stream": "x"}, "leave stream out"),
        ({"device": "gpu"}, "device='gpu' is unknown"), ({"device": "cuda"}, NO_GPU),
        ({"frame_index": [0, 0]}, python("FrameStream")), ({"buffers": np.int8(3)}, same())),
    *rows("FrameStream.submit", lambda boxes: FrameStream(FRAME, 2, (4, 5), device="cpu").submit(boxes), "boxes",
        (None, "boxes is None"), ([[0, 0, NAN, 1]], "is NaN, or infinite"),
        ([[0, 0, 1, 1]] * 3, "there is room for max_boxes=2, found 3 boxes"), ([], same(boxes=np.empty((0, 4))))),
    *rows("CropPlan", plan, "box_shape",
        ((6,), "box_shape must be (4,), (2, 3) for affine maps or (4, 2) for quadrilaterals, found (6,)"),
        ((2, 3), same())),
    *rows("rotated_boxes", rotated, "boxes",
        (None, "boxes is None; pass a NumPy, torch or CuPy array, or a list"),
        ([[1, 2, 3, 4]], "boxes must have shape (N, 5), centre_x"), ([[1, 2, 3, 4, 5], [1]], "boxes must be an array"),
        ([["a"] * 5], "boxes must be integers or floats"), ([[4, 3, 2, 2, 30]], same()),
        ([], Equal(np.empty((0, 2, 3), np.float32)))),
    *rows("rotated_boxes", rotated, "size", (0, "size must be (height, width) in positive integers")),
    *rows("map_back", back, "positions",
        (None, "positions is None"), ([["a", "b"]], "positions must be integers or floats"),
        ([[1, 2], [3]], "positions must be an array"),
        ([1.0, 2.0], "positions must have shape (1, ..., 2) or (1, ..., 4)"), ([[1.0, 2.0, 3.0]], "found (1, 3)"),
        ([[1.0, 2.0]] * 2, "one row per item, found (2, 2)"),
        (torch(lambda t: t.ones((1, 2)), "tensor"), "positions come from torch, the transform from numpy"),
        ([[1, 2]], Equal(np.array([[12.0, 24.0]])))),
    *rows("map_back", back, "transform",
        (None, "transform is None"), (TRANSFORM[:, :3], "of quadrilaterals (N, 4, 2), found (1, 3)"),
        (TRANSFORM.astype(str), "transform must be integers or floats"),
        (TRANSFORM[:0], "one row per item, found (1, 2)")),
    *rows("set_num_threads", set_threads, "count",
        (0, "from 1 to 1024, found 0"), (1025, "found 1025"), (True, "found True"), (np.int64(2), Equal(2))),
    *rows("warm_up", octopus.warm_up, "device", ("gpu", "device='gpu' is unknown"), ("cuda", NO_GPU)),
    *rows("warm_up", octopus.warm_up, "**", ({"all": True}, python("warm_up"))),
]  # fmt: skip
