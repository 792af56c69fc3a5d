"""`crop_resize` and `CropPlan` on the CPU: answers, dtypes, layouts, interchange, reuse."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from gpu import random_frame
from hypothesis import given, settings

from octopus import CropPlan, crop_resize
from octopus_study.reference import crops as reference
from octopus_study.reference.images import cast

LEVELS = 0.255  # 1e-3 of the range 0 to 255


def opencv(frame, boxes, size):
    """Float crops, resized one by one."""
    cv2 = pytest.importorskip("cv2")
    crops = [
        cv2.resize(frame[y1:y2, x1:x2].astype(np.float32), size[::-1], interpolation=cv2.INTER_LINEAR)
        for x1, y1, x2, y2 in boxes
    ]
    return np.stack(crops).reshape(len(boxes), *size, frame.shape[2])


EDGES = [
    (0, 0, 1, 1),  # one pixel
    (299, 199, 300, 200),  # the last pixel
    (0, 0, 300, 200),  # the whole frame
    (0, 0, 300, 1),  # one row
    (299, 0, 300, 200),  # one column
    (5, 7, 9, 10),  # enlarged
    (1, 1, 299, 199),  # reduced
]


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("frame_dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_every_combination_equals_opencv(channels, frame_dtype, layout, dtype):
    frame = random_frame(200, 300, channels, frame_dtype)
    top = float(np.iinfo(frame_dtype).max)
    std = np.array(top / 255 * 2.0)
    expected = (opencv(frame, EDGES, (40, 56)) - 3.0) / std
    # In units of the result: 1e-3 of the range, for float16 and uint8 also half a step of the type.
    tolerance = LEVELS / 2 + {"float32": 0, "float16": 0.0313, "uint8": 0.5}[dtype]
    if dtype == "uint8":
        expected = expected.clip(0, 255)
    found = crop_resize(frame, EDGES, (40, 56), mean=3.0, std=std, dtype=dtype, layout=layout, device="cpu")
    assert found.dtype == dtype
    assert found.shape == ((7, channels, 40, 56) if layout == "NCHW" else (7, 40, 56, channels))
    planes = found.transpose(0, 2, 3, 1) if layout == "NCHW" else found
    assert np.abs(planes.astype(np.float64) - expected).max() <= tolerance


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_box_equals_the_reference(data):
    width, height = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 40))
    frame = random_frame(height, width, 3, seed=width * 41 + height)
    x1 = data.draw(st.floats(0, width, exclude_max=True, width=32))
    y1 = data.draw(st.floats(0, height, exclude_max=True, width=32))
    x2 = data.draw(st.floats(float(np.nextafter(np.float32(x1), np.float32(np.inf))), width, width=32))
    y2 = data.draw(st.floats(float(np.nextafter(np.float32(y1), np.float32(np.inf))), height, width=32))
    size = data.draw(st.tuples(st.integers(1, 33), st.integers(1, 70)))
    box = np.array([[x1, y1, x2, y2]], np.float32)
    found = crop_resize(frame, box, size, device="cpu")
    expected = reference.crop_resize(frame, box, size, np.zeros(3), np.ones(3))
    assert np.abs(found - expected).max() < LEVELS


def test_a_constant_frame_stays_constant():
    frame = np.full((50, 60, 3), 77, np.uint8)
    assert (crop_resize(frame, [[3.3, 4.7, 21.2, 40.1]], device="cpu") == 77).all()


def test_uint8_rounds_half_to_even_and_saturates():
    frame = np.array([[[1], [2], [250]]], np.uint8)
    boxes = [[0, 0, 1, 1], [1, 0, 2, 1], [2, 0, 3, 1]]
    halves = crop_resize(frame, boxes, (1, 1), mean=-0.5, dtype="uint8", device="cpu").ravel()
    assert halves.tolist() == [2, 2, 250]
    far = crop_resize(frame, boxes, (1, 1), mean=100, std=0.5, dtype="uint8", device="cpu").ravel()
    assert far.tolist() == [0, 0, 255]


def test_float16_rounds_as_numpy_does():
    """Every uint16 value through gains that reach normal, subnormal and overflowing results."""
    frame = np.arange(65536, dtype=np.uint16).reshape(256, 256, 1)
    for std in (1.0, 0.3, 7.0, 1e4, 1e9, 1e12):
        args = {"mean": 20000.0, "std": std, "device": "cpu"}
        exact = crop_resize(frame, [[0, 0, 256, 256]], (256, 256), **args)
        half = crop_resize(frame, [[0, 0, 256, 256]], (256, 256), dtype="float16", **args)
        with np.errstate(over="ignore"):
            assert np.array_equal(half, exact.astype(np.float16))


@pytest.mark.parametrize("options", [{}, {"letterbox": True}, {"antialias": True}], ids=str)
def test_bfloat16_is_float32_rounded(options):
    """Memory of uint16 takes its bits; what a call makes itself is a tensor of torch."""
    call, frame = {"mean": 100.0, "std": 0.3, "device": "cpu", **options}, random_frame()
    plan = CropPlan(frame, len(EDGES), (32, 48), dtype="bfloat16", allocate=False, **call)
    bits = np.zeros((len(EDGES), 3, 32, 48), np.uint16)
    plan.run(frame, EDGES, out=bits)
    exact = crop_resize(frame, EDGES, (32, 48), **call)
    assert np.array_equal(bits, cast(exact[0] if "letterbox" in options else exact, "bfloat16"))


def test_rows_of_a_larger_frame_are_read_in_place():
    whole = random_frame(90, 120, 3)
    part = whole[10:60, 20:100]
    boxes = np.array([[0, 0, 80, 50], [3, 4, 30, 40]])
    found = crop_resize(part, boxes, (16, 16), device="cpu")
    assert np.array_equal(found, crop_resize(np.ascontiguousarray(part), boxes, (16, 16), device="cpu"))


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8, np.float32, np.float64, list])
def test_boxes_of_any_number_type(kind):
    frame = random_frame(60, 60, 3)
    boxes = [[1, 2, 30, 40], [5, 5, 6, 6]]
    given_boxes = boxes if kind is list else np.array(boxes, kind)
    expected = crop_resize(frame, np.array(boxes, np.int32), (8, 8), device="cpu")
    assert np.array_equal(crop_resize(frame, given_boxes, (8, 8), device="cpu"), expected)


def test_no_boxes_give_an_empty_result():
    assert crop_resize(random_frame(9, 9, 3), np.empty((0, 4)), device="cpu").shape == (0, 3, 224, 224)


class Foreign:
    """An array of a library that Octopus doesn't know, offering DLPack alone."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **kwargs):
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_dlpack_arrays_are_understood_without_a_copy():
    frame = random_frame(60, 60, 3)
    boxes = np.array([[1, 2, 30, 40]], np.float32)
    out = np.full((1, 3, 8, 8), np.nan, np.float32)
    found = crop_resize(Foreign(frame), Foreign(boxes), (8, 8), out=out, device="cpu")
    assert found is out
    assert np.array_equal(out, crop_resize(frame, boxes, (8, 8), device="cpu"))


def test_a_plan_runs_many_times_in_the_same_memory():
    frame = random_frame(60, 80, 3)
    plan = CropPlan(frame, 4, (8, 8), device="cpu")
    first = plan.run(frame, [[0, 0, 10, 10], [5, 5, 60, 50]])
    kept = first.copy()
    second = plan.run(random_frame(30, 40, 3, seed=3), [[0, 0, 9, 9]])
    assert np.shares_memory(first, second)
    assert second.shape == (1, 3, 8, 8)
    assert np.array_equal(first[1], kept[1])
    assert not np.array_equal(first[0], kept[0])


def test_many_and_few_boxes_give_the_same_values():
    """Few boxes are cut into bands of rows, many are not; the answer must not depend on it."""
    frame = random_frame(200, 300, 3)
    boxes = np.tile(np.array([[3, 5, 40, 170]]), (64, 1))
    many = crop_resize(frame, boxes, (223, 50), device="cpu")
    one = crop_resize(frame, boxes[:1], (223, 50), device="cpu")
    assert np.array_equal(many, np.repeat(one, 64, axis=0))
