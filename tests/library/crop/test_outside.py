"""Boxes that reach beyond the frame, float32 frames and any number of channels, on the CPU, against the reference."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from gpu import PAD_MODES, SETS, name_of, random_frame
from hypothesis import given, settings

from octopus import CropPlan, FrameStream, InputError, crop_resize, map_back
from octopus.crop.check import check_host_boxes
from octopus_study.reference import crops as reference

LEVELS = 0.255  # 1e-3 of the range 0 to 255
BOXES = np.array(
    [
        (-0.3, 4, 20, 30),
        (250.5, 150, 300.25, 240),
        (-900, -700, -800, -650),
        (-20, -30, 330, 260),
        (5, 7, 9, 10),
    ],
    np.float32,
)
TOUCHING = BOXES[[0, 1, 3, 4]]


@pytest.fixture(scope="module")
def frame():
    return random_frame(200, 300)


def floats(height=200, width=300, channels=3):
    return np.random.default_rng(4).normal(40, 90, (height, width, channels)).astype(np.float32)


def of_reference(frame, boxes, size, *, mean=0.0, std=1.0, pad_value=114.0, **options):
    channels = frame.shape[-1]
    per_channel = (np.broadcast_to(np.float64(value), channels) for value in (mean, std, pad_value))
    mean, std, pad_value = per_channel
    return reference.crop_resize(frame, boxes, size, mean, std, pad_value=pad_value, **options)


def crops_of(result):
    return result[0] if isinstance(result, tuple) else result


def difference(found, expected):
    return np.abs(np.asarray(found, np.float64) - expected).max()


@pytest.mark.parametrize("options", SETS, ids=name_of)
def test_boxes_are_cut_at_the_frame(frame, options):
    result = crop_resize(frame, TOUCHING, (40, 56), device="cpu", **options)
    assert difference(crops_of(result), of_reference(frame, TOUCHING, (40, 56), **options)) < LEVELS
    if options["letterbox"]:
        right = reference.transforms(reference.cut(TOUCHING, frame), (40, 56))
        assert np.allclose(result[1], right, rtol=1e-5, atol=1e-3)


def test_a_box_far_beyond_is_cut_like_any_other(frame):
    found = crop_resize(frame, [[-(2**40), 3, 2**40, 9]], (8, 8), device="cpu")
    assert np.array_equal(found, crop_resize(frame, [[0, 3, 300, 9]], (8, 8), device="cpu"))


@pytest.mark.parametrize("mode", PAD_MODES)
@pytest.mark.parametrize("options", SETS, ids=name_of)
def test_pixels_beyond_the_frame_are_made(frame, mode, options):
    options = {"outside": "pad", "pad_mode": mode, **options}
    if mode == "constant" or options["letterbox"]:
        options["pad_value"] = (1, 114, 200)
    result = crop_resize(frame, BOXES, (40, 56), mean=3.0, std=2.0, device="cpu", **options)
    expected = of_reference(frame, BOXES, (40, 56), mean=3.0, std=2.0, **options)
    assert difference(crops_of(result), expected) < LEVELS
    if options["letterbox"]:
        assert np.allclose(result[1], reference.transforms(BOXES, (40, 56)), rtol=1e-5, atol=1e-2)


STEPS = 4096  # to a pixel


@st.composite
def reaching_calls(draw):
    """A tiny frame of any kind, a box that may lie several frames away, and a size."""
    height, width, channels = (draw(st.integers(1, most)) for most in (7, 7, 6))
    # In steps that the reference keeps when it moves a box: one that reaches beyond a frame by 1e-32 would not there.
    corner = [draw(st.integers(-40 * STEPS, 40 * STEPS)) / STEPS for _ in range(2)]
    sides = [draw(st.integers(STEPS // 8, 30 * STEPS)) / STEPS for _ in range(2)]
    box = np.array([[*corner, *np.add(corner, sides)]], np.float32)
    kind = draw(st.sampled_from([np.uint8, np.uint16, np.float32]))
    made = floats if kind is np.float32 else lambda *shape: random_frame(*shape, kind)
    frame = made(height, width, channels)
    return frame, box, draw(st.tuples(st.integers(1, 9), st.integers(1, 40)))


@settings(max_examples=80, deadline=None)
@given(call=reaching_calls(), mode=st.sampled_from(PAD_MODES), options=st.sampled_from(SETS))
def test_any_box_beyond_any_frame_equals_the_reference(call, mode, options):
    frame, box, size = call
    options = {"outside": "pad", "pad_mode": mode, **options}
    found = crops_of(crop_resize(frame, box, size, device="cpu", **options))
    top = 65535 if frame.dtype == np.uint16 else 255
    assert difference(found, of_reference(frame, box, size, **options)) < 1e-3 * top


@pytest.mark.parametrize("mode", PAD_MODES)
def test_corners_of_a_padded_box_lead_back_beyond_the_frame(frame, mode):
    box = [[-40, -20, 60, 30]]
    _, transform = crop_resize(
        frame, box, (64, 64), letterbox=True, outside="pad", pad_mode=mode, device="cpu"
    )
    assert np.allclose(map_back([[[0, 16], [64, 48]]], transform), [[[-40, -20], [60, 30]]])
    _, transform = crop_resize(frame, box, (64, 64), letterbox=True, device="cpu")
    assert np.allclose(map_back([[[0, 16], [64, 48]]], transform), [[[0, 0], [60, 30]]])


def test_plans_streams_and_several_frames_pad_too(frame):
    options = {"outside": "pad", "pad_mode": "reflect"}
    expected = crop_resize(frame, BOXES, (9, 11), device="cpu", **options)
    plan = CropPlan(frame, 9, (9, 11), device="cpu", **options)
    assert np.array_equal(plan.run(frame, BOXES), expected)
    stream = FrameStream(frame, 9, (9, 11), device="cpu", **options)
    stream.buffer()[...] = frame
    assert np.array_equal(stream.submit(BOXES), expected)
    frames = np.stack([frame[::-1], frame])
    found = crop_resize(frames, BOXES, (9, 11), frame_index=[1] * len(BOXES), device="cpu", **options)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("options", SETS, ids=name_of)
def test_frames_of_float32_are_taken_as_they_are(dtype, options):
    frame = floats()
    result = crop_resize(frame, TOUCHING, (40, 56), dtype=dtype, device="cpu", **options)
    expected = of_reference(frame, TOUCHING, (40, 56), **options)
    if dtype == "uint8":
        expected = expected.clip(0, 255)
    limit = LEVELS + {"float32": 0, "float16": 0.13, "uint8": 0.5}[dtype]
    assert difference(crops_of(result), expected) < limit


def test_float32_values_overflow_float16_and_saturate_uint8():
    frame = np.array([[[1e6], [-1e6], [300], [-3.0]]], np.float32)
    boxes = [[i, 0, i + 1, 1] for i in range(4)]
    found = crop_resize(frame, boxes, (1, 1), dtype="float16", device="cpu")
    assert found.ravel().tolist() == [np.inf, -np.inf, 300, -3.0]
    found = crop_resize(frame, boxes, (1, 1), dtype="uint8", device="cpu")
    assert found.ravel().tolist() == [255, 0, 255, 0]


@pytest.mark.parametrize("channels", [2, 5, 13, 64])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("options", [SETS[0], SETS[-1]], ids=name_of)
def test_any_number_of_channels(channels, layout, options):
    frame = random_frame(60, 80, channels)
    boxes = [[1, 2, 30, 40], [-3, 5, 90, 50]]
    options = {"layout": layout, "mean": np.arange(channels), "std": 2.0, **options}
    options["pad_value"] = np.arange(channels) * 3.0
    if not options["letterbox"]:
        options |= {"outside": "pad"}
    found = crops_of(crop_resize(frame, boxes, (9, 11), device="cpu", **options))
    assert difference(found, of_reference(frame, boxes, (9, 11), **options)) < LEVELS


@settings(max_examples=400, deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.floats(width=32) | st.floats(-70, 70) | st.sampled_from([0.0, 60.0, 40.0, 20000.0])] * 4),
        min_size=1, max_size=3,
    ),
    frame=st.sampled_from([(60, 40), (60, 17000), (20000, 3)]),
    outside=st.sampled_from(["clip", "error", "pad"]),
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_boxes_are_refused_by_the_rule_alone(rows, frame, outside):
    def good(x1, y1, x2, y2):
        if not (np.isfinite([x1, y1, x2, y2]).all() and x1 < x2 and y1 < y2):
            return False
        inside = np.maximum((x1, y1), 0), np.minimum((x2, y2), frame)
        if outside == "pad":
            return max(x2 - x1, y2 - y1) <= 16384 and max(abs(x1), abs(y1), abs(x2), abs(y2)) <= 2**24
        if outside == "error" and (x1 < 0 or y1 < 0 or x2 > frame[0] or y2 > frame[1]):
            return False
        return (inside[0] < inside[1]).all() and (inside[1] - inside[0]).max() <= 16384

    with np.errstate(over="ignore"):
        boxes = np.array(rows).astype(np.float32)
    wrong = [not good(*np.float64(box)) for box in boxes]
    if any(wrong):
        words = rf"^box {wrong.index(True)} = .*; wrong boxes: {sum(wrong)} of {len(wrong)}$"
        with pytest.raises(InputError, match=words):
            check_host_boxes(np.array(rows), *frame, outside)
    else:
        assert np.array_equal(check_host_boxes(np.array(rows), *frame, outside), boxes)
