"""None"""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopus.errors import InputError
from octopus_study.data import ragged
from octopus_study.data.distributions import (
    MEBIBYTE,
    bimodal,
    long_tail,
    padding_waste,
    satellite_tiles,
    size_quantiles,
    uniform,
)

FRAME = (3840, 2160)


@pytest.mark.parametrize(
    ("generator", "actual_mb", "padded_mb", "per_cent"),
    [(uniform, 204, 750, 73), (long_tail, 18, 457, 96), (bimodal, 262, 750, 65)],
)
def test_published_padding_waste(generator, actual_mb, padded_mb, per_cent):
    waste = padding_waste(generator(1000, *FRAME))
    assert round(waste.actual_bytes / MEBIBYTE) == actual_mb
    assert round(waste.padded_bytes / MEBIBYTE) == padded_mb
    assert round(100 * waste.fraction) == per_cent


@pytest.mark.parametrize("generator", [uniform, long_tail, bimodal])
def test_boxes_lie_inside_the_frame_and_depend_on_the_seed_alone(generator):
    boxes = generator(300, *FRAME)
    assert boxes.dtype == np.int32 and boxes.shape == (300, 4)
    assert (boxes[:, :2] >= 1).all() and (boxes[:, 2:] < FRAME).all()
    np.testing.assert_array_equal(boxes, generator(300, *FRAME))
    np.testing.assert_array_equal(boxes[:100], generator(100, *FRAME))
    assert (boxes != generator(300, *FRAME, seed=43)).any()


def test_side_ranges():
    for generator, low, high in ((uniform, 16, 512), (long_tail, 16, 400), (bimodal, 96, 512)):
        sides = size_quantiles(generator(4000, *FRAME), [0, 100])
        assert sides.min() == low and high - 3 <= sides.max() <= high
    sides = np.diff(bimodal(4000, *FRAME).reshape(-1, 2, 2), axis=1)
    assert not ((sides > 160) & (sides < 384)).any()


def test_published_satellite_tiling():
    tiles = satellite_tiles(8192, 8192)
    assert len(tiles) == 727
    assert len(np.unique(tiles[:, [1, 3]], axis=0)) == len(np.unique(tiles[:, 1]))  # one height per row


@settings(max_examples=25, deadline=None)
@given(width=st.integers(1, 1500), height=st.integers(1, 1500), seed=st.integers(0, 1000))
def test_satellite_tiles_cover_the_scene_exactly_once(width, height, seed):
    covered = np.zeros((height, width), dtype=np.uint8)
    for left, top, right, bottom in satellite_tiles(width, height, seed):
        covered[top:bottom, left:right] += 1
    assert (covered == 1).all()


def test_bad_arguments():
    with pytest.raises(InputError, match="shape"):
        padding_waste([1, 2, 3, 4])
    with pytest.raises(InputError, match="n must be 0 or more"):
        uniform(-1, *FRAME)
    with pytest.raises(InputError, match="at least 1"):
        satellite_tiles(0, 10)


PUBLISHED = Path(__file__).parents[3] / "data" / "published"
POOL = np.array([[10, 20, 15, 40], [0, 0, 7, 3]])


def published(table, quantity):
    with open(PUBLISHED / table, newline="", encoding="utf-8") as stream:
        rows = csv.DictReader(stream)
        return {row["workload"]: int(row["value"]) for row in rows if row["quantity"] == quantity}


def test_the_mixes_of_images_have_the_published_pixels_within_a_per_cent():
    for mix, pixels in published("pipeline_images.csv", "pixels").items():
        assert ragged.photo_shapes(mix.replace("flickr", "photos"), 42).prod(axis=1).sum() == pytest.approx(
            pixels, rel=0.01
        )


def test_the_mixes_of_sequences_have_exactly_the_published_elements():
    elements = published("ragged_sequences.csv", "elements")
    assert elements.keys() == ragged.SEQUENCES.keys()
    for mix, total in elements.items():
        lengths = ragged.sequence_lengths(mix, 42)
        assert lengths.sum() == total and lengths.min() > 0 and len(lengths) == ragged.SEQUENCES[mix][0]


def test_drawn_boxes_are_those_of_the_pool():
    shapes = ragged.mapping_shapes("visdrone", 50, POOL, 1)
    assert set(map(tuple, shapes.tolist())) == {(20, 5), (3, 7)}
    assert np.array_equal(shapes, ragged.mapping_shapes("visdrone", 50, POOL, 1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: ragged.mapping_shapes("huge", 1, POOL, 1),
        lambda: ragged.photo_shapes("photos-7", 1),
        lambda: ragged.sequence_lengths("nlp", 1),
    ],
)
def test_unknown_names_are_told(call):
    with pytest.raises(InputError, match="use "):
        call()
