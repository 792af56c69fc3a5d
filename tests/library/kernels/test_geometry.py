"""Boxes that reach beyond the frame: the scalar functions, and the reference against cut-outs of a padded frame."""

from types import SimpleNamespace

import hypothesis.strategies as st
import numba
import numpy as np
import pytest
from cases.crops import PAD_MODES, SETS, random_frame
from hypothesis import given, settings

from octopus.kernels import geometry
from octopus_study.reference import crops as reference

FAR = geometry.MAX_COORDINATE
COMPILED = SimpleNamespace(beyond_pixel=numba.njit(geometry.beyond_pixel), span=numba.njit(geometry.span))
KINDS = pytest.mark.parametrize("functions", [geometry, COMPILED], ids=["python", "compiled"])

OF_REFERENCE = [{name: value for name, value in options.items() if name != "return_transform"} for options in SETS]


@KINDS
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 5000, FAR])
def test_every_pixel_beyond_the_frame_has_one_within_that_stands_for_it(functions, limit):
    near = np.concatenate([np.arange(-40, 40), limit + np.arange(-9, 40), -limit + np.arange(-9, 9)])
    index = np.append(near, [-(2**31), 2**31 - 1, FAR, -FAR]).clip(-(2**31), 2**31 - 1).astype(np.int32)
    period = np.arange(limit).tolist() + np.arange(limit - 2, 0, -1).tolist() if limit < FAR else None
    for i in index.tolist():
        found = [functions.beyond_pixel(np.int32(i), np.int32(limit), np.int32(mode)) for mode in range(3)]
        mirrored = period[i % len(period)] if period else FAR - 1 - abs(i % (2 * FAR - 2) - FAR + 1)
        assert found == [i if 0 <= i < limit else -1, min(max(i, 0), limit - 1), mirrored]


@KINDS
@pytest.mark.parametrize(("low", "high"), [
    (-0.3, 0.3), (-5, -2), (-5.5, 2.25), (-3.5, -3.25), (-1e-10, 1e-10), (0, 1), (3.5, 3.75), (FAR - 20, FAR),
    (-FAR, 9 - FAR), (2.0**23 - 3.5, 2.0**23),
])  # fmt: skip
def test_a_span_holds_the_pixels_that_the_box_touches(functions, low, high):
    low, high = np.float32(low), np.float32(high)
    first, last, origin, extent = functions.span(low, high)
    assert (first, first + last + 1) == (np.floor(low), np.ceil(high))
    assert origin == np.float32(np.float64(low) - np.floor(low)) - np.float32(0.5)
    assert extent == high - low
    if low >= 0 and high <= 7:
        assert functions.span(low, high) == geometry.box_axis(low, high, np.int32(7))


@pytest.mark.parametrize(("box", "good"), [
    ((-9, -9, -3, -3), True), ((FAR - 9, 0, FAR, 9), True), ((0, 0, 16384, 1), True), ((0, 0, 16385, 1), False),
    ((0, -16385, 1, 0), False), ((FAR - 9, 0, FAR + 2, 9), False), ((-FAR - 2, 0, -FAR, 9), False),
    ((3, 3, 3, 9), False), ((3, 9, 4, 3), False), ((np.nan, 0, 1, 1), False), ((0, 0, 1, np.nan), False),
    ((-np.inf, 0, 1, 1), False), ((0, 0, 1, np.inf), False),
])  # fmt: skip
def test_which_boxes_can_be_made_without_cutting_them(box, good):
    assert geometry.span_is_usable(*np.float32(box)) == good


def padded(frame, margin, mode, value):
    """A frame with `margin` pixels around it, made by `numpy.pad`."""
    more = {"constant_values": 0} if mode == "constant" else {}
    planes = [np.pad(plane.astype(np.float64), margin, mode, **more) for plane in np.moveaxis(frame, 2, 0)]
    result = np.stack(planes, axis=2)
    if mode == "constant":
        result[np.pad(np.zeros(frame.shape[:2], bool), margin, constant_values=True)] = value
    return result


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from(PAD_MODES), st.sampled_from(OF_REFERENCE))
def test_the_references_padding_equals_a_cut_out_of_a_padded_frame(data, mode, options):
    height, width, *size = (data.draw(st.integers(1, most)) for most in (6, 6, 9, 9))
    corner = [data.draw(st.floats(-30, 30, width=32)) for _ in range(2)]
    sides = [data.draw(st.floats(0.015625, 25, width=32)) for _ in range(2)]
    if data.draw(st.booleans()):
        corner, sides = np.floor(corner), np.ceil(sides)
    boxes, frame = np.array([[*corner, *np.add(corner, sides)]]), random_frame(height, width, 2)
    mean, std, value, margin = np.array([3.0, 4.0]), np.array([2.0, 1.0]), np.array([114.0, 9.0]), 90
    options = options | {"pad_value": value}  # 90: 30, the side of a box, and what its filter reaches
    found = reference.crop_resize(frame, boxes, size, mean, std, outside="pad", pad_mode=mode, **options)
    whole = padded(frame, margin, mode, value)
    assert np.abs(found - reference.crop_resize(whole, boxes + margin, size, mean, std, **options)).max() < 1e-9


def test_the_reference_cuts_boxes_at_the_frame():
    frame, boxes = random_frame(20, 30), np.array([[-5, -9.5, 12, 8], [25.25, 3, 99, 44]])
    inside = np.array([[0, 0, 12, 8], [25.25, 3, 30, 20]])
    for options in OF_REFERENCE:
        found = [reference.crop_resize(frame, some, (5, 9), 0, 1, **options) for some in (boxes, inside)]
        assert np.array_equal(*found)
    assert np.array_equal(reference.cut(boxes, frame), inside)
