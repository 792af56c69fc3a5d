"""`map_back`: from letterboxed items to the frame and back again."""

import hypothesis.strategies as st
import numpy as np
import pytest
from cases.crops import BOXED
from hypothesis import given, settings

from octopus import crop_resize, map_back
from octopus_study.reference import crops as reference

FRAME = np.zeros((400, 600, 3), np.uint8)
BOXES = np.array([[0, 0, 600, 400], [10, 20, 110, 370], [300.5, 100.25, 420, 130]], np.float32)


@pytest.fixture(scope="module")
def transform():
    return crop_resize(FRAME, BOXES, (64, 80), **BOXED, device="cpu")[1]


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 2))
def test_a_point_of_the_frame_comes_back(transform, u, v, item):
    box = BOXES[item].astype(np.float64)
    point = box[:2] + (box[2:] - box[:2]) * (u, v)
    at = reference.place(box, (64, 80))
    there = np.array([at.left + u * at.width, at.top + v * at.height])
    positions = np.tile(there, (3, 1))
    assert np.abs(map_back(positions, transform)[item] - point).max() < 1e-3


@pytest.mark.parametrize("shape", [(3, 2), (3, 4), (3, 5, 2), (3, 5, 4), (3, 0, 4), (3, 2, 3, 2)])
def test_points_and_boxes_of_any_number_keep_their_shape(transform, shape):
    positions = np.random.default_rng(0).uniform(0, 64, shape).astype(np.float32)
    found = map_back(positions, transform)
    assert found.shape == shape and found.dtype == np.float32
    flat = positions.reshape(3, -1, 2)
    expected = flat * transform[:, None, :2] + transform[:, None, 2:]
    assert np.array_equal(found, expected.reshape(shape))


def test_lists_and_integers_and_no_items(transform):
    assert map_back([[0, 0], [1, 1], [2, 2]], transform).shape == (3, 2)
    assert map_back(np.zeros((3, 2), int), transform).dtype.kind == "f"
    assert map_back(np.empty((0, 7, 4)), np.empty((0, 4), np.float32)).shape == (0, 7, 4)
