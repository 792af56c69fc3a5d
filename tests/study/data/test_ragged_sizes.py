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
