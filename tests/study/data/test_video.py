"""What is generated: the sample's boxes, frame and band, and clips of a drone's video with the published numbers."""

import numpy as np
import pandas as pd
import pytest

from octopus.errors import InputError
from octopus_study.data import synthetic, visdrone
from octopus_study.data.video import detection_counts, make_clips, panned

POOL = np.array([[x, 2 * x, x + 30, 2 * x + 40] for x in range(100)], np.int32)


def test_the_published_clips_have_851_4162_and_8347_detections(root):
    assert [int(counts.sum()) for counts in detection_counts()] == [851, 4162, 8347]
    counts = np.concatenate(detection_counts())
    assert (counts.min(), counts.max(), len(counts)) == (5, 50, 16 * 30)
    published = pd.read_csv(root / "data/published/drone_video.csv").set_index("quantity").value
    assert [published["detections_1s"], published["detections_10s"]] == [851, 8347]


def test_a_clip_has_the_counts_and_boxes_of_the_pool_none_twice_in_a_frame():
    clips = make_clips(POOL)
    assert [clip.name for clip in clips] == ["clip-1s", "clip-5s", "clip-10s"]
    assert [clip.detections for clip in clips] == [851, 4162, 8347]
    assert [len(clip.boxes) for clip in clips] == [30, 150, 300]
    known = {tuple(box) for box in POOL.tolist()}
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


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: detection_counts(detections=(0, 4)),
        lambda: detection_counts(detections=(5, 4)),
        lambda: make_clips(POOL[:0]),
        lambda: panned(np.zeros((2, 7, 3), np.uint8), 5, step=2),
        lambda: panned(np.zeros((2, 7, 3), np.uint8), 0),
    ],
)
def test_what_gives_no_video_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()


MEDIAN, P95 = (39, 56), (162, 151)
"""Width and height of the published pool, in pixels."""


def sides(boxes):
    return boxes[:, 2:] - boxes[:, :2]


def test_pool_has_the_published_sizes_within_5_per_cent(drone_root):
    pool = visdrone.load_pool(drone_root)
    assert len(pool) == 2045
    np.testing.assert_allclose(np.median(sides(pool), axis=0), MEDIAN, rtol=0.05)
    np.testing.assert_allclose(np.percentile(sides(pool), 95, axis=0), P95, rtol=0.05)


def test_pool_obeys_the_rule_of_the_real_one(drone_root):
    pool = synthetic.drone_pool()
    assert sides(pool).min() >= 16 and sides(pool).max() <= 320
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
