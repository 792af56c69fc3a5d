"""Methods on a video: every frame's own crops, whichever frame was worked on before, and streams."""

from __future__ import annotations

import numpy as np
import pytest

from octopus import crop_resize
from octopus_study.data.video import make_clips, panned
from octopus_study.studies.drone.stream import BUFFERS, KernelsAlone, Streamed
from octopus_study.studies.drone.video import FRAME_METHODS, Video

SIZE, MEAN, STD = (20, 28), (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)
FRAME = np.random.default_rng(1).integers(0, 256, (120, 160, 3), np.uint8)
RING = panned(FRAME, 3, step=5)
POOL = np.array([[x, y, x + 9 + x % 13, y + 5 + y % 17] for x in range(0, 130, 7) for y in range(0, 90, 8)], np.int32)
CLIP = make_clips(POOL, (1,), frame_rate=8, detections=(1, 6))[0]
OPTIONS = {"size": SIZE, "mean": MEAN, "std": STD}
ON_CPU = [name for name in FRAME_METHODS if name != "octopus-graph"]


def video():
    return Video(RING, CLIP.boxes, SIZE, MEAN, STD, "cpu")


def right(number, ring=3):
    return crop_resize(RING[number % ring], CLIP.boxes[number], SIZE, mean=MEAN, std=STD, device="cpu")


@pytest.mark.parametrize("name", ON_CPU)
def test_a_method_makes_the_crops_of_the_frame_that_the_video_was_turned_to(name):
    clip = video()
    method = FRAME_METHODS[name](clip)
    tolerance = 0.01 if method.why_different else 1e-4  # the published passes round to uint8
    for number in (3, 0, 7, 4):
        clip.turn(number)
        method.job.poison()
        method.run()
        assert np.abs(method.job.result() - right(number)).max() < tolerance


def loops(device):
    """Serial, overlapped, and without uploads."""
    inputs = (RING, CLIP.boxes, OPTIONS, device)
    return Streamed(*inputs, overlap=False), Streamed(*inputs, overlap=True), KernelsAlone(*inputs)


def last_crops(loop):
    """What a loop leaves on poisoned memory, and what it should leave: the crops of the last two frames."""
    loop.poison()
    loop.run()
    return loop.result(), np.concatenate([right(number, BUFFERS) for number in (6, 7)])


def test_streams_end_with_the_crops_of_the_last_two_frames():
    for loop in loops("cpu"):
        assert np.array_equal(*last_crops(loop))


def test_uploads_alone_hand_over_every_frame_and_leave_the_crops():
    streamed = Streamed(RING, CLIP.boxes, OPTIONS, "cpu", overlap=True)
    streamed.run()
    before = streamed.result().copy()
    streamed.upload()
    assert np.array_equal(streamed.result(), before)


@pytest.mark.gpu
@pytest.mark.parametrize("name", FRAME_METHODS)
def test_on_a_gpu_every_method_makes_every_frames_crops(name):
    clip = Video(RING, CLIP.boxes, SIZE, MEAN, STD, "cuda")
    method = FRAME_METHODS[name](clip)
    for _ in range(2):
        for number in (3, 0, 7, 4):
            clip.turn(number)
            method.job.poison()
            method.run()
            assert np.abs(method.job.result() - right(number)).max() < 0.01


@pytest.mark.gpu
def test_on_a_gpu_streams_give_the_same_crops():
    for loop in loops("cuda"):
        found, expected = last_crops(loop)
        assert np.abs(found - expected).max() < 1e-3
