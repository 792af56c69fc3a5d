"""Wrong calls with lists of frames, sizes of each item, and quadrilaterals."""

from functools import partial

import numpy as np
from wrong_calls import Equal, rows, same
from wrong_crops import BOXES, CHROMA, FRAME, FRAMES, LUMA, NAN, crop

from octopus import NV12, CropPlan, FitHeight, map_back

QUADS = np.array([[[1, 1], [6, 1], [7, 5], [0, 4]], [[0, 0], [8, 0], [8, 6], [0, 6]]], np.float32)
SIZES = np.array([[4, 5], [3, 2]])
PLAIN = crop()


def plan(frame=FRAME, boxes=QUADS, size=(4, 5), box_shape=(4, 2), max_boxes=2, run=None, **options):
    made = CropPlan(frame, max_boxes, size, device="cpu", box_shape=box_shape, **options)
    return made.run(frame, boxes, **(run or {}))


def rule(boxes=BOXES, **fields):
    return FitHeight(**{"height": 6, **fields}).sizes(boxes)


listed = partial(crop, frame=(FRAME, FRAME[:5]), boxes=(BOXES[:1], BOXES[1:]))
quads, sized = partial(crop, boxes=QUADS), partial(crop, size=SIZES)
back = partial(map_back, positions=[[1.0, 2.0], [0.0, 0.0]], transform=QUADS)
ROWS = [
    *rows("crop_resize", listed, "frame",
        ([], "there must be a frame or more and boxes for each, found 0 and 2"), ([FRAME], "found 1 and 2"),
        ([FRAME, None], "frame 1 is None"),
        ([FRAME, FRAME.astype(np.uint16)], "and frame 1 of uint16 (6, 8, 3) on cpu"),
        ([FRAME, FRAME[..., :1]], "alike in all but height and width"),
        ([FRAME, FRAMES], "several frames with sizes, pad_to"),
        ([NV12(LUMA, CHROMA, matrix="bt709", range="full")] * 2, "a frame of video goes with"),
        ((FRAME, FRAME), Equal(PLAIN))),
    *rows("crop_resize", listed, "boxes",
        (BOXES, "one for each frame, and no frame_index"), ([BOXES], "found 2 and 1"),
        ([BOXES, None], "boxes[1] is None"), ([BOXES, QUADS], "all boxes, all maps or all quadrilaterals"),
        ([BOXES, [[1, 1, 1, 4]]], "of frame 1, box 0 = (1, 1, 1, 4) is empty"),
        ([[], np.zeros((1, 5))], "found (1, 5)"), ([[], BOXES[:, None]], "boxes must have shape (N, 4)"),
        ([[[0, 0, 8, 6]], [[0, 5.5, 8, 6]]], "of frame 1, box 0 = (0, 5.5, 8, 6) lies outside the frame, 5 pixels"),
        ([[], []], Equal(PLAIN[:0]))),
    *rows("crop_resize", listed, "**",
        ({"frame_index": [0, 1]}, "and no frame_index"),
        ({"flip": [0, 1]}, "flip goes with boxes and maps of one size"), ({"count": 1}, "count goes with"),
        ({"mean": np.ones((2, 3)), "std": np.ones((2, 3))}, "mean must be one finite"),
        ({"stream": 5}, "works on the CPU; leave stream out"),
        ({"out": np.zeros((2, 3, 5, 4), np.float32)}, "out must be")),
    *rows("crop_resize", sized, "size",
        (SIZES[:1], "sizes must be 2 heights and widths"), (SIZES * 0, "from 1 to 16777216, shape (2, 2)"),
        (SIZES * 0.5, "sizes must be an integer array"), ([[4, 5], [3]], "sizes must be an integer array"),
        (SIZES * 2**18, "has more than 2**31 - 1 values"), (FitHeight(0), "height of FitHeight must be a positive"),
        (FitHeight(4, multiple=1.5), "multiple of FitHeight"), (FitHeight(4, max_width=-1), "max_width of FitHeight"),
        (FitHeight(4), same(size=[[4, 6], [4, 6]])), (SIZES.tolist(), same())),
    *rows("crop_resize", sized, "**",
        ({"pad_to": (4, 4)}, "item 0 of 4x5 is larger than pad_to=(4, 4)"), ({"pad_to": "widest"}, "found 'widest'"),
        ({"letterbox": True}, "letterbox=True goes with one size"), ({"dtype": "bfloat16"}, "can't hold bfloat16"),
        ({"pad_value": 3}, "nothing is padded with it"),
        ({"boxes": np.zeros((2, 2, 3))}, "affine maps go with one size"),
        ({"boxes": np.zeros((2, 2, 3)), "size": FitHeight(4)}, "affine maps go with one size"),
        ({"out": np.zeros(78)}, "out must be a contiguous float32 array of shape (78,)"),
        ({"frame": FRAMES}, "come as a list"), ({"frame_index": [0, 0]}, "and no frame_index"),
        ({"pad_to": "largest"}, same(pad_to=(4, 5))),
        ({"pad_to": 6, "pad_value": [1, 2, 3]}, same(pad_value=(1, 2, 3), pad_to=(6, 6)))),
    *rows("crop_resize", quads, "boxes",
        (QUADS[:, [0, 2, 1, 3]], "quadrilateral 0 = (1, 1, 7, 5, 6, 1, 0, 4) is not convex"),
        (QUADS[:, [0, 1, 1, 3]], "no three on a line; wrong quadrilaterals: 2 of 2"),
        (QUADS * NAN, "is NaN, or infinite"), (QUADS * 1e9, "reaches further than 16777216 pixels"),
        (QUADS[0], "a single quadrilateral is boxes[None]"),
        (QUADS > 1, "boxes must be integers or floats, found bool"), (QUADS.astype(np.int64), same()),
        (QUADS.tolist(), same()), (tuple(map(tuple, QUADS.tolist())), same()), (QUADS[:0], Equal(PLAIN[:0]))),
    *rows("crop_resize", quads, "**",
        ({"edge": "image"}, "quadrilaterals, which take no edge"), ({"antialias": True}, "which take no antialias"),
        ({"letterbox": True}, "which take no letterbox"),
        ({"outside": "error", "boxes": QUADS + 1}, "reaches outside the frame, 6 pixels high and 8 wide"),
        ({"frame": NV12(LUMA, CHROMA, matrix="bt709", range="full")}, "a frame of video goes with")),
    *rows("CropPlan", plan, "**",
        ({"boxes": BOXES}, "the plan is for quads, found boxes"),
        ({"box_shape": (4,)}, "a plan for quadrilaterals has"),
        ({"max_boxes": 1}, "there is room for max_boxes=1, found 2 boxes"),
        ({"size": SIZES * 2**28}, "sizes must be 2"), ({"size": FitHeight(6)}, "give FitHeight a max_width"),
        ({"size": SIZES[:1]}, "sizes must be 2 heights"), ({"run": {"flip": [0, 0]}}, "flip goes with"),
        ({"run": {"mean": 1}}, "mean goes with boxes and maps of one size"), ({"max_boxes": 3}, same()),
        ({"size": FitHeight(6, max_width=40)}, same(size=[[6, 11], [6, 8]]))),
    *rows("FitHeight.sizes", rule, "**",
        ({"boxes": np.zeros((1, 2, 3))}, "FitHeight takes boxes (N, 4) or quadrilaterals"),
        ({}, Equal(np.array([[6, 8], [6, 8]]))), ({"multiple": 5}, Equal(np.array([[6, 10], [6, 10]]))),
        ({"max_width": 7, "boxes": QUADS}, Equal(np.array([[6, 7], [6, 7]])))),
    *rows("map_back", back, "**",
        ({}, "size goes with quadrilaterals (N, 4, 2), which need it; found None"),
        ({"transform": QUADS[:, :2, :1].repeat(3, 2), "size": (4, 5)}, "found (4, 5) and (2, 2, 3)"),
        ({"positions": np.zeros((2, 4)), "size": (4, 5)}, "pass a box's corners"),
        ({"size": np.ones((3, 2), int)}, "size must be (height, width) or an array (2, 2)"),
        ({"positions": [[8, 6], [4, 3]], "size": [[6, 8], [3, 8]]}, Equal(np.array([[7.0, 5], [4, 6]]))),
        ({"transform": [[[1, 0, 2], [0, 2, 3]]] * 2}, "transform is a list"),
        ({"transform": np.array([[[1, 0, 2], [0, 2, 3]]] * 2)}, Equal(np.array([[3, 6.5], [2, 2.5]])))),
]  # fmt: skip
