"""`edge`, `antialias`, `letterbox` and several frames on the CPU: against the reference and against other libraries."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from gpu import random_frame
from hypothesis import given, settings
from option_peers import letterbox, pil, roi_align

from octopus import CropPlan, crop_resize
from octopus_study.reference import crops as reference

LEVELS = 0.255  # 1e-3 of the range 0 to 255
FINE = 5e-3  # a position among 300 pixels in single precision is good to 2e-5, between two pixels 255 apart

BOXES = [
    (0, 0, 1, 1),
    (299, 199, 300, 200),
    (0, 0, 300, 200),
    (0, 0, 300, 1),
    (299, 0, 300, 200),
    (5, 7, 9, 10),
    (1, 1, 299, 199),
    (20, 30, 53, 160),
]
SIZES = [(40, 56), (1, 1), (7, 90), (90, 7), (224, 31)]


@pytest.fixture(scope="module")
def frame():
    return random_frame(200, 300)


def difference(found, expected):
    return np.abs(np.asarray(found, np.float64) - expected).max()


@st.composite
def calls(draw):
    """A frame, a box of any kind inside it, and a size."""
    width, height = draw(st.integers(1, 60)), draw(st.integers(1, 40))
    edges = []
    for limit in (width, height):
        if draw(st.booleans()):
            low = draw(st.integers(0, limit - 1))
            edges.append((low, draw(st.integers(low + 1, limit))))
        else:
            low = draw(st.floats(0, limit, exclude_max=True, width=32))
            above = float(np.nextafter(np.float32(low), np.float32(np.inf)))
            edges.append((low, draw(st.floats(above, limit, width=32))))
    box = np.array([[edges[0][0], edges[1][0], edges[0][1], edges[1][1]]], np.float32)
    size = draw(st.tuples(st.integers(1, 33), st.integers(1, 70)))
    return random_frame(height, width, 3, seed=width * 41 + height), box, size


@settings(max_examples=120, deadline=None)
@given(call=calls(), edge=st.sampled_from(["box", "image"]), antialias=st.booleans(), boxed=st.booleans())
def test_any_box_with_any_options_equals_the_reference(call, edge, antialias, boxed):
    frame, box, size = call
    options = {"edge": edge, "antialias": antialias, "letterbox": boxed}
    found = crop_resize(frame, box, size, device="cpu", **options)
    if boxed:
        found, transform = found
        right = reference.transforms(box, size)
        assert np.allclose(transform, right, rtol=1e-5, atol=1e-3 * max(1.0, np.abs(right).max() / 100))
    expected = reference.crop_resize(frame, box, size, np.zeros(3), np.ones(3), **options)
    assert difference(found, expected) < LEVELS


@settings(max_examples=60, deadline=None)
@given(call=calls(), edge=st.sampled_from(["box", "image"]))
def test_enlarging_is_not_changed_by_antialiasing(call, edge):
    frame, box, _ = call
    size = tuple(int(np.ceil(side)) + 3 for side in (box[0, 3] - box[0, 1], box[0, 2] - box[0, 0]))
    plain = crop_resize(frame, box, size, edge=edge, device="cpu")
    assert difference(crop_resize(frame, box, size, edge=edge, antialias=True, device="cpu"), plain) < FINE


@settings(max_examples=60, deadline=None)
@given(call=calls(), antialias=st.booleans())
def test_a_constant_frame_stays_constant_within_its_padding(call, antialias):
    frame, box, size = call
    constant = np.full_like(frame, 77)
    found, _ = crop_resize(
        constant, box, size, letterbox=True, pad_value=5, edge="image", antialias=antialias, device="cpu"
    )
    at = reference.place(box[0], size)
    inside = np.zeros(size, bool)
    inside[at.top : at.top + at.height, at.left : at.left + at.width] = True
    assert np.abs(found[..., inside] - 77).max() < 1e-4
    assert (found[..., ~inside] == 5).all()


@pytest.mark.parametrize("size", SIZES)
def test_reading_beyond_the_box_equals_roi_align(frame, size):
    boxes = np.array([*BOXES, (3.3, 4.75, 90.2, 60.5), (0.25, 0.5, 299.9, 199.8)], np.float32)
    found = crop_resize(frame, boxes, size, edge="image", device="cpu")
    for item, box in zip(found, boxes.astype(np.float64), strict=True):
        assert difference(item, roi_align(frame, box, size)) < LEVELS / 10


def test_reading_beyond_the_box_is_a_cut_from_the_enlarged_frame(frame):
    """With a box on whole pixels, resized k times, the samples are those of the whole frame resized k times."""
    scale = 3
    whole = crop_resize(frame, [[0, 0, 300, 200]], (200 * scale, 300 * scale), device="cpu")[0]
    for x1, y1, x2, y2 in BOXES:
        size = ((y2 - y1) * scale, (x2 - x1) * scale)
        found = crop_resize(frame, [[x1, y1, x2, y2]], size, edge="image", device="cpu")[0]
        assert difference(found, whole[:, y1 * scale : y2 * scale, x1 * scale : x2 * scale]) < LEVELS / 10


def test_the_edge_matters_only_near_the_edge(frame):
    boxes = [(20, 30, 60, 80)]
    inner = crop_resize(frame, boxes, (100, 80), device="cpu")[0]
    beyond = crop_resize(frame, boxes, (100, 80), edge="image", device="cpu")[0]
    assert difference(inner[:, 1:-1, 1:-1], beyond[:, 1:-1, 1:-1]) < FINE
    assert difference(inner, beyond) > 1


@pytest.mark.parametrize("whole", [False, True], ids=["box", "image"])
@pytest.mark.parametrize("size", SIZES)
def test_antialiasing_equals_pil(frame, size, whole):
    edge = "image" if whole else "box"
    found = crop_resize(frame, BOXES, size, antialias=True, edge=edge, device="cpu")
    for item, box in zip(found, BOXES, strict=True):
        assert difference(item, pil(frame, box, size, whole=whole)) < FINE


def test_antialiasing_a_box_between_pixels_equals_pil(frame):
    boxes = np.array([(3.25, 4.75, 90.5, 60.5), (0.25, 0.5, 299.75, 199.5)], np.float32)
    found = crop_resize(frame, boxes, (13, 21), antialias=True, edge="image", device="cpu")
    for item, box in zip(found, boxes, strict=True):
        assert difference(item, pil(frame, box, (13, 21), whole=True)) < FINE


def test_a_reduced_checkerboard_becomes_grey():
    """Without a filter it would be black, white, or anything between."""
    board = np.uint8(255) * ((np.arange(64)[:, None] + np.arange(64)) % 2).astype(np.uint8)[..., None]
    found = crop_resize(board, [[0, 0, 64, 64]], (8, 8), antialias=True, device="cpu")
    assert np.abs(found - 127.5).max() < 1
    assert np.ptp(crop_resize(board, [[0, 0, 63, 61]], (8, 8), device="cpu")) > 100


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("size", SIZES)
def test_letterboxing_equals_opencv(frame, size, layout):
    pad = (114.0, 7.0, 200.0)
    found, transform = crop_resize(
        frame, BOXES, size, letterbox=True, pad_value=pad, layout=layout, device="cpu"
    )
    planes = found if layout == "NCHW" else found.transpose(0, 3, 1, 2)
    assert transform.shape == (len(BOXES), 4) and transform.dtype == np.float32
    for item, row, box in zip(planes, transform, BOXES, strict=True):
        expected, back = letterbox(frame, box, size, (*pad, 0))
        assert difference(item, expected) < LEVELS
        assert np.allclose(row, back, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("frame_dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_every_combination_of_types_equals_the_reference(channels, frame_dtype, layout, dtype):
    frames = np.stack([random_frame(100, 150, channels, frame_dtype, seed) for seed in range(2)])
    boxes = np.array(BOXES[:1] * 2 + [(0, 0, 150, 100), (7, 3, 100, 90), (2.5, 3.25, 20, 90)], np.float32)
    index = [1, 0, 1, 0, 1]
    mean, std = np.full(channels, 3.0), np.full(channels, np.iinfo(frame_dtype).max / 255 * 2.0)
    for antialias in (False, True):
        options = {"layout": layout, "letterbox": True, "edge": "image", "antialias": antialias,
                   "pad_value": 114.0, "frame_index": index}  # fmt: skip
        found, _ = crop_resize(
            frames, boxes, (30, 41), mean=mean, std=std, dtype=dtype, device="cpu", **options
        )
        expected = reference.crop_resize(frames, boxes, (30, 41), mean, std, **options)
        if dtype == "uint8":
            expected = expected.clip(0, 255)
        assert found.dtype == dtype and found.shape == expected.shape
        tolerance = LEVELS / 2 + {"float32": 0, "float16": 0.0313, "uint8": 0.5}[dtype]
        assert difference(found, expected) <= tolerance


@pytest.mark.parametrize("kind", [list, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("options", [{}, {"edge": "image"}, {"antialias": True}])
def test_several_frames_equal_one_call_per_frame(kind, options):
    frames = np.stack([random_frame(60, 80, seed=seed) for seed in range(3)])
    boxes = np.array([[1, 2, 30, 40], [0, 0, 80, 60], [5, 5, 6, 6], [3.5, 2.25, 60, 50]])
    index = [2, 0, 2, 1]
    found = crop_resize(
        frames, boxes, (9, 11), frame_index=index if kind is list else np.array(index, kind), device="cpu", **options
    )  # fmt: skip
    for item, number, box in zip(found, index, boxes, strict=True):
        alone = crop_resize(frames[number], box[None], (9, 11), device="cpu", **options)
        assert np.array_equal(item, alone[0])


def test_frames_of_a_larger_array_are_read_in_place():
    whole = np.stack([random_frame(90, 120, seed=seed) for seed in range(4)])
    part = whole[::2, 10:60, 20:100]
    boxes = [[0, 0, 80, 50], [3, 4, 30, 40]]
    expected = crop_resize(np.ascontiguousarray(part), boxes, (16, 16), frame_index=[1, 0], device="cpu")
    assert np.array_equal(crop_resize(part, boxes, (16, 16), frame_index=[1, 0], device="cpu"), expected)


def test_a_plan_with_options_runs_many_times_in_the_same_memory():
    frames = np.stack([random_frame(60, 80, seed=seed) for seed in range(3)])
    options = {"letterbox": True, "edge": "image", "antialias": True, "pad_value": 9}
    plan = CropPlan(frames, 4, (8, 20), device="cpu", **options)
    boxes = np.array([[1, 2, 30, 40], [0, 0, 80, 60], [5, 5, 6, 6], [3, 2, 60, 50]])
    memory = plan.run(frames, boxes, frame_index=[0, 0, 0, 0])
    for index in ([0, 2], [1], [2, 2, 1, 0]):
        some = boxes[: len(index)]
        found = plan.run(frames, some, frame_index=index)
        once = crop_resize(frames, some, (8, 20), frame_index=index, device="cpu", **options)
        for array, right, held in zip(found, once, memory, strict=True):
            assert np.array_equal(array, right)
            assert np.shares_memory(array, held)


def test_a_plan_for_many_frames_takes_fewer():
    frames = np.stack([random_frame(60, 80, seed=seed) for seed in range(3)])
    plan = CropPlan(frames, 2, (8, 8), device="cpu")
    found = plan.run(frames[:1], [[0, 0, 9, 9]], frame_index=[0])
    assert np.array_equal(found, crop_resize(frames[0], [[0, 0, 9, 9]], (8, 8), device="cpu"))


def test_no_boxes_give_an_empty_result_and_transform():
    found, transform = crop_resize(random_frame(9, 9)[None], np.empty((0, 4)), (8, 8), frame_index=[],
                                   letterbox=True, device="cpu")  # fmt: skip
    assert found.shape == (0, 3, 8, 8) and transform.shape == (0, 4)


@pytest.mark.parametrize("options", [{"edge": "image"}, {"antialias": True}, {"letterbox": True}])
def test_many_and_few_boxes_give_the_same_values(frame, options):
    """Few boxes are cut into bands of rows, many are not; the answer must not depend on it."""
    boxes = np.tile(np.array([[3, 5, 40, 170]]), (64, 1))
    many = crop_resize(frame, boxes, (223, 50), device="cpu", **options)
    one = crop_resize(frame, boxes[:1], (223, 50), device="cpu", **options)
    if "letterbox" in options:
        many, one = many[0], one[0]
    assert np.array_equal(many, np.repeat(one, 64, axis=0))
