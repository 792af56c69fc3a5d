"""Every kind of bad input gives one clear error before any work, and leaves `out` untouched."""

from __future__ import annotations

import re

import numpy as np
import pytest

import octopus
from octopus import CropPlan, DeviceError, InputError, OutOfMemoryError, RaggedBatch, backends, crop_resize
from octopus.backends import cpu

FRAME = np.zeros((40, 60, 3), np.uint8)
BOX = [[1, 2, 30, 30]]


@pytest.mark.parametrize(
    ("box", "outside", "words"),
    [
        ([10, 10, 10, 20], "clip", "empty"),
        ([10, 10, 20, 10], "error", "empty"),
        ([20, 10, 10, 20], "pad", "empty"),
        ([10, 10, 10 + 1e-9, 20], "clip", "empty as float32"),
        (
            [-1, 0, 10, 10],
            "error",
            'reaches outside the frame of 60x40 pixels; clip it first, or ask for outside="clip"',
        ),
        ([0, 0, 61, 10], "error", "outside the frame of 60x40"),
        ([0, 0, 10, 40.5], "error", "outside the frame of 60x40"),
        ([0, 0, 2**40, 10], "error", "1.09951163e.12, 10. reaches outside the frame of 60x40"),
        (
            [60, 0, 61, 10],
            "clip",
            'lies outside the frame of 60x40 pixels, all of it; leave it out, or ask for outside="pad"',
        ),
        ([-9, 0, 0, 10], "clip", "all of it"),
        ([0, 40, 9, 41], "clip", "all of it"),
        ([0, -3, 9, 0], "clip", "all of it"),
        ([0, 0, 16384.5, 9], "pad", "side of more than 16384 pixels"),
        ([0, 0, 9, 16385], "pad", "side of more than 16384 pixels"),
        ([0, 0, 2**40, 10], "pad", "reaches further than 16777216 pixels"),
        ([-(2**24) - 2, 0, -(2**24), 10], "pad", "reaches further than 16777216 pixels"),
        ([np.nan, 0, 10, 10], "clip", "not a number"),
        ([0, 0, 10, np.nan], "pad", "not a number"),
        ([0, 0, np.inf, 10], "clip", "not a number or infinite"),
        ([0, -np.inf, 9, 10], "clip", "not a number or infinite"),
        ([0, 0, np.inf, 10], "error", "not a number or infinite"),
        ([0, -np.inf, 9, 10], "pad", "not a number or infinite"),
        ([0, 0, 1e300, 10], "clip", "infinite as float32"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_wrong_box_is_named_and_nothing_is_written(box, outside, words):
    out = np.full((3, 3, 8, 8), 5, np.float32)
    with pytest.raises(InputError, match=words) as caught:
        crop_resize(FRAME, [*BOX, box, *BOX], (8, 8), outside=outside, out=out, device="cpu")
    assert "box 1 = " in str(caught.value)
    assert "wrong boxes: 1 of 3" in str(caught.value)
    assert (out == 5).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"frame": FRAME[..., 0]}, r"shape \(H, W, C\)"),
        ({"frame": np.zeros((5, 4, 65), np.uint8)}, "C from 1 to 64, found"),
        ({"frame": FRAME[0, :, 0]}, r"found \(60,\)$"),
        (
            {"frame": np.zeros((3, 40, 80), np.uint8)},
            r"come last.*numpy.ascontiguousarray\(frame.transpose\(1, 2, 0\)\)",
        ),
        ({"frame": np.zeros((2, 4, 40, 80), np.uint8), "frame_index": [0]}, r"frame.transpose\(0, 2, 3, 1\)"),
        ({"frame": FRAME.astype(np.float64)}, r"uint8, uint16 or float32 .* frame.astype\(numpy.float32\)"),
        ({"frame": FRAME.astype(np.float16)}, "found float16"),
        ({"frame": FRAME[..., :0]}, "between 1 and"),
        ({"frame": np.zeros((0, 4, 3), np.uint8)}, "between 1 and"),
        (
            {"frame": FRAME[:, ::2]},
            r"next to each other.*pass a contiguous copy: numpy.ascontiguousarray\(frame\)",
        ),
        ({"frame": FRAME[::-1]}, "next to each other"),
        (
            {"frame": FRAME[..., ::-1]},
            r"next to each other.*its channels run backwards, as in frame\[..., ::-1\]",
        ),
        ({"frame": "frame.jpg"}, "NumPy array"),
        ({"boxes": [[1, 2, 3]]}, r"\(N, 4\)"),
        ({"boxes": [1, 2, 3, 4]}, r"\(N, 4\)"),
        ({"boxes": np.array([["1", "2", "3", "4"]])}, "integers or floats"),
        ({"boxes": [[True, False, True, True]]}, "integers or floats"),
        ({"size": (0, 8)}, "positive integers"),
        ({"size": (8.5, 8)}, "positive integers"),
        ({"size": (8, 8, 8)}, "positive integers"),
        ({"size": None}, "positive integers"),
        ({"size": True}, "positive integers"),
        ({"size": (50_000, 50_000)}, r"2\*\*31"),
        ({"dtype": "float64"}, "float32, float16, bfloat16, uint8"),
        ({"dtype": "floot"}, "float32, float16, bfloat16, uint8"),
        ({"layout": "CHWN"}, "NCHW, NHWC"),
        ({"edge": "frame"}, "use one of box, image"),
        ({"outside": "crop"}, "use one of clip, error, pad"),
        ({"outside": "pad", "pad_mode": "wrap"}, "use one of constant, edge, reflect"),
        ({"pad_mode": "reflect"}, "pad_mode='reflect' needs outside=\"pad\", found outside='clip'"),
        ({"outside": "error", "pad_mode": "edge"}, "needs outside=\"pad\", found outside='error'"),
        ({"mean": (1, 2)}, "one per channel"),
        ({"mean": np.nan}, "finite"),
        ({"mean": "x"}, "finite"),
        ({"mean": 1e39}, "range of float32"),
        ({"std": 1e-39}, "range of float32"),
        ({"boxes": [[1, 2, 3, 4], [1, 2, 3]]}, "different length"),
        ({"frame": np.broadcast_to(FRAME[..., :1], FRAME.shape)}, "next to each other"),
        ({"frame": FRAME.astype(">u2")}, "byte order"),
        ({"frame": RaggedBatch.from_list([FRAME])}, "NumPy array"),
        ({"out": np.zeros((1, 3, 8, 8), ">f4")}, "float32"),
        ({"out": np.broadcast_to(np.float32(0), (1, 3, 8, 8))}, "contiguous"),
        ({"std": 0}, "positive"),
        ({"std": (1, -1, 1)}, "positive"),
        ({"device": "tpu"}, "auto, cpu, cuda"),
        ({"out": np.zeros((1, 3, 8, 9), np.float32)}, r"shape \(1, 3, 8, 8\)"),
        ({"out": np.zeros((1, 3, 8, 8), np.float64)}, "float32"),
        ({"out": np.zeros((2, 3, 8, 8), np.float32)[::2][:, :, ::-1]}, "contiguous"),
    ],
)
def test_wrong_arguments_say_what_they_may_be(arguments, words):
    call = {"frame": FRAME, "boxes": BOX, "size": (8, 8), "device": "cpu"} | arguments
    frame, boxes, size = call.pop("frame"), call.pop("boxes"), call.pop("size")
    with pytest.raises(InputError, match=words):
        crop_resize(frame, boxes, size, **call)


def test_more_boxes_than_a_launch_can_address():
    boxes = np.broadcast_to(np.array([[0, 0, 1, 1]], np.int8), (2**31 // 8 + 1, 4))
    with pytest.raises(InputError, match="split the batch"):
        crop_resize(FRAME, boxes, (8, 8), device="cpu")


def test_too_little_memory_says_how_much(monkeypatch):
    monkeypatch.setattr(cpu, "free_bytes", lambda: 1000)
    with pytest.raises(OutOfMemoryError, match=r"201,326,592 bytes are needed on the host, 1,000 are free"):
        crop_resize(FRAME, BOX, 4096, device="cpu")
    assert crop_resize(FRAME, BOX, 8, device="cpu").shape == (1, 3, 8, 8)  # nobody asks for so little


def test_a_gpu_that_is_not_there_says_what_to_install(monkeypatch):
    monkeypatch.setattr(backends.cuda.device, "missing", lambda: "the driver is absent; install it")
    with pytest.raises(DeviceError, match="no GPU is usable: the driver is absent; install it"):
        crop_resize(FRAME, BOX, device="cuda")


@pytest.mark.parametrize(
    ("frame", "boxes", "words"),
    [
        (FRAME, [*BOX, *BOX, *BOX], "for 2 boxes, found 3"),
        (FRAME.astype(np.uint16), BOX, "plan is for frames"),
        (FRAME[..., :1].copy(), BOX, "plan is for frames"),
    ],
)
def test_a_plan_refuses_what_it_was_not_made_for(frame, boxes, words):
    plan = CropPlan(FRAME, 2, (8, 8), device="cpu")
    with pytest.raises(InputError, match=words):
        plan.run(frame, boxes)


def test_a_plan_names_the_dtypes_of_boxes():
    with pytest.raises(InputError, match="box_dtype='int16' is unknown; use one of int32"):
        CropPlan(FRAME, 1, box_dtype="int16", device="cpu")


@pytest.mark.parametrize("count", [-1, 2.5, "3"])
def test_a_plan_needs_a_count(count):
    with pytest.raises(InputError, match="non-negative integer"):
        CropPlan(FRAME, count, device="cpu")


def test_every_public_name_is_there_and_others_are_not():
    for name in octopus.__all__:
        assert getattr(octopus, name) is not None
    with pytest.raises(AttributeError, match=re.escape("'octopus' has no attribute 'resize'")):
        octopus.resize  # noqa: B018


def test_a_read_only_result_is_refused():
    out = np.zeros((1, 3, 8, 8), np.float32)
    out.flags.writeable = False
    with pytest.raises(InputError, match="read-only"):
        crop_resize(FRAME, BOX, (8, 8), out=out, device="cpu")


def test_strides_of_axes_of_length_one_do_not_matter():
    grey = FRAME[..., :1].copy()
    out = np.zeros((1, 8, 8, 1), np.float32).transpose(0, 3, 1, 2)
    assert crop_resize(grey, BOX, (8, 8), out=out, device="cpu") is out


def test_a_box_beyond_single_precision_is_refused():
    wide = np.zeros((1, 20_000, 1), np.uint8)
    for outside, end in (("clip", 20_000), ("clip", 2**40), ("error", 20_000), ("pad", 20_000)):
        with pytest.raises(InputError, match="more than 16384 pixels"):
            crop_resize(wide, [[0, 0, end, 1]], (1, 8), outside=outside, device="cpu")
    assert crop_resize(wide, [[4_000, 0, 40_000, 1]], (1, 8), device="cpu").shape == (1, 1, 1, 8)
    assert crop_resize(wide, [[3_000, 0, 19_000, 1]], (1, 8), device="cpu").shape == (1, 1, 1, 8)


def test_a_plan_without_memory_asks_for_some():
    plan = CropPlan(FRAME, 2, (8, 8), device="cpu", allocate=False)
    with pytest.raises(InputError, match="pass out="):
        plan.run(FRAME, BOX)
