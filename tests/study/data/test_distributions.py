"""Boxes, mixes, clips and samples by rule and seed, with the published numbers."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopus.errors import InputError
from octopus_study.data import ragged, synthetic, visdrone
from octopus_study.data.distributions import bimodal, long_tail, padding_waste, satellite_tiles, size_quantiles, uniform
from octopus_study.data.video import detection_counts, make_clips, panned

FRAME = (3840, 2160)


@pytest.mark.parametrize(("generator", "actual_mb", "padded_mb", "per_cent"), [
    (uniform, 204, 750, 73), (long_tail, 18, 457, 96), (bimodal, 262, 750, 65),
])  # fmt: skip
def test_published_padding_waste(generator, actual_mb, padded_mb, per_cent):
    waste = padding_waste(generator(1000, *FRAME))
    found = (waste.actual_bytes / 2**20, waste.padded_bytes / 2**20, 100 * waste.fraction)
    assert tuple(map(round, found)) == (actual_mb, padded_mb, per_cent)


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


PUBLISHED = Path(__file__).parents[3] / "data" / "published"
POOL = np.array([[10, 20, 15, 40], [0, 0, 7, 3]])


def published(table, quantity):
    with open(PUBLISHED / table, newline="", encoding="utf-8") as stream:
        rows = csv.DictReader(stream)
        return {row["workload"]: int(row["value"]) for row in rows if row["quantity"] == quantity}


def test_the_mixes_of_images_have_the_published_pixels_within_a_per_cent():
    for mix, pixels in published("pipeline_images.csv", "pixels").items():
        found = ragged.photo_shapes(mix.replace("flickr", "photos"), 42).prod(axis=1).sum()
        assert found == pytest.approx(pixels, rel=0.01)


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


TRACK = np.array([[x, 2 * x, x + 30, 2 * x + 40] for x in range(100)], np.int32)


def test_the_published_clips_have_851_4162_and_8347_detections(root):
    assert [int(counts.sum()) for counts in detection_counts()] == [851, 4162, 8347]
    counts = np.concatenate(detection_counts())
    assert (counts.min(), counts.max(), len(counts)) == (5, 50, 16 * 30)
    published = pd.read_csv(root / "data/published/drone_video.csv").set_index("quantity").value
    assert [published["detections_1s"], published["detections_10s"]] == [851, 8347]


def test_a_clip_has_the_counts_and_boxes_of_the_pool_none_twice_in_a_frame():
    clips = make_clips(TRACK)
    assert [clip.name for clip in clips] == ["clip-1s", "clip-5s", "clip-10s"]
    assert [clip.detections for clip in clips] == [851, 4162, 8347]
    assert [len(clip.boxes) for clip in clips] == [30, 150, 300]
    known = {tuple(box) for box in TRACK.tolist()}
    for boxes in clips[0].boxes:
        assert boxes.dtype == np.int32 and boxes.flags.c_contiguous
        found = [tuple(box) for box in boxes.tolist()]
        assert len(set(found)) == len(found) and known.issuperset(found)


def test_frames_pan_to_the_right_and_mirror_the_edge():
    frame = np.arange(2 * 7 * 3, dtype=np.uint8).reshape(2, 7, 3)
    ring = panned(frame, 3, step=2)
    assert ring.shape == (3, 2, 7, 3) and np.array_equal(ring[0], frame)
    assert np.array_equal(ring[1][:, :-2], frame[:, 2:])
    assert np.array_equal(ring[1][:, -1], frame[:, -3]) and np.array_equal(ring[1][:, -2], frame[:, -2])


REFUSED = [
    (lambda: padding_waste([1, 2, 3, 4]), "shape"),
    (lambda: uniform(-1, *FRAME), "n must be 0 or more"),
    (lambda: satellite_tiles(0, 10), "at least 1"),
    (lambda: ragged.mapping_shapes("huge", 1, POOL, 1), "use "),
    (lambda: ragged.photo_shapes("photos-7", 1), "use "),
    (lambda: ragged.sequence_lengths("nlp", 1), "use "),
    (lambda: detection_counts(detections=(0, 4)), None),
    (lambda: detection_counts(detections=(5, 4)), None),
    (lambda: make_clips(TRACK[:0]), None),
    (lambda: panned(np.zeros((2, 7, 3), np.uint8), 5, step=2), None),
    (lambda: panned(np.zeros((2, 7, 3), np.uint8), 0), None),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_bad_arguments_are_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_pool_has_the_published_sizes_within_5_per_cent_and_obeys_the_rule_of_the_real_one(drone_root):
    pool = synthetic.drone_pool()
    sides = pool[:, 2:] - pool[:, :2]
    assert len(pool) == 2045
    np.testing.assert_allclose(np.median(sides, axis=0), (39, 56), rtol=0.05)  # width and height of the published pool
    np.testing.assert_allclose(np.percentile(sides, 95, axis=0), (162, 151), rtol=0.05)
    assert sides.min() >= 16 and sides.max() <= 320
    assert (pool[:, :2] >= 1).all() and (pool[:, 2:] < visdrone.CANONICAL_FRAME).all()
    # Reading applies the rule again, so every generated box must survive it, in order.
    np.testing.assert_array_equal(visdrone.load_pool(drone_root), pool)


def test_sample_is_always_the_same(drone_root, tmp_path):
    again = synthetic.write_drone_sample(tmp_path / "again")
    assert visdrone.content_digest(again) == visdrone.content_digest(drone_root)
    assert sorted(p.name for p in again.iterdir()) == ["annotations", "image_sizes.csv", "images"]


def test_frame_has_texture_and_objects():
    boxes = synthetic.drone_pool()[:40]
    frame = synthetic.drone_frame(boxes).astype(int)
    assert frame.shape == (1080, 1920, 3)
    assert np.abs(np.diff(frame, axis=1)).mean() > 2  # neighbours differ everywhere, not only at edges
    assert (frame.std(axis=(0, 1)) > 30).all()
    empty = synthetic.drone_frame(boxes[:0]).astype(int)
    inside = np.zeros(frame.shape[:2], dtype=bool)
    for left, top, right, bottom in boxes:
        inside[top:bottom, left:right] = True
    change = np.abs(frame - empty).mean(axis=2)
    assert change[inside].mean() > 3 * change[~inside].mean()


def test_greenland_band():
    band = synthetic.greenland_band()
    assert band.shape == (1000, 1000) and band.dtype == np.uint16
    assert band.min() > 0 and band.max() <= 10_000
    np.testing.assert_allclose(band.mean(), 4762, rtol=0.05)
    dark, bright = (band < 1000).mean(), (band > 6500).mean()
    assert 0.002 < dark < 0.05 and 0.005 < bright < 0.10
    np.testing.assert_array_equal(band, synthetic.greenland_band())
    assert synthetic.greenland_band(30, 70).shape == (30, 70)
