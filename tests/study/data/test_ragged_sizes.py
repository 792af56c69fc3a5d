"""Sizes of ragged batches: the published mixes' counts, and reproducible draws."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from octopus.errors import InputError
from octopus_study.data import ragged

PUBLISHED = Path(__file__).parents[3] / "data" / "published"
POOL = np.array([[10, 20, 15, 40], [0, 0, 7, 3]])


def published(table, quantity):
    with open(PUBLISHED / table, newline="", encoding="utf-8") as stream:
        rows = csv.DictReader(stream)
        return {row["workload"]: int(row["value"]) for row in rows if row["quantity"] == quantity}


def test_the_mixes_of_images_have_the_published_pixels_within_a_per_cent():
    for mix, pixels in published("pipeline_images.csv", "pixels").items():
        assert ragged.flickr_shapes(mix, 42).prod(axis=1).sum() == pytest.approx(pixels, rel=0.01)


def test_the_mixes_of_sequences_have_exactly_the_published_elements():
    elements = published("ragged_sequences.csv", "elements")
    assert elements.keys() == ragged.SEQUENCES.keys()
    for mix, total in elements.items():
        lengths = ragged.sequence_lengths(mix, 42)
        assert lengths.sum() == total and lengths.min() > 0 and len(lengths) == ragged.SEQUENCES[mix][0]


def test_an_extreme_mix_wastes_more_padding():
    def waste(mix):
        lengths = ragged.sequence_lengths(mix, 42)
        return 1 - lengths.mean() / lengths.max()

    assert waste("nlp-extreme-1k") > waste("nlp-1k")


def test_drawn_boxes_are_those_of_the_pool():
    shapes = ragged.mapping_shapes("visdrone", 50, POOL, 1)
    assert set(map(tuple, shapes.tolist())) == {(20, 5), (3, 7)}
    assert np.array_equal(shapes, ragged.mapping_shapes("visdrone", 50, POOL, 1))


@pytest.mark.parametrize(("name", "low", "high"), [("tiny", 4, 16), ("large", 100, 512)])
def test_generated_sides_keep_their_limits(name, low, high):
    shapes = ragged.mapping_shapes(name, 2000, POOL, 1)
    assert (shapes.min(), shapes.max()) == (low, high)


def test_a_quick_look_takes_the_same_images_smaller():
    whole, small = ragged.flickr_shapes("flickr-500-4k", 42), ragged.flickr_shapes("flickr-500-4k", 42, 100)
    assert (small[:-1] == whole[:-1] // 5).all() and (small[-1] == whole[-1]).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: ragged.mapping_shapes("huge", 1, POOL, 1),
        lambda: ragged.flickr_shapes("flickr-7", 1),
        lambda: ragged.sequence_lengths("nlp", 1),
    ],
)
def test_unknown_names_are_told(call):
    with pytest.raises(InputError, match="use "):
        call()
