"""Clips of a drone's video: the published numbers of detections, boxes of the pool, frames that pan."""

import numpy as np
import pandas as pd
import pytest

from octopus.errors import InputError
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
