"""Bad options give one clear error before any work."""

from __future__ import annotations

import numpy as np
import pytest

from octopus import CropPlan, InputError, crop_resize

FRAME = np.zeros((40, 60, 3), np.uint8)
FRAMES = np.zeros((3, 40, 60, 3), np.uint8)
BOXES = [[1, 2, 30, 30], [0, 0, 9, 9]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"antialias": 1}, "antialias must be True or False, found 1"),
        ({"letterbox": "yes"}, "letterbox must be True or False, found 'yes'"),
        ({"letterbox": True, "pad_value": np.nan}, "pad_value must be one finite number or 3"),
        ({"letterbox": True, "pad_value": (1, 2)}, "pad_value must be one finite number or 3"),
        ({"letterbox": True, "pad_value": "grey"}, "pad_value must be one finite number or 3"),
        ({"letterbox": True, "pad_value": 1e30, "std": 1e-20}, "pad_value .* leaves the range"),
        ({"letterbox": True, "size": (1, 2**22 + 1)}, "letterbox=True takes sides up to 4194304"),
        ({"frame_index": [0, 0]}, r"need frame_index.*found one for a frame of shape \(40, 60, 3\)"),
        ({"frame": FRAMES}, r"need frame_index.*found none for a frame of shape \(3, 40, 60, 3\)"),
        (
            {"frame": FRAMES, "frame_index": [0]},
            r"one integer per box, shape \(2,\), found int64 of shape \(1,\)",
        ),
        ({"frame": FRAMES, "frame_index": [[0], [1]]}, r"found int64 of shape \(2, 1\)"),
        ({"frame": FRAMES, "frame_index": [0.0, 1.0]}, "one integer per box.*found float64"),
        ({"frame": FRAMES, "frame_index": [True, False]}, "one integer per box.*found bool"),
        ({"frame": FRAMES, "frame_index": [[0], [1, 2]]}, "frame_index must be an array"),
        ({"frame": FRAMES, "frame_index": 0}, "frame_index is an int"),
        (
            {"frame": FRAMES, "frame_index": [1, 3]},
            r"frame_index\[1\] = 3 but there are 3 frames.*; wrong entries: 1 of 2",
        ),
        (
            {"frame": FRAMES, "frame_index": [-1, 7]},
            r"frame_index\[0\] = -1 but there are 3.*; wrong entries: 2 of 2",
        ),
        ({"frame": FRAMES, "frame_index": np.array([2**40, 0])}, r"frame_index\[0\] = 1099511627776"),
        ({"frame": FRAMES[..., 0], "frame_index": [0, 1]}, "a single frame takes none"),
        ({"frame": FRAMES[None], "frame_index": [0, 1]}, "single frame takes none"),
        ({"frame": FRAMES[:, ::-1], "frame_index": [0, 1]}, "next to each other"),
        ({"frame": FRAMES[::-1], "frame_index": [0, 1]}, "next to each other"),
        ({"frame": FRAMES[:0], "frame_index": [0, 1]}, "between 1 and"),
    ],
)
def test_wrong_options_say_what_they_may_be(arguments, words):
    call = {"frame": FRAME, "boxes": BOXES, "size": (8, 8), "device": "cpu"} | arguments
    frame, boxes, size = call.pop("frame"), call.pop("boxes"), call.pop("size")
    with pytest.raises(InputError, match=words):
        crop_resize(frame, boxes, size, **call)


def test_a_wrong_index_leaves_the_result_untouched():
    out = np.full((2, 3, 8, 8), 5, np.float32)
    with pytest.raises(InputError, match=r"frame_index\[1\] = 9"):
        crop_resize(FRAMES, BOXES, (8, 8), frame_index=[0, 9], out=out, device="cpu")
    assert (out == 5).all()


def test_a_wrong_box_among_several_frames_is_named():
    with pytest.raises(InputError, match=r"box 1 = .*outside the frame of 60x40"):
        crop_resize(FRAMES, [[0, 0, 9, 9], [60, 0, 61, 9]], (8, 8), frame_index=[0, 1], device="cpu")


def test_a_plan_keeps_to_one_frame_or_to_several():
    one, several = CropPlan(FRAME, 2, (8, 8), device="cpu"), CropPlan(FRAMES, 2, (8, 8), device="cpu")
    with pytest.raises(InputError, match=r"plan is for frames of .*, 3\), found .*, 4\)"):
        one.run(FRAMES, BOXES, frame_index=[0, 1])
    with pytest.raises(InputError, match=r"plan is for frames of .*, 4\), found .*, 3\)"):
        several.run(FRAME, BOXES)
    with pytest.raises(InputError, match="single frame takes none"):
        one.run(FRAME, BOXES, frame_index=[0, 0])
    with pytest.raises(InputError, match="found none"):
        several.run(FRAMES, BOXES)


def test_a_plan_names_the_dtypes_of_an_index():
    with pytest.raises(InputError, match="index_dtype='uint8' is unknown; use one of int32, int64"):
        CropPlan(FRAMES, 1, index_dtype="uint8", device="cpu")
